"""Checks over a fleet: sixteen healthy hosts raise nothing; of twelve faults each is named with owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import healthy_host
import pytest
from no_hands import NoHands
from samples import h200_hosts

from launcher.cli.checktext import check_lines, what_of
from launcher.flows.check import Report, check, named, refusing
from launcher.load.checks import read_checks
from launcher.load.data import Data, shipped
from launcher.model.facts import Facts, Probe
from launcher.model.problem import Exit, Problem
from launcher.model.wish import Wanted
from launcher.resolve import resolve

HOSTS = tuple(f"gpu{n:02}" for n in range(1, 17))
CHECKS = read_checks(Data((shipped(),)))
Change = Callable[[Any], Any]


@dataclass
class Fleet(NoHands):
    """Hosts that are healthy, but for what is changed in their answers."""

    faults: Mapping[str, Mapping[str, Change]] = field(default_factory=dict)
    """Host → the beginning of a question, as words → what it does to the answer."""
    ahead_s: Mapping[str, float] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    running: bool = False
    requests: int = 0

    def ask(self, questions: Mapping[str, Sequence[Probe]], *, within_s: float) -> dict[str, Facts | Problem]:
        self.requests += len(questions)
        return {
            host: Problem("no answer within 15 s", where=host)
            if host in self.silent
            else Facts(host, {p: self.answer(host, p) for p in probes}, self.ahead_s.get(host, 0.0))
            for host, probes in questions.items()
        }

    def answer(self, host: str, probe: Probe) -> Any:
        told = healthy(host, probe, running=self.running)
        for words, change in self.faults.get(host, {}).items():
            if said(probe).startswith(words):
                told = change(told)
        return told


def said(probe: Probe) -> str:
    first = probe.args[0] if probe.args else ""
    return f"{probe.kind} {' '.join(first) if isinstance(first, tuple) else first}"


def healthy(host: str, probe: Probe, *, running: bool) -> Any:
    number = HOSTS.index(host) + 1
    match probe:
        case Probe("command", (words, _)):
            return healthy_host.command_answer(healthy_host.commands(words, f"10.0.0.{10 + number}"))
        case Probe("files", (pattern, _)):
            return healthy_host.files(pattern, number)
        case Probe("packages", (patterns,)):
            return healthy_host.packages(patterns)
        case Probe("over"):
            disks = (f"/dev/nvme{n}n1" for n in range(8))
            return {disk: healthy_host.command_answer(healthy_host.SMART) for disk in disks}
        case Probe("unit", (name,)):
            return healthy_host.unit_answer(name, "active" if running or "dsv32" not in name else "inactive")
        case Probe("package", (name,)):
            return {"version": "50.0-2ubuntu0.2" if name == "libibverbs1" else None}
        case Probe("disk", (path,)):
            return {"total": 30 << 40, "free": 29 << 40, "type": "tmpfs" if path == "/dev/shm" else "xfs"}
        case Probe("host"):
            told = {"hostname": host, "kernel": healthy_host.KERNEL, "cpus": 192, "memory_gib": 1820.9}
            return {**told, "os": {"id": "ubuntu", "version": "24.04"}}
        case Probe("reach", (_, peers, _)):
            ports = {f"{name}:{port}": "refused" for name, _, ports in peers for port in ports}
            return {"ports": ports, "size": {name: "whole" for name, *_ in peers}}
        case Probe("listen"):
            return [{"port": 22, "address": "0.0.0.0", "pid": 1, "unit": "ssh.service"}]
        case Probe("shards"):
            return {}
        case Probe("cuda"):
            return {"result": 0}
    raise AssertionError(probe)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Wanted:
    folder = tmp_path_factory.mktemp("big")
    return resolve(h200_hosts(folder, cluster="big", prefill=8, decode=8))


def ask(fleet: Fleet, wanted: Wanted) -> Report:
    return check(fleet, wanted, named([], CHECKS), HOSTS)


def text(old: str, new: str) -> Change:
    """Another text in a command's output, which must have had the old one."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        assert old in answer["stdout"]
        return {**answer, "stdout": answer["stdout"].replace(old, new, 1)}

    return change


