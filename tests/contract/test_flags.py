"""The real parsers accept each of our command lines.

They are asked on a host of the engine tests, or, where DSV32_ENGINE_PYTHON names an engine environment's
Python, here. Any release that configs/engines describes will do: its own sample inventories are tried.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from engine_hosts import LEADER
from packaging.version import Version
from samples import ROOT, SAMPLES, sample

from launcher.model.deployment import Deployment
from launcher.model.profile import Engine
from launcher.resolve import resolve

PYTHON = os.environ.get("DSV32_ENGINE_PYTHON", "")
PROGRAMS = ("tests/contract/parse_argv.py", "scripts/snapshot-flags")
pytestmark = pytest.mark.contract
WRONG = (
    ["model", "--no-such-flag"],
    ["model", "--kv-transfer-config", '{"kv_connector":"NixlConnector","kv_role":"kv_bothh"}'],
    ["model", "--data-parallel-size", "two"],
)
"""What a parser that looks must refuse."""


@dataclass(frozen=True)
class Sample:
    name: str
    version: str
    engine: Engine
    deployment: Deployment

    def lines(self) -> Iterator[tuple[str, list[str]]]:
        """Process → words after `vllm serve`."""
        for process in (p for i in self.deployment.instances for p in i.processes):
            words = process.argv()[len(process.command) :]
            yield f"{self.name} {process.instance} on {process.host}", list(words)


@dataclass(frozen=True)
class Answer:
    version: str
    options: frozenset[str]
    variables: frozenset[str]
    errors: dict[str, str | None]
    wrong: tuple[str | None, ...]


@dataclass(frozen=True)
class Environment:
    """An engine environment, and how a program of it is run."""

    programs: Path
    checkout: Path
    """Where it sees PROGRAMS."""
    enter: Callable[[Sequence[str]], Sequence[str]]

    def run(self, program: str, *words: str, stdin: str = "") -> str:
        argv = self.enter([str(self.programs / program), *words])
        ran = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=600, check=False)
        assert ran.returncode == 0, ran.stderr[-2000:]
        return ran.stdout


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    made = []
    for name in SAMPLES:
        wanted = resolve(sample(name, tmp_path_factory.mktemp(name)))
        profile = wanted.wish.profile
        assert wanted.deployment is not None
        assert profile.engine is not None
        made.append(Sample(name, profile.stack.engine_version, profile.engine, wanted.deployment))
    return made


@pytest.fixture(scope="module")
def environment(samples: list[Sample], request: pytest.FixtureRequest) -> Environment:
    if PYTHON:
        return Environment(Path(PYTHON).parent, ROOT, tuple)
    request.getfixturevalue("first_up")
    host = request.getfixturevalue("service").host(LEADER)
    for program in PROGRAMS:
        copy = host.place.nvme / "contract" / program
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / program, copy)
    (path,) = {s.deployment.environment_path for s in samples if s.name == "sandbox-dp2"}
    return Environment(Path(path) / "bin", Path("/nvme/contract"), host.enter)


@pytest.fixture(scope="module")
def answer(samples: list[Sample], environment: Environment) -> Answer:
    """One process for all lines: nearly all of its 20 s are imports."""
    lines = dict(line for s in samples for line in s.lines())
    parse = str(environment.checkout / PROGRAMS[0])
    said = environment.run("python", parse, stdin=json.dumps([*lines.values(), *WRONG]))
    told = json.loads(said.splitlines()[-1])
    errors = told["errors"]
    return Answer(
        told["version"].partition("+")[0],
        frozenset(told["options"]),
        frozenset(told["variables"]),
        dict(zip(lines, errors, strict=False)),
        tuple(errors[len(lines) :]),
    )


def own(samples: list[Sample], answer: Answer) -> list[Sample]:
    """The samples of this very release."""
    found = [s for s in samples if Version(s.version) == Version(answer.version)]
    assert found, f"no sample inventory has engine version {answer.version}"
    return found


def test_it_accepts_every_command_line(samples: list[Sample], answer: Answer) -> None:
    names = [name for s in own(samples, answer) for name, _ in s.lines()]
    assert {n: answer.errors[n] for n in names} == dict.fromkeys(names)


def test_it_knows_every_variable_of_its_own(samples: list[Sample], answer: Answer) -> None:
    processes = [p for s in own(samples, answer) for i in s.deployment.instances for p in i.processes]
    names = {name for p in processes for name in p.environment if name.startswith("VLLM_")}
    assert "VLLM_NIXL_SIDE_CHANNEL_HOST" in names
    assert names <= answer.variables


def test_it_refuses_what_is_wrong(answer: Answer) -> None:
    assert all(answer.wrong), answer.wrong


def test_the_snapshot_of_its_options_is_the_same(samples: list[Sample], answer: Answer) -> None:
    assert own(samples, answer)[0].engine.options == answer.options


def test_the_router_takes_its_flags(samples: list[Sample], environment: Environment) -> None:
    shown = environment.run("vllm-router", "--help")
    for one in samples:
        flags = {a.flag for r in one.deployment.routers for a in r.arguments}
        assert flags <= set(shown.replace("[", " ").replace("]", " ").split()), one.name


def test_snapshots_exist_for_every_engine() -> None:
    engines = {p.stem for p in (ROOT / "configs/engines").glob("*.yaml")}
    assert engines == {p.stem for p in (ROOT / "configs/engines").glob("*.flags")}
