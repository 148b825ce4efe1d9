"""Controller to hosts over real sshd: few connections, one message per fault, locks and jobs that live on."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.inventory import Host, Inventory, Paths, SshSettings
from launcher.model.plan import Op
from launcher.model.problem import LockedError, Problem
from launcher.model.profile import Profile, Stack
from launcher.model.run import Event
from launcher.model.secret import Secret
from launcher.model.wish import Wish
from launcher.remote.fleet import Fleet
from launcher.sandbox import Sandbox, SandboxHost
from launcher.sandbox.base import SUDO_PASSWORD

ROOT = Path(__file__).parents[3]
WHO = (Probe("command", (("id", "-un"), 5)),)
QUIET_RUN = (
    *(Probe("path", (f"/opt/peer/d{i}/f{i}.bin",)) for i in range(20)),
    *(Probe("unit", (f"peer{i}.service",)) for i in range(3)),
    *(Probe("sysctl", ("/etc/sysctl.d/90-peer.conf", f"vm.key{i}")) for i in range(3)),
    *(Probe("package", (name,)) for name in ("procps", "cron")),
    Probe("user", ("peer",)),
    Probe("units", ("dsv32-*",)),
)


def fleet_of(sandbox: Sandbox, *, password: str = "", run_id: str = "r1", **ssh: Any) -> Fleet:
    hosts = {h.name: Host(h.name, h.address, "eth0", "t.yaml:1") for h in sandbox.hosts()}
    settings: dict[str, Any] = {"config": str(sandbox.ssh_config), "connect_within_s": 10, **ssh}
    secrets = {}
    if password:
        settings["sudo_password"] = "sudo"
        secrets["sudo"] = Secret("sudo", password)
    inventory = Inventory(
        "test", "none", hosts, SshSettings(**settings), Paths("/gpfs", "/nvme"), path="t.yaml"
    )
    wish = Wish(inventory, Profile(Stack("none", "", ())), (), "", secrets)
    return Fleet(wish, runs_as="ana", run_id=run_id)


def who(fleet: Fleet, *hosts: str, within_s: float = 20) -> dict[str, str | Problem]:
    """Whose hands the agent of each host has; or the Problem."""
    answers = fleet.ask(dict.fromkeys(hosts, WHO), within_s)
    return {h: a if isinstance(a, Problem) else a[WHO[0]]["stdout"].strip() for h, a in answers.items()}


def hear(events: list[Event]) -> Callable[[Event], None]:
    return events.append


def silent(event: Event) -> None:
    pass


def bytes_of(host: SandboxHost) -> int:
    """Bytes of both directions on the host's cable, as its kernel counts them."""
    for line in host.exec("cat", "/proc/net/dev").stdout.splitlines():
        name, _, numbers = line.partition(":")
        if numbers and name.strip() != "lo":
            words = numbers.split()
            return int(words[0]) + int(words[8])
    raise AssertionError("no network device")


@contextmanager
def verbose_sshd(host: SandboxHost) -> Iterator[Callable[[str], int]]:
    """Count what sshd says meanwhile."""
    conf = "/etc/ssh/sshd_config.d/verbose.conf"
    host.exec("sh", "-c", f"echo LogLevel VERBOSE >{conf}; systemctl reload ssh")
    time.sleep(0.5)
    cursor = (
        host.exec("journalctl", "-n", "1", "--show-cursor", "-o", "cat").stdout.split("cursor: ")[1].strip()
    )

    def said(text: str) -> int:
        host.exec("journalctl", "--sync")
        log = host.exec("journalctl", "-o", "cat", "--after-cursor", cursor, "_COMM=sshd").stdout
        return log.count(text)

    try:
        yield said
    finally:
        host.exec("sh", "-c", f"rm {conf}; systemctl reload ssh")


def test_a_run_takes_one_connection_and_one_channel(sandbox: Sandbox) -> None:
    host = sandbox.host("h01")
    with verbose_sshd(host) as said:
        with fleet_of(sandbox) as fleet:
            assert isinstance(fleet.ask({"h01": QUIET_RUN})["h01"], Facts)
            assert fleet.lock(["h01"]) == {}
            for n in range(3):
                put = Op("put", {"path": f"/opt/remote/{n}", "mode": "0600"}, b"content")
                assert fleet.do("h01", [put], listener=silent, within_s=20).ok
            fleet.ask({"h01": QUIET_RUN})
        assert said("Accepted publickey") == 1
        assert said("Starting session") == 1
    assert host.exec("stat", "-c", "%a %U", "/opt/remote/2").stdout == "600 root\n"


