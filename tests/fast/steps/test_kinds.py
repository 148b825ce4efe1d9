"""Parameters + answers → changes, for every kind: a case is an entry of cases/<kind>.yaml."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from launcher.load.schema import fill
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Draft, Op
from launcher.model.problem import InputError
from launcher.steps import KINDS, VOLATILE, file, kinds_in, texts, turns, unit

MANIFEST = json.dumps(
    {
        "files": {
            "a.safetensors": {"size": 100, "sha256": "aa"},
            "b.safetensors": {"size": 200, "sha256": "bb"},
            "config.json": {"size": 3, "sha256": "cc"},
        }
    }
)
LEAVES_ALL = {"absent", "command", "folder", "purged", "user", "venv", "weights"}
"""Kinds of which nothing goes with their role."""
REVISION = hashlib.sha256(MANIFEST.encode()).hexdigest()


def cases() -> Iterator[Any]:
    for path in sorted((Path(__file__).parent / "cases").glob("*.yaml")):
        document = yaml.safe_load(path.read_text())
        for name, case in document["cases"].items():
            yield pytest.param(path.stem, {"params": document["params"], **case}, id=f"{path.stem}: {name}")


def params_of(kind: str, values: Mapping[str, Any]) -> Any:
    return fill(KINDS[kind].Params, values, place=lambda _: "cases")


def answer(kind: str, want: Any, probe: Probe, given: Any) -> Any:
    """The case's answer, with its placeholders for digests filled in."""
    if given == "MANIFEST":
        return {"text": MANIFEST}
    if not isinstance(given, dict):
        return given
    if "unknown" in given:
        return Unknown(given["unknown"])
    wanted = probe.args[-1] if probe.kind == "path" else REVISION
    release = next((unit.release(u) for u in turns.units_of(want) if u.name == probe.args[0]), "")
    return {
        k: {"WANTED": wanted, "RELEASE": release}.get(v, v) if isinstance(v, str) else v
        for k, v in given.items()
    }


def releases(want: Any) -> dict[str, str]:
    """Placeholder → what it stands for: of a unit its release, of two in turns that of each and of both."""
    if isinstance(want, turns.Params):
        a, b = (unit.release(u) for u in turns.units_of(want))
        return {"RELEASE_A": a, "RELEASE_B": b, "RELEASE": turns.release(want)}
    return {"RELEASE": unit.release(want) if isinstance(want, unit.Params) else ""}


def line(draft: Draft) -> str:
    because = f" ({draft.because})" if draft.because else ""
    return f"{draft.action.value} {draft.subject}: {draft.before} → {draft.after}{because}"


def op_line(op: Op) -> str:
    def word(value: Any) -> str:
        if isinstance(value, dict):
            return " ".join(f"{k}={v}" if v else k for k, v in value.items())
        return ("+" if op.verb == "user" else " ").join(value) if isinstance(value, list) else str(value)

    if op.verb == "units":
        words = [verb if names is True else f"{verb} {word(names)}" for verb, names in op.args.items()]
    else:
        words = [word(v) for k, v in op.args.items() if k != "environment"]
    return " ".join([op.verb, *words])


@pytest.mark.parametrize(("kind", "case"), list(cases()))
def test_changes(kind: str, case: Mapping[str, Any]) -> None:
    want = params_of(kind, case["params"])
    probes = KINDS[kind].probes(want)
    assert len(probes) == len(case["answers"])
    facts = Facts("h", {p: answer(kind, want, p, a) for p, a in zip(probes, case["answers"], strict=True)})
    drafts = KINDS[kind].changes(want, facts)
    puts = {
        **releases(want),
        "REVISION": REVISION[:12],
        "CONTENT": next((p.args[1][:8] for p in probes if p.kind == "path" and len(p.args) > 1), ""),
        "JOB": next((p.args[0] for p in probes if p.kind == "job"), ""),
    }

    def filled(text: str) -> str:
        for name, value in puts.items():
            text = text.replace(name, value)
        return text

    assert [line(d) for d in drafts] == [filled(c) for c in case["changes"]]
    assert [op_line(op) for d in drafts for op in d.ops] == [filled(o) for o in case["ops"]]
    if "undone" in case:
        taken = KINDS[kind].undone(want, facts)
        assert [line(d) for d in taken] == [filled(c) for c in case["undone"]]
        assert [op_line(op) for d in taken for op in d.ops] == case.get("undone_by", [])
    if "diff" in case:
        assert drafts[0].diff == case["diff"]


def test_every_kind_has_cases() -> None:
    assert {p.values[0] for p in cases()} == set(KINDS)
    assert {p.values[0] for p in cases() if "undone" in p.values[1]} == set(KINDS) - LEAVES_ALL


