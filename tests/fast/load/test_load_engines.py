"""Engine files over others, and the history: what merges, where values stand, each mistake's line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from launcher.load.choice import Choice
from launcher.load.data import Data, shipped
from launcher.load.engines import read_engine
from launcher.load.history import read_history
from launcher.load.snapshot import parse_snapshot
from launcher.model.history import Entry, History, default_in, gone_in, ignored_in, known_in
from launcher.model.problem import InputError
from launcher.model.profile import Engine, Setting

TOP = """
about: It stands on vllm-0.33.
based_on: vllm-0.33
versions: ">=9.0,<9.1"
styles: [internal]
metrics:
  kv_usage:
  running: vllm:running
variables: {UCX_NET_DEVICES: interface}
"""


def engine(folder: Path, name: str = "top", **files: str) -> Engine:
    for stem, text in files.items():
        path = folder / f"configs/engines/{stem}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_engine(Choice(name, "stack.yaml:3"), Data((folder, shipped())))


def refused(read: Callable[[], object]) -> Iterator[tuple[str, str]]:
    with pytest.raises(InputError) as error:
        read()
    yield from ((p.where.rpartition("/")[2], p.what) for p in error.value.problems)


def test_mappings_merge_lists_replace_and_nothing_removes(tmp_path: Path) -> None:
    made, base = engine(tmp_path, top=TOP), engine(tmp_path, "vllm-0.33")
    assert made.styles == ("internal",)
    assert made.phases == base.phases
    assert made.metrics == {k: v for k, v in base.metrics.items() if k != "kv_usage"} | {
        "running": "vllm:running"
    }
    assert made.variables == {
        **base.variables,
        "UCX_NET_DEVICES": Setting("interface", f"{tmp_path}/configs/engines/top.yaml:9"),
    }


def test_a_mistake_in_a_base_is_told_where_it_stands(tmp_path: Path) -> None:
    files = {"base": TOP + "fatal: ['*']\n", "top": "based_on: base\nversions: new\nfatel: []\n"}
    assert list(refused(lambda: engine(tmp_path, **files))) == [
        ("top.yaml:3", "unknown key `fatel`"),
    ]
    files["top"] = files["top"].replace("fatel: []\n", "")
    assert list(refused(lambda: engine(tmp_path, **files))) == [
        ("base.yaml:10", "pattern `*` is no regular expression: nothing to repeat at position 0"),
        ("top.yaml:2", "`versions` is `new`, expected a range of versions"),
    ]


def test_engines_stand_on_one_that_there_is_and_not_on_each_other(tmp_path: Path) -> None:
    assert list(refused(lambda: engine(tmp_path, top="based_on: vllm-0.3\n"))) == [
        ("top.yaml:1", "unknown engine `vllm-0.3`")
    ]
    files = {"top": "based_on: low\n", "low": "about: x\nbased_on: top\n"}
    assert list(refused(lambda: engine(tmp_path, **files))) == [
        ("low.yaml:2", "engines are based on each other: top → low → top")
    ]


def test_a_snapshot_is_inherited_with_new_spellings_and_the_first_release(tmp_path: Path) -> None:
    renamed = "renamed: {seed: {flag: luck}, eplb-config: {flag: spread}, dtype: {env: VLLM_DTYPE}}\n"
    made, base = engine(tmp_path, top=TOP + renamed).snapshot, engine(tmp_path, "vllm-0.33").snapshot
    assert made is not None
    assert base is not None
    assert made.version == "9.0"
    assert set(made.options) == set(base.options) - {"seed", "eplb-config", "dtype"} | {"luck", "spread"}
    assert made.keys["spread"] == base.keys["eplb-config"]
    assert set(made.variables) - set(base.variables) == {"VLLM_DTYPE"}


@pytest.mark.parametrize(
    "text",
    [
        '{"version": "new", "options": {}, "keys": {}, "variables": []}',
        '{"version": "9.0", "options": {"a": {"short": ["-a"]}}, "keys": {}, "variables": []}',
        '{"version": "9.0", "options": {"a": {"shrt": "-a"}}, "keys": {}, "variables": []}',
        "[" * 5000,
    ],
)
def test_a_snapshot_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="the snapshot cannot be read"):
        parse_snapshot(text, "top.json")


BROKEN = """
settings:
  a: {since: 0.14, until: 0.16.0}
  b: {since: 0.16.0, until: 0.14.0}
  c: {instead: a}
  d: {until: 0.1.0, instead: e}
  e: {until: 0.1.0, instead: d}
  f: {until: 0.1.0, back: 0.1.0}
  g: {defaults: {new: "1"}, gone: {pplx: soon}}
variables: {}
behaviours:
  x: {about: x, values: {0.1: y}, known_from: z}
"""


def test_every_mistake_of_a_history_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "configs/history/vllm.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(BROKEN)
    assert list(refused(lambda: read_history(Data((tmp_path,))))) == [
        ("vllm.yaml:3", "`0.14` is no release"),
        ("vllm.yaml:4", "`b`: until is 0.14.0, not after since 0.16.0"),
        ("vllm.yaml:5", "`c` says what to write instead, and not since when it is gone"),
        ("vllm.yaml:6", "names live on as each other: d → e → d"),
        ("vllm.yaml:7", "names live on as each other: e → d → e"),
        ("vllm.yaml:8", "`f`: back is 0.1.0, not after until 0.1.0"),
        ("vllm.yaml:9", "`new` is no release"),
        ("vllm.yaml:9", "`soon` is no release"),
        ("vllm.yaml:12", "`0.1` is no release"),
    ]


def test_what_a_release_knows_ignores_and_takes_for_granted() -> None:
    entry = Entry(since="0.11.1", until="0.17.0", back="0.33.0", ignored_since="0.14.0")
    versions = ("0.11.0", "0.11.1", "0.16.0", "0.17.0", "0.32.1", "0.33.0rc1", "1.0")
    assert [known_in(entry, v) for v in versions] == [False, True, True, False, False, True, True]
    assert [ignored_in(entry, v) for v in ("0.13.9", "0.14", "0.9.0")] == [False, True, False]
    changing = Entry(defaults={"0.9.0": "a", "0.10.0": "b"}, gone={"pplx": "0.17.0"})
    assert [default_in(changing, v) for v in ("0.8", "0.9.5", "0.10.0")] == [None, "a", "b"]
    assert [gone_in(changing, *pair) for pair in (("pplx", "0.16.0"), ("pplx", "0.17.0"))] == [False, True]
    assert not gone_in(changing, "naive", "1.0")


def test_a_name_lives_on_through_several() -> None:
    settings = {"new": Entry(), "old": Entry(until="0.2.0", instead="new")}
    history = History(settings, {"OLDEST": Entry(until="0.1.0", instead="old"), "X": Entry(until="1.0.0")})
    assert [history.current(n) for n in ("OLDEST", "old", "new", "X", "other")] == [
        "new",
        "new",
        "new",
        "X",
        "other",
    ]
