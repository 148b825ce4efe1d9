"""staging: how much of its weights each host has, how fast more comes, and whether every byte is right."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias

from launcher.execute.hands import Hands
from launcher.execute.jobs import RemoteJob
from launcher.health.hands import look_within_s
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.finding import Finding, Severity
from launcher.model.problem import InputError, LauncherError, Problem
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted
from launcher.steps import texts, weights

State: TypeAlias = Literal[
    "complete", "staging", "reading", "verifying", "failed", "incomplete", "absent", "unknown"
]
MOVING = frozenset({"staging", "reading", "verifying"})
JOURNAL_BYTES = 4 << 20
"""Of the blocks that a host has: 41,000 numbers are 240 kB."""


@dataclass(frozen=True, slots=True)
class HostWeights:
    """One host's copy of the weights."""

    host: str
    folder: str
    state: State
    revision: str = ""
    """The one that is wanted, twelve digits."""
    blocks: int = 0
    """On its disk, and right when they were written."""
    blocks_of: int = 0
    done: int = 0
    """Bytes, by what its job tells; where none runs, by its blocks."""
    total: int = 0
    per_s: float = 0.0
    """Bytes, of late."""
    left_s: float | None = None
    """None: nothing moves, or nothing is left."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class FleetWeights:
    """All of them together."""

    hosts: tuple[HostWeights, ...]

    @property
    def complete(self) -> bool:
        """Has each host all?"""
        return all(h.state == "complete" for h in self.hosts)

    @property
    def done(self) -> int:
        """Bytes on all hosts."""
        return sum(h.done for h in self.hosts)

    @property
    def total(self) -> int:
        """Bytes that all hosts are to have."""
        return sum(h.total for h in self.hosts)

    @property
    def per_s(self) -> float:
        """Bytes that come to all hosts in a second."""
        return sum(h.per_s for h in self.hosts)

    @property
    def left_s(self) -> float | None:
        """Until the last host has all, as far as they know."""
        return max((h.left_s for h in self.hosts if h.left_s is not None), default=None)


def staged_by(wanted: Wanted, hosts: Collection[str]) -> Mapping[str, weights.Params]:
    """Host → what it stages, in the inventory's order. InputError where none of these hosts has weights."""
    found = {
        host: step.want
        for host, steps in wanted.steps.items()
        for step in steps
        if host in hosts and isinstance(step.want, weights.Params)
    }
    if not found:
        what = "no host stages weights"
        raise InputError(Problem(what, wanted.wish.inventory.path, do="name a stack with the role `weights`"))
    return found


def look(fleet: Hands, staged: Mapping[str, weights.Params]) -> FleetWeights:
    """All hosts as they are, by one request each."""
    asked = {host: questions(want) for host, want in staged.items()}
    answers = fleet.ask(asked, within_s=look_within_s)
    return FleetWeights(tuple(standing(host, want, answers[host]) for host, want in staged.items()))


def questions(want: weights.Params) -> tuple[Probe, ...]:
    """What a step of kind `weights` asks, and beside it the verification and the journals of blocks."""
    return (*weights.probes(want), weights.verification_of(want).probe, _journals(want))


def standing(host: str, want: weights.Params, facts: Facts | Problem) -> HostWeights:
    """What its answers say (pure)."""
    if isinstance(facts, Problem):
        return HostWeights(host, want.path, "unknown", note=facts.what)
    told = facts[weights.manifest_of(want)]
    if isinstance(told, Unknown) or "text" not in told:
        note = str(told) if isinstance(told, Unknown) else f"no {want.manifest}"
        return HostWeights(host, want.path, "unknown", note=note)
    files, jobs, journals = (facts[p] for p in (weights.files_of(want), _jobs(want), _journals(want)))
    if unknown := next((a for a in (files, jobs, journals) if isinstance(a, Unknown)), None):
        return HostWeights(host, want.path, "unknown", note=str(unknown))
    manifest, revision = json.loads(told["text"]), texts.digest(told["text"])[:12]
    total = sum(int(entry["size"]) for entry in manifest["files"].values())
    sizes = [_parts(int(entry["size"]), manifest["blocks"]["size"]) for entry in manifest["files"].values()]
    blocks = _journaled(journals.get(_journal(want, revision), ""), manifest["blocks"]["sha256"])
    state, note, progress = _state(want, facts)
    running = progress if state in MOVING else {}
    done = total if state == "complete" else total * blocks // max(sum(sizes), 1)
    return HostWeights(
        host,
        want.path,
        state,
        revision,
        blocks,
        0 if want.in_place else sum(sizes),
        done if state == "verifying" else int(running.get("done", done)),
        total,
        float(running.get("per_s", 0)),
        running.get("left_s"),
        note or ("in place" if want.in_place else ""),
    )


