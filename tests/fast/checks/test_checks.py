"""configs/checks: each says yes and no where its samples do, changes nothing, and names who puts it right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from samples import SAMPLES, sample

from launcher.checks.answers import Value
from launcher.checks.asked import Asked, asked_of, filled
from launcher.checks.judge import Outcome, across, alike, judged
from launcher.load import load
from launcher.load.checks import read_checks
from launcher.load.data import Data, shipped
from launcher.model.check import Check
from launcher.model.problem import InputError
from launcher.model.wish import Wanted
from launcher.resolve import resolve
from launcher.resolve.expand import shared_values

CHECKS = read_checks(Data((shipped(),)))
BY_ID = {check.id: check for check in CHECKS}
DEVICES = 'NCCL_IB_HCA: "=mlx5_0,mlx5_1", NVSHMEM_HCA_LIST: "mlx5_0:1,mlx5_1", UCX_NET_DEVICES: "mlx5_1:1"'
HOST_FACTS = "hostname=gpu01\nos=ubuntu 24.04\nkernel=6.8.0-87-generic\ncpus=192\nmemory_gib=1820.9\n"


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> list[Wanted]:
    """Each sample as it is, and with monitoring on its first host; engines with GPUs have devices named."""
    found: list[Wanted] = []
    for name in SAMPLES:
        folder = tmp_path_factory.mktemp(name)
        plain = sample(name, folder)
        path, host = folder / plain.inventory.path, next(iter(plain.inventory.hosts))
        devices = f"environment: {{all: {{{DEVICES}}}}}\n" if name.startswith("prod") else ""
        text = f"{path.read_text()}\nmonitoring: {{host: {host}}}\n{devices}"
        found += [resolve(plain), resolve(load(path, text=text))]
    return found


def asked_somewhere(check: Check, fleets: list[Wanted]) -> tuple[Asked, Wanted]:
    for wanted in fleets:
        found = asked_of([check], wanted, wanted.wish.inventory.hosts)
        if found:
            return found[0], wanted
    raise AssertionError(f"no sample inventory asks {check.id}")


def read_of(asked: Asked, wanted: Wanted, text: str) -> Outcome:
    """A sample's outcome; of a column, a sample has the column's cells, a line each."""
    host = wanted.wish.inventory.hosts[asked.host]
    processes = wanted.deployment.processes_on(asked.host) if wanted.deployment else ()
    process = next((p for p in processes if p.unit == asked.subject), None)
    values = {**shared_values(wanted.wish, wanted.deployment), "host": host, "process": process}
    text = filled(text, asked.check, values)
    if asked.check.column:
        columns = asked.question.columns
        at = columns.index(asked.check.column)
        rows = ([str(n), *["-"] * (len(columns) - 1)] for n, _ in enumerate(text.splitlines()))
        cells = [[*row[:at], cell, *row[at + 1 :]] for row, cell in zip(rows, text.splitlines(), strict=True)]
        text = "".join(", ".join(row) + "\n" for row in cells)
    return judged(asked, text)


def outcomes(
    check: Check, fleets: list[Wanted], samples: tuple[str | tuple[str, ...], ...]
) -> Iterator[bool]:
    """Is each sample right?"""
    asked, wanted = asked_somewhere(check, fleets)
    for text in samples:
        if isinstance(text, tuple):
            hosts = [on_host(read_of(asked, wanted, one), f"h{n}") for n, one in enumerate(text)]
            yield all(o.state == "ok" for o in hosts) and not list(across(hosts))
        else:
            own = read_of(asked, wanted, text)
            if asked.expect.like:
                other, its = asked_somewhere(BY_ID[asked.expect.like], fleets)
                like = read_of(other, its, str(other.check.passes[0]))
                own = list(alike([on_host(like, asked.host), own]))[1]
            yield own.state in ("ok", "absent")


def on_host(outcome: Outcome, host: str) -> Outcome:
    """The same outcome, as if of another host."""
    return replace(outcome, asked=replace(outcome.asked, host=host))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_says_yes_and_no_where_its_samples_do(check: Check, fleets: list[Wanted]) -> None:
    assert list(outcomes(check, fleets, check.passes)) == [True] * len(check.passes)
    assert list(outcomes(check, fleets, check.fails)) == [False] * len(check.fails)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_tells_who_does_what_and_why(check: Check, fleets: list[Wanted]) -> None:
    asked, _ = asked_somewhere(check, fleets)
    for text in (check.title, check.why, check.known_from, asked.remedy):
        assert text
        assert not text.endswith(".")
        assert "\n" not in text
    if check.owner == "us":
        assert "dsv32-launch" in asked.remedy


def test_what_is_not_there_is_told_or_passed_over_and_never_breaks(fleets: list[Wanted]) -> None:
    for check in CHECKS:
        asked, _ = asked_somewhere(check, fleets)
        assert judged(asked, None).state == ("absent" if check.missing == "fine" else "wrong")


def test_a_host_without_gpus_is_asked_nothing_about_gpus(fleets: list[Wanted]) -> None:
    sandbox = fleets[SAMPLES.index("sandbox")]
    asked = asked_of(CHECKS, sandbox, sandbox.wish.inventory.hosts)
    assert len({a.check.id for a in asked}) > 20
    assert "gpu" not in {a.check.topic for a in asked}
    assert "nvidia-smi" not in {word for a in asked for word in a.question.command}


def test_a_host_with_one_gpu_and_no_nic_is_asked_neither_for_a_fabric_nor_for_rdma(tmp_path: Path) -> None:
    """As one H200 in a virtual machine is: its fabric state is `N/A`, and nothing is wrong with that."""
    root = Path(__file__).parents[3] / "scripts/h200"
    config = tmp_path / "ssh_config"
    config.write_text("".join(f"Host h{i:02}\n  HostName 10.77.0.{10 + i}\n" for i in range(1, 5)))
    text = (root / "inventory.yaml").read_text()
    (tmp_path / "one.yaml").write_text(text.replace("/var/tmp/dsv32-sandbox/ssh_config", str(config)))
    wanted = resolve(load(tmp_path / "one.yaml", data_dir=root / "data", environment={}))
    ids = {a.check.id for a in asked_of(CHECKS, wanted, wanted.wish.inventory.hosts)}
    assert {"driver-answers", "gpu-count", "gpu-memory"} <= ids
    assert not {"fabric-state", "fabric-status", "nvlinks", "rdma-layer", "nvshmem-prefix"} & ids


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ask: {command: [rm, -r, /x]}", "starts `rm`"),
        ("ask: {command: [bash, -c, 'echo 1']}", "starts `bash`"),
        ("ask: {command: [ps, '>/etc/x']}", "as if for a shell"),
        ("ask: {command: [ps, '|', tee]}", "as if for a shell"),
        ("ask: {command: [ps], file: /x}", "asks command and file"),
        ("ask: {}", "asks nothing"),
        ("ask: other", "no question of this file"),
        ("ask: {file: /x}\n    read: '('", "no regular expression"),
        ("ask: {file: /x}\n    read: x", "without a group `value`"),
        ("ask: {file: /x}\n    column: x", "reads a column `x`"),
        ("ask: {file: /x}\n    needs: [nobody]", "needs `nobody`"),
        ("ask: {file: /x}\n    needs: [one]", "needs itself"),
        ("ask: {file: /x}\n    refuses_up: true", "refuses `up`"),
        ("ask: {file: /x}\n    across: same", "compares hosts"),
    ],
)
def test_what_a_check_may_not_be(tmp_path: Path, line: str, said: str) -> None:
    folder = tmp_path / "configs/checks"
    folder.mkdir(parents=True)
    text = f"""about: One.
checks:
  one:
    title: one
    severity: warning
    {line}
    expect: {{equals: "1"}}
    owner: host image
    remedy: none
    why: none
    known_from: none
    passes: ["1"]
    fails: ["2"]
"""
    (folder / "one.yaml").write_text(text)
    with pytest.raises(InputError) as refused:
        read_checks(Data((tmp_path,)))
    assert said in str(refused.value)


def test_values_show_of_what_they_are() -> None:
    assert str(Value("GPU 3", "Disabled")) == "GPU 3 Disabled"
