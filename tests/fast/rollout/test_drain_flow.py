"""What a drain refuses with nothing touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from routed_tables import POOLS, routed_tables, routed_wanted

from launcher.flows.drain import drained_too
from launcher.model.deployment import Drained
from launcher.model.problem import PlanRefusedError


def test_routers_keep_one_instance_of_each_pool(tmp_path: Path) -> None:
    wanted = routed_wanted(tmp_path, pools={**POOLS, "decode": {"hosts": ["h02"]}})
    fleet = routed_tables(wanted)
    entry = Drained("decode-0", "ana", "2026-11-30", "a fan")
    with pytest.raises(PlanRefusedError) as caught:
        drained_too(fleet, wanted, entry, below_minimum=True)
    (problem,) = caught.value.problems
    assert problem.what == "without decode-0 routers have no instance of pool decode"
    assert fleet.told == []
    assert [
        d.instance
        for d in drained_too(fleet, wanted, Drained("prefill-1", "ana", "", ""), below_minimum=False)
    ]
