"""Files to a Wish: defaults, ranges, layers of data, roles in order, secrets; all Problems of all files."""

from __future__ import annotations

from pathlib import Path

import pytest
from load_input import GOOD, copied, loaded, wrong
from samples import ROOT, SAMPLES, sample

from launcher.load import inventory_schema, load
from launcher.load.ranges import expand
from launcher.load.ssh_config import host_name
from launcher.model.problem import InputError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a copy of the data, the user's home and the place of the inventory at once."""
    return copied(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_load(name: str, tmp_path: Path) -> None:
    assert sample(name, tmp_path).roles


def test_every_inventory_is_a_sample() -> None:
    assert {path.stem for path in (ROOT / "inventories").glob("*.yaml")} <= set(SAMPLES)


def test_defaults_are_written_out(folder: Path) -> None:
    inventory = loaded(folder, GOOD).inventory
    assert [(p.instances, p.minimum) for p in inventory.pools.values()] == [(2, 1), (1, 1), (1, 1)]
    assert {h.interface for h in inventory.hosts.values()} == {"eth0"}
    assert inventory.hosts["gpu05"].address == "10.0.0.15"
    assert inventory.hosts["gpu05"].source == f"{folder}/x.yaml:13"


def test_without_layout_and_pools_hosts_are_only_provisioned(folder: Path) -> None:
    text = "cluster: a\nstack: current\npaths: {shared: /a, local: /b}\nhosts:\n  h1: {address: 10.0.0.1}\n"
    wish = loaded(folder, text)
    assert (wish.inventory.layout, wish.inventory.pools, wish.profile.layout) == ("", {}, None)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu1", ["gpu1"]),
        ("gpu[8-11]", ["gpu8", "gpu9", "gpu10", "gpu11"]),
        ("gpu[098-101]", ["gpu098", "gpu099", "gpu100", "gpu101"]),
        ("r[1-2]-[1-2]x", ["r1-1x", "r1-2x", "r2-1x", "r2-2x"]),
    ],
)
def test_ranges(text: str, names: list[str]) -> None:
    assert list(expand(text)) == names


@pytest.mark.parametrize(
    "text", ["a[2-1]", "a[1-]", "a[1:3]", "a]", "a[b", "a[1-9999999999]", "a[1-64]b[1-65]"]
)
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|stands for"):
        expand(text)


def test_addresses_may_come_from_ssh_config(folder: Path) -> None:
    (folder / "ssh_config").write_text("Host gpu01\n  HostName = 10.0.9.1\nHost *\n  HostName 10.0.9.%h\n")
    text = GOOD.replace("gpu01: {address: 10.0.0.11}", "gpu01:")
    assert loaded(folder, text + "ssh: {config: ssh_config}\n").inventory.hosts["gpu01"].address == "10.0.9.1"
    (folder / ".ssh").mkdir()
    (folder / ".ssh/config").write_text("Host gpu01\nHostName 10.0.9.2\n")
    assert loaded(folder, text).inventory.hosts["gpu01"].address == "10.0.9.2"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("HostName early\nHost gpu1\n HostName late", "early"),
        ("Host gpu? !gpu2\n  hostname %h.cluster", "gpu1.cluster"),
        ("Host gpu* !gpu1\n  HostName a\nHost other gpu1\n  HostName b", "b"),
        ("Match user root\n  HostName a\nHost gpu1\n  # HostName c\n  User x\n", ""),
    ],
)
def test_ssh_config_is_read_as_ssh_reads_it(text: str, found: str) -> None:
    assert host_name(text, "gpu1") == found


def test_problems_of_all_files_come_at_once(folder: Path) -> None:
    layout = folder / "data/configs/layouts/pd-2p1d.yaml"
    layout.write_text(layout.read_text().replace("router: {}", "router: {port: 0}"))
    role = folder / "data/roles/os-base/role.yaml"
    role.write_text(
        role.read_text().replace("stage: host", "stage: hosts").replace("kind: folder", "each: host")
    )
    engine = folder / "data/configs/engines/vllm-1.0.yaml"
    engine.write_text(engine.read_text().replace("fatal: []", "fatal: ['*']").replace(">=1.0,<1.1", "1.0"))
    stack = folder / "data/configs/stacks/current.yaml"
    stack.write_text(stack.read_text().replace("[os-base]", "[os-base, weihgts]") + "lock: no.lock\n")
    assert wrong(
        folder, GOOD.replace("model: deepseek", "model: deepsek").replace("cluster: prod", "cluster: P")
    ) == [
        "x.yaml:1 cluster `P` is not lower-case letters, digits and `-`",
        "x.yaml:4 unknown model `deepsek`",
        "vllm-1.0.yaml:2 `versions` is `1.0`, expected a range of versions",
        "vllm-1.0.yaml:8 pattern `*` is no regular expression: nothing to repeat at position 0",
        "pd-2p1d.yaml:4 `port` in `router` is `0`, expected a whole number from 1 to 65535",
        "current.yaml:2 unknown role `weihgts`",
        "current.yaml:6 lock file `no.lock` is not in configs/stacks/",
        "role.yaml:2 `stage` is `hosts`, expected one of host, runtime, weights, engine, router",
        "role.yaml:4 `kind` is missing",
    ]


