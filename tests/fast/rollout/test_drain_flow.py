"""What a drain refuses with nothing touched, and whose drain it is afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from routed_tables import POOLS, routed_tables, routed_wanted

from launcher.flows.drain import drained_with
from launcher.model.deployment import Drained
from launcher.model.problem import PlanRefusedError
from launcher.rollout.planning import look
from launcher.rollout.service import Service


def test_routers_keep_one_instance_of_each_pool(tmp_path: Path) -> None:
    wanted = routed_wanted(tmp_path, pools={**POOLS, "decode": {"hosts": ["h02"]}})
    now = look(routed_tables(wanted), wanted)
    entry = Drained("decode-0", "ana", "2026-11-30", "a fan")
    with pytest.raises(PlanRefusedError) as caught:
        drained_with(now, wanted, entry, below_minimum=True)
    (problem,) = caught.value.problems
    assert problem.what == "without decode-0 routers have no instance of pool decode"
    other = Drained("prefill-1", "ana", "", "")
    assert drained_with(now, wanted, other, below_minimum=False) == (other,)


def test_who_drained_it_first_is_kept_and_a_rollout_gives_way_to_an_operator(tmp_path: Path) -> None:
    wanted = routed_wanted(tmp_path)
    first = Drained("prefill-1", "ana", "2026-11-30", "a fan")
    moved = Drained("decode-1", "ana", "2026-11-30", "", by="rollout")
    now = Service(drained=(first, moved))
    second = Drained("prefill-1", "bob", "2026-12-01", "mine")
    assert drained_with(now, wanted, second, below_minimum=True) == now.drained
    own = Drained("decode-1", "bob", "2026-12-01", "mine")
    assert drained_with(now, wanted, own, below_minimum=True) == (first, own)
