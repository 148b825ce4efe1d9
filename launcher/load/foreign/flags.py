"""A server's arguments → its flags by long name, as vLLM's own parser reads them; knows no shell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from launcher.load.document import Document, parse_foreign
from launcher.load.foreign.expand import SPLIT, Word
from launcher.load.foreign.marks import CLOSE, MARKED, OPEN, bare, choices, told, value
from launcher.load.shape import as_json
from launcher.model.launch import LeftOver, Unknown
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Setting
from launcher.model.snapshot import Option
from launcher.model.values import Json

CONFIG = "config"
LEVEL = re.compile(r"-O=?([0-9]\w*)")
"""`-O3` is `--optimization-level 3`."""
NUMBER = re.compile(r"-[0-9.]")
"""A value though it begins with a dash."""
SEVERAL = re.compile(r"\$[@*]|\$\{[@*][^}]*\}|\$\{\w+\[[@*]\][^}]*\}|\$\{\w+…\}")
"""All words of an array, or of a script's own arguments, or the last words of a variable."""
ELLIPSIS = frozenset({"...", "…", "[...]", "[…]"})
"""Words of a text that leaves flags out."""
HIDDEN = re.compile(f"{OPEN}([0-9]+){CLOSE}")
OUTSIDE = re.compile(rf'"(?:[^"\\]|\\.)*"|({HIDDEN.pattern})')
"""A string of JSON, or an unknown part that stands for a whole value."""
DEEPEST = 20
"""Levels of JSON."""


@dataclass(slots=True)
class Flags:
    """What a command line gives."""

    settings: dict[str, Setting] = field(default_factory=dict)
    more: bool = False
    """Words that cannot be told may be more flags."""
    sometimes: dict[str, str] = field(default_factory=dict)
    """Flags that one branch of the script gives and another does not → what gives them, and where."""
    unread: dict[str, None] = field(default_factory=dict)
    """Words that cannot be told and may be more flags, and where."""
    left_over: list[LeftOver] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    seeks_model: bool = False
    """It stands behind some flag, as a word of its own."""


@dataclass(frozen=True, slots=True)
class _Given:
    """One flag and the words after it."""

    name: str
    """Long, without dashes; dotted into JSON."""
    values: tuple[Word, ...]
    word: Word
    unsure: bool = False
    """Among its words stood one that may be flags: what follows may be the value of one."""


def read_flags(
    args: Sequence[Word],
    *,
    path: str,
    serve: bool,
    options: Mapping[str, Option],
    read_beside: Callable[[str], str | None],
) -> Flags:
    """`options`: of the release, or of all releases if it is unknown; empty: none is known to be a switch."""
    flags = Flags()
    groups = list(_groups(args, options, flags, path=path, serve=serve))
    first = groups[0]
    positional = () if first.name else _from_the_model(first.values, flags, path) if serve else first.values
    if serve and positional:
        flags.settings["model"] = Setting(value(positional[0].text), f"{path}:{positional[0].line}")
        positional = positional[1:]
    named = {"model", CONFIG} & {g.name for g in groups}
    flags.seeks_model = serve and not named and "model" not in flags.settings
    dotted: dict[str, Setting] = {}
    for given in (g for g in groups if g.name):
        _take(given, flags, dotted, path=path, options=options)
    for word in () if first.unsure else positional:
        if serve and len(groups) > 1:
            _leave_over(word, "", flags, path)
        else:  # prose perhaps, or the module, whose parser takes a word
            _say_stray(word, flags, path)
    for name in flags.sometimes.keys() & flags.settings.keys():
        before = flags.settings[name]
        flags.settings[name] = Setting(Unknown(f"{_shown(before.value)} or another"), before.source)
    for name, setting in dotted.items():
        if name in flags.settings:
            what = f"--{name} is given as JSON and as --{name}.KEY, the JSON is lost"
            _say(flags, what, setting.source, do="write all keys in one of the two ways")
        flags.settings[name] = setting
    _pull_config(flags, read_beside)
    return flags


def _from_the_model(words: Sequence[Word], flags: Flags, path: str) -> Sequence[Word]:
    """The positional words without those before the model, which is the first that can be told."""
    known = next((i for i, word in enumerate(words) if not MARKED.fullmatch(word.text)), 0)
    for word in words[:known]:
        _open(word, flags, path)
    return words[known:]


