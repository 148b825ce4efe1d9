"""Inventories that `init` writes, from host names and from Ansible's: each loads, and says what was meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from launcher.flows.ansible import host_variables, listing
from launcher.flows.from_ansible import read_ansible
from launcher.flows.init import Shape, Start, init_text
from launcher.load import load
from launcher.model.inventory import Inventory
from launcher.model.problem import InputError

DATA = Path(__file__).parent / "input/data"
SHAPE = Shape(layout="pd-2p1d", stack="current", hardware="h200", model="deepseek")
ANSIBLE = """
all:
  vars: {ansible_user: nobody, ansible_port: 22}
  children:
    engines:
      vars: {ansible_user: ops, ansible_ssh_port: 2222}
      children:
        prefill: {}
        decode:
          hosts:
            gpu05: {ansible_host: 10.0.0.15}
            gpu06: {ansible_ssh_host: 10.0.0.16, ansible_port: 2222, gpus: [1, 2]}
    router:
      hosts: {gpu01: }
prefill:
  hosts:
    gpu[01:04]:
  vars: {site: a}
ungrouped:
  hosts:
    10.0.0.99: {ansible_user: ops, ansible_port: 2222}
"""


def loaded(text: str, folder: Path, **shape: str) -> Inventory:
    (folder / "prod.yaml").write_text(text)
    return load(folder / "prod.yaml", data_dir=DATA).inventory


def hosts(count: int) -> dict[str, str]:
    return {f"gpu{n:02}": f"10.0.0.{n}" for n in range(1, count + 1)}


def test_a_layout_with_one_pool_takes_all_hosts_that_make_whole_instances(tmp_path: Path) -> None:
    shape = replace(SHAPE, layout="decode-alone")
    inventory = loaded(init_text(Start("prod", hosts(5)), shape, data_dir=DATA), tmp_path)
    assert {name: pool.hosts for name, pool in inventory.pools.items()} == {"decode": tuple(hosts(4))}


@pytest.mark.parametrize(("count", "prefill", "decode"), [(4, 2, 2), (6, 4, 2), (9, 6, 2), (12, 8, 4)])
def test_hosts_are_shared_out_in_whole_instances(
    tmp_path: Path, count: int, prefill: int, decode: int
) -> None:
    inventory = loaded(init_text(Start("prod", hosts(count)), SHAPE, data_dir=DATA), tmp_path)
    assert {name: host.address for name, host in inventory.hosts.items()} == hosts(count)
    assert inventory.pools["prefill"].hosts == tuple(hosts(count))[:prefill]
    assert inventory.pools["decode"].hosts == tuple(hosts(count))[prefill : prefill + decode]
    assert inventory.pools["router"].hosts == ("gpu01",)


def test_too_few_hosts_for_a_layout() -> None:
    with pytest.raises(InputError, match="layout pd-2p1d needs 4 hosts, found 3"):
        init_text(Start("prod", hosts(3)), SHAPE, data_dir=DATA)


def test_what_is_commented_out_loads_too(tmp_path: Path) -> None:
    text = init_text(Start("prod", hosts(4)), SHAPE, data_dir=DATA)
    head, tail = text.split("\n# settings:")
    inventory = loaded(head + "\nsettings:" + tail.replace("\n# ", "\n"), tmp_path)
    assert inventory.settings["decode"]["max-num-seqs"].value == "256"
    assert inventory.secrets["api_key"].value == "env:DSV32_API_KEY"


def test_an_ansible_inventory_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(ANSIBLE)
    start = read_ansible(tmp_path / "hosts.yaml", cluster="prod")
    assert start.pools == {
        "prefill": ("gpu01", "gpu02", "gpu03", "gpu04"),
        "decode": ("gpu05", "gpu06"),
        "router": ("gpu01",),
    }
    assert (start.user, start.port, start.notes) == ("ops", "2222", ())
    assert start.hosts["gpu06"] == "10.0.0.16"
    assert start.hosts["gpu01"] == ""
    assert start.hosts["10.0.0.99"] == "10.0.0.99"


def test_what_differs_from_host_to_host_is_noted(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text("all: {hosts: {a: {ansible_user: x}, b: {ansible_user: y}}}")
    start = read_ansible(tmp_path / "hosts.yaml", cluster="prod")
    assert start.notes == ("ansible_user (x, y): write it into an ssh_config, host by host",)
    assert "# Not taken over: ansible_user (x, y)" in init_text(
        Start("prod", hosts(4), notes=start.notes), SHAPE, data_dir=DATA
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("all: {children: {a: {children: {b: }}, b: {children: {a: }}}}", "group `a` is its own child"),
        ("[prefill]\ngpu01\n", "this is an INI inventory, expected YAML"),
        ("all: {hosts: {'gpu[05:01]': }}", "range `[05:01]` is empty"),
        ("all: {hosts: {'gpu[1:99999999]': }}", "is no range of up to 4096 hosts"),
        ("all: {hosts: [a, b]}", "`hosts` holds no keys"),
        ("all: {vars: {a: b}}", "no group has hosts"),
    ],
)
def test_what_cannot_be_taken_over(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "hosts.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_ansible(tmp_path / "hosts.yaml", cluster="prod")
    assert message in str(caught.value)


def test_ours_is_served_as_a_dynamic_inventory(tmp_path: Path) -> None:
    (tmp_path / "ssh_config").write_text("Host gpu02\n  HostName 10.0.0.2\n  ProxyJump bastion\n")
    start = Start("prod-a", {**hosts(4), "gpu02": ""}, user="ops")
    text = init_text(start, SHAPE, data_dir=DATA).replace("  # config: ssh_config", "  config: ssh_config")
    inventory = loaded(text, tmp_path)
    served = listing(inventory)
    assert served["prod_a"] == {"hosts": ["gpu01", "gpu02", "gpu03", "gpu04"]}
    assert served["decode"] == {"hosts": ["gpu03", "gpu04"]}
    assert served["_meta"] == {
        "hostvars": {name: host_variables(inventory, name) for name in inventory.hosts}
    }
    arguments = f"-o StrictHostKeyChecking=yes -F {tmp_path}/ssh_config"
    assert host_variables(inventory, "gpu01") == {
        "ansible_host": "10.0.0.1",
        "ansible_user": "ops",
        "ansible_become": True,
        "ansible_ssh_common_args": arguments,
    }
    assert "ansible_host" not in host_variables(inventory, "gpu02")
    with pytest.raises(InputError, match="unknown host `gpu9`"):
        host_variables(inventory, "gpu9")
