"""Stub engines behind the real vllm-router and the real HAProxy, two instances of each pool."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from stub_fleet import StubFleet, publish_model
from witness import said

from launcher.health.steady import SteadyLoad, Told
from launcher.sandbox import Sandbox

STOCKED = Path(os.environ.get("DSV32_SANDBOX_DIR", "/var/tmp/dsv32-sandbox")) / "gpfs/stacks/sandbox-cpu"
POOLS = {
    "prefill": {"hosts": ["h01", "h04"]},
    "decode": {"hosts": ["h02", "h03"]},
    "router": {"hosts": ["h04"]},
}
FRONT_PORT = 8080
TOKEN_S = 0.1


class Users(SteadyLoad):
    """A steady load whose streams take a while, and what tests ask of it."""

    def for_s(self, seconds: float) -> None:
        """Let it go on."""
        time.sleep(seconds)

    @property
    def failed(self) -> list[Told]:
        """Those that did not get the whole, known answer."""
        return [t for t in self.told if t.verdict != "ok"]

    def failed_after(self, moment_s: float) -> list[Told]:
        """Those that began after a moment and failed."""
        return [t for t in self.failed if t.began_s > moment_s]

    def __str__(self) -> str:
        ways = Counter(f"{'streamed' if t.streamed else 'whole'} {t.verdict} {t.how}" for t in self.failed)
        slowest_s = max((t.ended_s - t.began_s for t in self.told if t.verdict == "ok"), default=0.0)
        failed = f"{len(self.failed)} failed {dict(ways) if ways else ''}"
        return f"{len(self.told)} requests, {failed}, slowest good answer {slowest_s:.1f} s"


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

    def users(self, address: str = "", *, per_second: float = 10, within_s: float = 60) -> Users:
        """Those who ask at the front of h04, or at another address."""
        url = f"http://{address or self.entrance[0]}:{FRONT_PORT}"
        also = {"stub_token_s": TOKEN_S}
        load = Users(url, "tiny", per_second=per_second, within_s=within_s, nonce="users", also=also)
        load.learn()
        return load

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
