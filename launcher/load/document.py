"""YAML text → values and the line of each: scalars are text, duplicate keys are refused; knows no types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import yaml

from launcher.model.problem import InputError, Problem

Location: TypeAlias = "tuple[str | int, ...]"
"""Keys and list positions from the top of a document."""
Value: TypeAlias = "str | list[Value] | dict[str, Value]"
"""What a document holds before a type says otherwise."""

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
DEEPEST = 40
"""Levels; nothing we read needs ten, and a hostile file must not exhaust the stack."""


class Block(str):
    """Text of a literal block (`|`): its lines stand in the file one by one, below the line of its key."""

    __slots__ = ()


class Plain(str):
    """Text that stood in the file without quotes: `true`, `12` and `~` may mean more than text to a type."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One file's values, and where each of them stands. It is equal to itself only, so that what was made of
    it can be looked up by it."""

    path: str
    """As people see it in messages."""
    values: Value
    lines: Mapping[Location, int]

    def place(self, location: Location) -> str:
        """`path:line` of a value, or of the nearest thing around it that the file does have."""
        return f"{self.path}:{self.line(location)}"

    def line(self, location: Location) -> int:
        """The number alone."""
        while location not in self.lines:
            location = location[:-1]
        return self.lines[location]


@dataclass(frozen=True, slots=True)
class Span:
    """Where a value stands in a text, in characters, and how it is written."""

    start: int
    end: int
    """Of a mapping or list without brackets: where what follows it begins."""
    column: int
    flow: bool
    """A mapping or list in brackets; false: each key or item begins a line, at `column`."""


def survey(text: str, path: str) -> Mapping[Location, Span]:
    """Where each value of a document stands, for who changes one in the text. InputError if it is no YAML."""
    surveyor = _Surveyor(path)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            surveyor.take(event)
    except yaml.YAMLError as error:
        raise InputError(_syntax(error, text, path)) from None
    return surveyor.spans


def parse(text: str, path: str) -> Document:
    """Reads YAML; InputError with every Problem that one pass can see.

    >>> parse("version: 0.10\\nready: no", "x.yaml").values
    {'version': '0.10', 'ready': 'no'}
    """
    builder = _Builder(path)
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.YAMLError as error:
        raise InputError(*builder.problems, _syntax(error, text, path)) from None
    if not builder.lines or builder.root == "":
        raise InputError(Problem("the file is empty", where=path, do="fill it or remove it"))
    if builder.problems:
        raise InputError(*builder.problems)
    return Document(path, builder.root, builder.lines)


def _events(text: str) -> Iterable[yaml.Event]:
    """By libyaml, which reads ten times as fast, where PyYAML has it; what that refuses, PyYAML's own parser
    reads, for its words are those that `_syntax` knows."""
    fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return list(yaml.parse(text, Loader=fast))
    except (yaml.YAMLError, UnicodeError):
        return yaml.parse(text, Loader=yaml.SafeLoader)


def parse_foreign(text: str, path: str) -> list[Document]:
    """Documents that others wrote, as their own programs read them: anchors, merge keys, several a file, of
    two equal keys the last. InputError if it is no YAML.

    >>> [d.values for d in parse_foreign("a: &x {b: 1}\\nc: {<<: *x, d: 2}\\n---\\n- e", "x.yaml")]
    [{'a': {'b': '1'}, 'c': {'b': '1', 'd': '2'}}, ['e']]
    """
    builders: list[_ForeignBuilder] = []
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                builders.append(_ForeignBuilder(path))
            elif builders:
                builders[-1].take(event)
    except yaml.YAMLError as error:
        raise InputError(_syntax(error, text, path)) from None
    return [Document(path, b.root, b.lines) for b in builders if b.lines and b.root != ""]


class _Open:
    """A list or mapping whose end has not been read yet."""

    __slots__ = ("key", "location", "value")

    def __init__(self, value: list[Value] | dict[str, Value], location: Location) -> None:
        self.value = value
        self.location = location
        self.key: str | None = None


class _Builder:
    """Turns parser events into values; keeps going after a Problem so that all are found."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.root: Value = ""
        self.lines: dict[Location, int] = {}
        self.problems: list[Problem] = []
        self._open: list[_Open] = []
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        """One parser event; raises InputError where reading on makes no sense."""
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._say(line, "a second document starts here", do="keep one document a file: remove `---`")
                raise InputError(*self.problems)
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            self._open.pop()
        elif isinstance(event, yaml.NodeEvent):
            self._refuse_extras(event, line)
            self._node(event, line)

    def _node(self, event: yaml.NodeEvent, line: int) -> None:
        if self._wants_key():
            self._key(event, line)
            return
        location = self._locate_next(line)
        if isinstance(event, yaml.ScalarEvent):
            self._refuse_controls(event.value, line)
            self._store(_STYLES.get(event.style, str)(event.value))
        elif isinstance(event, yaml.AliasEvent):
            self._store("")
        else:
            value: list[Value] | dict[str, Value] = [] if isinstance(event, yaml.SequenceStartEvent) else {}
            self._store(value)
            self._open.append(_Open(value, location))
            if len(self._open) > DEEPEST:
                self._say(line, f"nested deeper than {DEEPEST} levels", do="flatten it")
                raise InputError(*self.problems)

    def _wants_key(self) -> bool:
        top = self._open[-1] if self._open else None
        return top is not None and isinstance(top.value, dict) and top.key is None

    def _key(self, event: yaml.NodeEvent, line: int) -> None:
        top = self._open[-1]
        if not isinstance(event, yaml.ScalarEvent):
            what = "a key must be text, found a list or mapping"
            self._say(line, what, do="quote a value that starts with `{` or `[`")
            raise InputError(*self.problems)
        self._refuse_controls(event.value, line)
        top.key = event.value
        location = (*top.location, event.value)
        if event.value in top.value:
            what = f"key `{event.value}` is here a second time, first on line {self.lines[location]}"
            self._say(line, what, do="remove one of the two")
        self.lines.setdefault(location, line)

    def _locate_next(self, line: int) -> Location:
        """The location of the value that comes now; a mapping's value stands where its key does."""
        if not self._open:
            self.lines[()] = line
            return ()
        top = self._open[-1]
        location = (*top.location, len(top.value) if top.key is None else top.key)
        self.lines.setdefault(location, line)
        return location

    def _store(self, value: Value) -> None:
        if not self._open:
            self.root = value
            return
        top = self._open[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is not None:
            top.value.setdefault(top.key, value)
            top.key = None

    def _refuse_extras(self, event: yaml.NodeEvent, line: int) -> None:
        """Each value has one line that sets it, and types come from us: no aliases, no tags."""
        if event.anchor is not None:
            mark = "*" if isinstance(event, yaml.AliasEvent) else "&"
            what = f"`{mark}{event.anchor}`: anchors and aliases are not read"
            self._say(line, what, do="write the value out where it is used")
        elif (tag := getattr(event, "tag", None)) not in (None, "!"):
            shown = str(tag).replace("tag:yaml.org,2002:", "!!")
            self._say(line, f"tag `{shown}` is not read", do="remove it; quote the value to keep it text")
        elif isinstance(event, yaml.ScalarEvent) and event.value == "<<" and self._wants_key():
            self._say(line, "merge key `<<` is not read", do="write the keys out where they are used")

    def _refuse_controls(self, text: str, line: int) -> None:
        """Escapes in double quotes can make characters that no path, flag or name may hold."""
        found = CONTROLS.search(text)
        if found:
            self._say(line, f"character U+{ord(found[0]):04X} is not allowed here", do="remove its escape")

    def _say(self, line: int, what: str, *, do: str) -> None:
        self.problems.append(Problem(what, where=f"{self.path}:{line}", do=do))


class _Surveyor(_Builder):
    """Keeps where values begin and end, too."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.spans: dict[Location, Span] = {}
        self._event: yaml.Event | None = None

    def take(self, event: yaml.Event) -> None:
        self._event = event
        ends = isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent))
        closed = self._open[-1].location if ends else None
        super().take(event)
        if closed is not None and event.end_mark:
            self.spans[closed] = replace(self.spans[closed], end=event.end_mark.index)

    def _locate_next(self, line: int) -> Location:
        location = super()._locate_next(line)
        event = self._event
        if event and event.start_mark and event.end_mark:
            flow = bool(getattr(event, "flow_style", False))
            start = event.start_mark
            self.spans[location] = Span(start.index, event.end_mark.index, start.column, flow)
        return location


class _ForeignBuilder(_Builder):
    """Takes what our own files may not have."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._anchors: dict[str, Value] = {}
        self._anchor: str | None = None

    def _node(self, event: yaml.NodeEvent, line: int) -> None:
        if self._wants_key():
            self._foreign_key(event, line)
        elif isinstance(event, yaml.AliasEvent):
            self._locate_next(line)
            meant = self._anchors.get(str(event.anchor), "")
            itself = any(meant is outer.value for outer in self._open)
            self._store("" if itself else meant)
        else:
            self._anchor = event.anchor
            super()._node(event, line)

    def _foreign_key(self, event: yaml.NodeEvent, line: int) -> None:
        top = self._open[-1]
        if not isinstance(event, yaml.ScalarEvent):
            self._say(line, "a key must be text, found more", do="quote a value that starts with `{`")
            raise InputError(*self.problems)
        top.key = event.value
        location = (*top.location, event.value)
        self.lines[location] = line

    def _store(self, value: Value) -> None:
        if self._anchor is not None:
            self._anchors[self._anchor] = value
            self._anchor = None
        top = self._open[-1] if self._open else None
        if top is None or not isinstance(top.value, dict) or top.key is None:
            super()._store(value)
            return
        if top.key == "<<":
            for merged in value if isinstance(value, list) else [value]:
                extra = merged if isinstance(merged, dict) else {}
                top.value.update({k: v for k, v in extra.items() if k not in top.value})
        else:
            top.value[top.key] = value
        top.key = None

    def _refuse_extras(self, event: yaml.NodeEvent, line: int) -> None:
        """Nothing is refused."""


_STYLES: Mapping[str | None, type[str]] = {None: Plain, "": Plain, "|": Block}


def _syntax(error: yaml.YAMLError, text: str, path: str) -> Problem:
    """The parser's complaint in our words."""
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        what = f"character U+{error.character:04X} is not allowed in YAML"
        return Problem(what, where=f"{path}:{line}", do="remove it")
    mark = getattr(error, "problem_mark", None)
    number = min(mark.line, text.count("\n")) if mark else 0
    near = text.split("\n")[number]
    where = f"{path}:{number + 1}"
    if "\t" in near[: len(near) - len(near.lstrip())]:
        what = "a tab indents this line, YAML wants spaces"
        return Problem(what, where=where, do="replace the tab by spaces")
    if re.search(r"[\w.-]\[\d+-\d+\]", near):
        what = "a range inside `[ ]` or `{ }` needs quotes"
        return Problem(what, where=where, do='quote it: "gpu[01-04]", "10.0.0.[11-14]"')
    said = str(getattr(error, "problem", None) or "unreadable")
    opened = getattr(error, "context_mark", None)
    if opened and said.startswith("expected ',' or"):
        sign = "[" if said.startswith("expected ',' or ']'") else "{"
        what = f"what `{sign}` opens here is not closed, or lacks a comma"
        return Problem(what, where=f"{path}:{opened.line + 1}", do="close it, or add the comma")
    context = str(getattr(error, "context", None) or "")
    do = "check indentation, colons, brackets and quotes near it"
    return Problem(f"not YAML: {said}", where=where, why=context, do=do)
