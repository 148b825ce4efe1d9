"""A wish from a few lines of YAML, read by the real loader over the shipped data."""

from __future__ import annotations

from pathlib import Path

from launcher.load import load
from launcher.model.wish import Wish

INVENTORY = """
cluster: test
stack: {stack}
hardware: {hardware}
model: {model}
layout: test
paths: {{shared: /gpfs, local: /nvme}}
interface: eth0
hosts:
  "h[01-08]": {{address: "10.0.0.[11-18]"}}
pools:
  prefill: {{hosts: "{prefill}"}}
  decode: {{hosts: "{decode}"}}
  router: {{hosts: [h08]}}
"""


def wish(
    folder: Path,
    layout: str,
    *,
    stack: str = "sandbox-cpu",
    prefill: str = "h[01-02]",
    decode: str = "h[03-04]",
    more: str = "",
    **names: str,
) -> Wish:
    """`layout` is a layout file's text without `about`; `more` ends the inventory."""
    gpu = stack != "sandbox-cpu"
    chosen = {"hardware": "h200" if gpu else "cpu", "model": "deepseek-v3.2" if gpu else "tiny", **names}
    layouts = folder / "data/configs/layouts"
    layouts.mkdir(parents=True, exist_ok=True)
    (layouts / "test.yaml").write_text(f"about: test\n{layout}")
    path = folder / "test.yaml"
    path.write_text(INVENTORY.format(stack=stack, prefill=prefill, decode=decode, **chosen) + more)
    return load(path, data_dir=folder / "data")
