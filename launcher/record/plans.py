"""Plans as JSON: what a journal keeps and a reviewer approves; contents by digest, secrets not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from launcher.model.plan import Change, Op, Plan
from launcher.model.rollout import Rollout

FORMAT = 2


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan, its digest included, as JSON values."""
    return {
        "format": FORMAT,
        "digest": plan.digest,
        "data_digest": plan.data_digest,
        "facts": dict(plan.facts),
        "unreached": {host: problem.what for host, problem in plan.unreached.items()},
        "changes": [change_document(c) for c in plan.changes],
        "rollout": rollout_document(plan.rollout),
    }


def rollout_document(rollout: Rollout) -> dict[str, Any]:
    """The moves in the order in which they are made, and what refuses them, as JSON values."""
    return {
        "strategy": rollout.strategy,
        "why": list(rollout.why),
        "moves": [asdict(move) for move in rollout.moves],
        "refused": [asdict(problem) for problem in rollout.refused],
        "waiting": [asdict(problem) for problem in rollout.waiting],
    }


def change_document(change: Change) -> dict[str, Any]:
    """One change as JSON values."""
    return {
        "host": change.host,
        "stage": change.stage,
        "step": change.step,
        "action": change.action.name,
        "subject": change.subject,
        "before": change.before,
        "after": change.after,
        "because": change.because,
        "instance": change.instance,
        "forced": change.forced,
        "diff": change.diff,
        "ops": [_op(op) for op in change.ops],
    }


def _op(op: Op) -> Mapping[str, Any]:
    document: dict[str, Any] = {"verb": op.verb, "args": dict(op.args)}
    if op.secret:
        # a digest would let a short secret be guessed
        document["content"] = "secret"
    elif op.content is not None:
        document["content"] = {"sha256": hashlib.sha256(op.content).hexdigest(), "bytes": len(op.content)}
    return document
