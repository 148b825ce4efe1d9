"""sha256 of files; knows nothing of what they are."""

from __future__ import annotations

import hashlib
from pathlib import Path

BLOCK = 1 << 20


def sha256_of(path: Path) -> str:
    """Of all its bytes, a block at a time."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def digests_of(path: Path, block_bytes: int) -> tuple[str, tuple[str, ...]]:
    """sha256 of all its bytes, and of each block of so many; the last may be shorter."""
    whole, blocks = hashlib.sha256(), []
    with path.open("rb") as file:
        while block := file.read(block_bytes):
            whole.update(block)
            blocks.append(hashlib.sha256(block).hexdigest())
    return whole.hexdigest(), tuple(blocks)
