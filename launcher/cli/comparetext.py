"""comparison_text: what another stack changes, as a person reads it before agreeing; knows no colours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from launcher.cli.findingtext import launches
from launcher.compare.commands import Group, Word
from launcher.compare.lines import Difference
from launcher.compare.versions import Need
from launcher.flows.compare import LOAD, Comparison, Memory, Move
from launcher.model.finding import RuleFinding

KINDS = {
    "renamed": "is called",
    "gone": "is gone",
    "later": "is not known yet",
    "refused": "is refused",
    "ignored": "has no effect",
    "heeded": "has an effect again",
    "value": "does something else",
}
WRITTEN = tuple(KINDS)


def comparison_text(told: Comparison, *, cluster: str) -> str:
    """Section by section; those that have nothing to say are left out."""
    sections = (
        ("versions", [f"{v.name:<16} {_both(v.before, v.after)}" for v in told.versions]),
        ("not there", [_need(need) for need in told.needs]),
        ("written, and otherwise", [row for d in told.lines if d.kind in WRITTEN for row in _written(d)]),
        (
            "not written, and otherwise",
            [row for d in told.lines if d.kind not in WRITTEN for row in _left(d)],
        ),
        ("command lines", [row for group in told.commands for row in _group(group)]),
        ("rules", [*_rules(told)]),
        ("memory", [_memory(row) for row in told.memory] or [_no_memory(told)]),
        ("the move", [*_move(told.move)] if told.move else []),
    )
    head = f"{cluster}: stack {_both(*told.stack)}"
    if told.layout[0] != told.layout[1]:
        head += f", layout {_both(*told.layout)}"
    body = (f"\n{name}\n" + "\n".join(f"  {row}" for row in rows) for name, rows in sections if rows)
    return "\n".join((head, *body))


def _both(before: str, after: str) -> str:
    return f"{before or 'none'} → {after or 'none'}"


def _need(need: Need) -> str:
    found = f"the stack has {need.found}" if need.found else "the stack names none"
    return f"{need.name}: {need.wanted}; {found} ({need.source})"


def _written(one: Difference) -> Iterator[str]:
    instead = f": {one.after}" if one.after else ""
    yield f"{one.name} {one.before} {KINDS[one.kind]}{instead}  {', '.join(one.pools)}  {one.source}"
    if one.why:
        yield f"    {one.why}"


def _left(one: Difference) -> Iterator[str]:
    yield f"{one.name} {_both(one.before, one.after)}  {', '.join(one.pools)}"
    if one.why:
        yield f"    {one.why}"


def _group(group: Group) -> Iterator[str]:
    yield launches(group.processes)
    yield from (f"    {_word(word)}" for word in group.words)


def _word(word: Word) -> str:
    if word.before and word.after:
        return f"~ {word.name} {word.before} → {word.after}"
    return f"+ {word.name} {word.after}" if word.after else f"- {word.name} {word.before}"


def _rules(told: Comparison) -> Iterator[str]:
    sides: Sequence[tuple[str, Sequence[RuleFinding]]] = (
        ("new", told.findings.new),
        ("gone", told.findings.gone),
        ("still", told.findings.still),
    )
    for state, findings in sides:
        yield from (f"{state:<6} {f.severity} {f.rule}: {f.what}" for f in findings)


def _memory(row: Memory) -> str:
    tokens, gib, requests = row.kv_tokens, row.kv_gib, row.requests
    return (
        f"{row.pool}: KV {gib[0]:.1f} → {gib[1]:.1f} GiB of a GPU, {tokens[0]:,} → {tokens[1]:,} tokens of a "
        f"rank, {requests[0]:,} → {requests[1]:,} requests of {LOAD.prompt} + {LOAD.answer} tokens at once"
    )


def _no_memory(told: Comparison) -> str:
    return f"not compared: {told.no_memory}" if told.no_memory else ""


def _move(move: Move) -> Iterator[str]:
    if move.apart:
        yield f"engines of both sides cannot hand KV to each other: {', '.join(move.apart)}"
    else:
        yield "engines of both sides may serve together: one instance of a pool after the other"
    if move.first:
        yield f"first {', '.join(move.first)}: the others serve meanwhile; then users are sent there"
        yield f"then {', '.join(move.rest)} move, and join them"
    if move.breaks:
        yield f"not without a break: {'; '.join(move.breaks)}; --below-minimum accepts one"
