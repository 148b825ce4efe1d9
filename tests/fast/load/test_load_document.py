"""YAML text to values with lines: scalars stay text, and nothing that is written gets lost in silence."""

from __future__ import annotations

import pytest

from launcher.load.document import Plain, parse
from launcher.model.problem import InputError


def wrong(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse(text, "x.yaml")
    return [f"{p.where} {p.what}" for p in caught.value.problems]


def test_scalars_keep_their_text() -> None:
    written = "a: 0.10\nb: 12:30:00\nc: 017\nd: no\ne: 1e3\nf: 0x1f\ng: 2026-11-29\nh: ~\ni: 'true'\n"
    values = parse(written, "x.yaml").values
    assert values == {
        "a": "0.10",
        "b": "12:30:00",
        "c": "017",
        "d": "no",
        "e": "1e3",
        "f": "0x1f",
        "g": "2026-11-29",
        "h": "~",
        "i": "true",
    }


def test_quotes_are_remembered() -> None:
    values = parse("[true, 'true', \"true\", |-\n  true\n]".replace("|-\n  true\n", "true"), "x.yaml").values
    assert [isinstance(value, Plain) for value in values] == [True, False, False, True]


def test_places_are_those_of_keys_and_items() -> None:
    document = parse("a:\n  b:\n    - x\n    - {c: d}\n", "x.yaml")
    assert document.place(("a",)) == "x.yaml:1"
    assert document.place(("a", "b", 1, "c")) == "x.yaml:4"
    assert document.place(("a", "b", 1, "missing")) == "x.yaml:4"
    assert document.place(("elsewhere", "missing")) == "x.yaml:1"


def test_every_problem_of_one_pass_is_found() -> None:
    assert wrong("a: 1\na: 2\nb: &x 1\nc: *x\nd: !!int 3\ne: {<<: 1}\n") == [
        "x.yaml:2 key `a` is here a second time, first on line 1",
        "x.yaml:3 `&x`: anchors and aliases are not read",
        "x.yaml:4 `*x`: anchors and aliases are not read",
        "x.yaml:5 tag `!!int` is not read",
        "x.yaml:6 merge key `<<` is not read",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.yaml the file is empty"),
        ("---\n", "x.yaml the file is empty"),
        ("a:\n\tb: 1\n", "x.yaml:2 a tab indents this line, YAML wants spaces"),
        ("a: 1\nb: \x07\n", "x.yaml:2 character U+0007 is not allowed in YAML"),
        ('a: 1\nb: "\\0"\n', "x.yaml:2 character U+0000 is not allowed here"),
        ("a: 1\nb: {{ c }}\n", "x.yaml:2 a key must be text, found a list or mapping"),
        ("a: " + "[" * 60, "x.yaml:1 nested deeper than 40 levels"),
        ("a: b: c\n", "x.yaml:1 not YAML: mapping values are not allowed here"),
        ("a: 'b\n", "x.yaml:2 not YAML: found unexpected end of stream"),
        ("a: @b\n", "x.yaml:1 not YAML: found character '@' that cannot start any token"),
    ],
)
def test_what_is_no_document(text: str, message: str) -> None:
    assert wrong(text) == [message]


def test_an_alias_cannot_fill_the_memory() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 30)]
    assert len(wrong("\n".join(lines))) == 30 + 29 * 2
