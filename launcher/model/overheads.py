"""Overheads: what a GPU needs beside all that can be worked out, as runs have shown it; knows no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge


@dataclass(frozen=True, slots=True)
class Measured:
    """A number that no formula gives, and where it was seen."""

    gib: Annotated[float, Ge(0)]
    known_from: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Overheads:
    """In configs/hardware/<name>.yaml, in GiB of one GPU."""

    context: Measured
    """CUDA's own, taken before an engine starts: no utilization reaches it."""
    libraries: Measured
    """Outside of the allocator: kernels, cuBLAS and the like."""
    first_communicator: Measured
    """NCCL's, for the first group of GPUs that speak to each other."""
    communicator: Measured
    """NCCL's, for each further group."""
    activations: Measured
    """The part of the peak that does not grow with the tokens of a step: sampler, indexer logits."""
    graphs: Measured
    """CUDA graphs of the usual capture sizes."""
    source: str = ""
