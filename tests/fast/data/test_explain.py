"""explain answers for every line of every unit that the samples render, and for what they leave out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from samples import SAMPLES, sample

from launcher.checks.asked import peers_of
from launcher.explain.fact import Fact
from launcher.explain.known import Known
from launcher.flows.alone import Names, wanted_of_layout
from launcher.flows.explain import known_of, tell
from launcher.load.data import Data, shipped
from launcher.model.deployment import Endpoint
from launcher.model.problem import InputError
from launcher.model.role import Step
from launcher.model.wish import Wanted
from launcher.resolve import resolve
from launcher.resolve.ports import beside_weights
from launcher.steps import unit


def written_units(wanted: Wanted) -> Iterator[tuple[Step, str]]:
    """Each unit as it is written on its host."""
    for step in (s for steps in wanted.steps.values() for s in steps if isinstance(s.want, unit.Params)):
        file = unit.unit_file(step.want)
        if file is not None:
            yield step, str(file.content)


def directives(text: str) -> Iterator[tuple[str, str]]:
    for line in text.replace("\\\n", " ").splitlines():
        name, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            yield name, value


def arguments(command: str) -> Iterator[tuple[str, str]]:
    """The long flags of a command line, as its own words."""
    words = shlex.split(command.replace("%%", "%").replace("$$", "$"))
    for word, following in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            yield word, "" if following.startswith("--") else following


class Asking:
    """Asks once for each subject, and wants of each answer a source and a meaning."""

    def __init__(self, known: Known) -> None:
        self.answer = cache(lambda subject: tuple(f for t in tell(known, subject) for f in t.facts))

    def finds(self, subject: str, value: str, of: str) -> None:
        facts: tuple[Fact, ...] = self.answer(subject)
        own = [f for f in facts if f.kind == "value" and " ".join(f.value.split()) == value and of in f.of]
        assert own, (subject, value, of)
        assert all(f.source.rpartition(":")[2].isdigit() for f in own), subject
        meaning = [f.value for f in facts if f.kind == "does"]
        assert meaning, subject
        assert not any("nothing is written" in text for text in meaning), subject


@pytest.mark.parametrize("name", SAMPLES)
def test_every_line_of_every_unit_has_a_source_and_a_meaning(name: str, tmp_path: Path) -> None:
    wanted = resolve(sample(name, tmp_path))
    asking = Asking(known_of(wanted))
    asked = 0
    for step, text in written_units(wanted):
        where = f"{step.want.name} on {step.host}"
        process = step.instance or ("router" if step.role == "router" else "")
        for directive, value in directives(text):
            asked += 1
            asking.finds(directive, " ".join(value.split()), where)
            if directive == "Environment":
                (pair,) = shlex.split(value)
                variable, _, held = pair.replace("%%", "%").partition("=")
                ours = variable in ("HOME", "PATH")
                asking.finds(variable, held, where if ours else f"{process} on {step.host}")
            if directive == "ExecStart" and process:
                for flag, held in arguments(value):
                    bare = str(not flag.startswith("--no-")).lower()
                    asking.finds(flag, held or bare, f"{process} on {step.host}")
    assert asked > 30


@pytest.mark.parametrize("name", SAMPLES)
def test_a_unit_is_shown_line_by_line(name: str, tmp_path: Path) -> None:
    """With the source of each line, and as many lines as it has."""
    wanted = resolve(sample(name, tmp_path))
    known = known_of(wanted)
    for step, text in written_units(wanted):
        (topic,) = tell(known, step.want.name)
        lines = [f for f in topic.facts if not f.of or step.host in f.of]
        flags = sum(f.name == "" or f.name.startswith("--") for f in lines)
        assert len(lines) - flags == len([*directives(text)])
        assert all(f.source and f.about for f in lines)


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Known:
    return known_of(resolve(sample("prod-2p1d-current", tmp_path_factory.mktemp("current"))))


def facts(known: Known, subject: str, kind: str) -> list[Fact]:
    return [f for topic in tell(known, subject) for f in topic.facts if f.kind == kind]


def test_every_port_says_who_listens_how_it_is_counted_and_who_connects(current: Known) -> None:
    deployment = current.wanted.deployment
    assert deployment is not None
    listening = [e for i in deployment.instances for p in i.processes for e in p.endpoints]
    for endpoint in (*listening, *(e for r in deployment.routers for e in r.endpoints)):
        for port in range(endpoint.port, endpoint.port + endpoint.count):
            found = [f for f in facts(current, str(port), "port") if f.value == f"{endpoint.address}:{port}"]
            assert found, endpoint
            assert all(f.source == endpoint.source and f.source and f.about for f in found)
            assert facts(current, str(port), "peer")
    (third,) = [f for f in facts(current, "5605", "port") if "decode-0" in f.of[0]]
    assert "data_parallel_index 5, of rank 5 (GPU 2, 3)" in third.about


def test_the_port_of_weights_is_told_asked_for_and_kept_free(current: Known) -> None:
    deployment, hosts = current.wanted.deployment, current.wanted.wish.inventory.hosts
    assert deployment is not None
    staging = {h for i in deployment.instances for h in i.hosts}
    assert {f.of[0].rpartition(" ")[2] for f in facts(current, "5760", "port")} == staging
    assert all(5760 in ports for name, _, ports in peers_of("gpu01", current.wanted) if name in staging)
    taken = Endpoint("weights", "gpu01", hosts["gpu01"].address, 5750, source="role.yaml:8")
    assert [p.what for p in beside_weights(deployment, [taken])] == [
        "port 5750 of gpu01 is wanted by prefill-0 guard and staging weights"
    ]


@pytest.mark.parametrize(
    ("subject", "value"),
    [
        ("eplb-config.use_async", "not set: true by default"),
        ("disable-nccl-for-dp-synchronization", "ignored here"),
        ("num-redundant-experts", "renamed to eplb-config.num_redundant_experts"),
        ("VLLM_MOE_DP_CHUNK_SIZE", "not set: not known to this release"),
        ("RuntimeMaxSec", "not set in any unit"),
        ("--no-enable-prefix-caching", "not set"),
        ("enable-ep-weight-filter", "since 0.18.0"),
    ],
)
def test_what_is_not_set_is_told_too(current: Known, subject: str, value: str) -> None:
    told = [f for kind in ("default", "release") for f in facts(current, subject, kind)]
    assert any(value in f.value for f in told), [f.value for f in told]
    assert facts(current, subject, "does")


def test_a_key_of_a_mapping_has_its_own_line(tmp_path: Path) -> None:
    known = known_of(resolve(sample("prod-2p1d", tmp_path)))
    sources = {
        key: {f.source for f in facts(known, f"kv-transfer-config.{key}", "value")}
        for key in ("kv_role", "kv_load_failure_policy")
    }
    assert all(s.startswith("configs/engines/vllm-0.18.yaml") for s in sources["kv_role"])
    assert all(s.startswith("configs/layouts/article-2p1d.yaml") for s in sources["kv_load_failure_policy"])
    assert not any(" + " in s for found in sources.values() for s in found)


def test_rules_are_told_through_the_quantities_that_they_look_at(current: Known) -> None:
    assert "tp-pads-heads" in {f.name for f in facts(current, "tensor-parallel-size", "rule")}
    assert "memlock-limited" in {f.name for f in facts(current, "LimitMEMLOCK", "rule")}
    values = {f.name: f.value for f in facts(current, "tp-pads-heads", "value")}
    assert values["heads_per_rank"] == "64"


def test_a_rule_that_is_accepted_says_so_and_why() -> None:
    names = Names("article-decode-1host", "article-0.14", "h200", "deepseek-v3.2")
    known = known_of(wanted_of_layout(names, Data((shipped(),))))
    (told,) = facts(known, "kv-made-up", "finding")
    assert told.value == "accepted"
    assert "it measures decode alone" in told.about


def test_what_is_unknown_is_told_with_what_was_meant(current: Known) -> None:
    with pytest.raises(InputError) as refused:
        tell(current, "max-num-seq")
    assert "max-num-seqs" in refused.value.problems[0].do