def test_a_run_without_changes_moves_less_than_20_kb(fresh_sandbox: Sandbox) -> None:
    # guards that other tests left to serve would be counted: they tell each other how they are
    host = fresh_sandbox.host("h01")
    before = bytes_of(host)
    with fleet_of(fresh_sandbox) as fleet:
        facts = fleet.ask({"h01": QUIET_RUN})["h01"]
        assert isinstance(facts, Facts)
        assert not [a for a in facts.values() if isinstance(a, Unknown)]
        sent, received = fleet.traffic()["h01"]
    assert sent + received < bytes_of(host) - before < 20_000


def quiet_inventory(sandbox: Sandbox, folder: Path) -> Path:
    """Thirty pieces of state for h01 and h02, in a role and a stack of their own."""
    line = "  f{0}: {{kind: file, path: /opt/quiet/{0}, content: '{0} {{{{ host.name }}}}'}}"
    steps = [line.format(i) for i in range(25)]
    text = "[Service]\\nExecStart=/bin/sleep infinity\\n"
    steps += [f'  u{i}: {{kind: unit, name: quiet{i}.service, content: "{text}"}}' for i in range(3)]
    steps += ["  user: {kind: user, name: quiet}", "  cron: {kind: package, names: [procps]}"]
    files = {
        "roles/quiet/role.yaml": "about: Quiet.\nstage: host\nsteps:\n" + "\n".join(steps),
        "configs/stacks/quiet.yaml": "about: Quiet.\nroles: [quiet]\n",
        "inventory.yaml": "cluster: quiet\nstack: quiet\npaths: {shared: /gpfs, local: /nvme}\n"
        f"ssh: {{config: {sandbox.ssh_config}}}\nhosts:\n  h01: {{}}\n  h02: {{}}\n",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder / "inventory.yaml"


def test_a_whole_up_takes_one_connection_and_one_channel_and_without_changes_few_bytes(
    fresh_sandbox: Sandbox, tmp_path: Path
) -> None:
    # units that other tests left would be changes
    inventory, host = quiet_inventory(fresh_sandbox, tmp_path), fresh_sandbox.host("h01")
    words = ("up", str(inventory), "--data-dir", str(tmp_path), "--yes")
    command = [sys.executable, "-m", "launcher.cli.main", *words]
    runs = {**os.environ, "DSV32_RUNS": str(tmp_path / "runs")}

    def up() -> str:
        done = subprocess.run(command, cwd=ROOT, env=runs, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stderr

    with verbose_sshd(host) as said:
        assert "64 of 64 changes made" in up()
        assert (said("Accepted publickey"), said("Starting session")) == (1, 1)
    before = bytes_of(host)
    with verbose_sshd(host) as said:
        assert "0 of 0 changes made" in up()
        assert (said("Accepted publickey"), said("Starting session")) == (1, 1)
    assert bytes_of(host) - before < 20_000


def test_what_goes_wrong_ahead_of_time_is_told_to_whoever_asks(sandbox: Sandbox) -> None:
    sandbox.host("h02").cut(silent=False)
    with fleet_of(sandbox, connect_within_s=3) as fleet, verbose_sshd(sandbox.host("h01")) as said:
        fleet.connections.open_ahead(["h01", "h02"])
        answers = who(fleet, "h01", "h02")
        assert answers["h01"] == "root"
        assert isinstance(answers["h02"], Problem)
        sandbox.host("h02").heal()
        assert who(fleet, "h01", "h02") == {"h01": "root", "h02": "root"}
        assert said("Accepted publickey") == 1


@pytest.mark.parametrize(
    ("user", "password"), [("root", ""), ("ops", ""), ("ops", SUDO_PASSWORD), ("opspw", SUDO_PASSWORD)]
)
def test_hands_are_roots_whoever_logs_in(sandbox: Sandbox, user: str, password: str) -> None:
    with fleet_of(sandbox, user=user, password=password) as fleet:
        assert who(fleet, "h01", "h02") == {"h01": "root", "h02": "root"}


def through_h01(sandbox: Sandbox, folder: Path) -> dict[str, dict[str, Any]]:
    plain = sandbox.ssh_config.read_text()
    jump, proxy = folder / "jump", folder / "proxy"
    jump.write_text(f"Host h02\n ProxyJump h01\n{plain}")
    proxy.write_text(f"Host h02\n ProxyCommand ssh -F {sandbox.ssh_config} -W %h:%p h01\n{plain}")
    return {
        "setting": {"jump": "root@h01"},
        "ProxyJump": {"config": str(jump)},
        "ProxyCommand": {"config": str(proxy)},
    }


@pytest.mark.parametrize("way", ["setting", "ProxyJump", "ProxyCommand"])
def test_jump_hosts(sandbox: Sandbox, tmp_path: Path, way: str) -> None:
    probe = Probe("command", (("sh", "-c", "echo $SSH_CONNECTION"), 5))
    with fleet_of(sandbox, **through_h01(sandbox, tmp_path)[way]) as fleet:
        facts = fleet.ask({"h02": (probe,)})["h02"]
    assert isinstance(facts, Facts)
    assert facts[probe]["stdout"].split()[0] == sandbox.host("h01").address


def test_a_jump_host_that_is_away_is_named_for_each_host_behind_it(sandbox: Sandbox) -> None:
    away = done(sandbox.host("h03"), "systemctl stop ssh", "systemctl start ssh")
    with away, fleet_of(sandbox, jump="h03") as fleet:
        found = who(fleet, "h01", "h02")
    for host in ("h01", "h02"):
        problem = found[host]
        assert isinstance(problem, Problem)
        assert problem.what == "h03 refuses connections on port 22"
        assert problem.where.endswith(f"on the way to {host}")


def test_a_large_file_for_a_host_that_vanishes_does_not_hold_us(sandbox: Sandbox) -> None:
    host = sandbox.host("h02")
    put = Op("put", {"path": "/nvme/large"}, bytes(64 << 20))
    with fleet_of(sandbox) as fleet:
        assert who(fleet, "h02") == {"h02": "root"}
        with broken(lambda: host.cut(silent=True), host.heal):
            began = time.monotonic()
            lost = fleet.do("h02", [put], listener=silent, within_s=60)
            assert time.monotonic() - began < 60
        assert who(fleet, "h01") == {"h01": "root"}
    assert lost.error
    assert lost.error.what == "connection to h02 lost"


def known_hosts(sandbox: Sandbox, folder: Path, change: Callable[[str], str]) -> dict[str, Any]:
    """An ssh_config with the sandbox's known_hosts, h02's line changed."""
    plain = sandbox.ssh_config.read_text()
    file = next(w.split()[1] for w in plain.splitlines() if "UserKnownHostsFile" in w)
    lines = Path(file).read_text().splitlines()
    ours = [line for line in lines if not line.startswith("h02")]
    theirs = [change(line) for line in lines if line.startswith("h02")]
    (folder / "known").write_text("\n".join([*ours, *theirs, ""]))
    (folder / "config").write_text(plain.replace(file, str(folder / "known")))
    return {"config": str(folder / "config")}


def other_key(folder: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "other"], check=True)
    return (folder / "other.pub").read_text().split()[1]


@contextmanager
def done(host: SandboxHost, command: str, undo: str) -> Iterator[None]:
    """A fault made by a command on the host."""
    assert host.exec("sh", "-ec", command).returncode == 0
    try:
        yield
    finally:
        assert host.exec("sh", "-ec", undo).returncode == 0


@contextmanager
def broken(make: Callable[[], None], mend: Callable[[], None]) -> Iterator[None]:
    make()
    try:
        yield
    finally:
        mend()


AWAY = "mv {0} {0}.away"
BACK = "mv {0}.away {0}"
OLD = r"""printf '#!/bin/sh\nexec python3.11 -IS -c "import sys;sys.version_info=(3,6,9);$3"\n' \
>/usr/local/bin/python3
chmod +x /usr/local/bin/python3"""
FAULTS: dict[str, tuple[Callable[[SandboxHost], AbstractContextManager[None]], dict[str, object], str]] = {
    "refused": (
        lambda h: done(h, "systemctl stop ssh", "systemctl start ssh"),
        {},
        "h02 refuses connections on port 22",
    ),
    "cut": (lambda h: broken(h.cut, h.heal), {}, "no route to h02"),
    "silent": (
        lambda h: broken(lambda: h.cut(silent=True), h.heal),
        {"connect_within_s": 2},
        "h02 does not answer on port 22 within 2 s",
    ),
    "frozen": (
        lambda h: broken(h.freeze, lambda: h.freeze(False)),
        {"connect_within_s": 2},
        "h02 accepts connections and then says nothing for 2 s",
    ),
    "sudo password": (
        lambda h: done(h, AWAY.format("/etc/sudoers.d/ops"), BACK.format("/etc/sudoers.d/ops")),
        {"user": "ops"},
        "sudo on h02 does not let `ops` through without a password",
    ),
    "wrong password": (
        lambda h: done(h, "echo opspw:another | chpasswd", f"echo opspw:{SUDO_PASSWORD} | chpasswd"),
        {"user": "opspw", "password": SUDO_PASSWORD},
        "sudo on h02 does not take the password of `opspw`",
    ),
    "not in sudoers": (
        lambda h: done(h, "gpasswd -d opspw sudo", "gpasswd -a opspw sudo"),
        {"user": "opspw", "password": SUDO_PASSWORD},
        "`opspw` may not use sudo on h02",
    ),
    "no sudo": (
        lambda h: done(h, AWAY.format("/usr/bin/sudo"), BACK.format("/usr/bin/sudo")),
        {"user": "ops"},
        "h02 has no sudo, and `ops` is not root",
    ),
    "no python": (
        lambda h: done(h, AWAY.format("/usr/bin/python3"), BACK.format("/usr/bin/python3")),
        {},
        "h02 has no python3",
    ),
    "no python for sudo": (
        lambda h: done(h, AWAY.format("/usr/bin/python3"), BACK.format("/usr/bin/python3")),
        {"user": "opspw", "password": SUDO_PASSWORD},
        "h02 has no python3",
    ),
    "old python": (
        lambda h: done(h, OLD, "rm /usr/local/bin/python3"),
        {},
        "python3 3.6.9 on h02, 3.10 or newer is needed",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_one_message_and_stays_on_its_host(sandbox: Sandbox, fault: str) -> None:
    make, settings, what = FAULTS[fault]
    with make(sandbox.host("h02")), fleet_of(sandbox, **settings) as fleet:  # type: ignore[arg-type]
        found = who(fleet, "h01", "h02", "h03")
    problem = found.pop("h02")
    assert found == {"h01": "root", "h03": "root"}
    assert isinstance(problem, Problem)
    assert problem.what == what
    assert problem.where.startswith("h02, ")
    assert problem.do


def test_an_unknown_host_key_is_refused_with_its_fingerprint(sandbox: Sandbox, tmp_path: Path) -> None:
    settings = known_hosts(sandbox, tmp_path, lambda line: "")
    with fleet_of(sandbox, **settings) as fleet:
        found = who(fleet, "h01", "h02")
    witness = (
        sandbox.host("h02").exec("ssh-keygen", "-lf", "/etc/ssh/ssh_host_ed25519_key.pub").stdout.split()[1]
    )
    assert found["h01"] == "root"
    assert isinstance(found["h02"], Problem)
    assert found["h02"].what == "host key of h02 is not known"
    assert witness in found["h02"].why
    assert str(tmp_path / "known") in found["h02"].do


def test_a_changed_host_key_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    key = other_key(tmp_path)
    settings = known_hosts(sandbox, tmp_path, lambda line: f"h02 ssh-ed25519 {key}")
    with fleet_of(sandbox, **settings) as fleet:
        found = who(fleet, "h01", "h02")
    assert found["h01"] == "root"
    assert isinstance(found["h02"], Problem)
    assert found["h02"].what == "host key of h02 has changed"


def test_a_refused_login_names_the_keys_that_were_tried(sandbox: Sandbox, tmp_path: Path) -> None:
    other_key(tmp_path)
    plain = sandbox.ssh_config.read_text()
    right = next(w.split()[1] for w in plain.splitlines() if "IdentityFile" in w)
    (tmp_path / "config").write_text(plain.replace(right, str(tmp_path / "other")))
    with fleet_of(sandbox, config=str(tmp_path / "config")) as fleet:
        problem = who(fleet, "h02")["h02"]
    assert isinstance(problem, Problem)
    assert problem.what == "h02 lets `root` in with none of 1 keys"
    assert str(tmp_path / "other") in problem.why


def test_an_agent_that_is_killed_is_told_from_a_lost_host(sandbox: Sandbox) -> None:
    kill = Op("command", {"words": ["sh", "-c", "kill -9 $PPID; sleep 9"], "within_s": 20})
    with fleet_of(sandbox) as fleet:
        died = fleet.do("h02", [kill], listener=silent, within_s=30)
        assert died.error
        assert died.error.what == "the agent on h02 ended in the middle of a request"
        assert who(fleet, "h02") == {"h02": "root"}


def test_work_that_takes_longer_than_it_may(sandbox: Sandbox) -> None:
    slow = Probe("command", (("sleep", "77"), 60))
    with fleet_of(sandbox) as fleet:
        answers = fleet.ask({"h01": WHO, "h02": (slow,)}, 1.5)
    assert isinstance(answers["h01"], Facts)
    assert isinstance(answers["h02"], Problem)
    assert answers["h02"].what == "h02 did not finish within 1.5 s"
    await_(lambda: "sleep 77" not in sandbox.host("h02").exec("ps", "ax").stdout)


def test_a_host_that_vanishes_during_a_request(sandbox: Sandbox) -> None:
    host = sandbox.host("h02")
    sleep = Op("command", {"words": ["sleep", "60"], "within_s": 100})
    with fleet_of(sandbox) as fleet:
        assert who(fleet, "h02") == {"h02": "root"}
        with broken(lambda: host.cut(silent=True), host.heal):
            lost = fleet.do("h02", [sleep], listener=silent, within_s=90)
    assert lost.error
    assert lost.error.what == "connection to h02 lost"
    assert lost.failed_index is None


def test_a_full_disk_is_named_and_nothing_is_half_written(sandbox: Sandbox) -> None:
    host = sandbox.host("h02")
    ops = [Op("put", {"path": "/run/small"}, b"1"), Op("put", {"path": "/nvme/large"}, b"x" * 1_000_000)]
    with broken(host.fill, host.free), fleet_of(sandbox) as fleet:
        result = fleet.do("h02", ops, listener=silent, within_s=20)
    assert result.failed_index == 1
    assert result.error
    assert "no space left" in result.error.what
    assert "df -h" in result.error.do
    assert "large" not in host.exec("ls", "-A", "/nvme").stdout


def test_two_runs_over_one_host(sandbox: Sandbox) -> None:
    with fleet_of(sandbox, run_id="first") as one:
        assert one.lock(["h01", "h02"]) == {}
        with fleet_of(sandbox, run_id="second") as two, pytest.raises(LockedError) as locked:
            two.lock(["h02", "h03"])
        problem = locked.value.problems[0]
        assert problem.what.startswith("locked by run first of ana on ")
        assert problem.where == "h02"
        # the loser holds nothing
        assert one.lock(["h03"]) == {}
    with fleet_of(sandbox, run_id="third") as three:
        await_(lambda: can_lock(three, "h01", "h02", "h03"))


def can_lock(fleet: Fleet, *hosts: str) -> bool:
    try:
        return fleet.lock(hosts) == {}
    except LockedError:
        return False


def await_(holds: Callable[[], bool], *, within_s: float = 20) -> None:
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until, "it did not come to pass"
        time.sleep(0.1)


PROGRAM = """
import json, sys, time
from test_remote import Sandbox, fleet_of, silent
from launcher.model.plan import Op
fleet = fleet_of(Sandbox(sys.argv[1]), run_id="victim").__enter__()
"""


@contextmanager
def controller(sandbox: Sandbox, program: str) -> Iterator[subprocess.Popen[str]]:
    """Another controller, in a process that can be killed."""
    words = [sys.executable, "-c", PROGRAM + program, str(sandbox.directory)]
    here = Path(__file__)
    path = f"{here.parent}:{here.parents[3]}"
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": path, "HOME": "/root"}
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_killed_controller_lets_go_of_its_lock(sandbox: Sandbox) -> None:
    program = "fleet.lock(['h01']); print('locked', flush=True); time.sleep(60)"
    with controller(sandbox, program) as process:
        assert process.stdout
        assert process.stdout.readline() == "locked\n"
        with fleet_of(sandbox) as fleet, pytest.raises(LockedError, match="victim"):
            fleet.lock(["h01"])
        process.send_signal(signal.SIGKILL)
        process.wait()
        await_(lambda: freed(sandbox))


def freed(sandbox: Sandbox) -> bool:
    with fleet_of(sandbox) as fleet:
        return can_lock(fleet, "h01")


JOB = """
echo begun >>/run/remote-job
for i in 1 2 3 4 5 6; do
  echo "{\\"text\\": \\"part $i\\", \\"done\\": $i, \\"total\\": 6}" >/run/dsv32/job-remote.progress
  sleep 1
done
"""


def test_a_job_survives_its_controller_and_is_attached_to(sandbox: Sandbox) -> None:
    host, probe = sandbox.host("h01"), Probe("job", ("remote",))
    host.exec("rm", "-f", "/run/remote-job")
    op = Op("job", {"name": "remote", "words": ["sh", "-c", JOB], "environment": {}, "within_s": 60})
    program = f"""
op = Op("job", {op.args!r})
fleet.do("h01", [op], listener=lambda e: print(e.text, flush=True), within_s=60)
"""
    with controller(sandbox, program) as process:
        assert process.stdout
        assert process.stdout.readline().startswith("part")
        process.send_signal(signal.SIGKILL)
        process.wait()
    events: list[Event] = []
    with fleet_of(sandbox) as fleet:
        facts = fleet.ask({"h01": (probe,)})["h01"]
        assert isinstance(facts, Facts)
        assert facts[probe]["state"] == "running"
        assert fleet.do("h01", [op], listener=hear(events), within_s=60).ok
    assert host.exec("cat", "/run/remote-job").stdout == "begun\n"
    assert events[-1] == Event(
        "job", "part 6", "h01", "", {"job": "remote", "text": "part 6", "done": 6, "total": 6}
    )


def test_a_failed_job_shows_its_last_words(sandbox: Sandbox) -> None:
    words = ["sh", "-c", "echo wheel torch-2.9 has another hash; exit 3"]
    op = Op("job", {"name": "failing", "words": words, "environment": {}, "within_s": 60})
    with fleet_of(sandbox) as fleet:
        result = fleet.do("h01", [op], listener=silent, within_s=60)
    assert result.error
    assert result.error.what == "job failing: ended: exit-code, status 3 (limit 60 s)"
    assert result.error.why == "wheel torch-2.9 has another hash"


def test_the_host_keeps_a_record_without_content(sandbox: Sandbox) -> None:
    op = Op("put", {"path": "/run/recorded", "mode": "0600"}, b"very secret", secret=True)
    with fleet_of(sandbox, run_id="recorded") as fleet:
        assert fleet.do("h01", [op], listener=silent, within_s=20).ok
    text = sandbox.host("h01").exec("cat", "/var/log/dsv32/journal.jsonl").stdout
    lines = [json.loads(line) for line in text.splitlines() if '"recorded"' in line]
    assert [(x["who"], x["op"], x["target"], x["result"]) for x in lines] == [
        ("ana", "put", "/run/recorded", "begun"),
        ("ana", "put", "/run/recorded", "done"),
    ]
    assert "very secret" not in text


def mirror(folder: Path, versions: tuple[str, ...]) -> None:
    """A folder of packages with its index, as a stack brings one."""
    index = ""
    for version in versions:
        control = f"Package: dsv32-test\nVersion: {version}\nArchitecture: all\nMaintainer: t <t@localhost>\n"
        tree = folder / "tree"
        (tree / "DEBIAN").mkdir(parents=True, exist_ok=True)
        (tree / "DEBIAN/control").write_text(f"{control}Description: test\n")
        deb = folder / f"dsv32-test_{version}_all.deb"
        subprocess.run(["dpkg-deb", "-b", tree, deb], check=True, stdout=subprocess.DEVNULL)
        content = deb.read_bytes()
        index += f"{control}Filename: ./{deb.name}\nSize: {len(content)}\n"
        index += f"SHA256: {hashlib.sha256(content).hexdigest()}\nDescription: test\n\n"
    (folder / "Packages").write_text(index)


def test_packages_come_from_a_folder_and_from_nowhere_else(sandbox: Sandbox) -> None:
    folder, probe = sandbox.gpfs / "mirror", Probe("package", ("dsv32-test",))
    folder.mkdir(exist_ok=True)
    mirror(folder, ("1.0", "2.0"))
    host = sandbox.host("h01")
    of_apt = ("find", "/var/lib/apt/lists", "/var/cache/apt", "-type", "f", "-size", "+0")
    before = host.exec(*of_apt).stdout
    with fleet_of(sandbox) as fleet:

        def install(names: dict[str, str]) -> Problem | None:
            op = Op("package", {"names": names, "from": "/gpfs/mirror"})
            return fleet.do("h01", [op], listener=silent, within_s=120).error

        assert install({"dsv32-test": "1.0"}) is None
        assert version_of(host) == "1.0"
        assert install({"dsv32-test": ""}) is None
        facts = fleet.ask({"h01": (probe,)})["h01"]
        assert isinstance(facts, Facts)
        assert facts[probe] == {"version": version_of(host)} == {"version": "2.0"}
        missing = install({"no-such-package": ""})
    assert missing
    assert "no-such-package" in missing.why
    assert host.exec(*of_apt).stdout == before
    assert "apt-" not in host.exec("ls", "/run/dsv32").stdout


def version_of(host: SandboxHost) -> str:
    return host.exec("dpkg-query", "-Wf", "${Version}", "dsv32-test").stdout


UNIT = b"""[Service]
ExecStart=/bin/sh -c 'echo first; echo second >&2; while [ -e /run/remote-runs ]; do sleep 0.2; done; \\
  echo third; exit 4'
[Install]
WantedBy=multi-user.target
"""


def test_the_life_of_a_unit_and_its_log(sandbox: Sandbox) -> None:
    host, name = sandbox.host("h01"), "remote-test.service"
    unit = Probe("unit", (name,))
    host.exec("touch", "/run/remote-runs")
    ops = [
        Op("put", {"path": f"/etc/systemd/system/{name}"}, UNIT),
        Op("units", {"reload": True, "enable": [name], "start": [name]}),
    ]
    with fleet_of(sandbox) as fleet:

        def look(probe: Probe) -> Any:
            facts = fleet.ask({"h01": (unit, probe)})["h01"]
            assert isinstance(facts, Facts)
            return facts[probe]

        assert look(unit)["load"] == "not-found"
        assert fleet.do("h01", ops, listener=silent, within_s=60).ok
        runs = look(unit)
        assert [runs[k] for k in ("active", "sub", "enabled", "needs_reload")] == [
            "active",
            "running",
            "enabled",
            False,
        ]
        assert runs["main_pid"] == int(host.exec("systemctl", "show", "-P", "MainPID", name).stdout)
        assert runs["since"] == int(host.exec("date", "-d", since(host, name), "+%s").stdout)
        # what is no service has no process, and systemctl no line about one
        timer = Probe("unit", ("systemd-tmpfiles-clean.timer",))
        told = fleet.ask({"h01": (timer,)})["h01"]
        assert isinstance(told, Facts)
        assert told[timer]["main_pid"] == 0
        await_(lambda: len(look(Probe("journal", (name, "", 50, "")))["entries"]) >= 3)
        start = look(Probe("journal", (name, runs["invocation"], 2, "start")))
        host.exec("rm", "/run/remote-runs")
        await_(lambda: look(unit)["active"] == "failed")
        ended = look(unit)
        assert (ended["result"], ended["exit_status"], ended["main_pid"]) == ("exit-code", 4, 0)
        rest = look(Probe("journal", (name, runs["invocation"], 50, start["cursor"])))
        last = look(Probe("journal", (name, "", 1, "")))
        later = look(Probe("journal", (name, "", 50, f"@{ended['since'] + 3600}")))
        kernel = look(Probe("journal", ("kernel", "", 50, "")))
    said = [e["message"] for e in start["entries"] + rest["entries"]]
    assert [m for m in said if m in ("first", "second", "third")] == ["first", "second", "third"]
    assert any("status=4" in m for m in said), "what systemd says of the unit belongs to its log"
    assert len(start["entries"]) == 2
    assert len(last["entries"]) == 1
    assert (later["entries"], kernel["entries"]) == ([], []), "hosts of a sandbox see no kernel log"


def since(host: SandboxHost, unit: str) -> str:
    return host.exec("systemctl", "show", "-P", "ActiveEnterTimestamp", unit).stdout.strip()
