"""Values changed in an inventory's text: every form that pools are written in, and nothing else moves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.load.document import parse
from launcher.load.edit import Append, Edit, Put, changed_lines, edited
from launcher.model.problem import InputError

COUNT = Put(("pools", "prefill", "instances"), "3")
HOSTS = Append(("pools", "prefill", "hosts"), ("gpu05", "gpu06"))
FORMS = [
    # one line in brackets, the count there or not
    (
        "pools:\n  prefill: {hosts: [a, b], instances: 2} # two\n  decode: {hosts: [c]}\n",
        "pools:\n  prefill: {hosts: [a, b, gpu05, gpu06], instances: 3} # two\n  decode: {hosts: [c]}\n",
    ),
    (
        'pools:\n  prefill: {hosts: "gpu[01-04]", minimum: 1} # one of two serves\n',
        'pools:\n  prefill: {hosts: ["gpu[01-04]", "gpu05", "gpu06"], minimum: 1, instances: 3}'
        " # one of two serves\n",
    ),
    ("pools: {prefill: {hosts: a}}", "pools: {prefill: {hosts: [a, gpu05, gpu06], instances: 3}}"),
    # brackets over several lines, with comments and a last comma
    (
        "pools: {\n  prefill: {\n    hosts: [a, # first\n      b, # second\n    ],\n  },\n}\n",
        "pools: {\n  prefill: {\n    hosts: [a, # first\n      b, gpu05, gpu06, # second\n"
        "    ], instances: 3,\n  },\n}\n",
    ),
    # a key a line
    (
        "pools:\n  prefill:\n    hosts: gpu[01-04] # by rack\n    minimum: 1\n# the end\n",
        'pools:\n  prefill:\n    hosts: ["gpu[01-04]", gpu05, gpu06] # by rack\n    minimum: 1\n'
        "    instances: 3\n# the end\n",
    ),
    (
        "pools:\n    prefill:\n        instances: # all\n        hosts: [a]\n",
        "pools:\n    prefill:\n        instances: 3 # all\n        hosts: [a, gpu05, gpu06]\n",
    ),
    # an item a line, deeper than its key or not, at the end of the file or not
    (
        "pools:\n  prefill:\n    hosts:\n      - a\n      - b # new\n\n    # how many\n    minimum: 1",
        "pools:\n  prefill:\n    hosts:\n      - a\n      - b # new\n      - gpu05\n      - gpu06\n\n"
        "    # how many\n    minimum: 1\n    instances: 3",
    ),
    (
        "pools:\n  prefill:\n    hosts:\n    - a\nsettings: {}\n",
        "pools:\n  prefill:\n    instances: 3\n    hosts:\n    - a\n    - gpu05\n    - gpu06\nsettings: {}\n",
    ),
    # what another system wrote
    (
        "pools:\r\n  prefill:\r\n    hosts: [a]\r\n    minimum: 1\r\n",
        "pools:\r\n  prefill:\r\n    hosts: [a, gpu05, gpu06]\r\n    minimum: 1\r\n    instances: 3\r\n",
    ),
    (
        '\ufeff{"pools": {"prefill": {"hosts": ["a"], "instances": 2}}}',
        '\ufeff{"pools": {"prefill": {"hosts": ["a", "gpu05", "gpu06"], "instances": 3}}}',
    ),
]


@pytest.mark.parametrize(("before", "after"), FORMS)
def test_every_form(before: str, after: str) -> None:
    assert edited(before, "x.yaml", (HOSTS, COUNT)) == after


def test_a_line_at_the_top() -> None:
    text = "cluster: prod # ours\nstack: article-0.14 # until July\nlayout: 'article-2p1d'\n"
    edits = (Put(("stack",), "current"), Put(("layout",), "current-2p1d"))
    now = edited(text, "x.yaml", edits)
    assert now == "cluster: prod # ours\nstack: current # until July\nlayout: current-2p1d\n"
    first, second = changed_lines(text, now, "x.yaml")
    assert (first.place, first.after) == ("x.yaml:2", ("stack: current # until July",))
    assert (second.place, second.before) == ("x.yaml:3", ("layout: 'article-2p1d'",))


def test_what_cannot_be_edited_is_said_and_not_damaged() -> None:
    """A key without its colon: a word put behind it becomes part of it."""
    text = "pools:\n  prefill:\n    {hosts: [a], instances}\n"
    with pytest.raises(InputError) as caught:
        edited(text, "x.yaml", (COUNT,))
    (problem,) = caught.value.problems
    assert problem.where == "x.yaml:3"
    assert "write `pools.prefill.instances: 3` by hand" in problem.do


names = st.text("abcgpu019-.", min_size=1, max_size=6).filter(lambda t: t[0].isalnum() and t[-1].isalnum())
comments = st.sampled_from(["", " # why", "  # {a: b}, 'c'", "\n  # a line of its own"])


@st.composite
def inventories(draw: st.DrawFn) -> str:
    """A file with pools in forms that people write, comments in many places."""
    note = draw(comments)
    hosts = draw(st.lists(names, min_size=1, max_size=3))
    quoted = [draw(st.sampled_from([h, f'"{h}"', f"'{h}'"])) for h in hosts]
    row = f"[{', '.join(quoted)}]"
    more = draw(st.lists(st.sampled_from(["minimum: 1", "instances: 2"]), unique=True))
    if draw(st.booleans()):
        keys = draw(st.permutations([f"hosts: {row}", *more]))
        pool = f"prefill: {{{', '.join(keys)}}}{note}"
    else:
        listed = "hosts:" + "".join(f"\n    - {q}" for q in quoted)
        keys = draw(st.permutations([draw(st.sampled_from([f"hosts: {row}", listed])) + note, *more]))
        pool = "prefill:" + "".join(f"\n    {k}" for k in keys)
    return f"cluster: x{note}\npools:\n  {pool}\n  decode: {{hosts: [z]}}\nsettings:\n  all: {{a: 1}}\n"


@given(inventories(), st.integers(1, 99), st.lists(names, max_size=3))
def test_what_is_read_afterwards_is_what_was_meant(text: str, count: int, more: list[str]) -> None:
    edits: list[Edit] = [Put(("pools", "prefill", "instances"), str(count))]
    if more:
        edits.append(Append(("pools", "prefill", "hosts"), tuple(more)))
    now = edited(text, "x", edits)
    before: Any = parse(text, "x").values
    after: Any = parse(now, "x").values
    pool = before["pools"].pop("prefill")
    assert after["pools"].pop("prefill") == {
        **pool,
        "instances": str(count),
        "hosts": [*pool["hosts"], *more],
    }
    assert after == before
    words = ("# why", "'c'", "of its own")
    assert [w in now for w in words] == [w in text for w in words], "comments stay"
