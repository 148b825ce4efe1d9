"""weights: the manifest of a model folder, by which hosts copy and verify it; knows no host."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from launcher.flows.digests import digests_of
from launcher.model.problem import InputError, Problem
from launcher.model.run import Event, Listener
from launcher.record.whole import write_whole

MANIFEST = "manifest.json"
BLOCKS = "manifest.blocks.json"
FORMAT = 2
BLOCK_BYTES = 16 << 20
"""What hosts hand each other and repair. 690 GB are 41,000 of them; sixteen on their way at once take
256 MiB of memory."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was written."""

    path: Path
    revision: str
    """sha256 of the manifest itself: equal folders, equal revisions."""
    files: int
    size_bytes: int


def write_manifest(folder: Path, listener: Listener, *, block_bytes: int = BLOCK_BYTES) -> Manifest:
    """Read every file of a model folder; write manifest.json and the digests of its blocks into it.

    Hidden files and folders (a download's cache) are left out. InputError where the folder is no model:
    no config.json, or shards that its index names are missing or cut short.
    """
    names = tuple(_names(folder))
    problems = tuple(_problems(folder, frozenset(names)))
    if problems:
        raise InputError(*problems)
    entries: dict[str, dict[str, int | str]] = {}
    blocks: dict[str, Sequence[str]] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        digests = pool.map(lambda n: digests_of(folder / n, block_bytes), names)
        for name, (whole, parts) in zip(names, digests, strict=True):
            entries[name] = {"size": (folder / name).stat().st_size, "sha256": whole}
            blocks[name] = parts
            data = {"done": len(entries), "total": len(names)}
            listener(Event("job", text=f"read {name}", subject=f"weights {folder.name}", data=data))
    digest = _written(folder / BLOCKS, json.dumps(blocks) + "\n")
    told = {"file": BLOCKS, "size": block_bytes, "sha256": digest}
    text = json.dumps({"format": FORMAT, "blocks": told, "files": entries}, indent=1) + "\n"
    revision = _written(folder / MANIFEST, text)
    return Manifest(folder / MANIFEST, revision, len(entries), sum(int(e["size"]) for e in entries.values()))


def _written(path: Path, text: str) -> str:
    """Its sha256."""
    write_whole(path, text)
    return hashlib.sha256(text.encode()).hexdigest()


def _names(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if (
            path.is_file()
            and relative.as_posix() not in (MANIFEST, BLOCKS)
            and not any(p.startswith(".") for p in relative.parts)
        ):
            yield relative.as_posix()


def _problems(folder: Path, names: frozenset[str]) -> Iterator[Problem]:
    if not _is_object(folder / "config.json"):
        what = "no config.json that is a JSON object: this is no model folder"
        do = "name the folder that holds the model's config.json and shards"
        yield Problem(what, where=str(folder), do=do)
    index = folder / "model.safetensors.index.json"
    shards: dict[str, set[str]] = {}
    if index.name in names:
        for tensor, shard in json.loads(index.read_text(encoding="utf-8"))["weight_map"].items():
            shards.setdefault(shard, set()).add(tensor)
    for shard in sorted(shards.keys() - names):
        what = f"{shard} is missing, which {index.name} names"
        yield Problem(what, where=str(folder), do="finish the download of the model")
    for shard in sorted(n for n in names if n.endswith(".safetensors")):
        if wrong := _wrong_with(folder / shard, shards.get(shard, set())):
            yield Problem(f"{shard} {wrong}", where=str(folder), do="download that file again")


def _is_object(path: Path) -> bool:
    try:
        return isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
    except (OSError, ValueError):
        return False


def _wrong_with(shard: Path, tensors: Collection[str]) -> str:
    """What of a shard contradicts its own header or the index; else nothing. Its tensors are not read."""
    size = shard.stat().st_size
    with shard.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")  # safetensors: 8 bytes, then as many bytes of JSON
        try:
            header = json.loads(file.read(length) if length <= size else b"")
        except ValueError:
            return "has no header of safetensors"
    ends = [int(entry["data_offsets"][1]) for name, entry in header.items() if name != "__metadata__"]
    wanted = 8 + length + max(ends, default=0)
    if size != wanted:
        return f"has {size} bytes, by its header {wanted}"
    absent = sorted(set(tensors) - header.keys())
    return f"has no {absent[0]}, which the index says is there" if absent else ""
