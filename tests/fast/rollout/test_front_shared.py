"""An address that moves between hosts: what each is given, and what is made of its answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from routed_tables import POOLS, routed_wanted

from launcher.flows.targets import units_of
from launcher.health.state import front_questions, front_state
from launcher.model.facts import Facts, Unknown
from launcher.model.problem import InputError
from launcher.model.wish import Wanted

TWO = {**POOLS, "router": {"hosts": ["h04", "h01"]}}


@pytest.fixture
def shared(tmp_path: Path) -> Wanted:
    return routed_wanted(tmp_path, pools=TWO, front={"address": "10.77.0.200/24"})


def content(wanted: Wanted, host: str, step: str) -> str:
    return str(next(s.want.content for s in wanted.steps[host] if s.id == step))


def test_each_host_knows_its_place_and_the_others(shared: Wanted) -> None:
    first, second = (content(shared, h, "front-address/config") for h in ("h04", "h01"))
    for text, priority, own, other in ((first, 200, 14, 11), (second, 199, 11, 14)):
        assert f"priority {priority}\n" in text
        assert f"unicast_src_ip 10.77.0.{own}\n" in text
        assert f"unicast_peer {{\n        10.77.0.{other}\n    }}" in text
        assert "10.77.0.200/24 dev eth0\n" in text
        assert "virtual_router_id 201\n" in text
    assert "bind 10.77.0.200:8080 transparent\n" in content(shared, "h01", "front/config")


def test_where_there_is_none_nothing_is_installed(tmp_path: Path) -> None:
    wanted = routed_wanted(tmp_path, pools=TWO)
    assert not [s.id for steps in wanted.steps.values() for s in steps if s.role == "front-address"]
    assert "transparent" not in content(wanted, "h01", "front/config")


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("watch", ["dsv32-watch.service"]),
        ("dsv32-watch", ["dsv32-watch.service"]),
        ("front-address", ["dsv32-front-address.service"]),
        ("dsv32-front-address.service", ["dsv32-front-address.service"]),
        ("front", ["dsv32-front.service"]),
    ],
)
def test_what_keeps_routers_and_fronts_is_read_like_them(
    shared: Wanted, target: str, found: list[str]
) -> None:
    assert shared.deployment
    units = units_of(shared.deployment, target)
    assert [(u.host, u.name) for u in units] == [(h, name) for h in ("h04", "h01") for name in found]
    for unit in units:  # a host has it: the names are those that roles give
        assert any(getattr(s.want, "name", "") == unit.name for s in shared.steps[unit.host])


def test_without_a_shared_address_there_is_no_unit_for_it(tmp_path: Path) -> None:
    deployment = routed_wanted(tmp_path, pools=TWO).deployment
    assert deployment
    with pytest.raises(InputError, match="`front-address` is no target"):
        units_of(deployment, "front-address")


@pytest.mark.parametrize(
    ("shown", "reached", "holds", "answers"),
    [("2: eth0 inet 10.77.0.200/24", 200, True, True), ("", 200, False, True), ("", 0, False, False)],
)
def test_a_front_answers_where_users_come_in(
    shared: Wanted, shown: str, reached: int, holds: bool, answers: bool
) -> None:
    front, kind = shared.deployment.fronts[0], shared.wish.profile.router  # type: ignore[union-attr]
    assert kind
    unit, own, common, holder = front_questions(front, kind)
    assert common.args[1] == "http://10.77.0.200:8080/readiness"
    told = {unit: {"active": "active"}, own: {"status": 200}, common: {"status": reached}}
    now = front_state(front, Facts("h04", {**told, holder: {"exit": 0, "stdout": shown}}), kind)
    assert (now.holds, now.answers, now.url) == (holds, answers, "http://10.77.0.200:8080")
    silent = front_state(
        front, Facts("h04", dict.fromkeys(told | {holder: None}, Unknown("no answer"))), kind
    )
    assert (silent.holds, silent.up) == (None, False)
