"""Stub engines behind the real vllm-router and the real HAProxy, two instances of each pool."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from stub_fleet import StubFleet, publish_model
from witness import said

from launcher.sandbox import Sandbox

STOCKED = Path(os.environ.get("DSV32_SANDBOX_DIR", "/var/tmp/dsv32-sandbox")) / "gpfs/stacks/sandbox-cpu"
POOLS = {
    "prefill": {"hosts": ["h01", "h04"]},
    "decode": {"hosts": ["h02", "h03"]},
    "router": {"hosts": ["h04"]},
}
FRONT_PORT = 8080


class RoutedFleet(StubFleet):
    """Users come in at h04."""

    def inventory(
        self, *, stack: str = "stub-routed", pools: Mapping[str, object] = POOLS, **words: Any
    ) -> Path:
        """Write it, with some of its words said otherwise."""
        short = {"kv-lease-short": "no test waits for half a minute"}
        return self.write(stack=stack, layout="stub-routed", pools=pools, accept=short, **words)

    @property
    def entrance(self) -> tuple[str, int]:
        """Address and port of the front."""
        return self.host("h04").address, FRONT_PORT

    def reached(self) -> str:
        """The slot that users reach."""
        return said(self.host("h04"), "head -1 /etc/dsv32/routers.cfg").split()[-1]

    def invocations(self) -> dict[str, str]:
        """Router unit → systemd's id of its start."""
        show = "systemctl show --value -p InvocationID dsv32-router-{}.service"
        return {slot: said(self.host("h04"), show.format(slot)).strip() for slot in ("a", "b")}


def routed_fleet(sandbox: Sandbox, folder: Path) -> RoutedFleet:
    """Everything of the usual inventory up and serving."""
    if not (STOCKED / "debs/Packages").exists():
        pytest.skip("no router and no HAProxy to test: dsv32-launch sandbox stock")
    publish_model(sandbox.gpfs)
    shutil.copytree(STOCKED / "debs", sandbox.gpfs / "stacks/stub-routed/debs", dirs_exist_ok=True)
    wheel = next((STOCKED / "wheels").glob("vllm_router-*.whl"))
    shutil.copyfile(wheel, sandbox.gpfs / "router.whl")
    fleet = RoutedFleet(sandbox, folder)
    fleet.inventory()
    done = fleet.up()
    assert done.code == 0, done.stdout + done.stderr
    return fleet
