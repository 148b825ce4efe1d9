"""The article's pitfalls (pitfalls.yaml): each, switched on alone, is found by its rules and by no others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from samples import CURRENT, ROOT

from launcher.flows import lint
from launcher.flows.launches import launches_of
from launcher.lint.evaluate import evaluate
from launcher.load import load
from launcher.load.choice import Choice, read
from launcher.load.data import Data, shipped
from launcher.load.foreign import Given, read_text
from launcher.model.launch import Launch
from launcher.model.problem import InputError
from launcher.model.profile import Hardware, Model
from launcher.resolve import resolve

PITFALLS = yaml.safe_load((Path(__file__).parent / "pitfalls.yaml").read_text())
OURS, THEIRS, TEXTS = PITFALLS["ours"], PITFALLS["theirs"], PITFALLS["texts"]
DATA = Data((shipped(),))
KNOWLEDGE = lint.read(DATA)

Found = dict[str, str]


def found(launches: tuple[Launch, ...]) -> Found:
    """Rule → severity of all that is found."""
    return {f.rule: f.severity for f in evaluate(KNOWLEDGE, launches) if f.state == "fires"}


def changed(text: str, changes: Mapping[str, str], *, places: int = -1) -> str:
    """`text` with each change at its first `places`, or wherever it can be."""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new, places)
    return text


def ours(pitfall: Mapping[str, Any], folder: Path) -> Found:
    """What is found in prod-2p1d.yaml with a pitfall; InputError where it is refused before."""
    text = (ROOT / "inventories/prod-2p1d.yaml").read_text()
    if pitfall.get("stack") == "current":
        text = changed(text, CURRENT)
    layout = yaml.safe_load(text)["layout"]
    overrides = {name: pitfall[name] for name in ("settings", "environment") if name in pitfall}
    folder.mkdir(exist_ok=True)
    (folder / "prod.yaml").write_text(text + yaml.safe_dump(overrides) if overrides else text)
    shipped_layout = (ROOT / f"configs/layouts/{layout}.yaml").read_text()
    own = folder / f"data/configs/layouts/{layout}.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(changed(shipped_layout, pitfall.get("layout", {}), places=1))
    return found(launches_of(resolve(load(folder / "prod.yaml", data_dir=folder / "data"))))


@cache
def theirs(text: str, release: str) -> Found:
    """What is found in a script on that release."""
    given = Given(
        snapshots=KNOWLEDGE.snapshots,
        models=(),
        model=read(Model, Choice("deepseek-v3.2", ""), DATA),
        hardware=read(Hardware, Choice("h200", ""), DATA),
        version=release,
    )
    return found(read_text(text, "serve.sh", given=given).launches)


@cache
def before(stack: str, folder: Path) -> Found:
    """What is found without a pitfall: notes at most, as test_rules.py holds."""
    return ours({"stack": stack}, folder / f"clean{stack}")


@pytest.mark.parametrize("name", [name for name, pitfall in OURS.items() if "finds" in pitfall])
def test_a_pitfall_of_ours_is_found(
    name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pitfall = OURS[name]
    clean = before(pitfall.get("stack", ""), tmp_path_factory.getbasetemp())
    assert ours(pitfall, tmp_path).items() - clean.items() == pitfall["finds"].items()


@pytest.mark.parametrize("name", [name for name, pitfall in OURS.items() if "refuses" in pitfall])
def test_a_pitfall_of_ours_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        ours(OURS[name], tmp_path)
    assert [problem.what for problem in refused.value.problems] == [OURS[name]["refuses"]]


@pytest.mark.parametrize("name", THEIRS)
def test_a_pitfall_of_others_is_found_in_its_releases(name: str) -> None:
    pitfall = THEIRS[name]
    clean = TEXTS[pitfall["text"]]
    broken = changed(clean, pitfall["change"])
    for release in pitfall["fires"]:
        new = theirs(broken, release).items() - theirs(clean, release).items()
        assert new == pitfall["finds"].items(), f"on {release}"
    main = next(iter(pitfall["finds"]))
    for release in pitfall.get("silent", ()):
        assert main not in theirs(broken, release), f"on {release}"
