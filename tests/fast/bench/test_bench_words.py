"""Command lines of the client, names of its jobs, and whom it asks from where."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench_records import LOAD, METHOD, POINT, sla
from samples import sample

from launcher.bench.target import target_of
from launcher.bench.workload import Once, Service, at, job_name, point_of, points_of, warm_up, words
from launcher.flows.bench import bench_of
from launcher.flows.bench_run import job_of
from launcher.model.bench import Point
from launcher.model.deployment import Deployment, Drained
from launcher.model.problem import InputError
from launcher.model.profile import Client
from launcher.model.sla import Limit, Text
from launcher.model.wish import Wanted
from launcher.resolve import resolve

CLIENT = Client(("vllm", "bench", "serve"), "begins", "ends")
SERVICE = Service("/nvme/env", "http://10.0.0.1:8080", "v32", "/nvme/models/v32", "deepseek_v32")


def wanted_of(name: str, folder: Path) -> Wanted:
    return resolve(sample(name, folder))


def deployment_of(name: str, folder: Path) -> Deployment:
    wanted = wanted_of(name, folder)
    assert wanted.deployment
    return wanted.deployment


def test_a_command_line() -> None:
    line = words(
        CLIENT,
        SERVICE,
        replace(LOAD, settings={"dataset-name": "random", "ignore-eos": "true"}),
        point=Point(64, 16, rate=2.5),
        once=Once(3, "s-3", "/out"),
        method=METHOD,
        limits=sla(ttft_ms=Limit(at_most=3000.0), tokens_per_s=Limit(at_least=1.0)).limits,
    )
    assert " ".join(line) == (
        "/nvme/env/bin/vllm bench serve --base-url http://10.0.0.1:8080 --model v32"
        " --tokenizer /nvme/models/v32 --tokenizer-mode deepseek_v32 --input-len 4096 --output-len 32"
        " --num-prompts 64 --max-concurrency 16 --request-rate 2.5 --seed 3"
        ' --extra-body {"cache_salt": "s-3"}'
        " --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,90,95,99 --disable-tqdm"
        " --dataset-name random --ignore-eos --save-result --result-dir /out --result-filename result.json"
        " --goodput ttft:3000"
    )


def test_requests_in_words_are_a_file_beside_the_job_and_other_words_another_job(tmp_path: Path) -> None:
    """The client reads all of them for the run that counts and for its warm-up."""
    load = replace(LOAD, settings={}, text=Text(("What is TOPIC?", "Who needs TOPIC?"), ("a fan", "a lock")))
    wanted = wanted_of("sandbox-single", tmp_path)
    bench = bench_of(wanted, load, None, METHOD, target="decode", seed=1, repeats=1, salt="s")
    _, (path, prompts), (_, spec) = job_of(bench, POINT, 1).files.items()
    asked = [entry["conversations"][0]["value"] for entry in json.loads(prompts)]
    assert asked == ["What is a fan?", "Who needs a fan?", "What is a lock?", "Who needs a lock?"]
    told = json.loads(spec)
    for line in (told["warm_up"], told["words"]):
        assert line[line.index("--dataset-name") + 1] == "sharegpt"
        assert line[line.index("--dataset-path") + 1] == path
    other = replace(bench, workload=replace(load, text=Text(("What is TOPIC?",), ("a fan",))))
    assert other.name(POINT, 1) != bench.name(POINT, 1)


def test_a_point_has_prompts_enough_for_what_is_at_once() -> None:
    ladder = points_of(replace(LOAD, concurrency=(4, 16, 64)), METHOD)
    assert [(p.concurrency, p.prompts) for p in ladder] == [(4, 64), (16, 64), (64, 256)]
    assert warm_up(ladder[-1], METHOD) == Point(128, 64)
    assert point_of(LOAD, METHOD, concurrency=64, times=3).prompts == 768


def test_a_search_moves_one_axis_and_keeps_the_bound_of_the_other() -> None:
    both = replace(LOAD, request_rate=24.0)
    assert at(both, METHOD, axis="concurrency", value=32) == Point(128, 32)
    assert at(both, METHOD, axis="rate", value=30.0, times=3) == Point(192, 16, 30.0)


def test_one_load_on_one_service_is_one_job_and_everything_else_another() -> None:
    def name(seed: int = 1, *, point: Point = POINT, flag: str = "256") -> str:
        line = words(CLIENT, SERVICE, LOAD, point=point, once=Once(seed, salt=""), method=METHOD, limits={})
        return job_name(line, [["vllm", "serve", "--max-num-seqs", flag]])

    assert name() == name()
    assert len({name(), name(2), name(point=Point(64, 8)), name(flag="128")}) == 4


def test_the_service_is_asked_through_the_front(tmp_path: Path) -> None:
    """Its client runs on the front's own host if an engine is there, else beside the first engine."""
    apart = target_of(deployment_of("sandbox", tmp_path), "service")
    assert (apart.url, apart.host, apart.through) == ("http://10.77.0.13:8080", "h01", "the front on h03")
    assert [i.name for i in apart.instances] == ["prefill-0", "decode-0"]
    shared = target_of(deployment_of("sandbox-dp2", tmp_path), "service")
    assert (shared.url, shared.host) == ("http://10.77.0.11:8080", "h01")


