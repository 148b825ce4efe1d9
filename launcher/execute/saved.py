"""Saved plans: written by `plan --out`, and refused by `up --plan` when anything moved since."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from launcher.model.plan import Plan
from launcher.model.problem import InputError, PlanRefusedError, Problem
from launcher.record.plans import FORMAT, plan_document


def saved_text(plan: Plan) -> str:
    """The plan for a reviewer and for `up --plan`. It holds no content: that is computed again."""
    return json.dumps(plan_document(plan), indent=1) + "\n"


def refuse_if_moved(text: str, plan: Plan, *, path: str) -> None:
    """PlanRefusedError, naming what moved, unless `plan`, computed now, is the one that was saved."""
    saved = _read(text, path)
    now = json.loads(json.dumps(plan_document(plan)))
    if saved == now:
        return
    moved = [*_moved_data(saved, now), *_moved_changes(saved, now)] or [*_moved_order(saved, now)]
    # answers that no change rests on may move too, and nobody has seen what they mean
    moved = moved or [*_moved_facts(saved, now)]
    do = "dsv32-launch plan --out, and have the new plan approved"
    raise PlanRefusedError(*(Problem(what=m, where=path, why="plan is stale", do=do) for m in moved))


def _read(text: str, path: str) -> dict[str, Any]:
    try:
        saved = json.loads(text)
        known = isinstance(saved, dict) and saved.get("format") == FORMAT
    except ValueError:
        known = False
    if not known:
        do = "dsv32-launch plan --out writes one"
        raise InputError(Problem(f"not a saved plan of format {FORMAT}", where=path, do=do))
    return dict(saved)


def _moved_data(saved: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if saved["data_digest"] != now["data_digest"]:
        yield "the inventory, configs or roles were edited since the plan was saved"


def _moved_changes(saved: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    before, after = _by_place(saved), _by_place(now)
    for place, change in after.items():
        if place not in before:
            yield f"{_name(place)} is a new change: {change['before']} → {change['after']}"
        elif change != before[place]:
            old = before[place]
            yield (
                f"{_name(place)} was {old['before']} → {old['after']}, "
                f"is now {change['before']} → {change['after']}"
            )
    for place, change in before.items():
        if place not in after:
            yield f"{_name(place)} is no longer needed: {change['before']} → {change['after']}"


def _moved_order(saved: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The same changes in another order, or with other instances that serve meanwhile."""
    before, after = saved["rollout"], now["rollout"]
    if before["strategy"] != after["strategy"]:
        yield f"the changes were to be made {before['strategy']}, and are now made {after['strategy']}"
    elif before["moves"] != after["moves"]:
        for number, (old, new) in enumerate(zip_longest(before["moves"], after["moves"]), start=1):
            if old != new:
                yield f"move {number} was {_move(old)}, is now {_move(new)}"


def _move(move: Mapping[str, Any] | None) -> str:
    if move is None:
        return "not there"
    words = [", ".join(move["instances"] or move["hosts"])]
    words += [f"{', '.join(move['drained'])} drained"] if move["drained"] else []
    words += [f"{', '.join(move['serving'])} serving meanwhile"] if move["serving"] else []
    words += [f"nothing of {', '.join(move['outage'])} serving"] if move["outage"] else []
    return " with ".join(words)


def _moved_facts(saved: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for host in sorted({*saved["facts"], *now["facts"]}):
        if saved["facts"].get(host) != now["facts"].get(host):
            yield f"{host} answers otherwise than when the plan was saved"
    for host in sorted({*saved["unreached"], *now["unreached"]}):
        if saved["unreached"].get(host) != now["unreached"].get(host):
            yield f"{host} was {saved['unreached'].get(host, 'reached')}"


def _by_place(document: Mapping[str, Any]) -> dict[tuple[str, str, str, str], Mapping[str, Any]]:
    return {(c["host"], c["step"], c["subject"], c["action"]): c for c in document["changes"]}


def _name(place: tuple[str, str, str, str]) -> str:
    host, step, subject, _ = place
    return f"{host}, step {step}: {subject}"
