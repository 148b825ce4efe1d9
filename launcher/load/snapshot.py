"""A snapshot's JSON → Snapshot; knows neither vLLM nor who wrote it (scripts/snapshot-flags)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from launcher.model.problem import InputError, Problem
from launcher.model.snapshot import Option, Snapshot

RELEASE = re.compile(r"[0-9]+\.[0-9]+")
KINDS = {"choices": list, "switch": bool, "one_way": bool, "words": str, "short": str, "same_as": str}
"""Of the words of an option; its default may be anything."""


@lru_cache(maxsize=64)
def parse_snapshot(text: str, shown: str) -> Snapshot:
    """What a release accepts; InputError if the file is not as scripts/snapshot-flags writes it."""
    try:
        values = json.loads(text)
        if not RELEASE.match(values["version"]):
            raise ValueError(f"`{values['version']}` is no release")
        return Snapshot(
            version=values["version"],
            options=_options(values["options"]),
            keys={option: _options(keys) for option, keys in values["keys"].items()},
            variables=tuple(values["variables"]),
            source=shown,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        what = f"the snapshot cannot be read: {type(error).__name__} {error}"
        do = "write it again from the release: scripts/snapshot-flags"
        raise InputError(Problem(what, where=shown, do=do)) from None


def _options(values: Mapping[str, Mapping[str, Any]]) -> dict[str, Option]:
    for name, told in values.items():
        wrong = [word for word, value in told.items() if not isinstance(value, KINDS.get(word, object))]
        if wrong:
            raise TypeError(f"{name}: {', '.join(wrong)}")
    return {
        name: Option(**{**told, "choices": tuple(told.get("choices", ()))}) for name, told in values.items()
    }
