"""Shape: how one instance spreads over GPUs, and the settings that decide its memory; knows no engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """One instance: parallelism, and every setting that a GPU's memory depends on."""

    tensor_parallel: int
    data_parallel: int
    hosts: int
    expert_parallel: bool
    all2all: str
    """Back end that moves tokens between ranks of different experts."""
    redundant_experts: int
    """Of the whole instance; they make (experts + redundant) divide by the expert-parallel size."""
    eplb_window: int
    """Steps of load history; 0: no EPLB."""
    kv_dtype: str
    block_size: int
    """Tokens of a KV block."""
    batched_tokens: int
    """Of one step of one rank."""
    dispatch_tokens: int
    """Tokens of one GPU that a low-latency buffer holds; other back ends do not look at it."""
    expert_tokens: int
    """That the experts of a GPU work through at once; 0: all of a step."""
    max_seqs: int
    max_model_len: int
    draft_tokens: int
    """Of MTP; 0: its layer is not loaded."""
    utilization: float
    graphs: bool
    """Are CUDA graphs captured?"""
    graphs_counted: bool
    """Does the release take them off before it sizes KV, or capture them into what the utilization leaves?"""
    dense_whole: bool
    """Does the release keep dense MLPs whole on each GPU under sequence parallelism?"""
    deepep_buffer_gib: float
    """VLLM_DEEPEP_BUFFER_SIZE_MB."""
    kv_cache_gib: float | None = None
    """Given for KV by name (kv-cache-memory-bytes), whatever the utilization; None: what is left."""

    @property
    def gpus(self) -> int:
        """Of the whole instance."""
        return self.tensor_parallel * self.data_parallel

    @property
    def experts_over(self) -> int:
        """GPUs that the routed experts are divided over: whole ones with expert parallelism, slices of each
        without it (vLLM flattens TP over DP then)."""
        return self.gpus

    @property
    def sequence_parallel(self) -> bool:
        """Does each GPU of a TP group take its own tokens through the MoE layers (config/parallel.py,
        use_sequence_parallel_moe)? Shared experts are whole on each GPU then."""
        return self.expert_parallel and self.tensor_parallel > 1 and self.data_parallel > 1

    @property
    def exchanges(self) -> bool:
        """Do tokens move between data-parallel ranks in each MoE layer?"""
        return self.expert_parallel and self.data_parallel > 1

    @property
    def low_latency(self) -> bool:
        """Experts get batches of a fixed size from a buffer that holds every rank's tokens."""
        return self.exchanges and self.all2all in ("deepep_low_latency", "nixl_ep")

    @property
    def high_throughput(self) -> bool:
        """Tokens go to just the ranks that have their experts."""
        return self.exchanges and self.all2all in ("deepep_high_throughput", "deepep_v2")


def copies_that_divide(experts: int, at_least: int, gpus: int) -> int:
    """The fewest redundant experts, not fewer than `at_least`, that EPLB can spread evenly over the GPUs.

    >>> copies_that_divide(256, 16, 32)
    32
    """
    return -(-(experts + at_least) // gpus) * gpus - experts
