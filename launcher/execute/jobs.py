"""RemoteJob: one job on one host: how it stands, started or attached to, its result taken once, forgotten."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from launcher.execute.hands import Hands
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.job import Job, State
from launcher.model.plan import Op
from launcher.model.problem import LauncherError, Problem
from launcher.model.run import Listener

GRACE_S = 60.0
"""For what is not the job's own work: files on their way, the start of a unit, an answer."""
RESULT_BYTES = 32 << 20
"""Of one file."""
SAID: Mapping[State, str] = {
    "running": "attached to a run that was begun before",
    "done": "picked up a run that had ended and was not collected",
}


@dataclass(frozen=True, slots=True)
class RemoteJob:
    """A job, its host, and whom it tells. Each method raises LauncherError where the host is lost."""

    hands: Hands
    host: str
    job: Job
    listener: Listener
    subject: str

    def state(self) -> State:
        """As the host says now."""
        return self.job.state(self._ask(self.job.questions))

    def begin(self, state: State = "absent") -> None:
        """Start it, or attach to it where it runs, and wait for its end; LauncherError where it fails."""
        self._do(self.job.begun_from(state), within_s=self.job.within_s + GRACE_S)

    def collect(self, *names: str) -> tuple[str, ...]:
        """The JSON texts that it has left in these files; LauncherError where it has not. They stay there."""
        probes = tuple(Probe("read", (f"{self.job.folder}/{name}", RESULT_BYTES)) for name in names)
        facts = self._ask(probes)
        texts = tuple("" if isinstance(facts[p], Unknown) else str(facts[p].get("text", "")) for p in probes)
        try:
            for text in texts:
                json.loads(text)
        except ValueError:
            what = f"{self.subject} ended well and left no result"
            do = f"ssh {self.host} journalctl -u {self.job.unit}, and run it again"
            raise LauncherError(Problem(what, f"{self.host}, {self.job.folder}", do=do)) from None
        return texts

    def discard(self) -> None:
        """Its result is kept elsewhere, or wanted no more: the next one who asks for it starts it."""
        self._do(self.job.discarded, within_s=GRACE_S)

    def _ask(self, questions: Sequence[Probe]) -> Facts:
        facts = self.hands.ask({self.host: questions}, within_s=GRACE_S)[self.host]
        if isinstance(facts, Problem):
            raise LauncherError(facts)
        return facts

    def _do(self, ops: Sequence[Op], *, within_s: float) -> None:
        done = self.hands.do(self.host, ops, listener=self.listener, within_s=within_s, subject=self.subject)
        if done.error:
            raise LauncherError(done.error)
