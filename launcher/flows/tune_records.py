"""tune without a fleet: the same path over what is on record; no figure is made up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.flows.alone import Names, wanted_of_layout
from launcher.flows.lint import judged
from launcher.flows.tune import Look, Values, Way, begun, walk
from launcher.load.choice import Choice, open_chosen
from launcher.load.data import Data, roots_of
from launcher.load.layered import layout_text
from launcher.load.sla import read_workload
from launcher.model.bench import Verdict
from launcher.model.profile import Layout
from launcher.model.sla import Limit, LimitName, Sla
from launcher.model.tune import Decision, FigureName, RecordedTrial, Records, Trial, Tune, TuneStep
from launcher.model.wish import Wanted


@dataclass(frozen=True, slots=True)
class Tuned:
    """Where a tune came from and got to."""

    tune: Tune
    begun_with: str
    """The layout's name."""
    start: Trial
    decisions: tuple[Decision, ...]
    way: Way
    sla: Sla | None
    known_from: str = ""
    """What it was decided by, where nothing was measured."""


def values_of(layout: str, where: str, data: Data) -> Values:
    """What a layout's file says."""
    found = open_chosen(Layout, Choice(layout, where), data).values
    assert isinstance(found, dict), "a document holds keys"
    return found


def replayed(records: Records, tune: Tune, *, data_dir: Path | None, folder: Path) -> Tuned:
    """The path by the records. `folder`: for the layouts on the way; each is held against all rules, as if it
    were to be launched. InputError where the first one is not to be."""
    name = records.layout
    data = Data(roots_of(data_dir))
    values = values_of(name, records.source, data)
    _, sla = read_workload(Choice(tune.workload, tune.source), data)

    def build(now: Values) -> Wanted:
        overlay(folder, name, now)
        roots = (folder, *roots_of(data_dir))
        wanted = wanted_of_layout(Names(name, records.stack, records.hardware, records.model), Data(roots))
        judged(wanted, data_dir=data_dir)
        return wanted

    way = begun(tune, values, build)
    look = look_up(records, tune, sla)
    decisions: list[Decision] = []
    start = trial_of(records.start, tune, sla)
    for decision, now in walk(tune, way, build, look):
        decisions.append(decision)
        way = now
    return Tuned(tune, name, start, tuple(decisions), way, sla, records.about)


def overlay(folder: Path, name: str, values: Values) -> None:
    """A data folder with this layout, laid over all others of the name."""
    path = folder / "configs" / "layouts" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(layout_text(values, head=(), notes={}), encoding="utf-8")


def look_up(records: Records, tune: Tune, sla: Sla | None) -> Look:
    """What is on record of a step; of what it is held against, the last that was kept and has figures."""

    def look(_: Wanted, step: TuneStep, taken: tuple[str, ...]) -> Trial:
        if step.id in taken:
            found = records.steps.get(step.id)
            return trial_of(found, tune, sla) if found else Trial()
        known = [records.steps[name] for name in taken if name in records.steps]
        return trial_of(next((t for t in reversed(known) if t.figures), records.start), tune, sla)

    return look


def trial_of(recorded: RecordedTrial, tune: Tune, sla: Sla | None) -> Trial:
    """With its figures held against the service level, as far as they are what its limits are about."""
    limits: Mapping[LimitName, Limit] = sla.limits if sla else {}
    verdicts: dict[str, Verdict] = {}
    for name, limit in limits.items():
        figure = _figure(name, limit, tune)
        values = recorded.figures.get(figure, ()) if figure else ()
        if values:
            verdicts[f"{name} {limit.of}"] = "PASS" if all(_kept(v, limit) for v in values) else "FAIL"
    return Trial(
        recorded.figures,
        recorded.requests_at_once,
        verdicts,
        word=recorded.word,
        known_from=recorded.known_from,
    )


def _figure(name: LimitName, limit: Limit, tune: Tune) -> FigureName | None:
    """Which of the recorded figures, all of them means, a limit is about."""
    if limit.of != "mean":
        return None
    if name == "prefill_tokens_per_s_per_gpu":
        return "tokens_per_s_per_gpu" if tune.pool == "prefill" else None
    return name if name in ("ttft_ms", "tpot_ms") else None


def _kept(value: float, limit: Limit) -> bool:
    return (limit.at_most is None or value <= limit.at_most) and (
        limit.at_least is None or value >= limit.at_least
    )