def role(folder: Path, name: str, text: str) -> None:
    (folder / "data/roles" / name).mkdir(exist_ok=True)
    (folder / "data/roles" / name / "role.yaml").write_text(f"about: A role.\n{text}\n")


def with_roles(folder: Path, *names: str) -> None:
    stack = folder / "data/configs/stacks/current.yaml"
    stack.write_text(stack.read_text().replace("[os-base]", f"[{', '.join(names)}]"))


def test_roles_are_sorted_by_stage_and_needs(folder: Path) -> None:
    role(folder, "a", "stage: runtime\nneeds: [z]")
    role(folder, "z", "stage: runtime\nneeds: [os-base]")
    role(folder, "e", "stage: host")
    with_roles(folder, "a", "z", "os-base", "e")
    assert [r.name for r in loaded(folder, GOOD).roles] == ["e", "os-base", "z", "a"]


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ("stage: host\nneeds: [b]", "role.yaml:1 role `a` (host) needs `b` of a later stage (runtime)"),
        ("stage: runtime\nneeds: [b]", "role.yaml:1 roles need each other in a circle: a, b"),
        ("stage: runtime\nneeds: [c]", "role.yaml:1 role `a` needs `c`, which stack `current` does not have"),
        ("stage: host\nsteps: {u: {kind: unit, restart_on: [v]}}", "role.yaml:3 unknown step `v`"),
        ("stage: host\nsteps: [u]", "role.yaml:3 `steps` is not a mapping of names to steps"),
    ],
)
def test_roles_that_cannot_be_sorted_or_read(folder: Path, needs: str, message: str) -> None:
    role(folder, "a", needs)
    role(folder, "b", "stage: runtime\nneeds: [a]")
    with_roles(folder, "a", "b")
    assert wrong(folder, GOOD) == [message]


def test_a_role_listed_twice_is_no_stack_without_roles(folder: Path) -> None:
    with_roles(folder, "os-base", "os-base")
    assert wrong(folder, GOOD) == ["current.yaml:1 role `os-base` is listed 2 times"]


def test_role_parameters_stay_text(folder: Path) -> None:
    role(
        folder, "a", "stage: host\nsteps:\n  p: {kind: package, names: {haproxy: 2.10}, fresh: true, none: }"
    )
    with_roles(folder, "a")
    (step,) = loaded(folder, GOOD).roles[0].steps
    assert {name: setting.value for name, setting in step.params.items()} == {
        "names": {"haproxy": "2.10"},
        "fresh": True,
        "none": None,
    }


def test_a_folder_of_ones_own_lies_over_the_shipped_data(tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "configs/stacks").mkdir(parents=True)
    (own / "configs/stacks/mine.yaml").write_text("about: Mine.\nroles: [os-base, extra]\n")
    (own / "roles/extra").mkdir(parents=True)
    (own / "roles/extra/role.yaml").write_text("about: More.\nstage: host\n")
    path = tmp_path / "x.yaml"
    path.write_text(
        "cluster: a\nstack: mine\npaths: {shared: /a, local: /b}\nhosts: {h: {address: 10.0.0.1}}\n"
    )
    wish = load(path, data_dir=own)
    assert [r.source for r in wish.roles] == [f"{own}/roles/extra/role.yaml:1", "roles/os-base/role.yaml:1"]
    with pytest.raises(InputError, match="no-such-folder"):
        load(path, data_dir=tmp_path / "no-such-folder")


def test_the_digest_changes_with_every_file_that_is_read_and_no_other(folder: Path) -> None:
    first = loaded(folder, GOOD).data_digest
    (folder / "data/configs/layouts/other.yaml").write_text("not read")
    assert loaded(folder, GOOD).data_digest == first
    snapshot = folder / "data/configs/engines/vllm-1.0.json"
    snapshot.write_text(snapshot.read_text().replace("max-num", "new"))
    assert loaded(folder, GOOD).data_digest != first


def test_what_is_no_file(folder: Path) -> None:
    (folder / "prod.yaml").write_text(GOOD)
    with pytest.raises(InputError) as missing:
        load(folder / "prd.yaml")
    (problem,) = missing.value.problems
    assert (problem.what, problem.do) == ("no such file", "did you mean `prod.yaml`? known: prod.yaml")
    with pytest.raises(InputError, match="this is a folder, expected a file"):
        load(folder)


def test_the_schema_for_editors_knows_every_key() -> None:
    schema = inventory_schema()
    top = schema["$defs"]["InventoryFile"]
    assert {"cluster", "stack", "hosts", "paths"} == set(top["required"])
    assert all("description" in field or "$ref" in field for field in top["properties"].values())
    assert "source" not in schema["$defs"]["PoolEntry"]["properties"]
