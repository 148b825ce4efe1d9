"""Measurements → the sections of a report: what was measured, on what, under which load."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from launcher.bench.beside import Foretold, beside, foretold_pairs
from launcher.bench.figures import FIGURES, spread
from launcher.bench.measure import DEFINITIONS, in_flight, rates
from launcher.bench.page import Page, Picture, Section, Table, Word
from launcher.bench.reportplots import plots_of
from launcher.bench.reportserved import balance, engines, machines, served
from launcher.bench.told import judged_line, verdict_line
from launcher.model.bench import Measured
from launcher.model.measurement import Measurement
from launcher.model.reference import Reference

UNMEASURED = (
    "Not measured: single requests (the client keeps means and percentiles), so there is no distribution and "
    "no time line; whether hosts were idle otherwise; whether what runs is what the inventory says."
)


def page_of(
    measurements: Sequence[Measurement], rows: Mapping[str, Reference], foretold: Sequence[Foretold]
) -> Page:
    """The report on one run, or on several side by side; `foretold` of each."""
    first = measurements[0]
    several = (_side_by_side(measurements),) if len(measurements) > 1 else ()
    pairs = zip(measurements, foretold, strict=True)
    each = tuple(s for one, made in pairs for s in _sections(one, rows, made, named=bool(several)))
    names = ", ".join(dict.fromkeys(one.workload.name for one in measurements))
    return Page(
        title=f"{names} on {', '.join(dict.fromkeys(one.cluster for one in measurements))}",
        subtitle=f"{first.workload.about} {'; '.join(one.label for one in measurements)}",
        sections=(*several, *each, _definitions()),
    )


def _sections(
    one: Measurement, rows: Mapping[str, Reference], made: Foretold, *, named: bool
) -> Iterator[Section]:
    of = f" · {one.label}" if named else ""
    yield Section(f"Verdict{of}", tuple(_verdicts(one)))
    yield Section(f"Layout{of}", tuple(_versions(one)), picture=_picture(one))
    yield Section(f"Load{of}", tuple(_load(one)), tables=(served(one),))
    yield Section(
        f"Figures{of}", (Word("Times in ms. ± is half of what lies between runs."),), (_figures(one),)
    )
    if not named:
        yield Section("Plots", plots=plots_of([one]))
    yield Section(f"Engines{of}", (Word("What their counters grew by, run by run."),), engines(one))
    if (ranks := balance(one)).rows:
        told = Word("By the engines' own counters of each data-parallel rank.")
        yield Section(f"Ranks{of}", (told,), (ranks,))
    yield machines(one, of)
    yield _references(one, rows, of)
    yield _foretold(one, made, of)
    yield Section(f"Reproduce{of}", tuple(_whole(one)), code="\n".join(_commands(one)))


def _side_by_side(measurements: Sequence[Measurement]) -> Section:
    heads = ("run", "layout", "point", "verdict", *(f.head for f in FIGURES))
    rows = tuple(
        (one.label, one.layout, str(m.point), verdict_line(m, one.sla), *_middles(m, one))
        for one in measurements
        for m in one.points
    )
    return Section("Side by side", tables=(Table(heads, rows),), plots=plots_of(measurements))


def _verdicts(one: Measurement) -> Iterator[Word]:
    for m in one.points:
        verdict = m.verdict if one.sla or m.doubts else ""
        yield Word(f"{m.point}, {m.point.prompts} prompts: {verdict_line(m, one.sla)}", verdict)
        yield from (Word(judged_line(judged), judged.verdict) for judged in m.judgements)
        yield from (Word(f"doubt: {doubt}", "CANNOT TELL") for doubt in m.doubts)
        yield from (Word(f"note: {note}") for note in m.notes)
    if one.search:
        unit = "requests at once" if one.search.axis == "concurrency" else "requests/s"
        sure = "confirmed by a longer run" if one.search.confirmed else "not confirmed by a longer run"
        best = f"{one.search.highest:g} {unit}, {sure}" if one.search.highest is not None else "none"
        yield Word(f"highest {one.search.axis} that keeps the service level: {best}")
        if one.search.next_up is not None:
            yield Word(f"next up: {one.search.next_up:g}: {one.search.next_verdict}")


def _versions(one: Measurement) -> Iterator[Word]:
    yield Word(f"{one.cluster}: layout {one.layout}, model {one.model}, hardware {one.hardware}")
    yield Word(", ".join(f"{name} {version}" for name, version in one.versions.items() if version))


def _picture(one: Measurement) -> Picture:
    return Picture(one.url, one.routers, one.instances)


def _load(one: Measurement) -> Iterator[Word]:
    load = one.workload
    yield Word(f"{load.name}: {load.about}")
    kind = "its own" if load.text else load.settings.get("dataset-name", "the client's own")
    yield Word(
        f"{load.input_tokens} + {load.output_tokens} tokens asked for, {kind} prompts, to {one.target} "
        f"({one.through}), from {one.client_host}; {one.repeats} runs a point, the first with seed {one.seed}"
    )


def _figures(one: Measurement) -> Table:
    heads = ("point", "done", "s", "req/s", "in flight", *(f.head for f in FIGURES), "goodput", "tok/s over")
    return Table(heads, tuple(_row(m, one) for m in one.points))


def _row(m: Measured, one: Measurement) -> tuple[str, ...]:
    first = m.results[0]
    done = " ".join(f"{r.completed}/{r.asked}" for r in m.results)
    goodput = first.figures.get("request_goodput")
    return (
        str(m.point),
        done,
        f"{first.figures.get('duration', 0.0):.1f}",
        f"{first.figures.get('request_throughput', 0.0):.2f}",
        f"{in_flight(first):.1f}",
        *_middles(m, one),
        "–" if goodput is None else f"{goodput:.2f}",
        "; ".join(f"{rate.value:.1f} {rate.tokens}/s per {rate.over}" for rate in rates(first, one)),
    )


def _middles(m: Measured, one: Measurement) -> Iterator[str]:
    for what in FIGURES:
        own = spread(m.results, one, what)
        many = f" ±{own.half:.2f}" if own and own.runs > 1 else ""
        yield f"{own.middle:.2f}{many}" if own else "–"


def _references(one: Measurement, rows: Mapping[str, Reference], of: str) -> Section:
    found = beside(one, rows)
    heads = ("published", "figure", "theirs", "ours", "difference", "our point", "other conditions", "source")
    lines = tuple(
        (
            f"{row.name}: {row.row.about}",
            pair.figure,
            f"{pair.theirs:.10g}",
            "–" if pair.ours is None else f"{pair.ours:.2f}",
            "–" if pair.difference is None else f"{pair.difference:+.1%}",
            str(row.point),
            "; ".join(row.other) or "none: same conditions",
            row.row.known_from,
        )
        for row in found
        for pair in row.pairs
    )
    same = sum(not row.other for row in found)
    words = (
        Word(f"{same} published rows were measured under these conditions; all others are no yardstick."),
    )
    return Section(f"Beside what was published{of}", words, (Table(heads, lines),))


def _foretold(one: Measurement, made: Foretold, of: str) -> Section:
    title = f"Beside a model{of}"
    if made.nothing:
        return Section(title, (Word(f"`predict` says nothing of this: {made.nothing}."),))
    heads = (
        "our point",
        "figure",
        "model",
        "ours",
        "difference",
        "was off by",
        "other conditions",
    )
    rows = tuple(
        (
            str(point),
            pair.figure,
            f"{pair.theirs:.2f}",
            "–" if pair.ours is None else f"{pair.ours:.2f}",
            "–" if pair.difference is None else f"{pair.difference:+.1%}",
            _range(made.off.get(pair.figure)),
            "; ".join(made.other) or "none",
        )
        for point, pair in foretold_pairs(one, made)
    )
    told = (
        "By `predict`, a model that was fitted on a few published points: no measurement, and no yardstick. "
        "Was off by: on published points that it was not fitted on."
    )
    return Section(title, (Word(told),), (Table(heads, rows),))


def _range(shares: tuple[float, float] | None) -> str:
    if shares is None:
        return "–"
    return " to ".join(dict.fromkeys(f"{share:+.0%}" for share in shares))


def _whole(one: Measurement) -> Iterator[Word]:
    yield Word(f"by {one.who}, {one.started} to {one.ended}" + (f": {one.why}" if one.why else ""))
    yield Word(f"inventory {one.inventory}; sha256 of all files that were read: {one.data_digest}")
    yield Word(
        "The line of the launcher, then of the client, run by run, then of each process and the router."
    )
    yield Word(UNMEASURED)


def _commands(one: Measurement) -> Iterator[str]:
    yield shlex.join(one.command)
    yield from (shlex.join(r.words) for m in one.points for r in m.results if r.words)
    for served_ in one.instances:
        for seat in served_.seats:
            yield f"# {served_.name} on {seat.host}"
            yield shlex.join([*(f"{k}={v}" for k, v in seat.environment.items()), *seat.command])
    if one.router_command:
        yield "# router"
        yield shlex.join(one.router_command)


def _definitions() -> Section:
    return Section("What each figure means", code=DEFINITIONS)
