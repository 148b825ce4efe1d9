"""Service levels and workloads: what is shipped can be read, what is wrong is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.load.choice import Choice, names
from launcher.load.data import Data, shipped
from launcher.load.sla import read_sla, read_workload
from launcher.model.problem import InputError
from launcher.model.sla import Sla, Workload

SHIPPED = Data((shipped(),))
BROKEN = Data((Path(__file__).parent / "input/data",))


def said(error: InputError) -> list[str]:
    assert all(p.do for p in error.problems)
    return [f"{p.where.removeprefix('configs/')}: {p.what}" for p in error.problems]


def test_the_article_asks_for_time_to_first_token_and_prefill_throughput() -> None:
    workload, sla = read_workload(Choice("article-prefill", "here"), SHIPPED)
    assert (workload.input_tokens, workload.output_tokens, workload.target) == (4096, 1, "prefill")
    assert {16, 32} <= set(workload.concurrency), "its figures are for these"
    assert sla is not None
    limits = {name: (limit.at_most, limit.at_least, limit.of) for name, limit in sla.limits.items()}
    assert limits == {
        "ttft_ms": (3000, None, "mean"),
        "prefill_tokens_per_s_per_gpu": (None, 2000, "mean"),
    }


def test_every_workload_and_service_level_can_be_read_and_is_used() -> None:
    read = [read_workload(Choice(name, "here"), SHIPPED) for name in names(Workload, SHIPPED)]
    assert {workload.sla for workload, _ in read} - {""} == set(names(Sla, SHIPPED))
    assert all(workload.about.endswith(".") for workload, _ in read)
    assert all(workload.prompts >= 4 * max(workload.concurrency) for workload, _ in read)


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("empty", ["slas/empty.yaml:1: sla empty has no limits"]),
        (
            "both-ways",
            [
                "slas/both-ways.yaml:3: limit ttft_ms has both of at_most and at_least, expected one",
                "slas/both-ways.yaml:4: limit tpot_ms has none of at_most and at_least, expected one",
            ],
        ),
        (
            "misspelled",
            [
                "slas/misspelled.yaml:3: unknown key `tpt_ms` in `limits`",
                "slas/misspelled.yaml:4: `at_most` in `limits.ttft_ms` is `fast`, expected a number above 0",
                "slas/misspelled.yaml:4: `of` in `limits.ttft_ms` is `p91`, "
                "expected one of mean, p50, p90, p95, p99",
            ],
        ),
        ("gold", ["here: unknown sla `gold`"]),
    ],
)
def test_a_service_level_that_cannot_be(name: str, problems: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        read_sla(Choice(name, "here"), BROKEN)
    assert said(refused.value) == problems


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        (
            "too-few",
            [
                "workloads/too-few.yaml:4: 8 prompts cannot keep 16 requests in flight",
                "workloads/too-few.yaml:6: unknown sla `gold`",
            ],
        ),
        (
            "no-load",
            [
                "workloads/no-load.yaml:2: `input_tokens` is `0`, expected a whole number of at least 1",
                "workloads/no-load.yaml:4: `prompts` is `many`, expected a whole number of at least 1",
                "workloads/no-load.yaml:5: `1` in `concurrency` is `0`, "
                "expected a whole number of at least 1",
                "workloads/no-load.yaml:6: `request_rate` is `0`, expected a number above 0",
                "workloads/no-load.yaml:7: `target` is `front`, expected one of service, prefill, decode",
            ],
        ),
    ],
)
def test_a_workload_that_cannot_be(name: str, problems: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        read_workload(Choice(name, "here"), BROKEN)
    assert said(refused.value) == problems
