"""Edits of a shape → what to write in an inventory or layout; knows not why."""

from __future__ import annotations

from launcher.fit import Edit, Shape
from launcher.model.launch import Launch

UTILIZATION = "gpu-memory-utilization"


def remedy(edit: Edit, after: Shape, *, pool: str, launch: Launch) -> str:
    """The line to write for one edit, and the line that says otherwise now."""
    value = f"{edit.after:g}" if edit.knob == "utilization" else str(int(edit.after))
    match edit.knob:
        case "utilization":
            return _setting(pool, UTILIZATION, value, launch)
        case "dispatch_tokens" if after.dispatch_tokens != after.batched_tokens:
            return f'environment: {{{pool}: {{VLLM_MOE_DP_CHUNK_SIZE: "{value}"}}}}'
        case "dispatch_tokens" | "batched_tokens":
            return _setting(pool, "max-num-batched-tokens", value, launch)
        case "max_model_len":
            return _setting(pool, "max-model-len", value, launch)
        case "redundant_experts":
            return f"num_redundant_experts: {value} in eplb-config{_now('eplb-config', launch)}"
        case "draft_tokens":
            # both sides: whether there is a draft layer is part of what prefill and decode must agree on
            return f"settings: {{all: {{speculative-config: null}}}}{_now('speculative-config', launch)}"
        case "tensor_parallel" | "hosts":
            words = f"tensor_parallel: {after.tensor_parallel}, data_parallel: {after.data_parallel}"
            words += f", hosts_per_instance: {after.hosts}"
            return f"{pool}: {{{words}}} in the layout{_now('tensor-parallel-size', launch)}"


def _setting(pool: str, name: str, value: str, launch: Launch) -> str:
    return f"settings: {{{pool}: {{{name}: {value}}}}}{_now(name, launch)}"


def _now(name: str, launch: Launch) -> str:
    written = launch.flags.get(name)
    return f" (now by {written.source})" if written else ""
