"""configs/history and configs/engines agree with the releases themselves, and tell of all that we render."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from samples import SAMPLES, sample

from launcher.compare.versions import needs
from launcher.flows import stack
from launcher.load.data import Data, shipped
from launcher.load.engines import read_engines
from launcher.load.history import read_history
from launcher.model.history import Entry, default_in, known_in
from launcher.model.profile import Engine, Profile, Stack
from launcher.model.snapshot import Snapshot
from launcher.resolve import resolve

DATA = Data((shipped(),))
HISTORY = read_history(DATA)
ENGINES = read_engines(DATA)
STACKS = [stack.read(name, DATA) for name in DATA.names("configs/stacks", holding=".yaml")]


def own_account(engine: Engine) -> Snapshot:
    snapshot = engine.snapshot
    assert snapshot is not None
    assert SpecifierSet(engine.versions).contains(snapshot.version), "a shipped engine has its own snapshot"
    return snapshot


def accepted(snapshot: Snapshot, name: str) -> bool | None:
    """Does a release accept a flag, or a key of its JSON? None: its snapshot does not say."""
    flag, _, key = name.partition(".")
    if not key or flag not in snapshot.options:
        return flag in snapshot.options
    known = snapshot.keys.get(flag)
    if known is None or (key not in known and key.rpartition(".")[0] in known):
        return None
    return key in known


def disagreements(snapshot: Snapshot) -> Iterator[tuple[str, Entry]]:
    """Entries that a release contradicts: it accepts what is not there yet or no more, or not what is."""
    for name, entry in HISTORY.settings.items():
        told = accepted(snapshot, name)
        if name != "model" and told is not None and told != known_in(entry, snapshot.version):
            yield name, entry
    for name, entry in HISTORY.variables.items():
        if name.startswith("VLLM_") and (name in snapshot.variables) != known_in(entry, snapshot.version):
            yield name, entry


@pytest.mark.parametrize("name", ENGINES)
def test_the_history_says_what_the_release_says_of_itself(name: str) -> None:
    assert dict(disagreements(own_account(ENGINES[name]))) == {}


@pytest.mark.parametrize("name", ENGINES)
def test_defaults_are_those_of_the_release(name: str) -> None:
    snapshot = own_account(ENGINES[name])
    for setting, entry in HISTORY.settings.items():
        default = default_in(entry, snapshot.version)
        flag, _, key = setting.partition(".")
        option = snapshot.keys.get(flag, {}).get(key) if key else snapshot.options.get(flag)
        if default is not None and option is not None:
            assert str(option.default).lower() == default, setting


def test_every_change_names_its_source_and_every_sentence_ends() -> None:
    for name, entry in {**HISTORY.settings, **HISTORY.variables}.items():
        changes = (entry.since, entry.until, entry.ignored_since, entry.gone, entry.because)
        assert not any(changes) or entry.known_from, name
        assert entry.does or entry.until, name
        assert re.fullmatch(r"([A-Z].*\.)?", entry.does), name


@pytest.mark.parametrize("name", SAMPLES)
def test_every_flag_and_variable_that_we_render_is_explained(name: str, tmp_path: Path) -> None:
    wanted = resolve(sample(name, tmp_path))
    deployment = wanted.deployment
    assert deployment is not None
    processes = [p for i in deployment.instances for p in i.processes]
    flags = {a.flag.removeprefix("--").removeprefix("no-") or "model" for p in processes for a in p.arguments}
    variables = {v for p in processes for v in p.environment}
    silent = {n for n in flags if not (n in HISTORY.settings and HISTORY.settings[n].does)}
    silent |= {n for n in variables if not (n in HISTORY.variables and HISTORY.variables[n].does)}
    routed = {a.flag.removeprefix("--") for r in deployment.routers for a in r.arguments}
    router = wanted.wish.profile.router
    silent |= {n for n in routed if router is None or not router.does.get(n)}
    assert silent == set()


@pytest.mark.parametrize("wanted", [s for s in STACKS if s.engine], ids=lambda s: s.name)
def test_a_stack_pins_what_its_engine_runs_with(wanted: Stack) -> None:
    """What it does not pin at all is told by `upgrade`; what it pins is right."""
    lacking = list(needs(Profile(wanted, engine=ENGINES[wanted.engine])))
    assert [need for need in lacking if need.found] == []
    assert not wanted.variables.get("nixl") or len(lacking) < len(ENGINES[wanted.engine].companions)


def test_a_hash_holds_settings_that_there_are() -> None:
    for engine in ENGINES.values():
        assert {name.partition(".")[0] for name in engine.kv_hash} <= {"model", *own_account(engine).options}