def _groups(
    args: Sequence[Word], options: Mapping[str, Option], flags: Flags, *, path: str, serve: bool
) -> Iterator[_Given]:
    """Each flag with the words up to the next one; words before the first have no name."""
    shorts = {o.short.lstrip("-"): name for name, o in options.items() if o.short}
    word, name = Word("", 0), ""
    values: list[Word] = []
    unsure = False
    for arg in args:
        wanted = not values and (name in options and not options[name].switch)
        level = LEVEL.fullmatch(arg.text)
        if level or (arg.text.startswith("-") and arg.text != "-" and not NUMBER.match(arg.text)):
            yield _Given(name, tuple(values), word, unsure)
            text = f"--optimization-level={level[1]}" if level else arg.text
            head, joined, rest = text.partition("=")
            word, name = arg, _long(head, shorts, options)
            values = [Word(rest, arg.line)] if joined else []
            unsure = False
            if arg.text == "--":
                name = ""
            elif not told(name):
                name = "?"
                _open(arg, flags, path)
        elif _of_flags(arg) and not wanted:
            unsure = True
            for choice in choices(arg.text):
                _choose(choice, arg, options, flags, path)
        elif arg.text in ELLIPSIS or _is_open(arg, name, options, full=bool(values) or not (name or serve)):
            unsure = True
            _open(arg, flags, path)
            if wanted:
                values.append(arg)  # the first of these words is its value
        else:
            values.append(arg)
    yield _Given(name, tuple(values), word, unsure)


def _of_flags(arg: Word) -> bool:
    """Is it empty or flags in every branch that sets it?"""
    # a choice that is one mark is a branch that leaves it to the caller
    known = [choice for choice in choices(arg.text) if not MARKED.fullmatch(choice.strip())]
    return any(choice.strip() for choice in known) and all(
        not choice.strip() or (choice.lstrip().startswith("-") and not NUMBER.match(choice.lstrip()))
        for choice in known
    )


def _choose(choice: str, arg: Word, options: Mapping[str, Option], flags: Flags, path: str) -> None:
    """Notes the flags of one branch, which may not be given."""
    inner = Flags()
    words = [Word(text, arg.line) for text in SPLIT.findall(choice)]
    where = f"`{bare(arg.text)}` of {path}:{arg.line}"
    for given in _groups(words, options, inner, path=path, serve=False):
        if given.name and given.name != "?":
            name = given.name.partition(".")[0]
            off = name.startswith("no-") and name not in options
            flags.sometimes.setdefault(name.removeprefix("no-") if off else name, where)
    flags.sometimes.update(inner.sometimes)
    if inner.more:
        _open(arg, flags, path)


def _open(word: Word, flags: Flags, path: str) -> None:
    """Notes a word that may be more flags."""
    flags.more = True
    flags.unread[f"`{bare(word.text)}` of {path}:{word.line}"] = None


def _is_open(arg: Word, name: str, options: Mapping[str, Option], *, full: bool) -> bool:
    """Could this word, of which nothing is told, be flags rather than a value? `full`: no value is wanted."""
    if not arg.text.startswith(OPEN):
        return False
    whole = MARKED.fullmatch(arg.text) is not None
    several = SEVERAL.fullmatch(bare(arg.text)) is not None
    full = full or (name in options and options[name].switch) or name.startswith("no-")
    return several or (whole and full)


def _long(head: str, shorts: Mapping[str, str], options: Mapping[str, Option]) -> str:
    """`--max_num_seqs` and `-tp` → the long name; the parser also takes what abbreviates one name only.

    >>> _long("--eplb_config.window_size", {}, {}), _long("-tp", {"tp": "tensor-parallel-size"}, {})
    ('eplb-config.window_size', 'tensor-parallel-size')
    """
    name, dot, key = head.lstrip("-").partition(".")
    if not head.startswith("--"):
        name = shorts.get(name, name)
    name = name.replace("_", "-")
    if name not in options and name.removeprefix("no-") not in options and len(name) > 2:
        longer = [option for option in options if option.startswith(name)]
        name = longer[0] if len(longer) == 1 and head.startswith("--") else name
    return name + dot + key


def _take(
    given: _Given, flags: Flags, dotted: dict[str, Setting], *, path: str, options: Mapping[str, Option]
) -> None:
    """One flag becomes a setting."""
    name, _, key = given.name.partition(".")
    source = f"{path}:{given.word.line}"
    if given.name == "?":
        return
    joined = "=" in given.word.text
    off = name.startswith("no-") and name not in options
    plain = name.removeprefix("no-") if off else name
    takes_none = plain in options and options[plain].switch and not options[plain].words
    if joined and not key and takes_none:
        _leave_over(given.values[0], name, flags, path)
    switch = not joined and not key and (not given.values or takes_none)
    values, rest = given.values[: 0 if switch else None], given.values[0 if switch else 1 :]
    if flags.seeks_model and rest:
        flags.settings["model"] = Setting(value(rest[-1].text), f"{path}:{rest[-1].line}")
        flags.seeks_model = False
        values, rest = (values[:-1], rest) if values else (values, rest[:-1])
    if key:
        scalar = _scalar(values[0].text, adds=key.endswith("+")) if values else True
        _nest(dotted, name, key.rstrip("+"), Setting(scalar, source))
    elif switch:
        _set(flags, plain, Setting(not off, source))
        for word in () if given.unsure else rest:
            _leave_over(word, name, flags, path)
    elif len(values) > 1 and name in options and options[name].words in ("", "?"):
        _set(flags, name, Setting(_json(values[0].text, flags, source, name), source))
        for word in () if given.unsure else values[1:]:
            _leave_over(word, name, flags, path)
    elif len(values) > 1:
        _set(flags, name, Setting([value(w.text) for w in values], source))
    else:
        _set(flags, name, Setting(_json(values[0].text, flags, source, name), source))


