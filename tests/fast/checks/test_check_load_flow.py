"""check --load over scripted hosts: who is slow is named; what was killed is taken; what serves is left."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from load_hosts import Killed, LoadHosts
from samples import h200_hosts

from launcher.checks.meetings import planned
from launcher.flows.check_load import (
    Measured,
    every,
    exit_of,
    load_checks,
    measure,
    programs_of,
    refuse_others,
    refuse_serving,
)
from launcher.model.load_check import End
from launcher.model.problem import Exit, InputError, LauncherError, LockedError
from launcher.model.run import Event
from launcher.model.wish import Wanted
from launcher.resolve import resolve

CHECKS = {check.id: check for check in every()}
HOSTS = tuple(f"gpu{n:02}" for n in range(1, 7))


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Wanted:
    folder = tmp_path_factory.mktemp("small")
    return resolve(h200_hosts(folder, cluster="small", prefill=4, decode=2))


def program(host: str, words: Sequence[str]) -> tuple[int | None, str]:
    """As the programs print: gpu03 is slow with whomever it meets, and so is one rail of gpu05."""
    if words[0] == "ib_write_bw":
        address = next((w for w in words if w.startswith("10.")), "10.0.0.10")
        met = {host, f"gpu{int(address.rpartition('.')[2]) - 10:02}"}
        lame = "gpu05" in met and words[2] == "mlx5_6"
        rate = 210.0 if "gpu03" in met or lame else 394.0 + len(words[2])
        return 0, f" 8388608    29410            0.00               {rate}		     0.005880\n"
    if words[0] == "python3":
        return 0, f"read 4294967296 bytes of 8 files, direct: {2.5 if host == 'gpu02' else 21.0} GB/s\n"
    return 1, "no such thing\n"


def run(hosts: LoadHosts, wanted: Wanted, name: str, told: list[Event] | None = None) -> Measured:
    events: list[Event] = [] if told is None else told
    return measure(
        hosts,
        wanted,
        CHECKS[name],
        HOSTS,
        programs=programs_of([CHECKS[name]]),
        listener=events.append,
        interrupted=lambda: False,
    )


def test_the_slow_host_and_the_slow_rail_are_named_and_their_peers_are_not(wanted: Wanted) -> None:
    events: list[Event] = []
    found = run(LoadHosts(program), wanted, "rdma-write", events)
    assert len(found.figures) == 15 * 8
    assert [(f.severity, f.ends) for f in found.findings] == [
        ("error", (End("gpu03"),)),
        ("error", (End("gpu05", "mlx5_6"),)),
    ]
    assert found.findings[0].what.startswith("210 Gb/s in 40 measurements, expected at least 380")
    assert [e.host for e in events if e.kind == "finding"] == ["gpu03", "gpu05 mlx5_6"]
    assert exit_of([found], interrupted=False) == Exit.HOSTS_FAILED
    crossed = run(LoadHosts(program), wanted, "rdma-write-crossed")
    assert (End("gpu03"),) in [f.ends for f in crossed.findings]


def test_hosts_are_measured_by_themselves_too(wanted: Wanted) -> None:
    for name in ("disk-read", "shared-read"):
        hosts = LoadHosts(program)
        found = run(hosts, wanted, name)
        assert [f.ends for f in found.findings] == [(End("gpu02"),)]
        assert sorted(host for host, _ in hosts.begun) == sorted(HOSTS)
        assert not hosts.units, "whoever takes a result stops its unit"


def test_a_killed_controller_leaves_jobs_whose_results_the_next_one_takes(wanted: Wanted) -> None:
    hosts = LoadHosts(program, killed_after=4)
    with pytest.raises(Killed):
        run(hosts, wanted, "shared-read")
    hosts.killed_after = 1 << 30
    found = run(hosts, wanted, "shared-read")
    assert len(found.figures) == len(HOSTS)
    # three were taken, the fourth waited for us; who was taken is measured anew
    assert len(hosts.begun) == 4 + len(HOSTS) - 1


def test_old_results_are_not_taken(wanted: Wanted) -> None:
    hosts = LoadHosts(program)
    (plan,) = planned([CHECKS["disk-read"]], wanted, HOSTS)
    ((first, *_),) = plan.rounds
    hosts.units[first.hosts[0], first.name] = -7200.0
    run(hosts, wanted, "disk-read")
    assert len(hosts.begun) == len(HOSTS)


def test_who_lacks_a_program_or_is_lost_is_told_and_the_others_are_measured(wanted: Wanted) -> None:
    found = run(LoadHosts(program, lacking={"gpu06": "ib_write_bw"}), wanted, "rdma-write")
    assert len(found.figures) == 10 * 8
    lacking = [f for f in found.findings if f.verdict == "open"]
    assert [(f.what, f.ends) for f in lacking] == [("no program ib_write_bw", (End("gpu06"),))]
    lost = run(LoadHosts(program, silent=frozenset({"gpu06"})), wanted, "disk-read")
    assert len(lost.figures) == len(HOSTS) - 1
    assert [(f.severity, f.verdict, f.ends) for f in lost.findings if f.verdict == "open"] == [
        ("error", "open", (End("gpu06"),))
    ]


def test_nothing_is_measured_beside_what_serves_or_another_load(wanted: Wanted) -> None:
    refuse_serving(LoadHosts(program), wanted, HOSTS)
    with pytest.raises(LauncherError) as refused:
        refuse_serving(LoadHosts(program, serving=frozenset({"gpu05"})), wanted, HOSTS)
    assert [p.where for p in refused.value.problems] == ["gpu05"]
    assert "--despite" in refused.value.problems[0].do
    plans = planned([CHECKS["disk-read"]], wanted, HOSTS)
    ((first, *_),) = plans[0].rounds
    refuse_others(
        LoadHosts(program, running={"gpu01": f"dsv32-job-{first.name}.service loaded"}), plans, HOSTS
    )
    with pytest.raises(LockedError):
        refuse_others(LoadHosts(program, running={"gpu01": "dsv32-job-bench-x.service loaded"}), plans, HOSTS)


def test_slow_ones_run_only_when_they_or_their_topic_are_named() -> None:
    usual = {check.id for check in load_checks([])}
    assert "dcgm-quick" in usual
    assert not {"dcgm-long", "deepep-low-latency", "nixl-read"} & usual
    assert [check.id for check in load_checks(["dcgm-long"])] == ["dcgm-long"]
    assert {"dcgm-long", "dcgm-quick"} < {check.id for check in load_checks(["gpu"])}
    with pytest.raises(InputError) as refused:
        load_checks(["rdma-wrote"])
    assert "rdma-write" in refused.value.problems[0].do
