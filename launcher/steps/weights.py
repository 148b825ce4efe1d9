"""weights: a folder of model files that equals a manifest, copied by a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Draft


@dataclass(frozen=True, slots=True)
class Params:
    """Files under `path`; complete when the manifest recorded there at publication is `manifest`, and every
    file has the size it says."""

    path: str
    source: str
    """Folder that the host sees (shared file system) to copy from."""
    manifest: str
    """JSON file that the host sees: {"files": {name: {"size": bytes, "sha256": hex}}}; its sha256 names the
    revision."""
    copier: str
    """Program on the host that copies: COPIER PATH SOURCE MANIFEST. It copies what is missing or of another
    size, verifies, and publishes by rename."""
    within_s: Annotated[int, Ge(1)] = 14400


def probes(want: Params) -> tuple[Probe, ...]:
    return ()


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    return ()