def everywhere(old: str, new: str) -> Change:
    """Another text in each file that had the old one."""

    def change(answer: dict[str, str]) -> dict[str, str]:
        assert any(old in content for content in answer.values())
        return {path: content.replace(old, new) for path, content in answer.items()}

    return change


def no_way(*peers: str) -> Change:
    return lambda answer: {
        **answer,
        "ports": {end: "no answer" if end.startswith(peers) else how for end, how in answer["ports"].items()},
    }


def cut_to(*peers: str) -> Change:
    return lambda answer: {**answer, "size": {**answer["size"], **dict.fromkeys(peers, "cut")}}


GPU_ROWS = "command nvidia-smi --query-gpu"
GPU_LOG = "command journalctl --dmesg --boot --no-pager --quiet --output=short --grep=NVRM"
XID = "Nov 30 00:01:02 gpu13 kernel: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\n"
ROW_4 = "4, NVIDIA H200, 143771, 0, 580.159.04, Enabled, "
FAULTS: Mapping[str, Mapping[str, Change]] = {
    "gpu02": {GPU_ROWS: lambda a: {**a, "stdout": a["stdout"].replace("580.159.04", "580.95.05")}},
    "gpu03": {"unit nvidia-fabricmanager": lambda a: {**a, "active": "failed"}},
    "gpu04": {GPU_ROWS: text(ROW_4 + "Enabled", ROW_4 + "Disabled")},
    "gpu05": {"command nvidia-smi -L": text("GPU 7: NVIDIA H200 (UUID: GPU-7)\n", "")},
    "gpu06": {"files /sys/class/infiniband/*/fw_ver": everywhere("28.43.2026", "28.39.3004")},
    "gpu07": {"reach": no_way("gpu12")},
    "gpu09": {"files /proc/driver/nvidia/params": everywhere("MemOPs: 1", "MemOPs: 0")},
    "gpu10": {"command ip -o link": text("9000", "1500"), "reach": cut_to("gpu11")},
    "gpu13": {GPU_LOG: lambda a: {**a, "stdout": XID}},
    "gpu14": {"command stat -f": lambda a: {**a, "exit": None, "stdout": ""}},
    "gpu15": {"listen": lambda a: [*a, {"port": 8000, "address": "0.0.0.0", "unit": "jupyter.service"}]},
}
"""With the clock of gpu16, twelve hosts and pairs with a fault each; gpu10 has its fault in two answers."""
NAMED = {
    ("driver-same", ("gpu02",), "driver package"),
    ("fabric-manager-version", ("gpu02",), "driver package"),
    ("fabric-manager", ("gpu03",), "driver package"),
    ("ecc-mode", ("gpu04",), "host image"),
    ("gpu-count", ("gpu05",), "hardware"),
    ("nic-firmware-same", ("gpu06",), "firmware"),
    ("peers-reachable", ("gpu07",), "network team"),
    ("ibgda-stream-memory", ("gpu09",), "host image"),
    ("mtu-same", ("gpu10",), "network team"),
    ("peers-mtu", ("gpu10",), "network team"),
    ("xids", ("gpu13",), "hardware"),
    ("shared-answers", ("gpu14",), "storage team"),
    ("ports-free", ("gpu15",), "host image"),
    ("clock-skew", ("gpu16",), "network team"),
}


def test_sixteen_healthy_hosts_raise_nothing_by_one_request_each(wanted: Wanted) -> None:
    fleet = Fleet()
    report = ask(fleet, wanted)
    assert [(f.check.id, f.hosts, f.what) for f in report.findings] == []
    assert (report.exit_code, fleet.requests, len(report.hosts)) == (Exit.DONE, 16, 16)
    assert len(report.checks) > 120


def test_each_of_twelve_faults_is_named_with_host_and_owner_and_nothing_else_is(wanted: Wanted) -> None:
    report = ask(Fleet(FAULTS, {"gpu16": -7.3}), wanted)
    wrong = [f for f in report.findings if f.verdict == "wrong"]
    assert {(f.check.id, f.hosts, f.check.owner) for f in wrong} == NAMED
    assert report.exit_code == Exit.HOSTS_FAILED
    told = {f.check.id: what_of(f) for f in wrong}
    assert told["driver-same"] == "driver of all hosts: 15 of 16 hosts 580.159.04, gpu02 580.95.05"
    assert told["gpu-count"] == "GPUs: 7, expected 8"
    assert told["ecc-mode"] == "ECC: GPU 4 Disabled, expected Enabled"
    assert told["shared-answers"].startswith("shared file system: no answer within 10 s")
    assert "gpu12:8000 no answer" in told["peers-reachable"]
    assert all(f.remedy in "\n".join(check_lines(report.findings)) for f in wrong)


