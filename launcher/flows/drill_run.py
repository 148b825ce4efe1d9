"""One drill: planted under a steady load, seen, ended, whole again; what became of the requests meanwhile."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.flows.diagnose import of_hosts
from launcher.flows.drill import Case, Ground, perform
from launcher.flows.runbook import fill_in
from launcher.flows.status import Status, status
from launcher.health.hands import Hands, look_within_s
from launcher.health.steady import Count, Planted, SteadyLoad, count
from launcher.model.deployment import Deployment
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Op
from launcher.model.problem import LauncherError, Problem
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted
from launcher.wait import CLOCK, Clock, wait_for

LOOK_EVERY_S = 0.5
PATIENCE_S = 8.0
UNKNOWN = "?"
# a line that came of it may be that much older than the moment at which it was planted: rounded times
BEFORE_S = 2.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that a drill is done with."""

    fleet: Hands
    wanted: Wanted
    deployment: Deployment
    ground: Ground
    listener: Listener
    shown: Callable[[Status], str]
    """A status as `status` prints it."""
    mended: Callable[[Case, Callable[[], None]], Problem | None]
    """Runs the case's runbook; its second argument lifts the fault, at the step that says so."""
    data_dir: Path | None
    clock: Clock = CLOCK
    """The one that the steady load goes by."""

    def look(self) -> Status:
        """How all is now; a host that is lost is not waited for as long as one that is busy may take."""
        return status(Impatient(self.fleet), self.wanted, self.deployment)


