"""What runs begin nothing with: red checks, unless somebody says that they are meant, and why."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from launcher.load.ranges import host_range
from launcher.model.check import CheckFinding
from launcher.model.plan import Plan
from launcher.model.problem import InputError, LauncherError, Problem
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted

if TYPE_CHECKING:
    from launcher.execute.hands import Hands

Despite: TypeAlias = Annotated[
    str,
    typer.Option(
        "--despite",
        metavar="ID,...",
        help="Begin although these checks are red; needs --why.",
        show_default=False,
    ),
]


def red_hosts(fleet: Hands, wanted: Wanted, planned: Plan, data_dir: Path | None) -> tuple[CheckFinding, ...]:
    """Red checks of the hosts of a plan. Asked where something is to change: it costs each host a request."""
    from launcher.flows.check import refusing

    return refusing(fleet, wanted, tuple(planned.facts), data_dir=data_dir)


def refused_remark(red: Collection[CheckFinding]) -> str:
    """What the head of a plan says of them, in a line."""
    words = ", ".join(f"{f.check.id} ({host_range(f.hosts)})" for f in red)
    return f"up would refuse, see dsv32-launch check --only ID: {words}" if red else ""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a run asks before it changes anything."""

    meant: frozenset[str]
    """Ids of checks that may be red."""
    data_dir: Path | None

    def ask(self, fleet: Hands, wanted: Wanted, planned: Plan, listener: Listener) -> None:
        """`refuse` what is red on hosts of the plan. Nobody is asked where nothing is to change."""
        if planned:
            self.refuse(red_hosts(fleet, wanted, planned, self.data_dir), listener)

    def refuse(self, red: Collection[CheckFinding], listener: Listener) -> None:
        """LauncherError with what is red and not meant; what is meant is written down as an event."""
        from launcher.cli.checktext import refusals, what_of

        if refused := tuple(f for f in red if f.check.id not in self.meant):
            raise LauncherError(*refusals(refused))
        for f in red:
            data = {"check": f.check.id, "hosts": f.hosts, "owner": f.check.owner}
            listener(Event("despite", what_of(f), subject=f.check.id, data=data))


def gate_of(words: str, why: str, data_dir: Path | None) -> Gate:
    """By the ids of `--despite`. InputError for one that there is not, and without a reason."""
    ids = frozenset(word.strip() for word in words.split(",") if word.strip())
    if not ids:
        return Gate(ids, data_dir)
    from launcher.flows.check import all_checks
    from launcher.load.schema import near

    known = [check.id for check in all_checks(data_dir=data_dir) if check.refuses_up]
    problems = [
        Problem(f"no check that `up` refuses with is called `{name}`", "--despite", do=near(name, known))
        for name in sorted(ids - set(known))
    ]
    if not why.strip():
        problems.append(Problem("--despite without a reason", "--despite", do='say why: -m "..."'))
    if problems:
        raise InputError(*problems)
    return Gate(ids, data_dir)
