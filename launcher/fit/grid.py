"""Shapes that could be laid out over so many GPUs; knows no layout file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from launcher.fit.shape import Shape, copies_that_divide
from launcher.model.architecture import Architecture
from launcher.model.profile import Hardware

HOSTS = (1, 2, 4)
"""Of an instance. Beyond, a failure takes too much down with it."""


def grid(architecture: Architecture, hardware: Hardware, like: Shape, *, gpus: int) -> Iterator[Shape]:
    """Each TP × DP that fills 1, 2 or 4 hosts and divides heads and experts, all else as in `like`, with the
    copies of experts that then divide."""
    per_host = hardware.gpus_per_host
    for hosts in HOSTS:
        each = hosts * per_host
        if not 0 < each <= gpus:
            continue
        for tensor in (2**power for power in range(each.bit_length())):
            data = each // tensor
            # a rank lies within a host, or one rank spans all of them
            if each % tensor or (per_host % tensor and data > 1) or architecture.heads % tensor:
                continue
            copies = like.redundant_experts
            if like.eplb_window:
                copies = copies_that_divide(architecture.experts, copies, each)
            yield replace(
                like, tensor_parallel=tensor, data_parallel=data, hosts=hosts, redundant_experts=copies
            )
