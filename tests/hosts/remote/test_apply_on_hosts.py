"""Plan and apply on real hosts, with a witness that does not use our probes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from marker_fleet import Shape, fleet_for, plan_for, publish_weights, told, up, wanted_on
from witness import active, every_byte, said

from launcher.execute import make_plan, observe
from launcher.model.plan import Action
from launcher.model.problem import Exit, PlanRefusedError
from launcher.sandbox import Sandbox, SandboxHost
from launcher.steps import command

CLEAN = """
systemctl stop 'dsv32-*' 2>/dev/null
rm -rf /etc/systemd/system/dsv32-* /etc/systemd/system/*.wants/dsv32-*
rm -rf /etc/marker /etc/sysctl.d/90-marker.conf /usr/local/bin/marker-* /nvme/[em]
rm -rf /run/dsv32/* /var/lib/marker-builds /var/log/dsv32
userdel marker 2>/dev/null; groupdel marker 2>/dev/null
systemctl daemon-reload; systemctl reset-failed
"""


@pytest.fixture
def shape(sandbox: Sandbox) -> Iterator[Shape]:
    publish_weights(sandbox.gpfs)
    for host in sandbox.hosts():
        host.exec("sh", "-c", CLEAN)
    yield Shape(str(sandbox.ssh_config), {h.name: h.address for h in sandbox.hosts()})
    for host in sandbox.hosts():
        host.exec("sh", "-c", CLEAN)


def two_hosts(shape: Shape) -> Shape:
    return replace(shape, addresses={n: a for n, a in shape.addresses.items() if n in ("h02", "h03")})


def end_state(host: SandboxHost) -> str:
    """What a user of the host sees of us; without times and process ids."""
    ours = "/etc/marker /etc/sysctl.d/90-marker.conf /etc/systemd/system/dsv32-*"
    ours += " /usr/local/bin/marker-* /nvme/[em]"
    tree = said(host, f"find {ours} -printf '%p %y %m %u %g %l\\n' | sort")
    contents = said(host, f"find {ours} -type f -exec sha256sum {{}} + | sort")
    units = said(host, "systemctl show 'dsv32-*.service' -p Id,ActiveState,UnitFileState,NeedDaemonReload")
    units = "\n".join(p for p in sorted(units.split("\n\n")) if "dsv32-job-" not in p)
    releases = said(host, "grep . /run/dsv32/*.service; ls /etc/systemd/system/*.wants | grep dsv32")
    account = said(host, "getent passwd marker | cut -d: -f1,6-; id -Gn marker")
    return "\n".join((tree, contents, units, releases, account))


def test_up_from_nothing_and_then_there_is_nothing_to_do(sandbox: Sandbox, shape: Shape) -> None:
    wanted, hosts = wanted_on(shape), sandbox.hosts()
    before = [every_byte(h) for h in hosts]
    assert len(plan_for(wanted).changes) > 40
    assert [every_byte(h) for h in hosts] == before, "plan changes nothing"

    with fleet_for(wanted) as fleet:
        outcome = up(fleet, wanted)
    assert outcome.problems == ()
    assert outcome.done == outcome.planned > 40
    h02, h04 = sandbox.host("h02"), sandbox.host("h04")
    assert said(h02, "stat -c '%a %U:%G' /etc/marker/name; cat /etc/marker/name") == "640 root:root\nh02\n"
    assert said(h02, "cat /etc/marker/key; stat -c %a /etc/marker/key") == "s3cr3t600\n"
    assert said(h02, "id -Gn marker").split() == ["marker", "video"]
    assert said(h02, "cat /etc/sysctl.d/90-marker.conf") == "vm.max_map_count = 262144\n"
    assert said(h02, "cat /nvme/e/.complete; stat -c %s /nvme/m/b.bin") == "feed\n2000\n"
    assert [active(sandbox.host(h), "dsv32-decode-0") for h in ("h02", "h03")] == ["active", "active"]
    assert active(h04, "dsv32-router") == "active"
    assert said(h04, "systemctl is-enabled dsv32-router") == "enabled\n"

    after = [every_byte(h) for h in hosts]
    assert plan_for(wanted).changes == ()
    with fleet_for(wanted) as fleet:
        again = up(fleet, wanted)
    assert (again.planned, again.exit_code) == (0, Exit.DONE)
    assert [every_byte(h) for h in hosts] == after, "a second up changes nothing"


def test_drift_is_shown_and_repaired(sandbox: Sandbox, shape: Shape) -> None:
    wanted, h02, h04 = wanted_on(shape), sandbox.host("h02"), sandbox.host("h04")
    with fleet_for(wanted) as fleet:
        up(fleet, wanted)
    straight = [end_state(h) for h in sandbox.hosts()]

    said(h02, "chmod 777 /etc/marker; echo other >/etc/marker/name; usermod -s /bin/bash marker")
    said(h02, "truncate -s 5 /nvme/m/a.bin; ln -sfn /tmp /etc/marker/also; touch /etc/marker/old")
    said(h02, "systemctl kill -s KILL dsv32-decode-0")
    said(h04, "systemctl disable --now dsv32-router; rm /etc/sysctl.d/90-marker.conf")
    orphan = "[Service]\\nExecStart=/bin/sleep infinity\\n"
    said(h04, f"printf '{orphan}' >/etc/systemd/system/dsv32-old.service; systemctl start dsv32-old")
    plan = plan_for(wanted)
    assert [(c.host, c.step, c.action) for c in plan.changes] == [
        ("h02", "marker/folder", Action.UPDATE),
        ("h02", "marker/name", Action.UPDATE),
        ("h02", "marker/link", Action.UPDATE),
        ("h02", "marker/old", Action.REMOVE),
        ("h02", "marker/user", Action.UPDATE),
        ("h04", "marker/maps", Action.CREATE),
        ("h02", "marker/model", Action.UPDATE),
        ("h02", "marker/unit[decode-0]", Action.START),
        ("h03", "marker/unit[decode-0]", Action.RESTART),
        ("h04", "marker/router", Action.UPDATE),
        ("h04", "marker/router", Action.START),
        ("h04", "orphan[dsv32-old.service]", Action.REMOVE),
    ]
    before = [c.before for c in plan.changes]
    assert before[:5] == [
        "folder 0777 root:root",
        "file 0640 root:root",
        "link to /tmp",
        "file 0644 root:root",
        "shell /bin/bash, in video",
    ]
    assert before[5].startswith("absent in the file, ")
    assert before[6:8] == ["a.bin has 5 of 1000 bytes", "failed (signal)"]
    assert before[9:] == ["disabled", "stopped", "there"]
    assert "-other\n+h02" in plan.changes[1].diff
    pid = said(sandbox.host("h03"), "systemctl show -P MainPID dsv32-decode-0")
    with fleet_for(wanted) as fleet:
        outcome = up(fleet, wanted)
    assert outcome.problems == ()
    assert [end_state(h) for h in sandbox.hosts()] == straight
    assert said(sandbox.host("h03"), "systemctl show -P MainPID dsv32-decode-0") != pid, "the peer restarted"
    assert active(h04, "dsv32-old") == "inactive"


def test_a_new_release_is_started_and_a_surprise_stops_the_run_before_it_is(
    sandbox: Sandbox, shape: Shape
) -> None:
    with fleet_for(wanted_on(shape)) as fleet:
        up(fleet, wanted_on(shape))
    newer = wanted_on(replace(shape, release="2"))
    with fleet_for(newer) as fleet:
        assert up(fleet, newer).problems == ()
    loaded = said(sandbox.host("h02"), "systemctl show -P Description dsv32-decode-0")
    assert loaded == "engine 2\n"

    # a step that breaks one of another stage, which the plan saw as it should be
    script = "rm /usr/local/bin/marker-copy; touch /etc/marker/broken"
    breaks = command.Params(("sh", "-c", script), command.Unless("/etc/marker/broken"))
    wanted = wanted_on(replace(shape, release="3"))
    steps = wanted.steps["h02"]
    wanted = replace(
        wanted,
        steps={**wanted.steps, "h02": (replace(steps[0], id="b", kind="command", want=breaks), *steps)},
    )
    with fleet_for(wanted) as fleet, pytest.raises(PlanRefusedError) as caught:
        up(fleet, wanted)
    assert {p.where for p in caught.value.problems} == {"h02, step marker/copier"}
    running = [said(sandbox.host(h), "cat /proc/*/comm | grep -c ^sleep") for h in ("h01", "h02")]
    assert running == ["1\n", "1\n"]
    assert said(sandbox.host("h02"), "systemctl show -P Description dsv32-decode-0") == "engine 2\n"