@pytest.mark.parametrize("kind", sorted(LEAVES_ALL))
def test_what_a_role_leaves_behind_is_left_whatever_the_host_says(kind: str) -> None:
    params = next(p.values[1]["params"] for p in cases() if p.values[0] == kind)
    assert KINDS[kind].undone(params_of(kind, params), Facts("h", {})) == ()


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"command"}))
def test_what_a_step_owns_is_told_apart_by_what_is_wanted(kind: str) -> None:
    """Of two steps that want one thing in two ways, the states differ."""
    wants = {
        repr(w): w for p in cases() if p.values[0] == kind for w in [params_of(kind, p.values[1]["params"])]
    }
    for want in wants.values():
        for field in fields(want):
            other = another(want, field.name)
            mine, its = ({(o.sort, o.name): o.state for o in KINDS[kind].owns(w)} for w in (want, other))
            same = mine.keys() & its.keys()
            if other != want and mine.keys() == its.keys() and field.name not in TELLS_NOTHING.get(kind, ()):
                assert any(mine[thing] != its[thing] for thing in same), field.name


TELLS_NOTHING = {"boot": ("within_s",), "package": ("mirror", "held"), "built": ()}
"""Kind → parameters in which two steps of one thing may differ."""


def another(want: Any, name: str) -> Any:
    """The same but for one parameter."""
    have = getattr(want, name)
    if isinstance(have, bool):
        return replace(want, **{name: not have})
    if isinstance(have, int | float):
        return replace(want, **{name: have + 1})
    if isinstance(have, str):
        return replace(want, **{name: have + "x"})
    return want if not isinstance(have, bytes) else replace(want, **{name: have + b"x"})


def test_a_new_file_of_the_folder_is_a_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kinds_of_a_test").mkdir()
    (tmp_path / "kinds_of_a_test/clock.py").write_text("class Params: ...\n")
    (tmp_path / "kinds_of_a_test/helper.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert list(kinds_in([str(tmp_path / "kinds_of_a_test")], "kinds_of_a_test")) == ["clock"]


def test_what_moves_by_itself_is_known_of_each_probe_that_has_it() -> None:
    assert {
        "job": {"progress", "tail"},
        "unit": {"main_pid", "since", "invocation"},
        "command": {"seconds", "stdout", "stderr"},
    } == VOLATILE


def test_a_unit_records_its_release_when_it_starts() -> None:
    want = params_of(
        "unit", {"name": "dsv32-x.service", "content": "[Unit]\nA=\\1\n[Service]\nExecStart=/bin/x\n"}
    )
    assert unit.unit_file(want) == file.Params(
        "/etc/systemd/system/dsv32-x.service",
        "[Unit]\nA=\\1\n[Service]\n"
        f"ExecStartPre=+/bin/sh -c 'mkdir -p /run/dsv32 && echo {unit.release(want)} >/run/dsv32/%n'\n"
        "ExecStart=/bin/x\n",
    )


def test_a_release_moves_with_the_text_and_with_what_it_depends_on() -> None:
    texts_ = ("[Service]\nExecStart=/bin/x\n", "[Service]\nExecStart=/bin/y\n")
    releases = {unit.release(unit.Params("x.service", t, depends=d)) for t in texts_ for d in ("1", "2")}
    assert len(releases) == 4


def test_a_secret_is_never_asked_for_nor_shown() -> None:
    want = file.Params("/etc/key", "hunter2", secret=True)
    facts = Facts("h", {p: {"type": "absent"} for p in file.probes(want)})
    (draft,) = file.changes(want, facts)
    shown = repr((want, file.probes(want), draft.before, draft.after, draft.diff))
    assert "hunter2" not in shown
    assert texts.digest("hunter2")[:8] not in shown
    assert draft.ops[-1].secret


def test_a_long_diff_is_cut() -> None:
    shown = texts.diff("", "\n".join(map(str, range(10_000))), "/x").splitlines()
    assert len(shown) == texts.LINES_SHOWN + 1
    assert shown[-1] == f"… cut after {texts.LINES_SHOWN} lines"


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("file", {"path": "/x", "content": "", "mode": "rw-r--r--"}),
        ("folder", {"path": "/x", "mode": "755"}),
        ("command", {"run": ["true"], "unless": {}}),
        ("command", {"run": ["true"], "unless": {"path": "/x", "command": ["true"]}}),
        ("command", {"run": [], "unless": {"path": "/x"}}),
        ("unit", {"name": "x.service", "state": "running"}),
    ],
)
def test_wrong_parameters_are_refused(kind: str, values: Mapping[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        params_of(kind, values)
    assert caught.value.problems[0].where == "cases"
