"""An address that moves between hosts: what each is given, and what is made of its answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from routed_tables import POOLS, routed_wanted

from launcher.health.state import front_questions, front_state
from launcher.model.facts import Facts, Unknown
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
