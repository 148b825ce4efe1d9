"""configs/slas and configs/workloads → Sla and Workload, loads and limits that can be; knows no service."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from launcher.load.choice import Choice, open_chosen, read
from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.schema import filled
from launcher.model.problem import Problem
from launcher.model.sla import Sla, Workload


def read_sla(choice: Choice, data: Data) -> Sla:
    """A service level. InputError with all that is wrong with it."""
    sla = read(Sla, choice, data)
    problems = Collector()
    problems.keep(_limit_problems(sla))
    problems.raise_any()
    return sla


def read_workload(choice: Choice, data: Data) -> tuple[Workload, Sla | None]:
    """A load and the service level it is held against. InputError with all that is wrong with the two."""
    document = open_chosen(Workload, choice, data)
    workload = filled(Workload, document, name=choice.name)
    problems, sla = Collector(), None
    most = max(workload.concurrency, default=0)
    if workload.prompts < most:
        what = f"{workload.prompts} prompts cannot keep {most} requests in flight"
        do = "raise `prompts`; ten for each of them give a mean that holds"
        problems.keep([Problem(what, where=document.place(("prompts",)), do=do)])
    if workload.text and workload.prompts > len(workload.text.requests):
        what = f"{workload.prompts} prompts, and its text makes {len(workload.text.requests)}"
        do = "lower `prompts`, or add topics: the client would send some twice"
        problems.keep([Problem(what, where=document.place(("prompts",)), do=do)])
    if workload.sla:
        chosen = Choice(workload.sla, document.place(("sla",)))
        sla = problems.attempt(partial(read_sla, chosen, data))
    problems.raise_any()
    return workload, sla


def _limit_problems(sla: Sla) -> Iterator[Problem]:
    if not sla.limits:
        what = f"sla {sla.name} has no limits"
        yield Problem(what, where=sla.source, do="add one, for instance `ttft_ms: {at_most: 3000}`")
    for name, limit in sla.limits.items():
        if (limit.at_most is None) == (limit.at_least is None):
            found = "none" if limit.at_most is None else "both"
            what = f"limit {name} has {found} of at_most and at_least, expected one"
            yield Problem(
                what, where=limit.source, do="write at_most for times, at_least for tokens a second"
            )
