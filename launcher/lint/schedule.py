"""Quantities of a step: how many tokens and requests it takes, how it is scheduled, drafted and captured."""

from __future__ import annotations

from launcher.lint.reading import Quantity, Reading
from launcher.lint.values import Value, number, plain, untold


def max_seqs(r: Reading) -> Value:
    """Requests in one step of a rank: as written, else the default for the GPU, but no more than tokens."""
    written = r.size("max-num-seqs")
    if written is not None:
        return written
    return min(_by_memory(r, "seqs"), r.whole("batched_tokens"))


def batched_tokens(r: Reading) -> Value:
    """Tokens in one step of a rank: as written, else the release's default for the GPU and the back end."""
    written = r.size("max-num-batched-tokens")
    if written is not None:
        return written
    small = r.behaviour("low-latency-batched-tokens") if r.value("low_latency") else None
    return int(small) if small else _by_memory(r, "batched-tokens")


def _by_memory(r: Reading, what: str) -> int:
    """The default for a GPU's memory: vLLM knows small ones, large ones, and (later) the largest."""
    hardware = r.hardware()
    each = r.whole("tensor_parallel") * r.whole("pipeline_parallel")
    if not hardware.gpus_per_host:
        return int(r.figure(f"{what}-without-gpu") or 0) * each
    by_size = {r.figure("largest-gpu-gib"): "largest", r.figure("large-gpu-gib"): "large"}
    for least, size in by_size.items():
        if least and hardware.gpu_memory_gib >= least:
            return int(r.figure(f"{what}-{size}-gpu") or 0)
    return int(r.figure(f"{what}-small-gpu") or 0)


def spec_method(r: Reading) -> Value:
    """How tokens are drafted: `mtp`, `ngram`…; absent where none are."""
    method = r.setting("speculative-config.method") or r.setting("spec-method")
    if method is None and r.given("speculative-config") is None and r.given("spec-tokens") is None:
        return None
    if method is None and (r.given("speculative-config.model") or r.given("spec-model")):
        raise untold("what kind of drafts the draft model makes")
    # `deepseek_mtp` and the like are accepted and mean it
    return "mtp" if method is None or str(method).endswith("mtp") else str(method)


def mtp_tokens(r: Reading) -> Value:
    """Tokens drafted for each request in a step; 0 where none are."""
    if r.value("spec_method") is None:
        return 0
    return r.size("speculative-config.num_speculative_tokens") or r.size("spec-tokens") or 1


def step_tokens(r: Reading) -> Value:
    """Tokens of a decode step with all requests there can be."""
    return r.whole("max_seqs") * (1 + r.whole("mtp_tokens"))


def async_scheduling(r: Reading) -> Value:
    """Is the next step scheduled while one runs? As written, else by the release where nothing forbids it."""
    written = r.given("async-scheduling")
    if written is not None:
        return r.on("async-scheduling")
    drafts = r.value("spec_method")
    beside = r.words("drafts-of-async-scheduling")
    if r.whole("pipeline_parallel") > 1 or (drafts is not None and drafts not in beside):
        return False
    return r.behaviour("async-scheduling") == "true"


def model_runner(r: Reading) -> Value:
    """Which of vLLM's two runners executes the model: `v1` or `v2`."""
    forced = r.variable("VLLM_USE_V2_MODEL_RUNNER")
    if forced is not None:
        return "v2" if number(forced) == 1 or plain(forced) is True else "v1"
    # DBO is missing in v2, which steps back without a word (vllm/config/vllm.py of 0.33.0)
    return "v1" if r.on("enable-dbo") else r.behaviour("model-runner")


def dp_sync(r: Reading) -> Value:
    """How data-parallel ranks agree on a step: `nccl` or `cpu`; absent with one rank."""
    if r.whole("data_parallel") == 1:
        return None
    if r.value("model_runner") == "v2":
        return "cpu"
    rule = r.behaviour("dp-sync-of-async-scheduling") if r.value("async_scheduling") else "flag"
    written = r.given("disable-nccl-for-dp-synchronization")
    if rule == "cpu" or (rule == "cpu-unless-told" and written is None):
        return "cpu"
    return "cpu" if r.on("disable-nccl-for-dp-synchronization") else "nccl"


def cudagraph_mode(r: Reading) -> Value:
    """Which steps run as CUDA graphs; absent where the engine decides."""
    without = r.words("backends-without-graphs")
    exchanges = r.value("expert_parallel") and r.whole("data_parallel") > 1
    if r.on("enforce-eager") or (exchanges and r.value("all2all") in without):
        return "NONE"
    written = r.setting("compilation-config.cudagraph_mode")
    return str(written).upper() if written is not None else None


def capture_max(r: Reading) -> Value:
    """The largest batch that is captured, where it is given."""
    sizes = r.setting("compilation-config.cudagraph_capture_sizes") or r.setting("cudagraph-capture-sizes")
    if isinstance(sizes, str):
        sizes = list(sizes.split())
    if isinstance(sizes, list) and sizes:
        return max(int(number(size) or 0) for size in sizes)
    return r.size("max-cudagraph-capture-size") or r.size("compilation-config.max_cudagraph_capture_size")


QUANTITIES: dict[str, Quantity] = {
    "max_seqs": max_seqs,
    "batched_tokens": batched_tokens,
    "spec_method": spec_method,
    "mtp_tokens": mtp_tokens,
    "step_tokens": step_tokens,
    "async_scheduling": async_scheduling,
    "model_runner": model_runner,
    "dp_sync": dp_sync,
    "cudagraph_mode": cudagraph_mode,
    "capture_max": capture_max,
}
