"""Line, Budget: one entry of a GPU's memory, and all of them; knows no formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from launcher.fit.shape import Shape

GIB = 2**30
Part: TypeAlias = Literal["weights", "buffers", "runtime"]
"""weights: "Model loading took"; buffers: communication and workspaces; runtime: what only a run tells."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one thing takes on each GPU, and how that is known."""

    part: Part
    name: str
    size_gib: float
    formula: str
    """With its numbers filled in."""
    source: str


@dataclass(frozen=True, slots=True)
class Budget:
    """A GPU's memory at a given shape. Figures are of one GPU, KV tokens of one data-parallel rank: latent
    KV is the same on all GPUs of a rank."""

    shape: Shape
    total_gib: float
    """Of the GPU, as CUDA sees it."""
    allowed_gib: float
    """What vLLM may take: utilization × total."""
    lines: tuple[Line, ...]
    kv_gib: float
    """Left for KV; below zero where the rest is too large already."""
    kv_bytes_per_token: int
    reasons: tuple[str, ...] = ()
    """Why it does not fit; empty: it does."""

    @property
    def fits(self) -> bool:
        """Does an engine of this shape start, and hold one request of the longest context?"""
        return not self.reasons

    @property
    def weights_gib(self) -> float:
        """What vLLM's "Model loading took" says."""
        return self.part_gib("weights")

    @property
    def taken_gib(self) -> float:
        """Everything but KV."""
        return sum(line.size_gib for line in self.lines)

    def part_gib(self, part: Part) -> float:
        """The lines of one part together."""
        return sum(line.size_gib for line in self.lines if line.part == part)

    @property
    def kv_tokens(self) -> int:
        """What vLLM's "GPU KV cache size" says: whole blocks, for each data-parallel rank."""
        block = self.shape.block_size
        return max(0, int(self.kv_gib * GIB // (block * self.kv_bytes_per_token))) * block

    @property
    def max_context(self) -> int:
        """Tokens of the longest request that one rank can hold."""
        return min(self.shape.max_model_len, self.kv_tokens)

    def requests_per_rank(self, tokens: int) -> int:
        """Requests of so many tokens, prompt and answer together, that one rank holds at once; no more than
        its max_seqs."""
        block = self.shape.block_size
        blocks = -(-tokens // block)
        # one block is kept back, the null block (vLLM v1/core/block_pool.py)
        held = max(0, self.kv_tokens // block - 1) // blocks
        return min(held, self.shape.max_seqs) if tokens <= self.shape.max_model_len else 0

    def requests_per_instance(self, tokens: int) -> int:
        """The same over all ranks of an instance."""
        return self.requests_per_rank(tokens) * self.shape.data_parallel
