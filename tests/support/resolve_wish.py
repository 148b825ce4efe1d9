"""A wish from a few lines of YAML, read by the real loader over the shipped data."""

from __future__ import annotations

import re
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
    """`layout` is a layout file's text without `about`; the inventory has its pools, `more` ends it."""
    gpu = stack != "sandbox-cpu"
    chosen = {"hardware": "h200" if gpu else "cpu", "model": "deepseek-v3.2" if gpu else "tiny", **names}
    layouts = folder / "data/configs/layouts"
    layouts.mkdir(parents=True, exist_ok=True)
    (layouts / "test.yaml").write_text(f"about: test\n{layout}")
    path = folder / "test.yaml"
    hosts = {"prefill": prefill, "decode": decode, "router": "h08"}
    pools = [f'  {p}: {{hosts: "{h}"}}\n' for p, h in hosts.items() if re.search(f"^{p}:", layout, re.M)]
    path.write_text("".join((INVENTORY.format(stack=stack, **chosen), *pools, more)))
    return load(path, data_dir=folder / "data")