def controller(argument: str) -> subprocess.CompletedProcess[str]:
    program = Path(__file__).parents[3] / "tests/support/marker_fleet.py"
    words = [sys.executable, str(program), argument]
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root}
    return subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment)


def test_killed_at_any_op_and_run_again_ends_where_one_run_ends(sandbox: Sandbox, shape: Shape) -> None:
    hosts = [sandbox.host(name) for name in ("h02", "h03")]
    first, newer = two_hosts(shape), replace(two_hosts(shape), release="2")
    straight: list[str] = []
    for target in (first, newer):
        done = controller(told(target, ops=1000))
        assert done.returncode == 0, done.stderr
        straight = [end_state(h) for h in hosts]
    ops = json.loads(controller(told(wipe(hosts, newer), ops=1000)).stdout)["ops"]
    assert [end_state(h) for h in hosts] == straight
    assert ops > 25
    for killed_after in range(ops):
        wipe(hosts, newer)
        assert controller(told(newer, ops=killed_after)).returncode == -signal.SIGKILL
        for host in hosts:  # the agent ends with its op: on a loaded machine some seconds later
            assert host.exec("flock", "--timeout", "30", "/run/dsv32.lock", "true").returncode == 0
        wanted = wanted_on(newer)
        with fleet_for(wanted) as fleet:
            assert up(fleet, wanted).problems == (), f"killed after op {killed_after}"
            assert make_plan(wanted, observe(fleet, wanted)).changes == ()
        assert [end_state(h) for h in hosts] == straight, f"killed after op {killed_after}"


def wipe(hosts: list[SandboxHost], shape: Shape) -> Shape:
    for host in hosts:
        host.exec("sh", "-c", CLEAN)
    return shape


def test_a_job_outlives_its_controller_and_the_next_run_attaches(sandbox: Sandbox, shape: Shape) -> None:
    slow = replace(two_hosts(shape), build_s="6")
    assert controller(told(slow, die_at_job=True)).returncode == -signal.SIGKILL
    plan = plan_for(wanted_on(slow))
    jobs = {c.host: c.before for c in plan.changes if c.step == "marker/env"}
    assert "job running, will attach" in jobs.values()
    attached = [host for host, before in jobs.items() if before.startswith("job running")]
    done = controller(told(slow, ops=1000))
    assert json.loads(done.stdout)["problems"] == []
    for host in attached:
        assert said(sandbox.host(host), "cat /var/lib/marker-builds") == "build\n"
