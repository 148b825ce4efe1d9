"""configs/checks-load: each reads its samples, fills its words for a fleet, and says who puts it right."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import SAMPLES, sample

from launcher.checks.figures import read_text
from launcher.checks.meetings import planned
from launcher.load.data import Data, shipped
from launcher.load.load_checks import read_load_checks, read_programs
from launcher.model.load_check import LoadCheck
from launcher.model.problem import InputError
from launcher.model.wish import Wanted
from launcher.resolve import resolve

DATA = Data((shipped(),))
CHECKS = read_load_checks(DATA)


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> list[Wanted]:
    return [resolve(sample(name, tmp_path_factory.mktemp(name))) for name in SAMPLES]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_load_check_reads_its_samples(check: LoadCheck) -> None:
    assert any(one.reads for one in check.samples)
    for one in check.samples:
        assert read_text(check, one.text) == one.reads


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_load_check_knows_its_words_and_who_puts_it_right(check: LoadCheck, fleets: list[Wanted]) -> None:
    found = [p for wanted in fleets for p in planned([check], wanted, wanted.wish.inventory.hosts)]
    assert found, f"no sample inventory runs {check.id}"
    for meeting in (m for one in found for group in one.rounds for m in group):
        words = [word for leg in meeting.legs for line in leg.words for word in line]
        assert all(word and "{{" not in word for word in words)
        assert all(len(leg.words) == len(meeting.hosts) for leg in meeting.legs)
    assert read_programs(check, DATA).keys() == set(check.files)
    for text in (check.title, check.why, check.remedy, check.install, check.known_from):
        assert text
        assert not text.endswith(".")
        assert "\n" not in text
    if check.owner == "us":
        assert "dsv32-launch" in check.remedy


def test_rails_meet_their_like_in_both_ways_and_crossed_ones_the_next(fleets: list[Wanted]) -> None:
    straight, crossed = (c for c in CHECKS if c.id in ("rdma-write", "rdma-write-crossed"))
    wanted = next(w for w in fleets if planned([straight], w, w.wish.inventory.hosts))
    hosts = tuple(wanted.wish.inventory.hosts)[:2]
    ((meeting,),) = planned([straight], wanted, hosts)[0].rounds
    assert [tuple(end.part for end in leg.ends) for leg in meeting.legs[:3]] == [
        ("mlx5_0", "mlx5_0"),
        ("mlx5_0", "mlx5_0"),
        ("mlx5_1", "mlx5_1"),
    ]
    assert [leg.listener for leg in meeting.legs[:2]] == [0, 1]
    ports = {line[line.index("-p") + 1] for leg in meeting.legs for line in leg.words}
    assert len(ports) == len(meeting.legs) == 16
    ((meeting,),) = planned([crossed], wanted, hosts)[0].rounds
    ends = [tuple(end.part for end in leg.ends) for leg in meeting.legs]
    assert ends[0] == ("mlx5_0", "mlx5_1")
    assert ends[-1] == ("mlx5_7", "mlx5_0")
    listening, asking = meeting.legs[0].words
    assert asking == (*listening[:2], "mlx5_1", *listening[3:-1], "--use_cuda=1", asking[-1])
    assert asking[-1] == wanted.wish.inventory.hosts[hosts[0]].address


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hosts: each\n    listens: [a]", "is not of pairs"),
        ("hosts: pairs\n    crossed: true", "crosses no parts"),
        ("hosts: each\n    warn: 3\n    error: 4", "warns later"),
        ("hosts: each\n    better: lower\n    warn: 4\n    error: 3", "warns later"),
        ("hosts: some", "some"),
    ],
)
def test_what_a_load_check_may_not_be(tmp_path: Path, line: str, said: str) -> None:
    folder = tmp_path / "configs/checks-load"
    folder.mkdir(parents=True)
    text = f"""about: One.
checks:
  one:
    title: one
    {line}
    command: [a]
    read: '(?P<value>x)'
    unit: GB/s
    owner: hardware
    remedy: none
    install: none
    why: none
    known_from: none
    samples: [{{text: x, reads: {{}}}}]
"""
    (folder / "one.yaml").write_text(text)
    with pytest.raises(InputError) as refused:
        read_load_checks(Data((tmp_path,)))
    assert said in str(refused.value)
