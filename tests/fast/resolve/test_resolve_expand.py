"""Roles become the steps of each host: whose, in which order, and with what in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from resolve_wish import wish

from launcher.model.inventory import WeightsPlace
from launcher.model.problem import InputError
from launcher.model.role import Step
from launcher.model.wish import Wish
from launcher.resolve import resolve
from launcher.resolve.ports import weights_endpoints
from launcher.steps import weights

LAYOUT = "prefill: {}\ndecode: {hosts_per_instance: 2, data_parallel: 2, style: hybrid}\nrouter: {}\n"
STACK = """
about: test
roles: [{roles}]
engine: vllm-0.32-cpu
engine_version: 0.32.0
router: vllm-router
"""
AGENT = """
about: test
stage: engine
pools: [prefill, decode]
steps:
  config: {kind: file, each: process, path: "/etc/{{ process.instance }}", content: "{{ text }}"}
  unit:
    kind: unit
    each: process
    restart_on: [config, shared]
    name: "{{ process.unit }}"
    template: unit.j2
    guarded: "{{ process.instance }}"
  shared: {kind: file, path: /etc/shared, file: shared.conf}
"""
ROUTER = """
about: test
stage: router
steps:
  unit: {kind: unit, each: router, name: "{{ router.unit }}", content: "{{ deployment.cluster }}"}
  every: {kind: folder, path: "/srv/{{ host.name }}"}
