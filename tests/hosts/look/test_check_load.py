"""`check --load` on real hosts: real jobs and connections, real reads, programs that play back."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stub_fleet import DATA, Done, StubFleet

from launcher.sandbox import SandboxHost

# As perftest does: without an address it listens on its port for one peer, with one it connects there.
# Slow with whomever they meet are those hosts and rails that /var/tmp/slow of either host names.
WRITER = """#!/usr/bin/python3 -IS
import socket, sys
words = sys.argv[1:]
rail, port = words[words.index("-d") + 1], int(words[words.index("-p") + 1])
own = {socket.gethostname(), socket.gethostname() + rail}
if words[-1][0].isdigit():
    with socket.create_connection((words[-1], port), timeout=20) as peer:
        peer.sendall(" ".join(own).encode())
        met = own | set(peer.recv(100).decode().split())
else:
    with socket.create_server(("", port)) as door:
        door.settimeout(20)
        peer, _ = door.accept()
        met = own | set(peer.recv(100).decode().split())
        peer.sendall(" ".join(own).encode())
slow = set(open("/var/tmp/slow").read().split())
rate = 212.4 if met & slow else 394.6
print(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
print(f" 8388608    29410            0.00               {rate}		     0.005880")
"""
# Once on each host, it counts how often it was started.
DIAGNOSTIC = """#!/bin/sh
echo started >>/var/tmp/dcgmi
sleep 8
echo 'Successfully ran diagnostic for group.'
echo '| software                  | Pass                                           |'
"""
# GPUs 2 and 5 of h04 have half of their lanes; GPU 7 of h02 is above every limit, and below the others.
COPIES = """#!/bin/sh
slow=55.36; [ "$(hostname)" = h04 ] && slow=27.61
last=55.33; [ "$(hostname)" = h02 ] && last=52.31
echo 'memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)'
echo '           0         1         2         3         4         5         6         7'
echo " 0     55.37     55.36     $slow     55.36     55.36     $slow     55.36     $last"
"""
# It never ends, and neither does what it leaves in another session.
HANGS = """#!/bin/sh
setsid sleep 4711 &
exec sleep 4712
"""
HANGING = """
about: A program that does not end.
checks:
  hangs:
    title: nothing
    hosts: each
    command: [hangs]
    install: the test puts it there
    read: '(?P<value>[0-9]+)'
    unit: s
    within_s: 2
    owner: us
    remedy: dsv32-launch check
    why: a driver that never answers
    known_from: here
    samples: [{text: "1", reads: {"": 1}}]
"""
# Something computes there, whoever began it.
BUSY = """#!/bin/sh
echo 4711
"""
PROGRAMS = {"ib_write_bw": WRITER, "dcgmi": DIAGNOSTIC, "nvbandwidth": COPIES, "hangs": HANGS}
POOLS = {
    "prefill": {"hosts": ["h01", "h02"]},
    "decode": {"hosts": ["h03", "h04"]},
    "router": {"hosts": ["h01"]},
}
LARGE = "models/tiny/large.safetensors"


def exec_all(stubs: StubFleet, script: str) -> None:
    for host in stubs.hosts:
        host.exec("sh", "-c", script)


@pytest.fixture
def gpus(stubs: StubFleet) -> Iterator[StubFleet]:
    """Hosts that serve nothing, with programs that play back what a host with eight H200 says."""
    exec_all(stubs, "systemctl stop 'dsv32-*'")
    for host in stubs.hosts:
        for name, text in PROGRAMS.items():
            put(host, name, text)
    slow(stubs, "h03 h02mlx5_2")
    stubs.write(stack="current", hardware="h200", model="deepseek-v3.2", layout="min-1p1d", pools=POOLS)
    yield stubs
    programs = " ".join(f"/usr/local/bin/{name}" for name in (*PROGRAMS, "nvidia-smi"))
    exec_all(
        stubs, f"systemctl stop 'dsv32-*'; rm -rf {programs} /var/tmp/dcgmi /var/tmp/slow /var/lib/dsv32/jobs"
    )
    stubs.write()


def put(host: SandboxHost, name: str, text: str) -> None:
    host.exec("tee", f"/usr/local/bin/{name}", stdin=text)
    host.exec("chmod", "755", f"/usr/local/bin/{name}")


def slow(stubs: StubFleet, names: str) -> None:
    """Hosts, and rails of hosts, that are slow from now on."""
    exec_all(stubs, f"echo {names} >/var/tmp/slow")


def left(host: SandboxHost) -> str:
    """Jobs, files and processes of load checks that are still there."""
    units = "systemctl list-units --all 'dsv32-job-load-*' --no-legend"
    files = "ls /var/lib/dsv32/jobs | grep load- | grep -v load-programs"
    processes = "pgrep -l 'sleep|ib_write_bw'"
    return host.exec("sh", "-c", f"{units}; {files}; {processes}").stdout


def found(done: Done, check: str) -> list[tuple[str, list[list[str]]]]:
    """Severity and ends of what one check found wrong."""
    (told,) = (line for line in done.lines("load-check") if line["id"] == check)
    return [(f["severity"], f["ends"]) for f in told["findings"] if f["verdict"] == "wrong"]


def test_a_slow_host_a_slow_rail_and_slow_gpus_are_named(gpus: StubFleet) -> None:
    done = gpus.run("check", "--load", "--json", "--only", "rdma-write,copy-to-gpu,nccl-host")
    assert done.code == 1, done.stderr
    assert found(done, "rdma-write") == [("error", [["h03", ""]]), ("error", [["h02", "mlx5_2"]])]
    assert found(done, "copy-to-gpu") == [
        ("warning", [["h02", "GPU 7"]]),
        ("error", [["h04", "GPU 2"]]),
        ("error", [["h04", "GPU 5"]]),
    ]
    (lacking,) = (line for line in done.lines("load-check") if line["id"] == "nccl-host")
    assert [f["what"] for f in lacking["findings"]] == ["no program all_reduce_perf"]
    kept = json.loads((gpus.runs[-1] / "load.json").read_text())
    assert [len(one["figures"]) for one in kept["checks"]] == [4 * 8, 0, 6 * 8]
    same = gpus.run("check", "--compare", "last", "last")
    assert same.code == 0, same.stdout
    assert [left(host) for host in gpus.hosts] == [""] * 4
    slow(gpus, "h03 h02mlx5_2 h01mlx5_5")
    again = gpus.run("check", "--load", "--json", "--only", "rdma-write", "--limit", "h01,h02,h04")
    assert ("error", [["h01", "mlx5_5"]]) in found(again, "rdma-write")
    compared = gpus.run("check", "--json", "--compare", gpus.runs[-2].name, "last")
    assert compared.code == 3, compared.stderr
    (one,) = compared.lines("compared")
    assert {(m["word"], tuple(end["host"] for end in m["ends"])) for m in one["moved"]} == {
        ("worse", ("h01", "h02")),
        ("worse", ("h01", "h04")),
    }, "with h03 it was slow before"
    print(gpus.run("check", "--compare", gpus.runs[-2].name, "last").stdout)


def test_a_program_that_does_not_end_is_told_and_leaves_nothing(gpus: StubFleet, tmp_path: Path) -> None:
    shutil.copytree(DATA, tmp_path / "data")
    (tmp_path / "data/configs/checks-load").mkdir()
    (tmp_path / "data/configs/checks-load/hanging.yaml").write_text(HANGING)
    done = gpus.run("check", "--load", "--json", "--only", "hangs", data=tmp_path / "data")
    assert done.code == 1, done.stderr
    (told,) = done.lines("load-check")
    (finding,) = told["findings"]
    assert [host for host, _ in finding["ends"]] == ["h01", "h02", "h03", "h04"]
    assert "no end within 2 s" in finding["what"]
    assert [left(host) for host in gpus.hosts] == [""] * 4


def test_a_killed_controller_leaves_jobs_that_the_next_one_takes(gpus: StubFleet) -> None:
    words = ("check", "--load", "--json", "--only", "dcgm-quick")
    begun = gpus.start(*words)
    until_s = time.monotonic() + 60
    while not all("started" in host.exec("cat", "/var/tmp/dcgmi").stdout for host in gpus.hosts):
        assert time.monotonic() < until_s, begun.err.read_text()
        time.sleep(0.1)
    begun.process.kill()
    begun.process.wait(timeout=20)
    done = gpus.run(*words)
    assert done.code == 0, done.stdout + done.stderr
    for host in gpus.hosts:
        assert host.exec("cat", "/var/tmp/dcgmi").stdout.split() == ["started"]


def test_nothing_is_measured_beside_what_serves_unless_it_is_meant(gpus: StubFleet) -> None:
    put(gpus.host("h03"), "nvidia-smi", BUSY)
    words = ("check", "--load", "--json", "--only", "copy-to-gpu")
    refused = gpus.run(*words)
    assert (refused.code, [p["where"] for p in refused.problems]) == (1, ["h03"])
    meant = gpus.run(*words, "--despite", "-m", "it idles")
    assert found(meant, "copy-to-gpu")
    assert "it idles" in gpus.run("audit", "--json").stdout


def test_disks_and_the_shared_file_system_are_really_read(gpus: StubFleet) -> None:
    gpus.write()
    large = gpus.sandbox.gpfs / LARGE
    large.write_bytes(bytes(64 << 20))
    exec_all(gpus, f"mkdir -p /nvme/models/tiny; cp /gpfs/{LARGE} /nvme/{LARGE}")
    try:
        done = gpus.run("check", "--load", "--json", "--only", "storage")
    finally:
        large.unlink()
        exec_all(gpus, f"rm -f /nvme/{LARGE}")
    assert done.code in (0, 3), done.stdout + done.stderr  # hosts of one machine may disturb each other
    for told in done.lines("load-check"):
        values = [figure["value"] for figure in told["figures"]]
        assert len(values) == 3, told
        assert all(value > 0 for value in values), told
