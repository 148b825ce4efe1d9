"""Error, errors: what the model says of each published point beside what was measured; knows no files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from launcher.model.architecture import Architecture
from launcher.model.performance import Measure, Performance, Point
from launcher.predict.group import Group
from launcher.predict.service import Load, Service, Side, predict


@dataclass(frozen=True, slots=True)
class Error:
    """One figure of a point, by the model and as measured."""

    point: str
    measure: Measure
    predicted: float
    measured: float

    @property
    def relative(self) -> float:
        """(predicted − measured) / measured."""
        return self.predicted / self.measured - 1


def errors(name: str, point: Point, model: Architecture, speed: Performance) -> Iterator[Error]:
    """Each measured figure of a point."""
    made = predict(_service(point, model, speed), _load(point))
    figures: dict[Measure, float] = {
        "tokens_per_s": made.tokens_per_s,
        "ttft_ms": made.ttft_ms,
        "tpot_ms": made.tpot_ms,
    }
    for measure, measured in point.measured.items():
        yield Error(name, measure, figures[measure], measured)


def _load(point: Point) -> Load:
    return Load(point.input_tokens, point.output_tokens, point.concurrency, point.rate)


def _service(point: Point, model: Architecture, speed: Performance) -> Service:
    group = Group(
        tensor_parallel=point.tensor_parallel,
        data_parallel=point.data_parallel,
        low_latency=point.low_latency,
        head_multiple=point.head_multiple,
        batched_tokens=point.batched_tokens,
        experts_on_gpu=model.experts / (point.tensor_parallel * point.data_parallel),
    )
    most = point.concurrency / point.data_parallel
    return Service(
        model,
        speed,
        prefill=Side(group, point.prefill_instances) if point.prefill_instances else None,
        decode=Side(group, point.decode_instances, most) if point.decode_instances else None,
    )
