"""check: what must hold on hosts and is no step of ours; reads only, one request a host."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.checks.asked import asked_of
from launcher.checks.judge import findings_of
from launcher.execute.hands import Hands
from launcher.load.checks import read_checks
from launcher.load.data import Data, roots_of
from launcher.load.schema import near
from launcher.model.check import Check, CheckFinding
from launcher.model.facts import Facts
from launcher.model.problem import Exit, InputError, Problem
from launcher.model.wish import Wanted


@dataclass(frozen=True, slots=True)
class Report:
    """What was asked of whom, and what is wrong."""

    findings: tuple[CheckFinding, ...]
    hosts: tuple[str, ...]
    checks: tuple[str, ...]
    """Ids of those that were asked somewhere."""
    unreached: tuple[Problem, ...] = ()

    @property
    def exit_code(self) -> Exit:
        """Errors, and hosts that do not answer; else warnings; notes are no reason to stop."""
        severities = {f.check.severity for f in self.findings if f.counts}
        if self.unreached or "error" in severities:
            return Exit.HOSTS_FAILED
        return Exit.WARNINGS if severities else Exit.DONE


def check(
    fleet: Hands,
    wanted: Wanted,
    checks: Iterable[Check],
    hosts: Collection[str],
    *,
    silent: Collection[str] = (),
) -> Report:
    """Ask these checks of these hosts, all that one host is asked in one request, and compare the answers.

    `silent`: hosts that may be out of reach of their peers.
    """
    asked = asked_of(checks, wanted, hosts)
    questions = {
        host: tuple(dict.fromkeys(probe for a in asked if a.host == host for probe in a.probes))
        for host in dict.fromkeys(a.host for a in asked)
    }
    answers = fleet.ask(questions, within_s=wanted.wish.inventory.ssh.answer_within_s)
    facts = {host: answer for host, answer in answers.items() if isinstance(answer, Facts)}
    return Report(
        findings=findings_of(asked, facts, silent),
        hosts=tuple(questions),
        checks=tuple(dict.fromkeys(a.check.id for a in asked)),
        unreached=tuple(answer for answer in answers.values() if isinstance(answer, Problem)),
    )


def all_checks(*, data_dir: Path | None = None) -> tuple[Check, ...]:
    """All there are."""
    return read_checks(Data(roots_of(data_dir)))


def named(names: Sequence[str], checks: Sequence[Check]) -> tuple[Check, ...]:
    """The checks of these ids and topics, and what they need; all where no name is given. InputError for a
    name that is neither."""
    known = {check.id: check for check in checks}
    topics = {check.topic for check in checks}
    for name in names:
        if name not in topics and name not in known:
            raise InputError(
                Problem(f"no check and no topic is called `{name}`", do=near(name, (*topics, *known)))
            )
    waiting = [c for c in checks if c.id in names or c.topic in names or not (names or c.slow)]
    taken: dict[str, Check] = {}
    while waiting:
        taken.setdefault((one := waiting.pop()).id, one)
        waiting += [known[need] for need in one.needs if need not in taken]
    return tuple(check for check in checks if check.id in taken)


def refusing(
    fleet: Hands, wanted: Wanted, hosts: Collection[str], *, data_dir: Path | None = None
) -> tuple[CheckFinding, ...]:
    """What `up` begins nothing with on these hosts: errors that nothing it does would put right.

    Hosts that it leaves out, or does not reach, keep it from nothing.
    """
    checks = all_checks(data_dir=data_dir)
    ids = [check.id for check in checks if check.refuses_up]
    others = set(wanted.wish.inventory.hosts) - set(hosts)
    report = check(fleet, wanted, named(ids, checks) if ids else (), hosts, silent=others)
    ours = {role.name for role in wanted.wish.roles}
    wrong = (f for f in report.findings if f.verdict == "wrong" and f.check.refuses_up)
    return tuple(f for f in wrong if not ours & set(f.check.made_by))
