"""Fleet: questions, ops and locks for all hosts at once, results by host; knows nothing of steps."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.hold import HOLD, TIME, hold_in
from launcher.model.plan import Op
from launcher.model.problem import LauncherError, LockedError, Problem
from launcher.model.run import Event, Listener
from launcher.model.wish import Wish
from launcher.remote import faults
from launcher.remote.agent_looks import LOOKS
from launcher.remote.connections import Connections
from launcher.remote.reboot import Reboot
from launcher.remote.session import Session
from launcher.wait import CLOCK, Clock, wait_for

T = TypeVar("T")
HOSTS_AT_ONCE = 128
LOCK_WITHIN_S = 30.0
LOCK_GRACE_S = 1.0
"""An agent whose controller was killed ends with its op: a run that follows at once waits so long for it."""
LOCK_RETRY_S = 0.2


@dataclass(frozen=True, slots=True)
class DoResult:
    """How the ops of one request went."""

    host: str
    error: Problem | None = None
    """Why not all ops are done."""
    failed_index: int | None = None
    """The op that failed: those before it are done, those after it were not begun. None: all are done, or the
    host was lost and nobody knows how far it came."""

    @property
    def ok(self) -> bool:
        """All ops are done."""
        return self.error is None


class Fleet:
    """The hosts of one wish, for one run. Connections open when first needed, one for each host."""

    def __init__(
        self,
        wish: Wish,
        *,
        runs_as: str,
        run_id: str,
        why: str = "",
        connections: Connections | None = None,
        clock: Clock = CLOCK,
    ) -> None:
        """`runs_as` is who it is, for people; `run_id` names the run, and `why` says what it is for, in the
        hosts' records and locks.

        `connections` that were entered before are left to whoever did; without, the fleet is to be entered.
        """
        self._settings = wish.inventory.ssh
        self._clock = clock
        self.connections = connections or Connections(wish)
        self._by = {"who": runs_as, "run": run_id, "from": socket.gethostname()}
        self._key = secrets.token_hex(32)
        """By it the guards of an instance that is ordered in this run know each other; never recorded."""
        if why:
            self._by["why"] = why
        self._locked: set[str] = set()

    def __enter__(self) -> Fleet:
        self.connections.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(
        self, questions: Mapping[str, Iterable[Probe]], within_s: float | None = None
    ) -> dict[str, Facts | Problem]:
        """Every host's answers, by one request each; an answer that could not be had is an `Unknown`."""
        limit_s = float(within_s if within_s is not None else self._settings.answer_within_s)
        asked = {host: tuple(dict.fromkeys(probes)) for host, probes in questions.items()}
        return self.map(asked, lambda host: self._ask(host, asked[host], limit_s))

    def do(
        self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str = ""
    ) -> DoResult:
        """These ops in order, up to the first that fails. `subject` goes into the events of jobs."""
        blobs = {hashlib.sha256(op.content).hexdigest(): op.content for op in ops if op.content is not None}
        frame = {"do": [wire_op(op) for op in ops], "by": self._by, "key": self._key}

        def on_event(event: dict[str, Any]) -> None:
            progress = event["progress"] or {}
            data = {"job": event["job"], **progress}
            listener(Event("job", str(progress.get("text", "")), host, subject, data))

        try:
            reply = self._session(host).request(
                frame, within_s=within_s, blobs=blobs, module="agent_ops", on_event=on_event
            )
        except LauncherError as lost:
            return DoResult(host, lost.problems[0])
        if "error" in reply:
            return DoResult(host, faults.op_failed(host, "the agent's record", reply["error"]), 0)
        for index, result in enumerate(reply["results"]):
            if not result["ok"]:
                return DoResult(host, faults.op_failed(host, describe(ops[index]), result["error"]), index)
        return DoResult(host)

    def map(self, hosts: Iterable[str], work: Callable[[str], T]) -> dict[str, T | Problem]:
        """`work` for each host, hosts in parallel; a LauncherError of one is its value and no one else's."""
        names = list(dict.fromkeys(hosts))

        def one(host: str) -> T | Problem:
            try:
                return work(host)
            except LauncherError as wrong:
                return wrong.problems[0]

        if not names:
            return {}
        pool = ThreadPoolExecutor(min(len(names), HOSTS_AT_ONCE))
        try:
            return dict(zip(names, pool.map(one, names), strict=True))
        except BaseException:  # ctrl-C: nobody waits for threads that are still connecting
            self.close()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def lock(self, hosts: Iterable[str]) -> dict[str, Problem]:
        """Keep other runs off these hosts until `close`. LockedError: another one is at work there, or
        somebody else holds them.

        The first host in name order decides between two runs over the same hosts, before any other is asked.
        Returns the Problems of hosts that could not be asked.
        """
        names = sorted(set(hosts) - self._locked)
        answers = {**self.map(names[:1], self._lock), **self.map(names[1:], self._lock)}
        refused = [refusal for a in answers.values() if isinstance(a, _Refused) for refusal in a.problems]
        if refused:
            self.close()
            raise LockedError(*refused)
        self._locked |= {host for host, answer in answers.items() if answer is None}
        return {host: answer for host, answer in answers.items() if isinstance(answer, Problem)}

    def reboot(self, host: str, *, listener: Listener, within_s: float) -> Problem | None:
        """Boot a host anew, wait until it has started everything, and lock it again where it was locked.

        None once it answers with another boot id; else why not, `within_s` after the order at the latest.
        """
        try:
            return Reboot(self, host, listener, within_s, self._clock).done()
        except LauncherError as lost:
            return lost.problems[0]

    def traffic(self) -> dict[str, tuple[int, int]]:
        """Bytes sent to and received from each host so far, SSH included."""
        return self.connections.traffic()

    def close(self) -> None:
        """Hang up everywhere; agents end between two ops and let go of their locks."""
        self.connections.close()

    def forget(self, host: str) -> bool:
        """Let go of a host's connection, and of its lock with it; was it locked?"""
        was_locked = host in self._locked
        self._locked.discard(host)
        self.connections.forget(host)
        return was_locked

    def _ask(self, host: str, probes: tuple[Probe, ...], within_s: float) -> Facts:
        frame = {"ask": [(p.kind, p.args) for p in probes]}
        session = self._session(host)
        module = "agent_looks" if any(p.kind in LOOKS for p in probes) else ""
        sent = time.time()
        reply = session.request(frame, within_s=within_s, module=module)
        ahead_s = certainly_ahead_s(sent, reply["at"], time.time())
        answers: dict[Probe, Any] = dict(zip(probes, reply["answers"], strict=True))
        for index, reason in reply["unknown"].items():
            answers[probes[int(index)]] = Unknown(reason)
        return Facts(host, answers, ahead_s)

    def _lock(self, host: str) -> _Refused | None:
        """Take the lock, and ask in the same request who holds the host."""
        frame = {"lock": {**self._by, "pid": os.getpid()}, "ask": [(HOLD.kind, HOLD.args)]}
        reply = wait_for(
            lambda: self._session(host).request(frame, within_s=LOCK_WITHIN_S),
            lambda told: "holder" not in told,
            every_s=LOCK_RETRY_S,
            within_s=LOCK_GRACE_S,
            clock=self._clock,
        ).answer
        if "error" in reply:
            raise LauncherError(faults.op_failed(host, "lock", reply["error"]))
        if not reply.get("held"):
            return _Refused((Holder(host, reply["holder"]).problem(),))
        hold = hold_in(reply["answers"][0] or {})
        now = time.strftime(TIME, time.gmtime())
        return _Refused((hold.problem(host),)) if hold and hold.keeps_out(self._by["who"], now) else None

    def _session(self, host: str) -> Session:
        return self.connections.session(host, again=host not in self._locked)


