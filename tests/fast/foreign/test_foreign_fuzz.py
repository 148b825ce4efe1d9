"""No text whatever makes the reader fail."""

from __future__ import annotations

from foreign_reading import COMPOSE, KUBERNETES, SCRIPT, UNIT, read
from hypothesis import given, settings
from hypothesis import strategies as st

WORDS = """
vllm serve m|--a|-tp|$((|${|}}|{{|<<EOF|EOF|if|then|fi|case x in|a)|;;|esac|for i in|do|done|f()|[[|]]|A=|A+=(
export|eval|[Service]|ExecStart=|kind: Pod|apiVersion: v1|&x|*x|- |containers:|command:|services:|docker run
-e|ssh h|${A:-|${A[@]}|1
"""
PIECES = st.sampled_from([*"\"'`$(){}[]<>|&;\\\n\t #=-!*@,:%", *WORDS.replace("\n", "|").split("|")])
"""What the forms are made of."""


@settings(max_examples=400)
@given(
    st.one_of(
        st.text(max_size=200),
        st.lists(PIECES, max_size=60).map(" ".join),
        st.lists(PIECES, max_size=60).map("".join),
    )
)
def test_arbitrary_text(text: str) -> None:
    reading = read(text)
    assert reading.launches or reading.problems


@settings(max_examples=200)
@given(st.sampled_from([UNIT, COMPOSE, KUBERNETES, SCRIPT]), st.data())
def test_damaged_files(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(at, min(len(text), at + 40)))
        text = text[:at] + data.draw(PIECES) + text[end:]
    reading = read(text)
    assert reading.launches or reading.problems


def test_depth_and_size_end() -> None:
    for text in (
        "$(" * 5000,
        "${A:-" * 5000,
        "( " * 5000,
        "if x; then " * 500,
        '"$("' * 3000,
        "f() { f; }; f\n",
    ):
        read(text + "vllm serve m")
    doubling = "A=" + "x" * 1000 + "\n" + "A=$A$A\n" * 40 + "vllm serve m --port $A\n"
    assert read(doubling).launches
    bomb = "kind: Pod\napiVersion: v1\nvllm: &a0 [x]\n"
    bomb += "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    read(bomb, "b.yaml")
    nested = "kind: Pod\napiVersion: v1\nx: " + "[" * 5000
    assert read(nested + "vllm", "n.yaml").problems


def test_a_script_that_never_ends_is_left() -> None:
    calls = "".join(f"f{n}() {{ f{n + 1}; f{n + 1}; f{n + 1}; f{n + 1}; }}\n" for n in range(20))
    (problem,) = read(calls + "f0\n").problems
    assert problem.what.startswith("the script was not followed to its end")
    many = read("vllm serve m\n" * 300)
    assert len(many.launches) == 256
    assert [p.what for p in many.problems] == ["256 launches and more, the others were not read"]
