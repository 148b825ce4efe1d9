"""weights: the manifest of a model folder, by which hosts copy and verify it; knows no host."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from launcher.flows.digests import sha256_of
from launcher.model.problem import InputError, Problem
from launcher.model.run import Event, Listener

MANIFEST = "manifest.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was written."""

    path: Path
    revision: str
    """sha256 of the manifest itself: equal folders, equal revisions."""
    files: int
    size_bytes: int


def write_manifest(folder: Path, listener: Listener) -> Manifest:
    """Read every file of a model folder and write manifest.json into it.

    Hidden files and folders (a download's cache) are left out. InputError where the folder is no model:
    no config.json, or shards that its index names are missing.
    """
    names = tuple(_names(folder))
    problems = tuple(_problems(folder, frozenset(names)))
    if problems:
        raise InputError(*problems)
    entries: dict[str, dict[str, int | str]] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, digest in zip(names, pool.map(lambda n: sha256_of(folder / n), names), strict=True):
            entries[name] = {"size": (folder / name).stat().st_size, "sha256": digest}
            data = {"done": len(entries), "total": len(names)}
            listener(Event("job", text=f"read {name}", subject=f"weights {folder.name}", data=data))
    path = folder / MANIFEST
    new = path.with_name(f".{MANIFEST}.new")
    text = json.dumps({"format": FORMAT, "files": entries}, indent=1) + "\n"
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)
    revision = hashlib.sha256(text.encode()).hexdigest()
    return Manifest(path, revision, len(entries), sum(int(e["size"]) for e in entries.values()))


def _names(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if (
            path.is_file()
            and relative.as_posix() != MANIFEST
            and not any(p.startswith(".") for p in relative.parts)
        ):
            yield relative.as_posix()


def _problems(folder: Path, names: frozenset[str]) -> Iterator[Problem]:
    if "config.json" not in names:
        do = "name the folder that holds the model's config.json and shards"
        yield Problem("no config.json: this is no model folder", where=str(folder), do=do)
    index = folder / "model.safetensors.index.json"
    if index.name in names:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        for shard in sorted(shards - names):
            what = f"{shard} is missing, which {index.name} names"
            yield Problem(what, where=str(folder), do="finish the download of the model")