"""


def with_roles(folder: Path, **texts: str) -> Wish:
    """A wish whose stack has these roles only."""
    for name, text in texts.items():
        role = folder / "data/roles" / name
        for part in ("templates", "files"):
            (role / part).mkdir(parents=True, exist_ok=True)
        (role / "role.yaml").write_text(text)
        (role / "templates/unit.j2").write_text("[Service]\nExecStart={{ process.argv() | join(' ') }}\n")
        (role / "files/shared.conf").write_text("one\n")
    stacks = folder / "data/configs/stacks"
    stacks.mkdir(parents=True, exist_ok=True)
    (stacks / "test.yaml").write_text(STACK.format(roles=", ".join(texts)))
    return wish(folder, LAYOUT, stack="test", hardware="cpu", model="tiny")


def ids(steps: tuple[Step, ...]) -> list[str]:
    return [s.id for s in steps]


def test_steps_go_by_stage_to_the_hosts_of_their_pools(tmp_path: Path) -> None:
    agent = AGENT.replace("{{ text }}", "x")
    wanted = resolve(with_roles(tmp_path, last=ROUTER, agent=agent))
    assert ids(wanted.steps["h03"]) == [
        "agent/config[decode-0]",
        "agent/unit[decode-0]",
        "agent/shared",
        "last/every",
    ]
    assert ids(wanted.steps["h08"]) == ["last/unit[a]", "last/unit[b]", "last/every"]
    assert ids(wanted.steps["h07"]) == ["last/every"]
    unit = wanted.steps["h04"][1]
    assert unit.instance == "decode-0"
    assert "--data-parallel-start-rank 1" in unit.want.content
    assert [s.instance for s in wanted.steps["h04"] if s.id != unit.id] == ["", "", ""]
    assert wanted.steps["h08"][0].want.content == "test"
    assert wanted.steps["h08"][2].want.path == "/srv/h08"


def test_a_unit_depends_on_what_it_restarts_on_and_nothing_else(tmp_path: Path) -> None:
    def depends(text: str) -> str:
        wanted = resolve(with_roles(tmp_path, agent=AGENT.replace("{{ text }}", text)))
        return str(wanted.steps["h01"][1].want.depends)

    assert depends("one") == depends("one") != depends("two")


def test_problems_of_all_roles_and_hosts_come_at_once_and_once(tmp_path: Path) -> None:
    bad = ROUTER.replace("host.name", "host.nme").replace("kind: unit", "kind: uint")
    with pytest.raises(InputError) as raised:
        resolve(with_roles(tmp_path, agent=AGENT, last=bad))
    told = {(p.where.partition("/data/")[2], p.what) for p in raised.value.problems}
    assert told == {
        ("roles/agent/role.yaml:6", "template: 'text' is undefined"),
        ("roles/last/role.yaml:5", "unknown kind `uint`"),
        (
            "roles/last/role.yaml:6",
            "template: `host` has no `nme`, it has name, address, interface, source, places",
        ),
    }
    assert len(raised.value.problems) == len(told)


@pytest.mark.parametrize(
    ("step", "what"),
    [
        ("{kind: file, path: /a, template: nit.j2}", "the role has no template `nit.j2`"),
        ("{kind: file, path: /a, file: shared.con}", "the role has no file `shared.con`"),
        ("{kind: file, path: /a, content: x, file: shared.conf}", "step bad/step has content and file"),
        (
            "{kind: file, path: /a, content: x, restart_on: [step]}",
            "step bad/step of kind file has restart_on",
        ),
        ('{kind: file, path: /a, content: "{{ 1 / 0 }}"}', "template: division by zero"),
        ("{kind: folder, path: a/b}", "`path` is `a/b`, expected an absolute path: `/etc/x.conf`"),
        ("{kind: absent, path: /}", "`path` is `/`, expected an absolute path: `/etc/x.conf`"),
        ("{kind: absent, path: /a/../b}", "`path` is `/a/../b`, expected an absolute path: `/etc/x.conf`"),
        ("{kind: folder, path: /a, mode: 9}", "`mode` is `9`, expected four octal digits: `0644`"),
        (
            "{kind: folder, path: /a, owner: b, ownr: c}",
            "unknown parameter `ownr` in step bad/step of kind folder",
        ),
    ],
)
def test_what_a_step_may_not_say(tmp_path: Path, step: str, what: str) -> None:
    with pytest.raises(InputError) as raised:
        resolve(with_roles(tmp_path, bad=f"about: test\nstage: host\nsteps:\n  step: {step}\n"))
    (problem,) = raised.value.problems
    assert problem.what == what
    assert problem.where.endswith("roles/bad/role.yaml:4")
    assert problem.do


def test_two_steps_may_not_want_one_path_in_two_ways(tmp_path: Path) -> None:
    steps = "a: {kind: folder, path: /x}\n  b: {kind: folder, path: /x}\n  c: {kind: absent, path: /x}"
    with pytest.raises(InputError) as raised:
        resolve(with_roles(tmp_path, bad=f"about: test\nstage: host\nsteps:\n  {steps}\n"))
    (problem,) = raised.value.problems
    assert problem.what == "steps bad/a and bad/c want path /x in two ways"
    assert problem.where.endswith("role.yaml:6")
    assert problem.why.endswith("role.yaml:4")


@pytest.mark.parametrize(
    ("one", "other", "thing"),
    [
        (
            "{kind: unit, name: chrony.service, state: started}",
            "{kind: unit, name: chrony.service, content: x}",
            "unit chrony.service",
        ),
        (
            "{kind: file, path: /etc/systemd/system/a.service, content: x}",
            "{kind: unit, name: a.service, content: y}",
            "path /etc/systemd/system/a.service",
        ),
        (
            "{kind: package, names: {chrony: '4.5'}}",
            "{kind: package, names: {chrony: '4.6'}}",
            "version of package chrony",
        ),
        ("{kind: package, names: chrony}", "{kind: purged, names: [chrony]}", "package chrony"),
        (
            "{kind: sysctl, file: /etc/sysctl.d/a.conf, key: vm.swappiness, value: '1'}",
            "{kind: sysctl, file: /etc/sysctl.d/a.conf, key: vm.swappiness, value: '2'}",
            "kernel setting vm.swappiness",
        ),
        (
            "{kind: sysctl, file: /etc/sysctl.d/a.conf, key: vm.swappiness, value: '1'}",
            "{kind: file, path: /etc/sysctl.d/a.conf, content: x}",
            "path /etc/sysctl.d/a.conf",
        ),
        ("{kind: user, name: ana, groups: [a]}", "{kind: user, name: ana, groups: [b]}", "user ana"),
        ("{kind: link, path: /a, target: /b}", "{kind: folder, path: /a}", "path /a"),
        ("{kind: absent, path: /a}", "{kind: file, path: /a/b, content: x}", "path /a/b"),
        (
            "{kind: unit, name: chrony, state: stopped}",
            "{kind: unit, name: chrony.service}",
            "unit chrony.service",
        ),
        (
            "{kind: sysctl, file: /etc/sysctl.d/a.conf, key: vm.swappiness, value: '1'}",
            "{kind: sysctl, file: /etc/sysctl.d/b.conf, key: vm/swappiness, value: '1'}",
            "kernel setting vm.swappiness",
        ),
        (
            "{kind: boot, path: /proc/cmdline, read: 'a=(.)', equals: '1'}",
            "{kind: boot, path: /proc/cmdline, read: 'a=(.)', equals: '2'}",
            "value of the kernel /proc/cmdline: a=(.)",
        ),
        (
            "{kind: built, path: /a.conf, content: x, into: /boot/i, by: [b]}",
            "{kind: absent, path: /boot/i}",
            "path /boot/i",
        ),
    ],
)
def test_two_roles_may_not_own_one_thing(tmp_path: Path, one: str, other: str, thing: str) -> None:
    roles = {
        name: f"about: test\nstage: host\nsteps:\n  step: {step}\n"
        for name, step in {"one": one, "two": other}.items()
    }
    with pytest.raises(InputError) as raised:
        resolve(with_roles(tmp_path, **roles))
    (problem,) = raised.value.problems
    assert problem.what == f"steps one/step and two/step want {thing} in two ways"
    assert problem.where.endswith("roles/two/role.yaml:4")
    assert problem.why.endswith("roles/one/role.yaml:4")


@pytest.mark.parametrize(
    ("step", "thing"),
    [
        ("{kind: unit, name: chrony.service}", "unit chrony.service"),
        ("{kind: user, name: ana}", "user ana"),
        ("{kind: file, path: /a, content: x}", "path /a"),
        (
            "{kind: sysctl, file: /etc/sysctl.d/a.conf, key: vm.swappiness, value: '1'}",
            "kernel setting vm.swappiness",
        ),
    ],
)
def test_one_thing_is_of_one_role_even_where_both_want_the_same(
    tmp_path: Path, step: str, thing: str
) -> None:
    text = f"about: test\nstage: host\nsteps:\n  step: {step}\n"
    with pytest.raises(InputError) as raised:
        resolve(with_roles(tmp_path, one=text, two=text))
    (problem,) = raised.value.problems
    assert problem.what == f"steps one/step and two/step both own {thing}"
    assert problem.where.endswith("roles/two/role.yaml:4")
    assert problem.why.endswith("roles/one/role.yaml:4")


def test_each_package_that_two_roles_pin_otherwise_is_named(tmp_path: Path) -> None:
    roles = {
        name: f"about: test\nstage: host\nsteps:\n  step: {{kind: package, names: {{a: '{v}', b: '{v}'}}}}\n"
        for name, v in (("one", "1"), ("two", "2"))
    }
    with pytest.raises(InputError) as raised:
        resolve(with_roles(tmp_path, **roles))
    assert [p.what.split(" want ")[1] for p in raised.value.problems] == [
        "version of package a in two ways",
        "version of package b in two ways",
    ]


def test_two_roles_may_need_the_same_package_and_folder(tmp_path: Path) -> None:
    steps = "p: {kind: package, names: {chrony: '4.5'}}\n  f: {kind: folder, path: /x}"
    any_version = "p: {kind: package, names: chrony}\n  f: {kind: folder, path: /x}"
    text = "about: test\nstage: host\nsteps:\n  "
    resolve(with_roles(tmp_path, one=f"{text}{steps}\n", two=f"{text}{any_version}\n"))


def test_without_a_layout_hosts_are_provisioned_and_nothing_serves(tmp_path: Path) -> None:
    made = with_roles(tmp_path, last=ROUTER)
    inventory = replace(made.inventory, layout="", pools={})
    wanted = resolve(replace(made, inventory=inventory))
    assert wanted.deployment is None
    assert ids(wanted.steps["h08"]) == ["last/every"]


@pytest.mark.parametrize(("place", "root"), [("staged", "/nvme"), ("in-place", "/gpfs")])
def test_engines_read_weights_where_the_inventory_says(
    tmp_path: Path, place: WeightsPlace, root: str
) -> None:
    """In place, no host hands others any."""
    made = wish(tmp_path, LAYOUT)
    paths = replace(made.inventory.paths, weights=place)
    wanted = resolve(replace(made, inventory=replace(made.inventory, paths=paths)))
    assert wanted.deployment
    processes = [p for i in wanted.deployment.instances for p in i.processes]
    assert {p.arguments[0].value for p in processes} == {f"{root}/models/tiny"}
    for host in {p.host for p in processes}:
        steps = wanted.steps[host]
        assert [s.want.in_place for s in steps if isinstance(s.want, weights.Params)] == [place == "in-place"]
        assert len(list(weights_endpoints(made.inventory.hosts[host], steps))) == (place == "staged")
