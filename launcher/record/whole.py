"""Files of ours on this machine that are written whole or not at all; knows not what is in them."""

from __future__ import annotations

from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Under its name only once all of it is there, whenever this process dies; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content.encode() if isinstance(content, str) else content)
    part.replace(path)
