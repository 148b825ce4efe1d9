"""What commands begin with: which inventory, what it says, and a run with its journal."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.cli.interrupt import Interrupt
from launcher.load import load
from launcher.model.deployment import Deployment
from launcher.model.problem import InputError, Problem
from launcher.model.wish import Wanted, Wish

if TYPE_CHECKING:
    from launcher.remote.connections import Connections
    from launcher.remote.fleet import Fleet

LOOKING = "looking"
"""In place of a run's name, for whoever changes nothing."""


def inventory_path(given: Path | None, environment: Mapping[str, str], folder: Path) -> Path:
    """The inventory that is meant; InputError where that is not clear."""
    if given:
        return given
    if named := environment.get("DSV32_INVENTORY"):
        return Path(named)
    found = sorted(p for p in (folder / "inventories").glob("*.y*ml"))
    if len(found) == 1:
        return found[0].relative_to(folder)
    names = ", ".join(p.name for p in found)
    what = f"no inventory named, and inventories/ holds {len(found)}" + (f": {names}" if names else "")
    raise InputError(Problem(what, do="name one, set DSV32_INVENTORY, or write one with dsv32-launch init"))


def chosen_inventory(given: Path | None) -> Path:
    """The inventory that is meant here and now."""
    return inventory_path(given, os.environ, Path.cwd())


def read_wish(given: Path | None, data_dir: Path | None, *, secrets: bool = True) -> Wish:
    """What the inventory says. Opening `secrets` may run commands: not where no host is asked."""
    return load(chosen_inventory(given), data_dir=data_dir, environment=os.environ if secrets else None)


def read_wanted(given: Path | None, data_dir: Path | None, *, secrets: bool = True) -> Wanted:
    """What must be true, by the inventory; `secrets` as in `read_wish`."""
    from launcher.resolve import resolve

    return resolve(read_wish(given, data_dir, secrets=secrets))


@contextmanager
def reached(
    given: Path | None, data_dir: Path | None, *, ahead: bool = True
) -> Iterator[tuple[Wanted, Connections]]:
    """What must be true, and the connections to its hosts.

    `ahead`: all hosts are being connected, and start their agents, while their steps are worked out here and
    the caller imports what it does. Until changes begin, ctrl-C ends it at once.
    """
    wish = read_wish(given, data_dir)
    from launcher.remote.connections import Connections

    Interrupt()
    with Connections(wish) as connections:
        if ahead:
            connections.open_ahead(wish.inventory.hosts)
        from launcher.resolve import resolve

        yield resolve(wish), connections


def deployment_of(wanted: Wanted) -> Deployment:
    """What serves; InputError where the inventory only provisions hosts."""
    if wanted.deployment:
        return wanted.deployment
    inventory = wanted.wish.inventory
    what = f"{inventory.cluster} has no layout: nothing is meant to serve"
    raise InputError(Problem(what, inventory.path, do="set `layout:` in the inventory"))


@contextmanager
def connected(
    wanted: Wanted,
    *,
    over: Connections | None = None,
    run_id: str = LOOKING,
    why: str = "",
    lock: Collection[str] = (),
) -> Iterator[Fleet]:
    """The fleet, `over` connections or connected when first asked; LockedError where another run or person
    holds a host of `lock`.

    Who only looks, in no run, is ended by ctrl-C at once.
    """
    from launcher.record.person import person
    from launcher.remote.fleet import Fleet

    own = Fleet(wanted.wish, runs_as=person(os.environ), run_id=run_id, why=why, connections=over)
    with nullcontext(own) if over else own as fleet:
        if lock:
            fleet.lock(lock)
        if run_id == LOOKING:
            Interrupt()
        yield fleet
