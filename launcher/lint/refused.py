"""Values that the parser of a release does not take: no choice of it, or no number."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from launcher.lint.reading import Quantity, Reading
from launcher.lint.values import Value, number, shown
from launcher.model.launch import LeftOver, Unknown
from launcher.model.profile import Setting
from launcher.model.snapshot import Option
from launcher.model.values import Json

TRUE = frozenset({"true", "1", "yes", "on"})
FALSE = frozenset({"false", "0", "no", "off", "none"})


def refused_values(r: Reading) -> Value:
    """Flags whose value no parser near the release takes, with what was probably meant."""
    return r.told(_refused(r))


def _refused(r: Reading) -> Iterator[tuple[str, Setting]]:
    for name, setting in r.launch.flags.items():
        options = [s.options.get(name) for s in r.snapshots()]
        known = [option for option in options if option and not option.same_as]
        # one that some release does not describe may be taken there
        if not known or len(known) < len(options) or r.beyond() or _open(setting.value):
            continue
        if all(_wrong(option, setting.value) for option in known):
            yield f"--{name} {shown(setting.value)}{_meant(known, setting.value)}", setting


def _open(value: Json) -> bool:
    return isinstance(value, (Unknown, dict)) or (isinstance(value, list) and any(map(_open, value)))


def _wrong(option: Option, value: Json) -> bool:
    if option.switch or value is True:  # without a value it may stand as a file is hard to read
        return False
    if isinstance(value, list):
        return any(_wrong(option, inner) for inner in value)
    if option.choices:
        # some parsers fold letters, and `-` into `_`, before they look
        return _folded(value) not in map(_folded, option.choices)
    counts = isinstance(option.default, (int, float)) and not isinstance(option.default, bool)
    return counts and number(value) is None


def _folded(value: Json) -> str:
    return shown(value).lower().replace("-", "_")


def _meant(options: Sequence[Option], value: Json) -> str:
    choices = [choice for option in options for choice in option.choices]
    near = difflib.get_close_matches(shown(value), choices, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def words_left_over(r: Reading) -> Value:
    """Words that belong to no flag, with what was probably meant; absent where there are none."""
    return r.told((_left_over(r, found), Setting(found.word, found.source)) for found in r.launch.left_over)


def _left_over(r: Reading, found: LeftOver) -> str:
    word, flag = f"`{found.word}`", f"--{found.after}"
    if not found.after:
        return f"{word} behind the model"
    option = next((o for s in r.snapshots() if (o := s.options.get(found.after.removeprefix("no-")))), None)
    if option is None or not option.switch:
        return f"{word} behind the value of {flag}"
    name = found.after.removeprefix("no-")
    off = found.after.startswith("no-")
    if found.word.lower() not in TRUE | FALSE:
        return f"{word} behind {flag}, which takes no value"
    meant = (found.word.lower() in TRUE) is not off
    by_default = option.default is meant
    wanted = f"--{name}" if meant else "" if option.one_way else f"--no-{name}"
    instead = f"write {wanted}" if wanted else f"leave out --{name}"
    instead += ", or nothing, as it is the default" if wanted and by_default else ""
    return f"{word} behind {flag}, which takes no value ({instead})"


QUANTITIES: dict[str, Quantity] = {"refused_values": refused_values, "words_left_over": words_left_over}
