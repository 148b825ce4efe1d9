"""weights: a folder of model files that equals a manifest, made by jobs of all hosts, or read in place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.job import Job, name_of
from launcher.model.owned import Owned, path
from launcher.model.plan import Draft
from launcher.model.profile import Port
from launcher.steps import texts
from launcher.steps.attributes import AbsolutePath
from launcher.steps.jobs import VOLATILE as VOLATILE
from launcher.steps.jobs import draft

MANIFEST_BYTES = 4 << 20
RECORD_BYTES = 4096
IN_PLACE_REMEDY = "bring the file to the shared file system again"
FILES_NAMED = 3
"""Files that a plan names before it says how many more there are."""


@dataclass(frozen=True, slots=True)
class Params:
    """Files under `path`; complete when the manifest recorded there at publication is `manifest`, and every
    file has the size it says. Where `path` is `origin` they stay there, and `record` says what was read."""

    path: AbsolutePath
    origin: str
    """Folder that the host sees (shared file system) to copy from."""
    manifest: str
    """JSON file that the host sees: {"files": {name: {"size": bytes, "sha256": hex}}}; its sha256 names the
    revision."""
    copier: str
    """Program on the host that copies: COPIER PATH SOURCE MANIFEST, with $DSV32_FLEET. It brings what is
    missing or wrong, verifies, and writes the manifest's sha256 into `path`/.complete last."""
    reader: str
    """Program on the host for files in place: READER PATH MANIFEST RECORD. It compares sizes, reads all into
    the page cache if memory holds it, and writes the manifest's sha256 into RECORD last."""
    record: AbsolutePath = "/var/lib/dsv32/weights-in-place"
    """File on the host."""
    host: str = ""
    """Its name in `peers`."""
    peers: str = ""
    """NAME=ADDRESS of each host that stages these files, `host` among them: they hand each other blocks."""
    port: Port = 5760
    """TCP, where a host's peers ask for blocks while its job runs."""
    readers: Annotated[int, Ge(0)] = 0
    """Hosts that read `origin` at once, each its share; 0: all."""
    read_mib_s: Annotated[int, Ge(0)] = 0
    """MiB a second that all of them read of it together, at most; 0: no limit."""
    send_mib_s: Annotated[int, Ge(0)] = 0
    """MiB a second that a host sends its peers, at most; 0: no limit."""
    keep: Annotated[int, Ge(1)] = 2
    """Revisions that stay on the disk, this one among them. One that is in use always stays."""
    streams: Annotated[int, Ge(1)] = 16
    """Blocks on their way to a host at once."""
    within_s: Annotated[int, Ge(1)] = 14400

    @property
    def in_place(self) -> bool:
        """Do engines read them where they are published?"""
        return self.path == self.origin


def owns(want: Params) -> tuple[Owned, ...]:
    """The folder; of files in place also what says that they were read."""
    record = (path(want.record, ("record", want)),) if want.path == want.origin else ()
    return (path(want.path, ("weights", want)), *record)


def probes(want: Params) -> tuple[Probe, ...]:
    """The manifest, the files, the job, and of files in place what was read."""
    asked = (manifest_of(want), files_of(want), job_of(want).probe)
    return (*asked, record_of(want)) if want.in_place else asked


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """CREATE or UPDATE by the job; an UPDATE names the files that are missing or of another size."""
    manifest, have = facts[manifest_of(want)], facts[files_of(want)]
    subject = f"weights {want.path}"
    if isinstance(manifest, Unknown) or "text" not in manifest:
        after = f"unknown (no {want.manifest})" if not isinstance(manifest, Unknown) else str(manifest)
        return (draft(job_of(want), facts, subject=subject, before=_recorded(want, facts), after=after),)
    revision = texts.digest(manifest["text"])
    after = f"revision {revision[:12]}" + (" in place" if want.in_place else "")
    before = _recorded(want, facts)
    if not isinstance(have, Unknown):
        wrong = tuple(_wrong(json.loads(manifest["text"])["files"], have["files"]))
        same = _revision(want, facts) == revision
        if same and not wrong:
            return ()
        if wrong and (same or want.in_place):
            more = f" and {len(wrong) - FILES_NAMED} more" if len(wrong) > FILES_NAMED else ""
            before = ", ".join(wrong[:FILES_NAMED]) + more
    return (draft(job_of(want), facts, subject=subject, before=before, after=after),)


def _wrong(files: Mapping[str, Mapping[str, Any]], have: Mapping[str, int]) -> Iterator[str]:
    for name, entry in files.items():
        size = int(entry["size"])
        if name not in have:
            yield f"{name} missing"
        elif have[name] != size:
            yield f"{name} has {have[name]} of {size} bytes"


def _recorded(want: Params, facts: Facts) -> str:
    """What the host has now, in words."""
    have = facts[files_of(want)]
    if isinstance(have, Unknown):
        return str(have)
    if revision := _revision(want, facts):
        return f"revision {revision[:12]}"
    if want.in_place:
        return "not read"
    return "incomplete" if have["files"] else "absent"


def _revision(want: Params, facts: Facts) -> str:
    """sha256 of the manifest by which all was staged, or read in place; empty where none is recorded."""
    if not want.in_place:
        return facts[files_of(want)]["manifest"] or ""
    told = facts[record_of(want)]
    return "" if isinstance(told, Unknown) else str(told.get("text", "")).strip()


def manifest_of(want: Params) -> Probe:
    """The manifest, as the host sees it."""
    return Probe("read", (want.manifest, MANIFEST_BYTES))


def files_of(want: Params) -> Probe:
    """What is published, and the sizes of its files."""
    return Probe("weights", (want.path,))


def record_of(want: Params) -> Probe:
    """What was read in place."""
    return Probe("read", (want.record, RECORD_BYTES))


def job_of(want: Params) -> Job:
    """Brings what is missing or wrong; of files in place, reads all."""
    words = (want.copier, want.path, want.origin, want.manifest)
    if want.in_place:
        words = (want.reader, want.path, want.manifest, want.record)
    # with other peers it is the same job: two at once would write the same folder
    fleet = {"DSV32_FLEET": json.dumps(_fleet(want))}
    return Job(name_of("weights", words), words, want.within_s, fleet)


def verification_of(want: Params) -> Job:
    """Reads all that is published; it fails where bytes are wrong. What was staged is incomplete then."""
    words: tuple[str, ...] = (want.copier, "--verify", want.path, want.origin, want.manifest)
    if want.in_place:
        words = (want.reader, "--verify", want.path, want.manifest)
    return Job(name_of("verify", words), words, want.within_s)


def _fleet(want: Params) -> Mapping[str, Any]:
    places = (word.partition("=")[::2] for word in want.peers.split())
    return {
        "host": want.host,
        "peers": {name: [address, want.port] for name, address in places},
        "readers": want.readers,
        "read_mib_s": want.read_mib_s,
        "send_mib_s": want.send_mib_s,
        "keep": want.keep,
        "streams": want.streams,
    }


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """Nothing: weights are data, and take hours to come back."""
    return ()