@dataclass(frozen=True, slots=True)
class _Refused:
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a host's lock."""

    host: str
    told: Mapping[str, Any]

    def problem(self) -> Problem:
        """The same, for people."""
        if not self.told:
            return Problem("another run is taking this host's lock", self.host, do="run again in a moment")
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.told["since"]))
        who = f"{self.told['who']} on {self.told['from']} (pid {self.told['pid']})"
        what_for = f": {self.told['why']}" if self.told.get("why") else ""
        return Problem(
            f"locked by run {self.told['run']} of {who} since {since}{what_for}",
            self.host,
            "two runs at once would undo each other's work; the lock goes when that run ends or dies",
            f"wait for it, or end it: on {self.told['from']}, `kill {self.told['pid']}`",
        )


def certainly_ahead_s(sent: float, there: Sequence[float], came: float) -> float:
    """Seconds that a clock is ahead of ours, by the times of a request: sent here, received and answered
    there, come back here. What the way may have taken is not counted: 0.0 where that explains all.

    >>> certainly_ahead_s(100.0, (100.2, 100.7), 101.0), certainly_ahead_s(100.0, (107.2, 107.7), 101.0)
    (0.0, 6.7)
    """
    most, least = there[0] - sent, there[1] - came
    return round(min(0.0, most) + max(0.0, least), 3)


def wire_op(op: Op) -> dict[str, Any]:
    """An op as it travels: its content by digest."""
    named = {"sha256": hashlib.sha256(op.content).hexdigest()} if op.content is not None else {}
    return {"op": op.verb, "args": dict(op.args), **named}


def describe(op: Op) -> str:
    """An op in a few words: its verb and what it is done to."""
    for name in ("path", "name", "key", "names", "words", "instance"):
        if name in op.args:
            value = op.args[name]
            return f"{op.verb} {value if isinstance(value, str) else ' '.join(value)}"
    return op.verb
