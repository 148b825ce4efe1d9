"""Runbooks as text: a row, all of one, a page for paper; knows no terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping

from launcher.flows.runbook import Move, Scope, danger_of, next_book
from launcher.model.deployment import Deployment
from launcher.model.runbook import PROGRAM, Demand, Runbook, RunbookStep

DEMANDS: Mapping[Demand, str] = {
    "minimum": "its pool keeps its minimum of instances that serve without it, or it does not serve anyway",
    "alone": "no other run is at work there, and nobody else holds the fleet",
}


def book_row(book: Runbook) -> str:
    """One line of a list."""
    return f"{book.id:<20} {book.target:<9} {book.title}"


def book_lines(book: Runbook) -> Iterator[str]:
    """All of it, names left as they are."""
    yield f"{book.id}: {book.title}"
    yield f"  for    {book.target}"
    yield from _column("when", [*book.seen, *([", ".join(book.signatures)] if book.signatures else [])])
    yield f"  who    {book.who}"
    yield f"  danger {book.danger}"
    for number, step in enumerate(book.steps, start=1):
        yield f"{number}. {step.say}"
        yield f"     {step_text(step)}"
        yield from (f"     only if {DEMANDS[demand]}" for demand in step.only_if)
        yield f"     then: {step.expect}" + (f" If not: {step.otherwise}." if step.otherwise else "")
    yield f"  else   {book.escalate}"


def step_text(step: RunbookStep) -> str:
    """What is done, as it is written."""
    if step.on_host:
        where = step.on_host.hosts or "each host of it"
        return f"on {where}: {shlex.join(step.on_host.run)}"
    return step.do or f"by hand: {step.by_hand}"


def move_text(move: Move, words: Iterable[str]) -> str:
    """What is done, with all names filled in; `words` of a command are complete."""
    if move.run:
        return f"on {', '.join(move.hosts)}: {shlex.join(move.run)}"
    return f"by hand: {move.by_hand}" if move.by_hand else shlex.join((PROGRAM, *words))


def page(
    book: Runbook,
    scope: Scope,
    deployment: Deployment,
    planned: Iterable[tuple[Move, tuple[str, ...]]],
    books: Mapping[str, Runbook],
) -> Iterator[str]:
    """Markdown for paper: each step with a box to tick."""
    yield f"# {book.id}: {book.title}"
    yield ""
    yield f"- cluster: {deployment.cluster}"
    if scope.target:
        yield f"- {book.target}: {scope.target}"
    instances = scope.instances or deployment.instances
    yield from (f"- {i.name}: {', '.join(i.hosts)}" for i in instances)
    yield from (f"- when: {text}" for text in book.seen)
    if book.signatures:
        yield f"- when `dsv32-launch diagnose` names: {', '.join(book.signatures)}"
    yield f"- who: {book.who}"
    yield f"- danger: {danger_of(book, scope)}"
    yield f"- if a step does not go well and names nothing else: {book.escalate}"
    for move, words in planned:
        yield ""
        yield f"## [ ] {move.id}. {move.say}"
        yield ""
        yield from (f"Only if {DEMANDS[demand]}." for demand in move.step.only_if)
        yield from ([""] if move.step.only_if else [])
        yield f"    {move_text(move, words)}"
        yield ""
        other = next_book(move, scope, books)
        yield f"Then: {move.expect}" + (f" If not: `{other}`" if other else "")
        if move.step.on_host:
            yield from _shows(move)


def _shows(move: Move) -> Iterator[str]:
    on_host = move.step.on_host
    if on_host and on_host.finds:
        yield f"It shows `{on_host.finds}`."
    if on_host and on_host.lacks:
        yield f"It does not show `{on_host.lacks}`."
    if on_host and on_host.within_s:
        yield f"That may take {on_host.within_s} s."


def _column(word: str, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield f"  {word:<6} {text}"
        word = ""
