"""The sample inventories, loaded as if in a fresh checkout, with sandbox hosts at the usual addresses."""

from __future__ import annotations

import os
from pathlib import Path

from launcher.load import load
from launcher.model.wish import Wish

ROOT = Path(__file__).parents[2]
CURRENT = {"stack: article-0.14": "stack: current", "layout: article-2p1d": "layout: current-2p1d"}
"""What the comment in prod-2p1d.yaml says to write for vLLM 0.33."""
SAMPLES = (
    "sandbox",
    "sandbox-dp2",
    "sandbox-2p1d",
    "sandbox-single",
    "prod-min",
    "prod-2p1d",
    "prod-2p1d-current",
)


def sample(name: str, folder: Path, *, platform: str = "", data_dir: Path | None = None) -> Wish:
    """One of SAMPLES, copied to `folder`/inventories so that it names itself `inventories/NAME.yaml`; on
    another platform than its own where one is named, and with data of the test's own."""
    file = name.removesuffix("-current")
    text = (ROOT / "inventories" / f"{file}.yaml").read_text()
    for old, new in CURRENT.items() if name != file else ():
        assert old in text
        text = text.replace(old, new)
    if platform:
        text = "\n".join(x for x in text.splitlines() if not x.startswith("platform:"))
        text += f"\nplatform: {platform}\n"
    config = folder / "ssh_config"
    config.write_text("".join(f"Host h{i:02}\n  HostName 10.77.0.{10 + i}\n" for i in range(1, 8)))
    (folder / "inventories").mkdir(exist_ok=True)
    (folder / "inventories" / f"{file}.yaml").write_text(
        text.replace("/var/tmp/dsv32-sandbox/ssh_config", str(config))
    )
    before = Path.cwd()
    os.chdir(folder)
    try:
        return load(Path("inventories") / f"{file}.yaml", data_dir=data_dir)
    finally:
        os.chdir(before)


def h200_hosts(folder: Path, *, cluster: str, prefill: int, decode: int) -> Wish:
    """`gpu01` and up, with today's stack and layout; the first ones prefill, the rest decode."""
    hosts = prefill + decode
    path = folder / f"{cluster}.yaml"
    path.write_text(
        f"""\
cluster: {cluster}
stack: current
hardware: h200
model: deepseek-v3.2
layout: current-2p1d
paths: {{shared: /gpfs, local: /nvme}}
interface: eth0
hosts:
  "gpu[01-{hosts:02}]": {{address: "10.0.0.[11-{10 + hosts}]"}}
pools:
  prefill: {{hosts: ["gpu[01-{prefill:02}]"]}}
  decode: {{hosts: ["gpu[{prefill + 1:02}-{hosts:02}]"]}}
  router: {{hosts: [gpu01]}}
"""
    )
    return load(path, environment={})
