"""What views share: ranges of hosts, problems, a plan's rows, a status in cells."""

from __future__ import annotations

import pytest

from launcher.cli.plantext import sections, summary
from launcher.cli.words import problem_lines
from launcher.load.ranges import host_range
from launcher.model.plan import Action, Change, Plan
from launcher.model.problem import Problem


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (["gpu03", "gpu01", "gpu02"], "gpu01–gpu03"),
        (["gpu01", "gpu02", "gpu07"], "gpu01–gpu02, gpu07"),
        (["gpu09", "gpu10", "gpu11"], "gpu09–gpu11"),
        (["h9", "h10"], "h9–h10"),
        (["router", "gpu01", "gpu01"], "gpu01, router"),
        (["a-1", "b-2"], "a-1, b-2"),
        ([], ""),
    ],
)
def test_hosts_that_count_up_are_a_range(hosts: list[str], text: str) -> None:
    assert host_range(hosts) == text


def test_the_same_problem_of_many_hosts_is_told_once() -> None:
    same = [Problem("disk full", f"gpu0{n}", "0 of 3,500 GiB free", "free some") for n in (1, 2, 3)]
    lines = list(problem_lines([*same, Problem("no host", "a.yaml:3", do="add one")]))

    assert lines == [
        "error: disk full",
        "  where  gpu01–gpu03",
        "  why    0 of 3,500 GiB free",
        "  do     free some",
        "error: no host",
        "  where  a.yaml:3",
        "  do     add one",
    ]


def change(host: str, **changed: object) -> Change:
    values = {
        "host": host,
        "stage": "host",
        "step": "base/file",
        "action": Action.CREATE,
        "subject": "/etc/a",
        "before": "absent",
        "after": "file",
        "because": "roles/base/role.yaml:3",
        "ops": (),
    }
    return Change(**{**values, **changed})  # type: ignore[arg-type]


def test_a_plan_says_the_same_change_of_many_hosts_once_and_an_instance_as_a_whole() -> None:
    engine = {
        "stage": "engine",
        "action": Action.RESTART,
        "instance": "decode-0",
        "subject": "dsv32-decode-0.service",
    }
    other = change("gpu03", before="file 0600")
    boots = [change(f"gpu0{n}", action=Action.REBOOT, subject="/proc/cmdline") for n in (1, 2)]
    lives = [change(f"gpu0{n}", **engine) for n in (1, 2)]
    changes = (change("gpu01"), change("gpu02"), other, *boots, *lives)
    plan = Plan(changes, facts={}, data_digest="d")

    host, life = sections(plan)

    assert [(row.hosts, row.before) for row in host.rows] == [
        ("gpu01–gpu02", "absent"),
        ("gpu03", "file 0600"),
        ("gpu01–gpu02", "absent"),
    ]
    assert [(row.hosts, row.mark, row.subject) for row in life.rows] == [("gpu01–gpu02", "↻", "decode-0")]
    assert summary(plan) == "7 changes on 3 hosts, decode-0 restarts, gpu01–gpu02 boot."
