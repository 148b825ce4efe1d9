"""venv: a Python environment that equals a lock file, built by a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Draft


@dataclass(frozen=True, slots=True)
class Params:
    """An environment at `path`; complete when `path`/.complete holds the lock's sha256."""

    path: str
    python: str
    """The interpreter it is made with: `/usr/bin/python3.11`."""
    lock: str
    """Requirements with hashes, a file that the host sees."""
    digest: str
    """sha256 of the lock file."""
    wheels: str
    """Folder of wheels that the host sees; nothing else is installed from."""
    builder: str
    """Program on the host that builds it: BUILDER PATH PYTHON LOCK WHEELS DIGEST. It works beside `path`,
    writes `.complete` last and renames into place; run again, it begins anew."""
    within_s: Annotated[int, Ge(1)] = 3600


def probes(want: Params) -> tuple[Probe, ...]:
    return ()


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    return ()