def _state(want: weights.Params, facts: Facts) -> tuple[State, str, Mapping[str, Any]]:
    """In a word; what its job said last where it failed; how far it is where it runs."""
    job, verification = facts[_jobs(want)], facts[weights.verification_of(want).probe]
    if job["state"] == "running":
        return ("reading" if want.in_place else "staging"), "", job["progress"] or {}
    if not isinstance(verification, Unknown) and verification["state"] == "running":
        return "verifying", "", verification["progress"] or {}
    if not weights.changes(want, facts):
        return "complete", "", {}
    if job["state"] == "failed":
        return "failed", job["tail"][-1] if job["tail"] else "", {}
    files = facts[weights.files_of(want)]
    if want.in_place:
        return "incomplete", "", {}
    return ("incomplete" if files["files"] or any(facts[_journals(want)]) else "absent"), "", {}


def _jobs(want: weights.Params) -> Probe:
    return weights.job_of(want).probe


def _journals(want: weights.Params) -> Probe:
    return Probe("files", (_journal(want, "*"), JOURNAL_BYTES))


def _journal(want: weights.Params, revision: str) -> str:
    folder = PurePosixPath(want.path)
    return f"{folder.parent}/.{folder.name}/{revision}/.blocks"


def _journaled(text: str, digest: str) -> int:
    """Blocks that a journal names, if it is of this digest; a line cut short is none."""
    first, *lines = text.split("\n")[:-1] or [""]
    return len(set(lines)) if first == digest else 0


def _parts(size: int, block: int) -> int:
    return -(-size // block)


def verify(fleet: Hands, staged: Mapping[str, weights.Params], listener: Listener) -> tuple[Finding, ...]:
    """Every byte of every host is read and compared, all hosts at once; what is wrong, by host and file.

    A host with wrong bytes no longer counts as complete: the next `up` brings those blocks, and no other.
    Of files in place, which are those of all hosts, the first host reads.
    """
    shared = [host for host, want in staged.items() if want.in_place]
    hosts = tuple(host for host in staged if host not in shared[1:])
    found = fleet.map(hosts, lambda host: _verified(fleet, host, staged[host], listener))
    return tuple(f for host, each in found.items() for f in _findings(host, each))


def _verified(fleet: Hands, host: str, want: weights.Params, listener: Listener) -> tuple[Finding, ...]:
    last: dict[str, Any] = {}

    def listening(event: Event) -> None:
        last.update(event.data)
        listener(event)

    job = RemoteJob(fleet, host, weights.verification_of(want), listening, "weights")
    try:
        job.begin()
    except LauncherError:
        if not last.get("wrong"):
            raise
    if wrong := last.get("wrong"):
        return tuple(_wrong(host, want, wrong))
    return (Finding(Severity.OK, host, f"{last.get('total', 0) / 2**30:.1f} GiB are what the manifest says"),)


def _findings(host: str, found: Sequence[Finding] | Problem) -> Iterable[Finding]:
    return [Finding(Severity.ERROR, host, found.what, found)] if isinstance(found, Problem) else found


def _wrong(host: str, want: weights.Params, wrong: Mapping[str, int]) -> Iterator[Finding]:
    for name, blocks in sorted(wrong.items()):
        what = f"{name} has {blocks} wrong block{'' if blocks == 1 else 's'}"
        why = f"bytes below {want.path} are not what {want.manifest} says"
        do = weights.IN_PLACE_REMEDY if want.in_place else "dsv32-launch up"
        yield Finding(Severity.ERROR, host, what, Problem(what, host, why, do))
