"""venv: a Python environment that equals a lock file, built by a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.job import Job, name_of
from launcher.model.owned import Owned, path
from launcher.model.plan import Draft
from launcher.steps.attributes import AbsolutePath
from launcher.steps.jobs import VOLATILE as VOLATILE
from launcher.steps.jobs import draft


@dataclass(frozen=True, slots=True)
class Params:
    """An environment at `path`; complete when `path`/.complete holds the lock's sha256."""

    path: AbsolutePath
    python: str
    """The interpreter it is made with: `/usr/bin/python3.11`."""
    lock: str
    """Requirements with hashes, a file that the host sees."""
    digest: str
    """sha256 of the lock file."""
    wheels: str
    """Folder of wheels that the host sees; nothing else is installed from."""
    builder: str
    """Program on the host that builds it: BUILDER PATH PYTHON LOCK WHEELS DIGEST. It writes `.complete`
    last; run again, it begins anew."""
    within_s: Annotated[int, Ge(1)] = 3600


def owns(want: Params) -> tuple[Owned, ...]:
    """The folder."""
    return (path(want.path, ("venv", want)),)


def probes(want: Params) -> tuple[Probe, ...]:
    """The marker and the job."""
    return (_marker(want), _job(want).probe)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """CREATE or UPDATE by the job, unless the marker names this lock."""
    have = facts[_marker(want)]
    if isinstance(have, Unknown):
        before = str(have)
    elif "text" not in have:
        before = "absent"
    else:
        found = have["text"].strip()
        if found == want.digest:
            return ()
        before = f"lock {found[:12]}"
    after = f"lock {want.digest[:12]}"
    return (draft(_job(want), facts, subject=f"environment {want.path}", before=before, after=after),)


def _marker(want: Params) -> Probe:
    return Probe("read", (f"{want.path}/.complete", 200))


def _job(want: Params) -> Job:
    words = (want.builder, want.path, want.python, want.lock, want.wheels, want.digest)
    return Job(name_of("venv", words), words, want.within_s)


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """Nothing: environments are data, and the next one lies beside it."""
    return ()
