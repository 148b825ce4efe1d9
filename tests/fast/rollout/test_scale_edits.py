"""scale: words to edits of the inventory, and what it refuses; the deployment that comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import ROOT

from launcher.flows.edited import Edited, edited_inventory
from launcher.flows.scale import counts_of, edits_for
from launcher.load import load
from launcher.model.problem import InputError, LauncherError, PlanRefusedError
from launcher.resolve import resolve


@pytest.fixture
def prod(tmp_path: Path) -> Path:
    """Two prefill instances, one decode instance, each of two hosts, and three hosts that nobody uses."""
    text = (ROOT / "inventories/prod-2p1d.yaml").read_text()
    free = '  "gpu[07-09]": {address: "10.0.0.[17-19]"}\npools:'
    path = tmp_path / "prod.yaml"
    path.write_text(text.replace("pools:", free))
    return path


def scaled(path: Path, *words: str, hosts: str = "", below_minimum: bool = False) -> Edited:
    named = [text for text in hosts.split(",") if text]
    edits = edits_for(load(path), counts_of(words), named=named, below_minimum=below_minimum)
    return edited_inventory(path, edits)


def instances(made: Edited) -> list[tuple[str, tuple[str, ...]]]:
    deployment = resolve(made.wish).deployment
    assert deployment
    return [(i.name, i.hosts) for i in deployment.instances]


def refused(path: Path, *words: str, hosts: str = "") -> LauncherError:
    with pytest.raises(LauncherError) as caught:
        scaled(path, *words, hosts=hosts)
    return caught.value


def test_the_last_one_goes_and_its_hosts_stay_spare(prod: Path) -> None:
    made = scaled(prod, "prefill=1")
    assert instances(made) == [("prefill-0", ("gpu01", "gpu02")), ("decode-0", ("gpu05", "gpu06"))]
    (line,) = made.lines
    assert line.place == f"{prod}:20"
    assert line.before[0].startswith('  prefill: {hosts: "gpu[01-04]", minimum: 1} # one of two')
    assert line.after[0].startswith('  prefill: {hosts: "gpu[01-04]", minimum: 1, instances: 1} # one of two')
    made.write()
    again = scaled(prod, "prefill=2")
    assert instances(again)[1] == ("prefill-1", ("gpu03", "gpu04")), "spare hosts come first"


def test_named_hosts_join_the_pools_that_lack_some(prod: Path) -> None:
    made = scaled(prod, "prefill=1", "decode=2", hosts="gpu[08-09]")
    assert instances(made)[-1] == ("decode-1", ("gpu08", "gpu09"))
    assert [line.after[0].strip() for line in made.lines][-1] == (
        'decode: {hosts: ["gpu[05-06]", "gpu08", "gpu09"], instances: 2}'
    )


def test_what_is_so_already_changes_nothing(prod: Path) -> None:
    made = scaled(prod, "prefill=2", "decode=1")
    assert (made.lines, made.text) == ((), made.before)
    before = prod.stat().st_mtime_ns
    made.write()
    assert prod.stat().st_mtime_ns == before


def test_too_few_hosts_say_how_many_and_which_are_free(prod: Path) -> None:
    (problem,) = refused(prod, "decode=3").problems
    assert problem.what == "decode=3 needs 6 hosts, the pool has 2: 4 missing"
    assert (problem.where, problem.why) == (f"{prod}:21", "free: gpu07, gpu08, gpu09")
    assert problem.do == "add 1 host under `hosts:`, and name all with --hosts"
    (problem,) = refused(prod, "decode=2").problems
    assert problem.do == "give --hosts gpu07,gpu08"
    (problem,) = refused(prod, "decode=2", hosts="gpu09").problems
    assert problem.what == "decode=2 needs 4 hosts, the pool has 2, 1 are named: 1 missing"


@pytest.mark.parametrize(
    ("words", "hosts", "what"),
    [
        (("decode=2",), "gpu04,gpu09", "`gpu04` is in pool prefill already"),
        (("decode=2",), "gpu10,gpu09", "unknown host `gpu10`"),
        (("decode=1",), "gpu09", "gpu09: not needed, the pools have hosts enough"),
        (("router=2",), "", "`router=2` is not a pool and how many instances it is to have"),
        (("decode=0",), "", "`decode=0` is not a pool and how many instances it is to have"),
        (("decode=1", "decode=2"), "", "`decode=2` is not a pool and how many instances it is to have"),
    ],
)
def test_what_is_refused(prod: Path, words: tuple[str, ...], hosts: str, what: str) -> None:
    error = refused(prod, *words, hosts=hosts)
    assert isinstance(error, InputError)
    assert error.problems[0].what == what


def test_below_the_minimum_only_if_it_is_said(prod: Path) -> None:
    prod.write_text(prod.read_text().replace("minimum: 1", "minimum: 2"))
    error = refused(prod, "prefill=1")
    assert isinstance(error, PlanRefusedError)
    assert error.problems[0].what == "prefill=1 is below the pool's minimum, 2"
    made = scaled(prod, "prefill=1", below_minimum=True)
    assert "minimum: 1, instances: 1}" in made.text


def test_a_file_that_somebody_else_changed_meanwhile_is_left_alone(prod: Path) -> None:
    made = scaled(prod, "prefill=1")
    theirs = prod.read_text() + "# mine\n"
    prod.write_text(theirs)
    with pytest.raises(InputError):
        made.write()
    assert prod.read_text() == theirs
    assert [p.name for p in prod.parent.iterdir()] == ["prod.yaml"]