def test_of_one_fault_only_the_cause_is_told(wanted: Wanted) -> None:
    mismatch = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95\n"
    broken = {"command nvidia-smi": lambda a: {**a, "exit": 18, "stdout": mismatch}}
    report = ask(Fleet({"gpu02": broken}), wanted)
    wrong = [(f.check.id, f.hosts) for f in report.findings if f.verdict == "wrong"]
    assert wrong == [("driver-answers", ("gpu02",))]
    assert {f.what for f in report.findings if f.verdict == "open"} == {"driver-answers does not hold"}


def test_without_a_majority_both_sides_are_named(wanted: Wanted) -> None:
    half = {h: {"files /sys/class/dmi/id/bios_version": everywhere("5.27", "5.22")} for h in HOSTS[:8]}
    (finding,) = ask(Fleet(half), wanted).findings
    assert what_of(finding) == "BIOS of all hosts: gpu01–gpu08 5.22; gpu09–gpu16 5.27"
    assert finding.hosts == HOSTS


def test_a_host_that_does_not_answer_is_one_problem_and_no_peers(wanted: Wanted) -> None:
    lost = {h: {"reach": no_way("gpu08")} for h in HOSTS if h != "gpu08"}
    report = ask(Fleet(lost, silent=frozenset({"gpu08"})), wanted)
    assert report.findings == ()
    assert [p.where for p in report.unreached] == ["gpu08"]
    assert report.exit_code == Exit.HOSTS_FAILED


def test_what_is_for_idle_hosts_is_not_asked_of_a_host_that_serves(wanted: Wanted) -> None:
    used = {"gpu01": {"command nvidia-smi --query-compute-apps": lambda a: {**a, "stdout": "4711, 132544\n"}}}
    assert [f.check.id for f in ask(Fleet(used), wanted).findings] == ["gpus-free"]
    assert ask(Fleet(used, running=True), wanted).findings == ()


def test_up_asks_only_what_it_would_refuse_with(wanted: Wanted) -> None:
    red = refusing(Fleet(FAULTS, {"gpu16": -7.3}), wanted, HOSTS)
    ids = {f.check.id for f in red}
    assert ids == {name for name, _, _ in NAMED} - {
        "driver-same",
        "ecc-mode",
        "nic-firmware-same",
        "mtu-same",
        "clock-skew",
    }


def test_a_host_that_is_left_out_of_a_run_keeps_it_from_nothing(wanted: Wanted) -> None:
    lost = Fleet({h: {"reach": no_way("gpu08")} for h in HOSTS})
    assert [f.check.id for f in refusing(lost, wanted, HOSTS)] == ["peers-reachable"]
    assert refusing(lost, wanted, [h for h in HOSTS if h != "gpu08"]) == ()


def test_names_of_topics_bring_what_they_need() -> None:
    one = {c.id for c in named(["fabric-manager-version"], CHECKS)}
    assert one == {"fabric-manager-version", "driver-version", "driver-answers"}
    assert {c.topic for c in named(["storage"], CHECKS)} == {"storage"}
    assert "acs-off" not in {c.id for c in named([], CHECKS)}, "it takes seconds"
    assert "acs-off" in {c.id for c in named(["acs-off"], CHECKS)}


def test_a_report_of_notes_alone_is_done(wanted: Wanted, tmp_path: Path) -> None:
    named_at_loopback = {
        "gpu01": {"files /etc/hosts": everywhere("localhost\n", "localhost\n127.0.1.1 gpu01\n")}
    }
    report = ask(Fleet(named_at_loopback), wanted)
    assert [f.check.id for f in report.findings] == ["loopback-name"]
    assert report.exit_code == Exit.DONE
