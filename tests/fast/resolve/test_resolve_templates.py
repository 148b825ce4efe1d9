"""Texts are looked up strictly, and words survive systemd."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.model.problem import InputError
from launcher.resolve.templates import compiled, unit_quote


def systemd_reads(word: str, *, command: bool) -> str:
    """What systemd.syntax(7) and systemd.service(5) make of one quoted word of a unit file."""
    assert "\n" not in word
    if word[:1] in ("'", '"'):
        assert word[-1] == word[0]
        assert not re.search(rf"(?<!\\)(\\\\)*{word[0]}", word[1:-1])
        word = word[1:-1]
    else:
        assert not re.search(r"[\s'\"\\$;]", word)
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    word = re.sub(r"\\(.)", lambda m: escapes.get(m[1], m[1]), word)
    assert not re.search(r"(?<!%)(%%)*%(?!%)", word)
    word = word.replace("%%", "%")
    if command:
        assert not re.search(r"(?<!\$)(\$\$)*\$(?!\$)", word)
        word = word.replace("$$", "$")
    return word


words = st.text(st.sampled_from("ab %$'\"\\\n\t;={}[]é"), max_size=12)


@given(words)
def test_a_quoted_word_comes_back_as_it_was(word: str) -> None:
    assert systemd_reads(unit_quote(word), command=True) == word
    assert systemd_reads(unit_quote(word, expands=False), command=False) == word


def test_plain_words_and_json_stay_readable() -> None:
    assert unit_quote("--port=8000") == "--port=8000"
    assert unit_quote(json.dumps({"a": "b"})) == """'{"a": "b"}'"""
    assert unit_quote("") == '""'


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("one\n{{ host.nme }}\n", "x.j2:8", "template: 'dict object' has no attribute 'nme'"),
        ("{{ hst }}\n", "x.j2:7", "template: 'hst' is undefined"),
        ("one\ntwo {{ host.name }\n", "x.j2:8", "template: unexpected '}'"),
        ("{{ host.name | unit_qoute }}\n", "x.j2:7", "template: No filter named 'unit_qoute'."),
    ],
)
def test_an_unknown_name_is_a_problem_with_its_line(text: str, where: str, what: str) -> None:
    with pytest.raises(InputError) as raised:
        compiled(text, "x.j2", 7).render({"host": {"name": "h1"}})
    (problem,) = raised.value.problems
    assert (problem.where, problem.what) == (where, what)


def test_filters() -> None:
    template = compiled("{{ path | basename }} {{ value | json }}\n", "x.j2")
    assert template.render({"path": "/a/b.c", "value": {"x": [1]}}) == 'b.c {"x":[1]}\n'
    assert template.names == {"path", "value"}
