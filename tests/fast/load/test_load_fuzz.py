"""Whatever a file holds, it loads or its Problems are told: nothing else is ever raised."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from launcher.flows.from_ansible import read_ansible
from launcher.load import Data, load_from
from launcher.load.document import parse
from launcher.model.problem import InputError, Problem
from launcher.resolve import resolve

INPUT = Path(__file__).with_name("input")
GOOD = (INPUT / "good.yaml").read_text()
LAYOUT = "configs/layouts/pd-2p1d.yaml"
ENGINE = "configs/engines/vllm-1.0.yaml"
STACK = "configs/stacks/current.yaml"
ROLE = "roles/os-base/role.yaml"
ODD = ["", "~", "- ", ": ", "{", "]", "'", '"', "&a ", "*a", "<<: ", "!!int ", "\t", "\n", "---\n", "\0", "é"]
ODD += [
    "0x1",
    "-1",
    "999999999999999999999",
    "1e999",
    "[1-99999]",
    "[3-1]",
    "../x",
    "{{ host }}",
    "%",
    "#",
    "|",
]
ODD += [">", "? ", "\ud800"]
WORDS = st.sampled_from(ODD) | st.text(max_size=8)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS
TREES = st.recursive(
    LEAVES, lambda t: st.lists(t, max_size=3) | st.dictionaries(WORDS, t, max_size=3), max_leaves=5
)


@st.composite
def edited(draw: st.DrawFn, text: str) -> str:
    """The text with up to three places cut out or overwritten."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.integers(0, 12))
        text = text[:start] + draw(WORDS) + text[end:]
    return text


@st.composite
def regrown(draw: st.DrawFn, text: str) -> str:
    """The document with one value put in place of another; JSON is YAML."""
    values: Any = parse(text, "good").values
    spot = values
    while True:
        keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
        key = draw(st.sampled_from(keys))
        inner = spot[key]
        if not inner or isinstance(inner, str) or draw(st.booleans()):
            spot[key] = draw(TREES)
            return json.dumps(values)
        spot = inner


def survives(text: str, use: Callable[[Path], object], path: Path) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    problems: tuple[Problem, ...] = ()
    try:
        use(path)
    except InputError as error:
        problems = error.problems or (Problem("no problem"),)
    assert all(problem.what and problem.do for problem in problems)


@settings(max_examples=60)
@given(edited(GOOD) | regrown(GOOD))
@example(GOOD.replace("max-num-seqs: 256", "max-num-seqs: " + "9" * 5000))
@example(GOOD.replace("max-num-seqs: 256", "a: [" + "9" * 5000 + ", 1e999]"))
@example(GOOD.replace("stack: current", "stack: ''"))
@example(GOOD.replace("stack: current", "stack:"))
def test_any_inventory(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        use = lambda path: resolve(load_from(Data([INPUT / "data"]), path))  # noqa: E731
        survives(text, use, Path(folder) / "x.yaml")


@settings(max_examples=60)
@given(
    st.sampled_from([LAYOUT, ENGINE, STACK, ROLE]).flatmap(
        lambda name: st.tuples(
            st.just(name),
            edited((INPUT / "data" / name).read_text()) | regrown((INPUT / "data" / name).read_text()),
        )
    )
)
@example((ENGINE, (INPUT / "data" / ENGINE).read_text().replace("[vllm, serve]", "[]")))
@example((ENGINE, (INPUT / "data" / ENGINE).read_text().replace("[internal, hybrid]", "[]")))
@example((ENGINE, (INPUT / "data" / ENGINE).read_text().replace(">=1.0,<1.1", "new")))
def test_any_data(case: tuple[str, str]) -> None:
    name, text = case
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(INPUT / "data", Path(folder) / "data")
        use = lambda path: resolve(load_from(Data([Path(folder) / "data"]), INPUT / "good.yaml"))  # noqa: E731
        survives(text, use, Path(folder) / "data" / name)


ANSIBLE = (
    "all:\n  vars: {ansible_user: ops}\n  children:\n    prefill:\n      hosts:\n        gpu[01:04]: {}\n"
)


@settings(max_examples=60)
@given(edited(ANSIBLE) | regrown(ANSIBLE))
def test_any_ansible_inventory(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        survives(text, lambda path: read_ansible(path, cluster="prod"), Path(folder) / "x.yaml")
