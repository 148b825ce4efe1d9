"""roles/, configs/ and inventories/ hold together: each file is read, used, and says what it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from samples import ROOT, SAMPLES, sample

from launcher.flows import stack, wheelhouse
from launcher.load.choice import Choice, read
from launcher.load.collect import Collector
from launcher.load.data import Data, shipped
from launcher.load.roles import read_role, read_roles
from launcher.model.profile import Platform
from launcher.model.role import STAGES
from launcher.resolve import resolve
from launcher.steps.package import Params as Package
from launcher.steps.package import pins
from launcher.steps.unit import Params as Unit

DATA = Data((shipped(),))
ROLES = DATA.names("roles", holding="role.yaml")
PLATFORMS = DATA.names("configs/platforms", holding=".yaml")
STACKS = DATA.names("configs/stacks", holding=".yaml")
LOCKS = sorted((ROOT / "configs/stacks").glob("*.lock"))
PROGRAMS = sorted((ROOT / "roles").glob("*/files/*.py"))


@pytest.mark.parametrize("name", ROLES)
def test_a_role_says_what_it_is_in_one_sentence(name: str) -> None:
    role = read_role(name, DATA)
    assert role.about.endswith(".")
    assert role.stage in STAGES
    assert role.steps


@pytest.mark.parametrize("name", ROLES)
def test_every_file_of_a_role_is_used(name: str) -> None:
    role = read_role(name, DATA)
    steps = [step for step in role.steps if step.kind != "sysctl"]  # whose `file` is on the host
    used = {str(s.params[word].value) for s in steps for word in ("template", "file") if word in s.params}
    assert set(role.templates) | set(role.files) == used


@pytest.mark.parametrize("name", ROLES)
def test_a_role_that_reboots_hosts_is_one_for_which_engines_stop(name: str) -> None:
    role = read_role(name, DATA)
    assert role.halts or not any(step.kind == "boot" for step in role.steps)


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_has_all_roles_that_its_roles_need(name: str) -> None:
    wanted = stack.read(name, DATA)
    problems = Collector()
    roles = read_roles(wanted, DATA, problems)
    problems.raise_any()
    assert {role.name for role in roles} == set(wanted.roles)
    assert wanted.about.endswith(".")
    assert wanted.python
    assert wanted.variables["glibc"]


@pytest.mark.parametrize("path", LOCKS, ids=lambda p: p.name)
def test_a_lock_pins_each_package_once_and_belongs_to_a_stack(path: Path) -> None:
    pins = wheelhouse.read_lock(path)
    names = [pin.name for pin in pins]
    assert names == sorted(set(names))
    assert all(pin.hashes for pin in pins)
    stacks = [stack.read(name, DATA) for name in STACKS]
    tools = {build.tools_lock for s in stacks for build in s.builds.values()}
    assert path.name in {s.lock for s in stacks} | tools
    assert "uv" in names or path.name in tools, "hosts install with it"


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_names_the_versions_of_its_lock(name: str) -> None:
    made = stack.fetching_of(stack.read(name, DATA), DATA)
    assert set(made.tools) == set(made.stack.builds)
    for package, build in made.stack.builds.items():
        assert re.fullmatch("[0-9a-f]{40}", build.commit)
        locked = {f"{pin.name}=={pin.version}" for pin in made.tools[package]}
        assert {line for line in build.tools if "==" in line} <= locked


def test_every_role_stack_and_router_is_used(tmp_path: Path) -> None:
    stacks = [sample(name, tmp_path).profile.stack for name in SAMPLES]
    used = {
        "stacks": {s.name for s in stacks},
        "routers": {s.router for s in stacks},
    }
    for folder, names in used.items():
        assert set(DATA.names(f"configs/{folder}", holding=".yaml")) == names, folder
    platforms = [read(Platform, Choice(name, ""), DATA) for name in PLATFORMS]
    roles = {*(r for s in stacks for r in s.roles), *(r for p in platforms for r in p.roles)}
    assert roles == set(ROLES)


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_platform_makes_bare_hosts_of_a_sample_ready(name: str, tmp_path: Path) -> None:
    wish = sample("prod-min", tmp_path, platform=name)
    platform = wish.profile.platform
    assert platform
    steps = resolve(wish).steps["gpu01"]
    made = {step.role for step in steps}
    assert set(platform.roles) <= made
    for step in steps:
        if isinstance(step.want, Package) and step.role in platform.roles:
            assert step.want.mirror == f"/gpfs/platforms/{name}/debs"
            assert all(pins(step.want.names)), step.id
    driver = {v.partition("-")[0] for v in pins(platform.packages["driver"]).values()}
    assert driver == {platform.variables["driver"]}, "driver and fabric manager are of one version"
    minimum = wish.profile.stack.variables["driver_minimum"]
    assert release(platform.variables["driver"]) >= release(minimum)


def release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_unit_of_an_inventory_is_one_that_systemd_can_read(name: str, tmp_path: Path) -> None:
    wanted = resolve(sample(name, tmp_path))
    for steps in wanted.steps.values():
        assert steps
        for step in steps:
            if isinstance(step.want, Unit) and step.want.content:
                check_unit(step.want)


def check_unit(unit: Unit) -> None:
    logical = re.sub(r"\\\n\s*", "", unit.content).splitlines()
    sections = [line for line in logical if line.startswith("[")]
    assert sections[:2] == ["[Unit]", "[Service]"]
    assert ("[Install]" in sections) == unit.enabled, "an enabled unit says by what it is wanted"
    for line in logical:
        assert not line or line[0] in "[#" or re.match(r"[A-Z][A-Za-z]+=\S", line), line
    assert len([line for line in logical if line.startswith("ExecStart=/")]) == 1


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_programs_for_hosts_parse_where_they_run(path: Path) -> None:
    old = (3, 11) if path.parent.parent.name == "sandbox-engine" else (3, 8)
    tree = ast.parse(path.read_text(), feature_version=old)
    assert ast.get_docstring(tree)


def test_nothing_of_the_sandbox_reaches_a_production_stack() -> None:
    for name in STACKS:
        wanted = stack.read(name, DATA)
        assert ("sandbox-engine" in wanted.roles) == name.startswith("sandbox"), name


def test_no_data_names_a_registry() -> None:
    named = re.compile(rb"pypi\.org|pythonhosted|deb\.debian|/work/|/tmp/lab", re.IGNORECASE)
    files = [path for folder in ("roles", "configs") for path in (ROOT / folder).rglob("*")]
    assert [path for path in files if path.is_file() and named.search(path.read_bytes())] == []
