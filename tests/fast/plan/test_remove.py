"""remove: which roles and hosts are meant. What it does to a host: tests/hosts/stage/test_platform.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import sample

from launcher.flows.remove import chosen, hosts_of
from launcher.flows.targets import limit_to
from launcher.model.problem import InputError
from launcher.resolve import resolve


def test_a_host_of_an_instance_is_meant_alone(tmp_path: Path) -> None:
    wanted = resolve(sample("prod-2p1d", tmp_path))
    deployment = wanted.deployment
    assert deployment
    wide = next(i for i in deployment.instances if len(i.hosts) > 1)

    def meant(words: str) -> set[str]:
        return set(hosts_of(limit_to(words.split(","), wanted.steps, deployment)))

    assert meant(wide.hosts[0]) == {wide.hosts[0]}
    assert meant(wide.name) == set(wide.hosts)
    assert meant("") == set(wanted.steps)


def test_a_role_that_another_one_needs_goes_with_it_alone(tmp_path: Path) -> None:
    wanted = resolve(sample("prod-min", tmp_path))
    assert chosen(wanted, ["gdrcopy", "peermem"]) == {"gdrcopy", "peermem"}
    assert len(chosen(wanted, ["all"])) == len(wanted.wish.roles)
    with pytest.raises(InputError) as refused:
        chosen(wanted, ["os-pinned"])
    assert refused.value.problems[0].what == "role doca-ofed needs os-pinned, and would stay"
    assert refused.value.problems[0].do == (
        "dsv32-launch remove doca-ofed fabricmanager gdrcopy nic-tuning nvidia-driver os-pinned peermem"
    )
    with pytest.raises(InputError) as unknown:
        chosen(wanted, ["drivers"])
    assert "`drivers` is no role" in unknown.value.problems[0].what
