"""What a GPU must hold of a model at a given shape, and what is left for KV; knows no files and no hosts."""

from __future__ import annotations

from launcher.fit.budget import budget
from launcher.fit.buffers import low_latency_bytes
from launcher.fit.line import GIB, Budget, Line
from launcher.fit.nearest import Edit, nearest
from launcher.fit.shape import Shape

__all__ = ["GIB", "Budget", "Edit", "Line", "Shape", "budget", "low_latency_bytes", "nearest"]