def _set(flags: Flags, name: str, setting: Setting) -> None:
    before = flags.settings.get(name)
    if before is not None and name != CONFIG and before.value != setting.value:
        what = f"--{name} is given twice, first as {_shown(before.value)}, and the last one counts"
        _say(flags, what, setting.source, do=f"remove the one of {before.source}")
    flags.settings[name] = setting


def _nest(dotted: dict[str, Setting], name: str, key: str, setting: Setting) -> None:
    """`--name.a.b value` into one mapping a flag."""
    outer = dotted.setdefault(name, Setting({}, setting.source)).value
    *path, last = key.split(".")[:DEEPEST]
    for part in path:
        if not isinstance(outer, dict):
            return
        outer = outer.setdefault(part, {})
    if isinstance(outer, dict):
        outer[last] = setting.value


def _json(text: str, flags: Flags, source: str, name: str) -> Json:
    """A value: JSON where it is a mapping or list, else text."""
    if not bare(text).lstrip().startswith(("{", "[")):
        return value(text)
    parts: list[str] = []

    def hide(found: re.Match[str]) -> str:
        parts.append(found[0])
        return f"{OPEN}{len(parts) - 1}{CLOSE}"

    quoted = OUTSIDE.sub(lambda found: f'"{found[1]}"' if found[1] else found[0], MARKED.sub(hide, text))
    try:
        return _restored(json.loads(quoted), parts)
    except (ValueError, RecursionError):
        pass
    if told(text) and text.lstrip().startswith("{"):
        what = f"the value of --{name} is not JSON: {_shown(text)}"
        _say(flags, what, source, do="put it between single quotes, so that its own quotes stay")
    return value(text)


def _scalar(text: str, *, adds: bool) -> Json:
    """What the parser makes of a value of `--a.b`, JSON if it can be, and of `--a.b+`."""
    if adds:
        return [value(part) for part in text.split(",")]
    try:
        return _restored(json.loads(text), [])
    except (ValueError, RecursionError):
        return value(text)


def _restored(item: Json, parts: Sequence[str], depth: int = 0) -> Json:
    """Parsed JSON with its unknown parts back in it."""
    if depth > DEEPEST:
        return None
    if isinstance(item, str):
        return value(HIDDEN.sub(lambda found: parts[int(found[1])], item))
    if isinstance(item, list):
        return [_restored(i, parts, depth + 1) for i in item]
    if isinstance(item, dict):
        return {bare(k): _restored(v, parts, depth + 1) for k, v in item.items()}
    return item


def _pull_config(flags: Flags, read_beside: Callable[[str], str | None]) -> None:
    """`--config FILE`: its settings, under those of the command line."""
    setting = flags.settings.get(CONFIG)
    if setting is None or not isinstance(setting.value, str):
        return
    text = read_beside(setting.value) if not isinstance(setting.value, Unknown) else None
    document = _config(text, setting.value, flags) if text is not None else None
    if document is None or not isinstance(document.values, dict):
        flags.more = True
        return
    for key, item in document.values.items():
        name, told = key.replace("_", "-"), as_json(item)
        if name.startswith("no-") and isinstance(told, bool):
            name, told = name.removeprefix("no-"), not told
        if name not in flags.settings:
            flags.settings[name] = Setting(told, document.place((key,)))


def _config(text: str, shown: str, flags: Flags) -> Document | None:
    try:
        return next(iter(parse_foreign(text, shown)), None)
    except InputError as error:
        flags.problems.extend(error.problems)
        return None


def _leave_over(word: Word, after: str, flags: Flags, path: str) -> None:
    """A word that no parser takes; one of which a part cannot be told may be none at all."""
    if told(word.text):
        flags.left_over.append(LeftOver(word.text, f"{path}:{word.line}", after))
    else:
        _open(word, flags, path)


def _say_stray(word: Word, flags: Flags, path: str) -> None:
    what = f"the word {_shown(word.text)} belongs to no flag"
    _say(flags, what, f"{path}:{word.line}", do="remove it; or quote it, if it is part of a value")


def _shown(item: Json) -> str:
    text = bare(str(item))
    return f"`{text[:60]}…`" if len(text) > 60 else f"`{text}`"


def _say(flags: Flags, what: str, where: str, *, do: str) -> None:
    flags.problems.append(Problem(what, where=where, do=do))
