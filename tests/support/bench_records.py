"""What `vllm bench serve` 0.26 wrote on one H200, and loads and targets to hold it against."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samples import sample

from launcher.bench.keep import measurement_of
from launcher.bench.measure import result_of
from launcher.bench.target import target_of
from launcher.bench.verdict import judge
from launcher.load.bench import read_method
from launcher.load.data import Data, shipped
from launcher.model.bench import Method, Point, Result, Target
from launcher.model.deployment import Instance, Process, Rank
from launcher.model.measurement import Measurement
from launcher.model.profile import EnginePool
from launcher.model.run import RunRecord
from launcher.model.sla import Limit, Sla, Workload
from launcher.resolve import resolve

DATA = Path(__file__).with_name("bench")
METHOD: Method = read_method(Data((shipped(),)))
LOAD = Workload("load", "A load.", 4096, 32, 64, (16,), settings={"dataset-name": "random"})
POINT = Point(64, 16)
IDLE = {"prompt_tokens": 262144.0, "prefix_tokens": 262144.0}
"""Of 64 prompts of 4096 tokens, none of them known."""


def document(name: str) -> dict[str, Any]:
    """A recorded result, as the client wrote it."""
    told: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())
    return told


def recorded(
    name: str = "disaggregated",
    *,
    counters: Mapping[str, float] = IDLE,
    cpu_percent: float = 20.0,
    **changed: Any,
) -> Result:
    """A recorded result, `changed` where a test wants it otherwise."""
    made = {**document(name), **changed}
    return result_of(made, seed=1, cpu_percent=cpu_percent, counters={"prefill": counters})


def instance(name: str, pool: EnginePool, *, gpus: int) -> Instance:
    """An engine of one rank with so many GPUs."""
    rank = Rank(0, tuple(range(gpus)))
    process = Process(name, 0, "gpu01", f"dsv32-{name}.service", (rank,), True, (), ("/bin/e",), (), {})
    return Instance(name, pool, "internal", (process,))


def target(*, gpus: int = 8) -> Target:
    """A service of one prefill and one decode instance."""
    both = (instance("prefill-0", "prefill", gpus=gpus), instance("decode-0", "decode", gpus=gpus))
    return Target("service", "http://10.0.0.1:8080", "gpu01", "the front on gpu01", both)


def sla(**limits: Limit) -> Sla:
    """A service level of these limits."""
    return Sla("level", "A level.", limits)  # type: ignore[arg-type]


RECORD = RunRecord(
    id="20261130T040000Z-bench",
    flow="bench",
    cluster="sandbox",
    who="ops",
    where_from="desk",
    argv=("bench", "load"),
    versions={"dsv32-launch": "0.1.0", "python": "3.11.2"},
    data_digest="d" * 64,
    started="2026-11-30T04:00:00.000Z",
)


def measurement(folder: Path, *runs: Result, point: Point = POINT) -> Measurement:
    """The recorded run, or these runs, as if measured on the sandbox's service, decode over two hosts."""
    wanted = resolve(sample("sandbox-dp2", folder))
    assert wanted.deployment
    asked, level = target_of(wanted.deployment, "service"), sla(ttft_ms=Limit(at_most=5000.0))
    points = [judge(LOAD, level, METHOD, target=asked, point=point, results=runs or (recorded(),))]
    return measurement_of(
        wanted, RECORD, target=asked, workload=LOAD, sla=level, method=METHOD, points=points
    )
