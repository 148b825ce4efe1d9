"""weights: a folder of model files that equals a manifest, copied by a job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Ge

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Draft
from launcher.steps import texts
from launcher.steps.attributes import AbsolutePath
from launcher.steps.jobs import Job, draft

MANIFEST_BYTES = 4 << 20
FILES_NAMED = 3
"""Files that a plan names before it says how many more there are."""


@dataclass(frozen=True, slots=True)
class Params:
    """Files under `path`; complete when the manifest recorded there at publication is `manifest`, and every
    file has the size it says."""

    path: AbsolutePath
    origin: str
    """Folder that the host sees (shared file system) to copy from."""
    manifest: str
    """JSON file that the host sees: {"files": {name: {"size": bytes, "sha256": hex}}}; its sha256 names the
    revision."""
    copier: str
    """Program on the host that copies: COPIER PATH SOURCE MANIFEST. It copies what is missing or of another
    size, verifies, and writes the manifest's sha256 into `path`/.complete last."""
    within_s: Annotated[int, Ge(1)] = 14400


def probes(want: Params) -> tuple[Probe, ...]:
    """The manifest, the files, and the job."""
    return (_manifest(want), _files(want), _job(want).probe)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """CREATE or UPDATE by the job; an UPDATE names the files that are missing or of another size."""
    manifest, have = facts[_manifest(want)], facts[_files(want)]
    subject = f"weights {want.path}"
    if isinstance(manifest, Unknown) or "text" not in manifest:
        after = f"unknown (no {want.manifest})" if not isinstance(manifest, Unknown) else str(manifest)
        before = str(have) if isinstance(have, Unknown) else _recorded(have)
        return (draft(_job(want), facts, subject=subject, before=before, after=after),)
    revision = texts.digest(manifest["text"])
    after = f"revision {revision[:12]}"
    if isinstance(have, Unknown):
        return (draft(_job(want), facts, subject=subject, before=str(have), after=after),)
    wrong = tuple(_wrong(json.loads(manifest["text"])["files"], have["files"]))
    if have["manifest"] == revision and not wrong:
        return ()
    before = _recorded(have)
    if have["manifest"] == revision:
        more = f" and {len(wrong) - FILES_NAMED} more" if len(wrong) > FILES_NAMED else ""
        before = ", ".join(wrong[:FILES_NAMED]) + more
    return (draft(_job(want), facts, subject=subject, before=before, after=after),)


def _wrong(files: Mapping[str, Mapping[str, Any]], have: Mapping[str, int]) -> Iterator[str]:
    for name, entry in files.items():
        size = int(entry["size"])
        if name not in have:
            yield f"{name} missing"
        elif have[name] != size:
            yield f"{name} has {have[name]} of {size} bytes"


def _recorded(have: Mapping[str, Any]) -> str:
    if have["manifest"]:
        return f"revision {have['manifest'][:12]}"
    return "incomplete" if have["files"] else "absent"


def _manifest(want: Params) -> Probe:
    return Probe("read", (want.manifest, MANIFEST_BYTES))


def _files(want: Params) -> Probe:
    return Probe("weights", (want.path,))


def _job(want: Params) -> Job:
    return Job("weights", (want.copier, want.path, want.origin, want.manifest), want.within_s)
