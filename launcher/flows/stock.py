"""stock: fill a sandbox's shared file system with the engine stack and the tiny model; knows no host."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from launcher.flows import stack, weights
from launcher.load.data import Data
from launcher.model.run import Event, Listener
from launcher.sandbox import tiny_model

STACK = "sandbox-cpu"
MODEL = "tiny"


@dataclass(frozen=True, slots=True)
class Stocked:
    """What is there now."""

    stack: stack.Built
    model: Path


def stock(shared: Path, base: Path, listener: Listener, *, data: Data) -> Stocked:
    """Have stack and model under `shared`; what is there and whole is kept.

    `base` is the tree that the sandbox's hosts stand on: what it holds already is not fetched as a package.
    """
    status = base / "var/lib/dpkg/status"
    built = stack.build(stack.read(STACK, data), shared, listener, data=data, status=status)
    folder = shared / "models" / MODEL
    if not (folder / weights.BLOCKS).exists():
        listener(Event("job", text="writing random weights", subject=f"model {MODEL}"))
        partial = folder.with_name(f".{MODEL}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        tiny_model.make(partial)
        weights.write_manifest(partial, listener)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return Stocked(built, folder)
