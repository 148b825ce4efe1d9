"""An imaginary vLLM 999.0, which never comes, that renames two flags: one data file, and everything knows it.

To deploy it takes a stack besides, as for every release: which versions of all else are installed with it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import ROOT

from launcher.flows import lint
from launcher.flows.explain import explain
from launcher.load import load
from launcher.model.deployment import Process
from launcher.model.problem import InputError
from launcher.model.wish import Wanted
from launcher.resolve import resolve

ENGINE = """
about: vLLM 999.0, if it renamed two flags.
based_on: vllm-0.33
versions: ">=999.0,<999.1"
renamed:
  max-num-seqs: {flag: max-sequences}
  data-parallel-size: {flag: dp-ranks}
"""
WORDS = {"--max-num-seqs": "--max-sequences", "--data-parallel-size": "--dp-ranks"}
SCRIPT = """
vllm serve deepseek-ai/DeepSeek-V3.2 --enable-expert-parallel --all2all-backend deepep_low_latency \\
  --tensor-parallel-size 2 {ranks} 4 {sequences} 2048 --max-num-batched-tokens 1024
"""


@pytest.fixture
def engine_dir(tmp_path: Path) -> Path:
    """The one file that knows it."""
    path = tmp_path / "data/configs/engines/vllm-imaginary.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(ENGINE)
    return tmp_path / "data"


@pytest.fixture
def data_dir(engine_dir: Path) -> Path:
    """That, and a stack that chooses it."""
    path = engine_dir / "configs/stacks/next.yaml"
    path.parent.mkdir()
    path.write_text(stack())
    return engine_dir


def stack() -> str:
    text = (ROOT / "configs/stacks/current.yaml").read_text()
    return text.replace("engine: vllm-0.33", "engine: vllm-imaginary").replace('"0.33.0"', '"999.0.0"')


def inventory(folder: Path, *, name: str, more: str = "") -> Path:
    text = (ROOT / "inventories/prod-2p1d.yaml").read_text() + more
    path = folder / f"{name}.yaml"
    path.write_text(
        text.replace("stack: article-0.14", f"stack: {name}").replace("article-2p1d", "current-2p1d")
    )
    return path


def processes(wanted: Wanted) -> list[Process]:
    assert wanted.deployment is not None
    return [p for i in wanted.deployment.instances for p in i.processes]


def test_every_command_line_has_the_new_names_and_is_else_the_same(tmp_path: Path, data_dir: Path) -> None:
    today = resolve(load(inventory(tmp_path, name="current")))
    next_one = resolve(load(inventory(tmp_path, name="next"), data_dir=data_dir))
    for old, new in zip(processes(today), processes(next_one), strict=True):
        expected = [WORDS.get(word, word) for word in old.argv()]
        assert expected != [*old.argv()]
        assert [word.replace("/next", "/current") for word in new.argv()] == expected


@pytest.mark.parametrize("name", ["max-num-seqs", "max-sequences"])
def test_a_setting_may_have_either_name(tmp_path: Path, data_dir: Path, name: str) -> None:
    path = inventory(tmp_path, name="next", more=f"settings: {{decode: {{{name}: 128}}}}\n")
    decode = [p for p in processes(resolve(load(path, data_dir=data_dir))) if p.instance == "decode-0"]
    for process in decode:
        assert [a.value for a in process.arguments if a.flag == "--max-sequences"] == ["128"]


def test_a_near_miss_of_a_new_name_is_told(tmp_path: Path, data_dir: Path) -> None:
    path = inventory(tmp_path, name="next", more="settings: {decode: {max-sequence: 128}}\n")
    with pytest.raises(InputError) as refused:
        resolve(load(path, data_dir=data_dir))
    (problem,) = refused.value.problems
    assert problem.what == "vllm-imaginary has no flag --max-sequence"
    assert problem.do == "did you mean `max-sequences`?"


@pytest.mark.parametrize("name", ["max-num-seqs", "max-sequences"])
def test_explain_answers_for_both_names(tmp_path: Path, data_dir: Path, name: str) -> None:
    wanted = resolve(load(inventory(tmp_path, name="next"), data_dir=data_dir))
    (topic,) = explain(wanted, name, data_dir=data_dir)
    assert {(f.name, f.value) for f in topic.facts if f.kind == "value"} == {("--max-sequences", "256")}
    assert any("spelled --max-sequences" in f.value for f in topic.facts if f.kind == "release")


def test_lint_finds_the_same(tmp_path: Path, data_dir: Path) -> None:
    today = lint.lint(inventory(tmp_path, name="current"), told=lint.Told())
    next_one = lint.lint(inventory(tmp_path, name="next"), told=lint.Told(), data_dir=data_dir)
    assert (today.problems, next_one.problems) == ((), ())
    assert [f.rule for f in next_one.findings] == [f.rule for f in today.findings]


def test_rules_see_through_a_new_name_in_a_foreign_script(tmp_path: Path, engine_dir: Path) -> None:
    def found(release: str, **names: str) -> list[str]:
        script = tmp_path / "serve.sh"
        script.write_text(SCRIPT.format(**names))
        told = lint.Told(release=release, hardware="h200", model="deepseek-v3.2")
        report = lint.lint(None, [script], told=told, data_dir=engine_dir)
        assert not report.problems
        return sorted(f.rule for f in report.findings)

    today = found("0.33.0", ranks="--data-parallel-size", sequences="--max-num-seqs")
    assert "unknown-flag" not in today
    assert today == found("999.0.0", ranks="--dp-ranks", sequences="--max-sequences")
    assert today != found("0.33.0", ranks="--dp-ranks", sequences="--max-sequences")
    assert found("999.0.0", ranks="--dp-ranks", sequences="--max-num-seqs") == sorted([*today, "gone-flag"])
