"""A service under a steady load moves to another engine version and back, with the real router and front."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from routed_fleet import RoutedFleet, Users
from stub_fleet import DATA
from witness import said

ENGINES = {"h01": "prefill-0", "h02": "decode-0", "h03": "decode-1", "h04": "prefill-1"}


@pytest.fixture
def data(routed: RoutedFleet, tmp_path: Path) -> Path:
    """The stubs' data with a stack `stub-next`, whose engine has another version."""
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    stacks = folder / "configs/stacks"
    text = (stacks / "stub-routed.yaml").read_text()
    (stacks / "stub-next.yaml").write_text(text.replace('engine_version: "1.0"', 'engine_version: "1.1"'))
    stocked = routed.sandbox.gpfs / "stacks"
    shutil.copytree(stocked / "stub-routed", stocked / "stub-next", dirs_exist_ok=True)
    return folder


def environments(routed: RoutedFleet) -> set[str]:
    """Where engines run from, as the kernel has it."""
    shown = "tr '\\0' ' ' </proc/$(systemctl show --value -p MainPID dsv32-{})/cmdline"
    lines = {host: said(routed.host(host), shown.format(name)) for host, name in ENGINES.items()}
    return {next(w for w in line.split() if "/environments/" in w).split("/")[3] for line in lines.values()}


def lives(routed: RoutedFleet) -> dict[str, str]:
    show = "systemctl show --value -p InvocationID dsv32-{}"
    return {name: said(routed.host(h), show.format(name)).strip() for h, name in ENGINES.items()}


def drained(routed: RoutedFleet) -> list[str]:
    return [d["instance"] for d in json.loads(said(routed.host("h04"), "cat /etc/dsv32/drained.json"))]


def history(routed: RoutedFleet, data: Path) -> list[tuple[str, str, str]]:
    """Stack, command and result of each run that hosts remember, newest first."""
    lines = routed.run("revisions", "--json", data=data).lines("revision")
    return [(e["stack"], e["run"].split("-")[1], e["result"]) for e in lines]


def test_a_changed_setting_restarts_no_engine_that_gets_requests(routed: RoutedFleet) -> None:
    before = lives(routed)
    routed.inventory(settings={"all": {"max-num-seqs": 17}})
    with routed.users() as load:
        done = routed.up()
    print(f"up of a changed setting: {load}")
    assert done.code == 0, done.stdout + done.stderr
    assert not load.failed
    assert all(lives(routed)[name] != before[name] for name in before)
    assert drained(routed) == []
    assert routed.plan().changes == []


def test_back_to_the_version_before_even_if_killed_on_the_way(routed: RoutedFleet, data: Path) -> None:
    """KV of the two versions does not go together; a stub answers with an error then."""
    routed.inventory(stack="stub-next")
    done = routed.up(data=data)
    assert done.code == 0, done.stdout + done.stderr
    assert environments(routed) == {"stub-next"}

    with routed.users() as load:
        for moment in ("gets no requests", "gets requests again"):
            killed_at(routed, load, moment, data)
        back = routed.run("rollback", "-m", "slow", "--yes", "--json", data=data)
    print(f"rollback over versions, killed twice: {load}")
    assert back.code == 0, back.stdout + back.stderr
    assert not load.failed
    assert environments(routed) == {"stub-routed"}
    assert drained(routed) == []
    told = history(routed, data)
    assert told[0] == ("stub-routed", "rollback", "good")
    assert told[3] == ("stub-next", "up", "good")
    assert routed.plan(data=data).code == 3, "the inventory still says the other one"
    routed.inventory()
    assert routed.plan().changes == []


def killed_at(routed: RoutedFleet, load: Users, moment: str, data: Path) -> None:
    """A rollback that gets SIGKILL when it has told of a moment."""
    runs = len(routed.runs)
    begun = routed.start("rollback", "--yes", "--json", data=data)
    while len(routed.runs) == runs or not any(moment in e["text"] for e in routed.events("finding")):
        assert begun.process.poll() is None, begun.ended()
        load.for_s(0.1)
    begun.process.kill()
    begun.ended()
