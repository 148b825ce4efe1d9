"""Values of settings and quantities, and how they compare; knows no rule and no release."""

from __future__ import annotations

import json
import math
import re
from typing import TypeAlias

from launcher.model.facts import Unknown
from launcher.model.values import Json

Value: TypeAlias = Json
"""None: absent, neither given nor with a default that is known."""
Truth: TypeAlias = "bool | Unknown"
"""A condition is true, false, or cannot be told for want of something."""

NUMBER = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)([kmgtKMGT]?)")
LARGEST = 2**63
"""Nothing that a launch counts is as large; what is written larger is no number, as infinity is none."""
# as vLLM reads such a number (human_readable_int): small letters are powers of 1000, capital ones of 1024
POWERS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class UntoldError(Exception):
    """What a value depends on is not known."""

    def __init__(self, unknown: Unknown) -> None:
        self.unknown = unknown
        super().__init__(unknown.reason)


def untold(what: str) -> UntoldError:
    """To raise where `what` would have to be known: `the release`."""
    return UntoldError(Unknown(what))


def number(value: Value) -> float | None:
    """The number that a value is or writes; None if it is none.

    >>> number("256"), number("16k"), number("auto"), number(True)
    (256.0, 16000.0, None, None)
    """
    if isinstance(value, str):
        found = NUMBER.fullmatch(value.strip())
        meant = float(found[1]) * POWERS[found[2]] if found else math.nan
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        meant = math.nan
    else:
        meant = value
    return float(meant) if abs(meant) < LARGEST else None


def plain(value: Value) -> bool | float | str | None:
    """A value as it compares: numbers as numbers, true and false however written, all else as text."""
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if value is None or isinstance(value, bool):
        return value
    as_number = number(value)
    return shown(value) if as_number is None else as_number


def same(one: Value, other: Value) -> bool:
    """Do two values mean the same?

    >>> same("True", True), same("8", 8), same("8", "8.0"), same("1", True)
    (True, True, True, False)
    """
    left, right = plain(one), plain(other)
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def shown(value: Value) -> str:
    """A value as text: what a regular expression is looked for in, and what a message says."""
    match value:
        case None:
            return "unset"
        case bool():
            return "true" if value else "false"
        case float():
            return str(int(value)) if value.is_integer() else f"{value:.4g}"
        case str():
            return value
        case int():
            return str(value)
        case _:
            return json.dumps(value, separators=(",", ":"))
