"""`up` of a layout with one pool: engines that stand alone, asked at their own addresses."""

from __future__ import annotations

from stub_fleet import StubFleet
from witness import active


def test_one_pool_takes_the_place_of_two_sides_and_serves_by_itself(stubs: StubFleet) -> None:
    stubs.serve()
    stubs.write(layout="stub-single", pools={"decode": {"hosts": ["h02", "h03"]}})
    done = stubs.up()
    assert done.code == 0, done.stdout
    verdicts = {f["subject"]: f["severity"] for f in done.lines("finding")}
    assert set(verdicts.values()) == {"OK"}
    assert verdicts.keys() >= {"decode-0", "decode-1", "decode-0@h02", "decode-1@h03"}
    assert not [subject for subject in verdicts if subject.startswith(("prefill", "router", "front"))]

    units = {
        "h01": "dsv32-prefill-0",
        "h02": "dsv32-decode-0",
        "h03": "dsv32-decode-1",
        "h04": "dsv32-router-a",
    }
    states = {host: active(stubs.host(host), unit) for host, unit in units.items()}
    assert states == {"h01": "inactive", "h02": "active", "h03": "active", "h04": "inactive"}
    assert active(stubs.host("h04"), "dsv32-front") == "inactive"
    assert active(stubs.host("h03"), "dsv32-decode-0") == "inactive", "it was part of the old instance"

    status = stubs.run("status")
    assert status.code == 0, status.stdout
    for host, instance in (("h02", "decode-0"), ("h03", "decode-1")):
        address = stubs.host(host).address
        assert f"users   {host}  {instance}  http://{address}:8000 answers" in status.stdout
    assert "all up: 2 processes" in status.stdout
    assert stubs.plan().code == 0
    assert stubs.run("down", "--yes").code == 0
    assert active(stubs.host("h02"), "dsv32-decode-0") == "inactive"