def test_what_is_drained_gets_no_load_and_counts_no_gpu(tmp_path: Path) -> None:
    wanted = deployment_of("prod-2p1d", tmp_path)
    assert target_of(wanted, "service").gpus == {"prefill": 32, "decode": 16}
    away = replace(wanted, drained=(Drained("prefill-1", "ops", "now", "a new fan"),))
    assert target_of(away, "service").gpus == {"prefill": 16, "decode": 16}


def test_a_layout_of_one_pool_is_asked_itself(tmp_path: Path) -> None:
    alone = deployment_of("sandbox-single", tmp_path)
    for name in ("service", "decode", "decode-0"):
        target = target_of(alone, name)
        assert (target.name, target.url, target.host) == ("decode-0", "http://10.77.0.11:8000", "h01")


@pytest.mark.parametrize(
    ("inventory", "name", "what"),
    [
        ("sandbox", "prefil", "`prefil` is no target of this deployment"),
        ("sandbox-dp2", "decode", "decode-0 has 2 addresses, and its ranks are spread over them"),
        ("prod-2p1d-current", "prefill-0", "prefill-0 has 8 addresses, and its ranks are spread over them"),
    ],
)
def test_a_target_that_cannot_be(inventory: str, name: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        target_of(deployment_of(inventory, tmp_path), name)
    (problem,) = refused.value.problems
    assert problem.what == what
    assert problem.where
    assert problem.do


def test_a_front_that_asks_for_a_key_is_asked_from_its_own_host(tmp_path: Path) -> None:
    apart = deployment_of("sandbox", tmp_path)
    closed = replace(apart.fronts[0].settings, api_key="users")
    with pytest.raises(InputError, match="asks for a key"):
        target_of(replace(apart, fronts=(replace(apart.fronts[0], settings=closed),)), "service")
    shared = deployment_of("sandbox-dp2", tmp_path)
    own = target_of(replace(shared, fronts=(replace(shared.fronts[0], settings=closed),)), "service")
    assert own.url == "http://127.0.0.1:8080"


def test_the_tokenizer_is_that_of_the_engine(tmp_path: Path) -> None:
    """A folder that is on the client's host; the mode that the model's file sets."""
    wanted = wanted_of("prod-2p1d", tmp_path)
    assert wanted.deployment
    made = bench_of(wanted, LOAD, None, METHOD, target="service", seed=1, repeats=1, salt="r")
    line = made.line(POINT, Once(1, "r"))
    assert line[line.index("--tokenizer") + 1] == wanted.deployment.model_path
    assert line[line.index("--tokenizer-mode") + 1] == "deepseek_v32"
