"""Revision's name: a digest over all steps; the same for the same wish, whatever files it was written in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace

from launcher.model.values import Json
from launcher.model.wish import Wanted
from launcher.resolve import resolve

LENGTH = 12
"""Hexadecimal digits: ten revisions never meet in 48 bits."""


def revision_of(wanted: Wanted) -> str:
    """Names what is wanted, by its steps on all hosts.

    Secrets are left out, and so is what is drained: both are of today. A key that was given up does not come
    back with the revision that had it.
    """
    bare = wanted
    if wanted.wish.secrets or (wanted.deployment and wanted.deployment.drained):
        bare = resolve(replace(wanted.wish, secrets={}))
    steps = {host: [[s.id, s.kind, _plain(s.want)] for s in own] for host, own in bare.steps.items()}
    return hashlib.sha256(json.dumps(steps, sort_keys=True).encode()).hexdigest()[:LENGTH]


def _plain(value: object) -> Json:
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    return value if isinstance(value, (str, int, float)) or value is None else str(value)
