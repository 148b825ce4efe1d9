"""The real releases take each of our command lines, and mean by it what we mean.

Each release that configs/engines describes is asked in an environment of its own, which scripts/release-env
makes; what is real there and what is not, serve_lines.py says.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from releases import ENGINES, LAYOUTS, Line, Said, ask, client_lines, lines, snapshot, words
from samples import ROOT, SAMPLES

MODEL = ["model"]
WRONG: Mapping[str, tuple[list[str], str]] = {
    "a flag that is not there": (["--no-such-flag"], "--no-such-flag"),
    "no number": (["--data-parallel-size", "two"], "two"),
    "a value that is not there": (["--all2all-backend", "nope"], "nope"),
    "a role that is not there": (
        ["--kv-transfer-config", '{"kv_connector":"NixlConnector","kv_role":"kv_bothh"}'],
        "kv_role",
    ),
    # found by config resolution alone, not by the parser
    "EPLB without expert parallelism": (["--enable-eplb", "--tensor-parallel-size", "2"], "expert"),
    "fewer tokens than sequences": (
        ["--max-num-batched-tokens", "8", "--max-num-seqs", "64", "--max-model-len", "8"],
        "max_num_seqs",
    ),
}


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    """All command lines."""
    return list(lines(tmp_path_factory.mktemp("deployments")))


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def own(engine: str, ours: list[Line]) -> list[Line]:
    """Those of one release."""
    return [line for line in ours if line.engine == engine]


@pytest.fixture(scope="session")
def said(engine: str, own: list[Line], ours: list[Line], tmp_path_factory: pytest.TempPathFactory) -> Said:
    """One process for all lines of a release: nearly all of its time are imports."""
    models = tmp_path_factory.mktemp("models")
    asked = {line.name: (words(line, models), variables(line)) for line in own}
    model = words((own or ours)[0], models)[:1]
    wrong = {name: (model + more, {"HF_HUB_OFFLINE": "1"}) for name, (more, _) in WRONG.items()}
    no_client = {"client: wrong": ["--no-such-flag", "1"]}
    return ask(engine, {**asked, **wrong}, {**client_lines(engine), **no_client})


def variables(line: Line) -> dict[str, str]:
    return {name: str(setting.value) for name, setting in line.process.environment.items()}


def test_every_sample_and_every_layout_is_asked(ours: list[Line]) -> None:
    names = {line.name.partition(":")[0].partition(" on ")[0] for line in ours}
    assert names == {*SAMPLES, *LAYOUTS}
    assert {line.engine for line in ours} == set(ENGINES)


def test_it_accepts_every_line(own: list[Line], said: Said) -> None:
    assert {line.name: said.refused[line.name] for line in own} == dict.fromkeys(line.name for line in own)


def test_it_means_the_same_ranks_by_it(own: list[Line], said: Said) -> None:
    for line in own:
        engines = said.engines[line.name]
        found = [rank for e in engines for rank in range(e["rank"], e["rank"] + e["local_ranks"])]
        assert found == [rank.index for rank in line.process.ranks], line.name
        for engine in engines:
            assert (engine["ranks"], engine["hosts"]) == shape_of(line), line.name


def shape_of(line: Line) -> tuple[int, int]:
    """Data-parallel ranks of the instance, and hosts that one of them spans."""
    processes = line.deployment.instance(line.process.instance).processes
    ranks = {rank.index for process in processes for rank in process.ranks}
    return len(ranks), len(processes) if len(ranks) == 1 else 1


def test_processes_of_an_instance_meet_at_its_leader(own: list[Line], said: Said) -> None:
    for line in own:
        processes = line.deployment.instance(line.process.instance).processes
        leader = {e.address for e in processes[0].endpoints}
        if len(processes) > 1:
            assert {e["meets_at"] for e in said.engines[line.name]} == leader, line.name


def test_its_load_generator_takes_every_workload(engine: str, said: Said) -> None:
    told = {name: said.refused[name] for name in client_lines(engine)}
    assert told == dict.fromkeys(told)
    assert "--no-such-flag" in str(said.refused["client: wrong"])


def test_it_knows_every_variable_of_its_own(engine: str, own: list[Line]) -> None:
    known = snapshot(engine).variables
    names = {name for line in own for name in line.process.environment if name.startswith("VLLM_")}
    assert names <= set(known)


@pytest.mark.parametrize("wrong", WRONG)
def test_it_refuses_what_is_wrong(wrong: str, said: Said) -> None:
    assert WRONG[wrong][1] in str(said.refused[wrong]).lower()


def test_its_snapshot_is_what_it_says_of_itself(engine: str, said: Said) -> None:
    assert said.snapshot == (ROOT / f"configs/engines/{engine}.json").read_text()
