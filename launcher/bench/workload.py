"""Workload and point → points to measure, and words for `vllm bench serve`; knows no SLA."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from launcher.model.bench import Axis, Method, Point
from launcher.model.job import name_of
from launcher.model.profile import Client
from launcher.model.sla import Limit, LimitName, Text, Workload

GOODPUT: Mapping[LimitName, str] = {"ttft_ms": "ttft", "tpot_ms": "tpot", "e2e_ms": "e2el"}
"""Limits that one request can keep or miss → the client's word."""
JOBS = "bench"
"""Names of its jobs begin so."""
RESULT = "result.json"


@dataclass(frozen=True, slots=True)
class Service:
    """What the client is to know of the service."""

    environment_path: str
    url: str
    model: str
    """The name that requests give."""
    tokenizer: str
    """A folder on the client's host."""
    tokenizer_mode: str = ""


@dataclass(frozen=True, slots=True)
class Once:
    """What makes one run differ from the others at its point."""

    seed: int
    salt: str
    """Goes into the keys of prefix caches, so that nothing an earlier run left there is found."""
    folder: str = ""
    """Where the result goes; empty: it is not kept."""
    prompts: str = ""
    """The folder of the workload's own prompts."""


def points_of(workload: Workload, method: Method) -> tuple[Point, ...]:
    """All loads of a workload."""
    return tuple(point_of(workload, method, concurrency=c) for c in workload.concurrency or (None,))


def point_of(workload: Workload, method: Method, *, concurrency: int | None, times: int = 1) -> Point:
    """One load, with prompts enough for so many requests at once, or so many `times` that."""
    prompts = max(workload.prompts, method.least_rounds * (concurrency or 0))
    return Point(prompts * times, concurrency, workload.request_rate)


def at(workload: Workload, method: Method, *, axis: Axis, value: float, times: int = 1) -> Point:
    """The load at a value of one axis; what the workload says of the other one is kept, as its highest."""
    most = max(workload.concurrency, default=None)
    if axis == "concurrency":
        concurrency: int | None = int(value)
        return Point(point_of(workload, method, concurrency=concurrency, times=times).prompts, concurrency)
    return Point(point_of(workload, method, concurrency=most, times=times).prompts, most, value)


def warm_up(point: Point, method: Method) -> Point:
    """The load before it: as many requests at once, as few of them as make engines warm."""
    at_once = point.concurrency or point.prompts
    return Point(min(method.warm_up_rounds * at_once, point.prompts), point.concurrency)


def words(
    client: Client,
    service: Service,
    workload: Workload,
    *,
    point: Point,
    once: Once,
    method: Method,
    limits: Mapping[LimitName, Limit],
) -> tuple[str, ...]:
    """The command line of the client for one run at a point."""
    options: dict[str, str | None] = {
        "base-url": service.url,
        "model": service.model,
        "tokenizer": service.tokenizer,
        **({"tokenizer-mode": service.tokenizer_mode} if service.tokenizer_mode else {}),
        "input-len": str(workload.input_tokens),
        "output-len": str(workload.output_tokens),
        "num-prompts": str(point.prompts),
        **({"max-concurrency": str(point.concurrency)} if point.concurrency else {}),
        **({"request-rate": f"{point.rate:g}"} if point.rate else {}),
        "seed": str(once.seed),
        "extra-body": json.dumps({"cache_salt": once.salt}),
        "percentile-metrics": "ttft,tpot,itl,e2el",
        "metric-percentiles": ",".join(map(str, method.percentiles)),
        "disable-tqdm": None,
        **{name: None if value == "true" else value for name, value in workload.settings.items()},
    }
    if workload.text:
        path = f"{once.prompts}/{prompts_name(workload.text)}"
        options |= {"dataset-name": "sharegpt", "dataset-path": path}
    if once.folder:
        options |= {"save-result": None, "result-dir": once.folder, "result-filename": RESULT}
    first, *more = client.command
    line = [f"{service.environment_path}/bin/{first}", *more, *_flags(options)]
    goodput = [
        f"{word}:{limits[name].at_most:g}"
        for name, word in GOODPUT.items()
        if name in limits and limits[name].at_most is not None
    ]
    return (*line, *(["--goodput", *goodput] if goodput else []))


def prompts_of(text: Text) -> str:
    """Requests in the form of ShareGPT; how long answers are to be says `--output-len`."""
    return json.dumps([{"conversations": [{"value": r}, {"value": r}]} for r in text.requests])


def prompts_name(text: Text) -> str:
    """Of their file: other requests are another load."""
    return f"prompts-{hashlib.sha256(prompts_of(text).encode()).hexdigest()[:12]}.json"


def job_name(line: Sequence[str], deployed: Iterable[Sequence[str]]) -> str:
    """One name for one command line before one service, whoever asks: what it measured is found by it again.

    `line` is to be without salt and folder, `deployed` are the command lines of the service.
    """
    return name_of(JOBS, [list(line), sorted(map(list, deployed))])


def _flags(options: Mapping[str, str | None]) -> list[str]:
    return [w for name, value in options.items() for w in (f"--{name}", value) if w is not None]
