"""Results × Sla → PASS, FAIL or CANNOT TELL; knows no file, no screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median_low

from launcher.bench.measure import accepted, arrived, borne_per_s, cached, figure, in_flight, queue_s
from launcher.model.bench import Judgement, Measured, Method, Point, Result, Target
from launcher.model.sla import Limit, LimitName, Sla, Statistic, Workload


def judge(
    workload: Workload,
    sla: Sla | None,
    method: Method,
    *,
    target: Target,
    point: Point,
    results: Sequence[Result],
) -> Measured:
    """What the runs at a point say. Whatever makes their figures doubtful leaves no limit judged."""
    doubts = tuple(dict.fromkeys(d for result in results for d in _doubts(result, workload, point, method)))
    limits: Mapping[LimitName, Limit] = sla.limits if sla else {}
    judgements = [_judged(n, limit, results, target, method) for n, limit in limits.items()]
    if doubts:
        judgements = [_withheld(j, "see the doubts") for j in judgements]
    notes = tuple(dict.fromkeys(n for result in results for n in _notes(result, workload)))
    return Measured(point, tuple(results), doubts, tuple(judgements), notes)


def _judged(
    name: LimitName, limit: Limit, results: Sequence[Result], target: Target, method: Method
) -> Judgement:
    bound, at_most = _bound(limit)
    values = [figure(result, target, name, limit.of) for result in results]
    known = [v for v in values if v is not None]
    base = Judgement(
        name,
        limit.of,
        bound,
        at_most,
        "CANNOT TELL",
        value=median_low(known) if known else None,
        spread=(max(known) - min(known)) / 2 if known else 0.0,
        samples=tuple(r.completed for r in results),
    )
    if len(known) < len(results) or not known:
        return _withheld(base, _no_figure(name, target))
    least = least_samples(limit.of, method)
    if name.endswith("_ms") and min(base.samples) < least:
        return _withheld(base, f"too few samples: a {limit.of} takes {least} requests a run")
    held = [v <= bound if at_most else v >= bound for v in known]
    if len(set(held)) > 1:
        return _withheld(base, f"{sum(held)} of {len(held)} runs keep it")
    return replace(base, verdict="PASS" if held[0] else "FAIL")


def _bound(limit: Limit) -> tuple[float, bool]:
    if limit.at_most is not None:
        return limit.at_most, True
    assert limit.at_least is not None, "load refuses a limit without a bound"
    return limit.at_least, False


def least_samples(of: Statistic, method: Method) -> int:
    """Requests of a run that a statistic takes."""
    if of == "mean":
        return method.least_samples
    beyond = 100 - int(of.removeprefix("p"))
    return max(method.least_samples, -(-method.beyond_percentile * 100 // beyond))


def long_enough(workload: Workload, sla: Sla | None, method: Method) -> Workload:
    """The workload, with as many prompts as the limits' statistics take."""
    least = (least_samples(limit.of, method) for limit in (sla.limits.values() if sla else ()))
    return replace(workload, prompts=max(workload.prompts, *least, 0))


def _no_figure(name: LimitName, target: Target) -> str:
    if name in ("tpot_ms", "itl_ms"):
        return "the answers are one token long"
    if name == "prefill_tokens_per_s_per_gpu":
        return f"{target.name} has no prefill GPU"
    return "the client does not tell it"


def _withheld(judged: Judgement, why: str) -> Judgement:
    return replace(judged, verdict="CANNOT TELL", why=judged.why or why)


def _doubts(result: Result, workload: Workload, point: Point, method: Method) -> Iterator[str]:
    """Why the figures of a run are not those of the service under this load."""
    if result.completed < result.asked:
        yield f"{result.asked - result.completed} of {result.asked} requests failed"
    if result.silent:
        yield f"the counters of {', '.join(result.silent)} could not be read"
    if result.restarted:
        yield f"{', '.join(result.restarted)} started anew meanwhile"
    if result.client_cpu_percent >= method.client_cpu_percent:
        told = f"{result.client_cpu_percent:.0f} % of a core"
        yield f"the client itself was the bottleneck: it took {told}, and more than one it cannot use"
    for pool, counters in result.counters.items():
        if cached(counters) > method.cached_share:
            yield f"prefix caches of {pool} answered {cached(counters):.0%} of the prompt tokens"
    yield from _other_prompts(result, workload, method)
    yield from _too_slow(result, point, method)


def _other_prompts(result: Result, workload: Workload, method: Method) -> Iterator[str]:
    """The engines counted other prompts than were asked for; of prompts that are no number nothing was."""
    asked = workload.exact_input_tokens
    for pool, counters in result.counters.items():
        came = arrived(counters)
        if asked and came is not None and abs(came - asked) > method.prompt_off * asked:
            yield f"prompts of {came:.0f} tokens arrived at {pool}, where {asked} were asked for"


def _too_slow(result: Result, point: Point, method: Method) -> Iterator[str]:
    """The asked rate did not get through: whose fault is it?"""
    if not point.rate or not result.completed or borne_per_s(result) >= method.rate_kept * point.rate:
        return
    told = f"{borne_per_s(result):.2f} of {point.rate:g} requests/s got through"
    waited = {pool: queue_s(counters) for pool, counters in result.counters.items()}
    if point.concurrency and in_flight(result) >= method.bound_reached * point.concurrency:
        yield f"saturated: {told}, for {in_flight(result):.0f} of {point.concurrency} were under way"
    elif all(seconds < method.queue_empty_s for seconds in waited.values()):
        yield f"the client itself was the bottleneck: {told}, and no engine had a queue"
    else:
        where = ", ".join(f"{pool} {seconds:.1f} s" for pool, seconds in waited.items())
        yield f"saturated: {told}, requests waited: {where}"


def _notes(result: Result, workload: Workload) -> Iterator[str]:
    for pool, counters in result.counters.items():
        if counters.get("preemptions"):
            yield f"{pool} preempted requests {counters['preemptions']:.0f} times: its KV was full"
        if counters.get("kv_failed"):
            yield f"{counters['kv_failed']:.0f} KV transfers to {pool} failed"
        share = accepted(counters)
        if share is not None and workload.settings.get("dataset-name") == "random":
            yield f"{pool} accepted {share:.0%} of drafted tokens; random prompts tell little of that"
