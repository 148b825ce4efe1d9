"""process_rows, entrance_lines: a Status as cells and lines; knows no terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from launcher.cli.words import count
from launcher.health.guard import last_end

if TYPE_CHECKING:
    from launcher.flows.status import Status
    from launcher.health.guard import GuardWord
    from launcher.health.live import Live
    from launcher.health.state import ProcessState, RankLoad


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a process, or a further rank of the process above."""

    cells: tuple[str, ...]
    up: bool


def process_rows(status: Status) -> Iterator[Row]:
    """instance, host, state, ready, rank, KV use, running, waiting, tokens."""
    for process in status.processes:
        first, *more = process.ranks or (None,)
        head = (process.instance, process.host, state(process), ready(process))
        yield Row((*head, *rank_cells(first)), process.up)
        yield from (Row(("", "", "", "", *rank_cells(rank)), process.up) for rank in more)


def notes(status: Status) -> Iterator[str]:
    """Why a process is not up, as far as its host or its log tells; who holds hosts."""
    yield from (f"{p.instance} on {p.host}: {p.note}" for p in status.processes if p.note)
    yield from (str(hold) for hold in status.holds)


def guard_lines(status: Status) -> Iterator[str]:
    """Each instance: which life of it runs, how the last one ended, and what is in the way of the next."""
    instances: dict[str, list[GuardWord]] = {}
    for p in status.processes:
        instances.setdefault(p.instance, []).extend([p.guard] if p.guard else [])
    for name, words in instances.items():
        if not words:
            yield f"guard   {name}  says nothing: systemctl status dsv32-guard-{name}"
            continue
        latest = max(words, key=lambda word: word.epoch)
        yield f"guard   {name}  epoch {latest.epoch}, {', '.join(sorted({w.phase for w in words}))}"
        end, waits = last_end(words), next((w.waits for w in words if w.waits), "")
        if end:
            ago = age(time.time() - end.when_s)
            yield f"        epoch {end.epoch} ended {ago} ago, first on {end.host}: {end.why}"
        if any(w.gave_up for w in words):
            yield f"        gave up after {latest.tries} tries; find out why, then: dsv32-launch up"
        elif waits:
            yield f"        waits for {waits}"


def live_lines(status: Status) -> Iterator[str]:
    """Of two looks: what each pool and each instance did in between. Nothing of one look."""
    if not any(each.prompt_tokens_per_s is not None for each in status.live):
        return
    names = ("P tok/s", "D tok/s", "TTFT", "TPOT", "KV use", "running", "waiting")
    yield f"live    {'':<14}{''.join(f'{name:>11}' for name in names)}"
    for each in status.live:
        name = each.name if each.name == each.pool else f"  {each.name}"
        yield f"        {name:<14}{''.join(f'{cell:>11}' for cell in live_cells(each))}"


def live_cells(each: Live) -> tuple[str, ...]:
    """The numbers of a pool or an instance; dashes where there are none."""
    rates = (each.prompt_tokens_per_s, each.generation_tokens_per_s)
    return (
        *("-" if rate is None else f"{rate:,.1f}" for rate in rates),
        *("-" if time_s is None else f"{1000 * time_s:,.0f} ms" for time_s in (each.ttft_s, each.tpot_s)),
        f"{each.kv_usage:.0%}",
        f"{each.running:.0f}",
        f"{each.waiting:.0f}",
    )


def status_text(status: Status) -> str:
    """All of it, as text that can be searched."""
    rows = ("  ".join(cell for cell in row.cells if cell) for row in process_rows(status))
    return "\n".join((*rows, *entrance_lines(status), *guard_lines(status), *notes(status), verdict(status)))


def state(process: ProcessState) -> str:
    """`active 2 h`, `failed`."""
    if process.active == "active" and process.since_s:
        return f"active {age(time.time() - process.since_s)}"
    return process.active


def ready(process: ProcessState) -> str:
    """Answers; or which ports do not even listen."""
    if process.active != "active":
        return "-"
    if process.healthy:
        return "healthy"
    closed = [name for name, listening in process.ports.items() if not listening]
    if process.healthy is None:
        return "headless"
    return f"no answer, {', '.join(closed)} closed" if closed else "no answer"


def rank_cells(rank: RankLoad | None) -> tuple[str, ...]:
    """The numbers of a rank; dashes where there are none."""
    if rank is None:
        return ("-",) * 5
    tokens = f"{rank.prompt_tokens:,.0f} / {rank.generation_tokens:,.0f}"
    if rank.transferred_prompt_tokens:
        tokens += f" ({rank.transferred_prompt_tokens:,.0f} by transfer)"
    return (rank.rank, f"{rank.kv_usage:.0%}", f"{rank.running:.0f}", f"{rank.waiting:.0f}", tokens)


def entrance_lines(status: Status) -> Iterator[str]:
    """Where users come in. Each router: what it thinks of its workers, and whether the front answers; without
    a router the instances themselves."""
    for p in status.processes if not status.routers else ():
        answers = "answers" if p.healthy else "does not answer"
        yield from (f"users   {p.host}  {p.instance}  {url} {answers}" for url in p.urls)
    for r in status.routers:
        pools = ", ".join(f"{pool} {good}/{total}" for pool, (good, total) in r.pools.items()) or "no answer"
        part = "users reach it" if r.reached else "stands by"
        yield f"router  {r.host}  {r.slot} {r.active}  {'ready' if r.ready else 'not ready'}  {pools}  {part}"
        yield from (f"        worker {url} unhealthy" for url, healthy in r.workers.items() if not healthy)
        if r.note:
            yield f"        {r.note}"
    for f in status.fronts:
        answers = "answers" if f.answers else "does not answer"
        has = {True: ", has the address", False: ", stands by", None: ""}[f.holds]
        yield f"front   {f.host}  {f.active}  {f.url} {answers}{has}"
    yield from (str(drained) for drained in status.drained)


def verdict(status: Status) -> str:
    """What is not up, or that all is."""
    down = [f"{p.instance} on {p.host}" for p in status.processes if not p.up]
    down += [f"router {r.slot} on {r.host}" for r in status.routers if not r.up]
    down += [f"front on {f.host}" for f in status.fronts if not f.up]
    if down:
        return f"not up: {', '.join(down)}; why: dsv32-launch diagnose"
    things = count(len(status.processes), "process").replace("processs", "processes")
    return f"all up: {things}" + (f", {count(len(status.routers), 'router')}" if status.routers else "")


def age(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h`, `2 d`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
