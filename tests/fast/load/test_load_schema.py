"""Values to dataclasses: each type reads what it should and nothing else, and says so all at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, Le, MinLen

from launcher.load.document import parse
from launcher.load.schema import fill, json_schema
from launcher.model.problem import InputError
from launcher.model.profile import Setting


@dataclass(frozen=True)
class Inner:
    number: Annotated[int, Ge(1), Le(10)] = 1
    names: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class Guard:
    path: str = ""
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.path) == bool(self.words):
            raise ValueError("needs one of `path` and `words`")


@dataclass(frozen=True)
class Outer:
    """A thing."""

    title: str
    """What it is called."""
    switch: bool = False
    share: float = 0.0
    inner: Inner = field(default_factory=Inner)
    many: Mapping[str, Inner] = field(default_factory=dict)
    settings: Mapping[str, Setting] = field(default_factory=dict)
    kind: Literal["good", "bad"] = "good"
    either: Mapping[str, str] | tuple[str, ...] = ()
    maybe: int | None = None
    guard: Guard | None = None
    run: Annotated[tuple[str, ...], MinLen(1)] = ("x",)


def read(text: str) -> Outer:
    document = parse(text, "x.yaml")
    return fill(Outer, document.values, place=document.place)


def wrong(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(text)
    return [f"{p.where} {p.what}; {p.do}" for p in caught.value.problems]


def test_text_becomes_what_its_type_says() -> None:
    made = read("title: 0.10\nswitch: true\nshare: 0.5\ninner: {number: 7, names: [1.10, no]}\nmaybe: 3\n")
    assert made == Outer("0.10", True, 0.5, Inner(7, ("1.10", "no"), "x.yaml:4"), maybe=3)


def test_nothing_is_nothing() -> None:
    assert read("title: ''\ninner:\nmany:\nmaybe: ~\n") == Outer("", inner=Inner(source="x.yaml:2"))


def test_sources_are_places() -> None:
    made = read("title: a\nmany:\n  one: {}\n  two:\n    number: 2\n")
    assert [inner.source for inner in made.many.values()] == ["x.yaml:3", "x.yaml:4"]


def test_settings_keep_what_was_written() -> None:
    made = read(
        "title: a\nsettings:\n  a: 0.10\n  b: true\n  c: 'true'\n  d:\n"
        "  e: {x: 1, y: '1', z: [0.5, no, true, null]}\n"
    )
    assert {name: setting.value for name, setting in made.settings.items()} == {
        "a": "0.10",
        "b": True,
        "c": "true",
        "d": None,
        "e": {"x": 1, "y": "1", "z": [0.5, "no", True, None]},
    }
    assert made.settings["e"].source == "x.yaml:7"


def test_a_union_takes_the_member_of_its_shape() -> None:
    assert read("title: a\neither: {b: 2.6}\n").either == {"b": "2.6"}
    assert read("title: a\neither: [b, 2.6]\n").either == ("b", "2.6")


def test_plain_values_are_filled_too() -> None:
    made = fill(Inner, {"number": "3", "names": ["a"]}, place=lambda location: "role.yaml:9")
    assert made == Inner(3, ("a",), "role.yaml:9")


def test_given_fields_are_not_read() -> None:
    document = parse("title: a\nswitch: true\n", "x.yaml")
    with pytest.raises(InputError, match="unknown key `title`"):
        fill(Outer, document.values, place=document.place, given={"title": "b"})


@pytest.mark.parametrize(
    "number", ["1_0", "0x1", "1.0", "01", "' 1'", "'1 '", "yes", "9" * 5000, "[1]", "{}", ""]
)
def test_only_numbers_are_numbers(number: str) -> None:
    (message,) = wrong(f"title: a\ninner: {{number: {number}}}\n")
    assert message.startswith("x.yaml:2 `number` in `inner` is ")
    assert message.endswith(", expected a whole number from 1 to 10; write a whole number from 1 to 10")


@pytest.mark.parametrize("word", ["yes", "no", "on", "True", "FALSE", "1", "0", "", "[]"])
def test_only_true_and_false_are_switches(word: str) -> None:
    (message,) = wrong(f"title: a\nswitch: {word}\n")
    assert message.endswith("expected true or false; write true or false")


def test_all_at_once() -> None:
    assert wrong(
        "titel: a\n"
        "inner: {number: 11, source: mine}\n"
        "many:\n"
        "  one: 1\n"
        "  two: {names: 1}\n"
        "kind: god\n"
        "either: 1\n"
        "guard: {}\n"
        "run: []\n"
    ) == [
        "x.yaml:1 `title` is missing; add `title:`, text",
        "x.yaml:2 `number` in `inner` is `11`, expected a whole number from 1 to 10; "
        "write a whole number from 1 to 10",
        "x.yaml:2 unknown key `source` in `inner`; known: names, number",
        "x.yaml:4 `one` in `many` is `1`, expected keys and values; write keys and values",
        "x.yaml:5 `names` in `many.two` is `1`, expected a list; write a list",
        "x.yaml:6 `kind` is `god`, expected one of good, bad; did you mean `good`?",
        "x.yaml:7 `either` is `1`, expected keys and values or a list; write keys and values or a list",
        "x.yaml:8 `guard`: needs one of `path` and `words`; correct it",
        "x.yaml:9 `run` has too few entries, expected 1 or more; add to it",
        "x.yaml:1 unknown key `titel`; did you mean `title`? "
        "known: either, guard, inner, kind, many, maybe, run, settings, share, switch, title",
    ]


def test_schema_describes_the_file_and_not_what_we_add() -> None:
    schema = json_schema(Outer, title="outer")
    outer = schema["$defs"]["Outer"]
    assert outer["required"] == ["title"]
    assert outer["properties"]["title"]["description"] == "What it is called."
    assert "source" not in schema["$defs"]["Inner"]["properties"]
    assert schema["$defs"]["Inner"]["properties"]["number"]["maximum"] == 10
