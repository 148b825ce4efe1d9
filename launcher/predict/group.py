"""Group, Part: what of an instance's shape decides its speed, and one term of a time; knows no load."""

from __future__ import annotations

from dataclasses import dataclass

GPUS_PER_HOST = 8
"""Of the hosts that the constants were measured on; all-reduces beyond it leave NVLink."""


@dataclass(frozen=True, slots=True)
class Group:
    """One instance."""

    tensor_parallel: int
    data_parallel: int
    low_latency: bool
    """Do experts get their tokens by low-latency kernels?"""
    head_multiple: int
    """Heads of a GPU that the attention kernel computes at least; 1: no padding."""
    experts_on_gpu: float
    """Redundant ones too; slices of experts count as their share."""
    batched_tokens: int
    """Of one step of a rank."""
    draft_tokens: int = 0
    kv_bytes: int = 1152
    """Of one token in one layer, the indexer's apart: 1152 in BF16, 656 in FP8."""

    @property
    def gpus(self) -> int:
        """Of the whole instance."""
        return self.tensor_parallel * self.data_parallel


@dataclass(frozen=True, slots=True)
class Part:
    """One term of a time, with the formula that gave it."""

    name: str
    amount: float
    formula: str


def total(parts: tuple[Part, ...]) -> float:
    """The whole, in the unit of the parts."""
    return sum(p.amount for p in parts)