@dataclass(frozen=True, slots=True)
class Impatient:
    """A fleet that is asked and not waited for."""

    fleet: Hands

    def ask(
        self, questions: Mapping[str, Sequence[Probe]], *, within_s: float
    ) -> Mapping[str, Facts | Problem]:
        """As the fleet's."""
        return self.fleet.ask(questions, within_s=min(within_s, PATIENCE_S))

    def do(
        self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str
    ) -> object:
        """As the fleet's."""
        return self.fleet.do(host, ops, listener=listener, within_s=within_s, subject=subject)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a drill went; times are seconds since it was planted."""

    case: Case
    planted: Planted
    noticed_s: float | None
    """When `status` first showed anything as not up; None where it never did."""
    seen_s: float | None
    """When `status` and `diagnose` said what they must; None where they did not."""
    whole_s: float | None
    count: Count
    problems: tuple[str, ...]
    """Why it failed; empty: it passed."""

    @property
    def passed(self) -> bool:
        """Everything was as the drill says."""
        return not self.problems


@dataclass
class _Course:
    """What was seen so far, and when."""

    clock: Clock
    began_s: float
    epoch_s: float
    """The same moment, in seconds since 1970."""
    done_s: float = 0.0
    safe: int = 0
    noticed_s: float | None = None
    seen_s: float | None = None
    whole_s: float | None = None

    def now_s(self) -> float:
        return self.clock.now_s() - self.began_s


def run_case(stage: Stage, case: Case, load: SteadyLoad) -> Outcome:
    """Plant, see, end, wait until it is whole, count. The fault is lifted whatever happens."""
    before = stage.look()
    marks = _marks(stage, case, before)
    problem: Problem | None = None
    try:
        with load:
            course = _Course(stage.clock, stage.clock.now_s(), time.time())
            try:
                problem = _from_fault_to_whole(stage, case, load, course, marks)
            except LauncherError as error:
                problem = error.problems[0]
    finally:
        perform(case.drill.lift, case, stage.ground)
    planted = Planted(course.began_s, course.done_s, course.safe)
    whole_s = course.began_s + (math.inf if course.whole_s is None else course.whole_s)
    counted = count(load.told, planted, whole_s)
    wrong = [*([problem.what] if problem else []), *_wrong(case, course, planted, counted)]
    return Outcome(case, planted, course.noticed_s, course.seen_s, course.whole_s, counted, tuple(wrong))


def _from_fault_to_whole(
    stage: Stage, case: Case, load: SteadyLoad, course: _Course, marks: frozenset[str]
) -> Problem | None:
    """What did not go well in the runbook; all else is in `course`. LauncherError if it is not planted."""
    _plant(stage, case, course)
    _see(stage, case, course)
    if case.drill.runbook:
        problem = stage.mended(case, lambda: perform(case.drill.lift, case, stage.ground))
        if problem:
            return problem
    _whole(stage, case, load, course, marks)
    return None


def _elsewhere(case: Case, now: Status) -> int:
    """Requests that run on other instances of the pool."""
    pool = f"{case.instance.rpartition('-')[0]}-"
    others = (p for p in now.processes if p.instance.startswith(pool) and p.instance != case.instance)
    return round(sum(rank.running for p in others for rank in p.ranks))


def _plant(stage: Stage, case: Case, course: _Course) -> None:
    """Do it, and have it lifted when its time is over."""
    course.safe = _elsewhere(case, stage.look())
    course.began_s, course.epoch_s = stage.clock.now_s(), time.time()
    stage.listener(Event("planted", case.drill.title, case.host, case.title))
    perform(case.drill.plant, case, stage.ground)
    course.done_s = stage.clock.now_s()
    if case.drill.lasts_s:
        left_s = max(0.0, case.drill.lasts_s - course.now_s())
        lifter = threading.Timer(left_s, perform, (case.drill.lift, case, stage.ground))
        lifter.daemon = True
        lifter.start()


def _see(stage: Stage, case: Case, course: _Course) -> None:
    """Look until all is said that must be."""
    drill = case.drill
    unsaid = {word for word in ("status", "ended", "diagnose") if getattr(drill, word)}

    def look() -> bool:
        now = stage.look()
        _notice(course, now)
        if re.search(fill_in(drill.status, case.names), stage.shown(now), re.MULTILINE):
            unsaid.discard("status")
        if any(re.search(drill.ended, why) for why in _ends(case, now, course.epoch_s)):
            unsaid.discard("ended")
        if "diagnose" in unsaid and drill.diagnose in _named(stage, case, course):
            unsaid.discard("diagnose")
        return not unsaid

    left_s = drill.seen_within_s - course.now_s()
    if wait_for(look, bool, every_s=LOOK_EVERY_S, within_s=left_s, clock=stage.clock).satisfied:
        course.seen_s = course.now_s()
        stage.listener(Event("seen", f"after {course.seen_s:.1f} s", case.host, case.title))


def _ends(case: Case, now: Status, since_s: float) -> list[str]:
    """Why epochs have ended since, by the guards."""
    words = (p.guard for p in now.processes if p.guard and case.instance in ("", p.instance))
    return [word.last.why for word in words if word.last and word.last.when_s >= since_s - BEFORE_S]


def _named(stage: Stage, case: Case, course: _Course) -> set[str]:
    """The signatures of causes that began with it."""
    since_s = course.epoch_s - BEFORE_S
    report = of_hosts(
        stage.fleet,
        stage.wanted,
        stage.deployment,
        case.instance,
        since_s=since_s,
        version="",
        data_dir=stage.data_dir,
    )
    causes = (c for c in report.diagnosis.causes if c.first.line.time_s >= since_s)
    return {c.signature.id for c in causes if c.signature}


def _notice(course: _Course, now: Status) -> None:
    if course.noticed_s is None and not now.serving:
        course.noticed_s = course.now_s()


def _whole(stage: Stage, case: Case, load: SteadyLoad, course: _Course, before: frozenset[str]) -> None:
    """Look until all serve, what must be another one is, and a request that began then was answered."""
    serves_s: float | None = None

    def look() -> bool:
        nonlocal serves_s
        now = stage.look()
        _notice(course, now)
        marks = _marks(stage, case, now)
        renewed = UNKNOWN not in marks and not marks & before
        if not (now.serving and renewed):
            serves_s = None
        elif serves_s is None:
            serves_s = stage.clock.now_s()
        return serves_s is not None and load.answered_after(serves_s)

    left_s = case.drill.whole_within_s - course.now_s()
    waited = wait_for(look, bool, every_s=LOOK_EVERY_S, within_s=left_s, clock=stage.clock)
    if waited.satisfied and serves_s is not None:
        course.whole_s = serves_s - course.began_s
        stage.listener(Event("whole", f"after {course.whole_s:.1f} s", case.host, case.title))


def _marks(stage: Stage, case: Case, now: Status) -> frozenset[str]:
    """What must be another one afterwards: epochs, or the start of the unit."""
    if case.drill.renews == "epoch":
        own = [p for p in now.processes if case.instance in ("", p.instance)]
        return frozenset(f"{p.instance} {p.guard.epoch}" if p.guard else UNKNOWN for p in own)
    if case.drill.renews == "unit":
        act = next(a for a in case.drill.plant if a.signal)
        name = case.names[act.unit.strip("{}")]
        probe = Probe("unit", (name,))
        answer = stage.fleet.ask({case.host: (probe,)}, within_s=look_within_s)[case.host]
        told = answer[probe] if isinstance(answer, Facts) else None
        if told is None or isinstance(told, Unknown) or told["active"] != "active":
            return frozenset({UNKNOWN})
        return frozenset({str(told["invocation"])})
    return frozenset()


def _wrong(case: Case, course: _Course, planted: Planted, counted: Count) -> Iterator[str]:
    """What was not as the drill says."""
    drill = case.drill
    if course.seen_s is None:
        words = "` and `".join(filter(None, (drill.status, drill.ended, drill.diagnose)))
        yield f"nothing said `{words}` within {drill.seen_within_s} s"
    if course.whole_s is None:
        yield f"not whole after {course.now_s():.0f} s"
    if counted.wrong:
        yield f"wrong answers: {counted.wrong}"
    if counted.hung:
        yield f"requests that hung: {counted.hung}"
    if counted.after:
        yield f"requests that failed after all was whole: {counted.after}"
    most = 0 if drill.may_fail == "none" else max(0, counted.open - planted.safe)
    if counted.in_flight > most:
        yield f"{counted.in_flight} requests in flight failed, and at most {most} were on what was broken"
    if counted.outage and (drill.may_fail != "outage" or case.replaced):
        yield f"requests that came after it and failed: {counted.outage}"


def await_settled(stage: Stage, *, within_s: float) -> None:
    """Wait until everything serves and no guard counts a try; LauncherError where that does not come."""
    unsettled = wait_for(
        lambda: _unsettled(stage.look()),
        lambda found: not found,
        every_s=LOOK_EVERY_S,
        within_s=within_s,
        clock=stage.clock,
    ).answer
    if unsettled:
        what = f"a drill begins with what serves, and this does not: {', '.join(unsettled)}"
        raise LauncherError(Problem(what, do="dsv32-launch up"))


def _unsettled(now: Status) -> list[str]:
    parts: Iterable[tuple[str, bool]] = (
        *((f"{p.instance} on {p.host}", p.up and not (p.guard and p.guard.tries)) for p in now.processes),
        *((f"router {r.slot} on {r.host}", r.up) for r in now.routers),
        *((f"front on {f.host}", f.up) for f in now.fronts),
    )
    return [name for name, good in parts if not good]
