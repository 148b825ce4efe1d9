"""Stacks and platforms are fetched once, whole, hash-checked, by the machine's own pip and apt."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import own_apt
import pytest
from samples import sample

from launcher.flows import mirror, platform, stack, wheelhouse
from launcher.flows.digests import sha256_of
from launcher.load.data import Data, shipped
from launcher.model.problem import InputError, LauncherError
from launcher.model.run import Event
from launcher.model.wish import Wanted
from launcher.resolve import resolve

TARGET = wheelhouse.Target("3.11", "2.36")


def quiet(what: str, done: int, total: int) -> None:
    return None


def make_wheel(folder: Path, name: str, version: str, tag: str = "py3-none-any") -> Path:
    """The least that pip takes for a wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    members = {
        f"{name}.py": f"version = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = ""
    for member, text in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{member},sha256={digest},{len(text)}\n"
    members[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return path


def pin(path: Path, name: str, version: str) -> str:
    return f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture
def origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip, and pip alone, is told to look into; it has wheels for the hosts, and for others."""
    folder = tmp_path / "origin"
    make_wheel(folder, "plain", "1.0")
    make_wheel(folder, "native", "2.0", "cp311-cp311-manylinux_2_28_x86_64")
    make_wheel(folder, "native", "2.0", "cp311-cp311-manylinux_2_99_x86_64")
    for name, value in {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def lock(origin: Path, tmp_path: Path) -> Path:
    path = tmp_path / "x.lock"
    native = origin / "native-2.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    text = pin(origin / "plain-1.0-py3-none-any.whl", "plain", "1.0") + pin(native, "native", "2.0")
    path.write_text(f"# what hosts get\n\n{text}")
    return path


def test_lock_is_read_with_its_lines(lock: Path) -> None:
    pins = wheelhouse.read_lock(lock)
    assert [(p.name, p.version, p.where) for p in pins] == [
        ("plain", "1.0", f"{lock}:3"),
        ("native", "2.0", f"{lock}:5"),
    ]


def test_lock_names_every_line_that_pins_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bad.lock"
    path.write_text("a==1\nb>=2 --hash=sha256:" + "0" * 64 + "\n")
    with pytest.raises(InputError) as refused:
        wheelhouse.read_lock(path)
    assert [p.where for p in refused.value.problems] == [f"{path}:1", f"{path}:2"]


def test_wheels_come_once_and_what_is_broken_comes_again(lock: Path, origin: Path, tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    pins = wheelhouse.read_lock(lock)
    first = wheelhouse.fill(folder, pins, TARGET, tell=quiet)
    assert sorted(first) == ["native-2.0-cp311-cp311-manylinux_2_28_x86_64.whl", "plain-1.0-py3-none-any.whl"]
    older = folder / "stray-0-py3-none-any.whl"
    older.write_text("of an older lock, which hosts still install by")
    plain = folder / "plain-1.0-py3-none-any.whl"
    flipped = bytearray(plain.read_bytes())
    flipped[40] ^= 1
    plain.write_bytes(flipped)
    assert wheelhouse.fill(folder, pins, TARGET, tell=quiet) == first
    assert sorted(p.name for p in folder.iterdir()) == sorted([*first, older.name])
    shutil.rmtree(origin)  # nothing is missing, so nobody is asked
    assert wheelhouse.fill(folder, pins, TARGET, tell=quiet) == first


def test_a_wheel_with_another_hash_is_refused(lock: Path, origin: Path, tmp_path: Path) -> None:
    pins = wheelhouse.read_lock(lock)
    make_wheel(origin, "plain", "1.0")
    with zipfile.ZipFile(origin / "plain-1.0-py3-none-any.whl", "a") as archive:
        archive.writestr("surprise.py", "x = 1\n")
    with pytest.raises(LauncherError) as refused:
        wheelhouse.fill(tmp_path / "wheels", pins, TARGET, tell=quiet)
    assert "HASHES" in refused.value.problems[0].why
    assert list((tmp_path / "wheels").iterdir()) == []


def test_a_local_version_that_pip_does_not_find_says_where_to_put_it(origin: Path, tmp_path: Path) -> None:
    lost = tmp_path / "lost.lock"
    lost.write_text("torch==2.13.0+cpu --hash=sha256:" + "0" * 64 + "\n")
    with pytest.raises(LauncherError) as refused:
        wheelhouse.fill(tmp_path / "wheels", wheelhouse.read_lock(lost), TARGET, tell=quiet)
    problem = refused.value.problems[0]
    assert problem.what == "pip finds no torch 2.13.0+cpu for these hosts"
    assert str(tmp_path / "wheels") in problem.do


def make_deb(folder: Path, name: str, version: str, depends: str = "") -> None:
    tree = folder / name
    (tree / "DEBIAN").mkdir(parents=True)
    needs = f"Depends: {depends}\n" if depends else ""
    (tree / "DEBIAN" / "control").write_text(
        f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: test <test@localhost>\n"
        f"{needs}Description: test\n"
    )
    words = ["dpkg-deb", "--build", "--root-owner-group", str(tree), str(folder)]
    subprocess.run(words, check=True, capture_output=True)
    shutil.rmtree(tree)


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Makes apt know a folder of packages with an index, and nothing else."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        pytest.skip("no apt on this machine: stacks are built on Debian or Ubuntu")
    config = own_apt.made(tmp_path / "apt")
    monkeypatch.setenv("APT_CONFIG", str(config))
    return partial(own_apt.know, config)


@pytest.fixture
def repository(archive: Callable[[Path], None], tmp_path: Path) -> Path:
    """`outer` needs `inner`, which needs `common`; apt finds them by the index that mirror writes."""
    folder = tmp_path / "repository"
    folder.mkdir()
    make_deb(folder, "common", "1")
    make_deb(folder, "inner", "1:2.0-1", "common")
    make_deb(folder, "outer", "3", "inner (>= 1:1)")
    files = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.glob("*.deb")}
    (folder / "Packages").write_text("".join(mirror._stanzas(folder, files)))
    archive(folder)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(p.name.split("_")[0] for p in folder.glob("*.deb"))


def test_packages_come_with_what_they_need_and_the_hosts_lack(repository: Path, tmp_path: Path) -> None:
    assert len(mirror.fill(tmp_path / "all/debs", {"outer": ""}, status=None, tell=quiet)) == 4
    assert names(tmp_path / "all/debs") == ["common", "inner", "outer"]
    status = tmp_path / "status"
    status.write_text(
        "Package: common\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n"
        "Maintainer: test <test@localhost>\nDescription: test\n\n"
    )
    mirror.fill(tmp_path / "some/debs", {"outer": "3"}, status=status, tell=quiet)
    assert names(tmp_path / "some/debs") == ["inner", "outer"]


def test_hosts_install_from_the_folder_alone(
    repository: Path, archive: Callable[[Path], None], tmp_path: Path
) -> None:
    folder = tmp_path / "mirror/debs"
    mirror.fill(folder, {"outer": ""}, status=None, tell=quiet)
    archive(folder)
    words = ["apt-get", "install", "--simulate", "-qq", "outer"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert [line.split()[1] for line in said.splitlines() if line.startswith("Inst")] == [
        "common",
        "inner",
        "outer",
    ]


def test_a_broken_package_is_fetched_again_and_a_stray_one_is_in_no_index(
    repository: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "mirror/debs"
    first = mirror.fill(folder, {"inner": ""}, status=None, tell=quiet)
    broken = next(folder.glob("inner_*"))
    broken.write_bytes(broken.read_bytes()[:-1] + b"?")
    make_deb(folder, "stray", "1")
    assert mirror.fill(folder, {"inner": ""}, status=None, tell=quiet) == first
    assert re.findall(r"^Package: (\w+)", (folder / "Packages").read_text(), re.MULTILINE) == [
        "common",
        "inner",
    ]


def test_an_unknown_package_is_named(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(LauncherError) as refused:
        mirror.fill(tmp_path / "mirror/debs", {"nothing-like-it": ""}, status=None, tell=quiet)
    assert "nothing-like-it" in refused.value.problems[0].why


def made_stack(folder: Path, lock: Path, more: str = "") -> Data:
    """Data with stack `x`, whose lock is that file."""
    stacks = folder / "data/configs/stacks"
    stacks.mkdir(parents=True, exist_ok=True)
    shutil.copy(lock, stacks / "x.lock")
    (stacks / "x.yaml").write_text(
        'about: A test.\nroles: [os-base]\npython: "3.11"\nlock: x.lock\n'
        f'variables: {{glibc: "2.36", plain: "1.0"}}\n{more}'
    )
    return Data((folder / "data", shipped()))


def test_a_stack_is_built_verified_and_every_damage_named(lock: Path, tmp_path: Path) -> None:
    data = made_stack(tmp_path, lock)
    wanted = stack.read("x", data)
    shared = tmp_path / "shared"

    def wrong() -> list[str]:
        return [p.what.split(", built was")[0] for p in stack.verify(wanted, shared, data)]

    assert wrong() == ["stack x is not built, or its first build did not end"]
    events: list[Event] = []
    built = stack.build(wanted, shared, events.append, data=data)
    assert (built.wheels, built.packages) == (2, 0)
    assert events[-1].subject == "stack x"
    assert wrong() == []
    wheels = built.folder / "wheels"
    (wheels / "plain-1.0-py3-none-any.whl").unlink()
    native = next(wheels.glob("native*"))
    with native.open("ab") as file:
        file.write(b"?")
    (built.folder / "debs/extra_1_all.deb").write_bytes(b"from somewhere")
    assert wrong() == [
        f"{native.name} has sha256 {sha256_of(native)[:12]}",
        "plain-1.0-py3-none-any.whl is missing",
        "extra_1_all.deb is not of this stack",
    ]
    assert all("stack build x --to" in p.do for p in stack.verify(wanted, shared, data))
    stack.build(wanted, shared, events.append, data=data)
    assert wrong() == []
    for damaged in ("{", "[]", '{"files": {}}', '{"files": {"requirements.lock": 1}}'):
        (built.folder / "stack.json").write_text(damaged)
        assert wrong() == ["the record of stack x is damaged"]
    stack.build(wanted, shared, events.append, data=data)
    assert wrong() == []


def test_a_record_is_held_against_the_lock(lock: Path, tmp_path: Path) -> None:
    """Whoever exchanges a wheel and its line of the record does not get past `verify`."""
    data, shared = made_stack(tmp_path, lock), tmp_path / "shared"
    wanted = stack.read("x", data)
    built = stack.build(wanted, shared, lambda event: None, data=data)
    other = make_wheel(tmp_path / "other", "plain", "1.0", "py3-none-linux_x86_64")
    (built.folder / "wheels/plain-1.0-py3-none-any.whl").write_bytes(other.read_bytes())
    record = json.loads((built.folder / "stack.json").read_text())
    record["files"]["wheels/plain-1.0-py3-none-any.whl"]["sha256"] = sha256_of(other)
    (built.folder / "stack.json").write_text(json.dumps(record))
    assert [p.what for p in stack.verify(wanted, shared, data)] == [
        "the lock pins plain 1.0, and no wheel of it was built",
        "wheels/plain-1.0-py3-none-any.whl is of no pin of the lock",
    ]


def test_what_hosts_install_from_changes_at_the_end(lock: Path, origin: Path, tmp_path: Path) -> None:
    """A build that ends half-way leaves the old lock and all its wheels; the next one sweeps."""
    data, shared = made_stack(tmp_path, lock), tmp_path / "shared"
    folder = stack.build(stack.read("x", data), shared, lambda event: None, data=data).folder
    before = sorted(p.name for p in (folder / "wheels").iterdir())
    newer = tmp_path / "newer.lock"
    newer.write_text(pin(make_wheel(origin, "plain", "2.0"), "plain", "2.0"))
    data = made_stack(tmp_path, newer, 'packages: {no-such-package-anywhere: ""}\n')
    with pytest.raises(LauncherError):
        stack.build(stack.read("x", data), shared, lambda event: None, data=data)
    assert set(before) < {p.name for p in (folder / "wheels").iterdir()}
    assert (folder / "requirements.lock").read_bytes() == lock.read_bytes()
    data = made_stack(tmp_path, newer)
    stack.build(stack.read("x", data), shared, lambda event: None, data=data)
    assert [p.name for p in (folder / "wheels").iterdir()] == ["plain-2.0-py3-none-any.whl"]


def test_versions_that_a_stack_names_are_those_of_its_lock(lock: Path, tmp_path: Path) -> None:
    data = made_stack(tmp_path, lock, "locked_as: {plain: plain, glibc: native}\n")
    with pytest.raises(InputError) as refused:
        stack.build(stack.read("x", data), tmp_path / "shared", lambda event: None, data=data)
    assert [p.what for p in refused.value.problems] == ["stack x says glibc 2.36, its lock has native 2.0"]


def test_a_stack_without_a_lock_says_so(tmp_path: Path) -> None:
    stacks = tmp_path / "data/configs/stacks"
    stacks.mkdir(parents=True)
    (stacks / "bare.yaml").write_text('about: A test.\nroles: [os-base]\npython: "3.11"\n')
    data = Data((tmp_path / "data", shipped()))
    with pytest.raises(InputError) as refused:
        stack.build(stack.read("bare", data), tmp_path / "shared", lambda event: None, data=data)
    assert refused.value.problems[0].what == "stack bare names no lock: there is nothing to fetch"
    assert not (tmp_path / "shared").exists()


def on_platform(folder: Path, *, lock: str = "") -> Wanted:
    """An inventory on a platform that needs `outer`, and nothing else."""
    platforms = folder / "data/configs/platforms"
    platforms.mkdir(parents=True, exist_ok=True)
    (platforms / "x.yaml").write_text(
        f"about: A test.\nos: debian 12\nroles: [firewall]\npackages: {{firewall: [outer=3]}}\n{lock}"
    )
    return resolve(sample("prod-min", folder, platform="x", data_dir=folder / "data"))


def test_a_platform_is_locked_built_and_verified(
    repository: Path, archive: Callable[[Path], None], tmp_path: Path
) -> None:
    data, shared = Data((tmp_path / "data", shipped())), tmp_path / "shared"
    unlocked = on_platform(tmp_path)
    text = platform.lock_text(unlocked, status=None)
    assert [line.split()[1].split("_")[0] for line in text.splitlines()] == ["common", "inner", "outer"]
    (tmp_path / "data/configs/platforms/x.lock").write_text(text)
    wanted = on_platform(tmp_path, lock="lock: x.lock\n")

    assert [p.what for p in platform.verify(wanted, shared, data)] == [
        "platform x is not built, or its first build did not end"
    ]
    built = platform.build(wanted, shared, lambda event: None, data=data)
    assert (built.packages, names(shared / "platforms/x/debs")) == (3, ["common", "inner", "outer"])
    assert platform.verify(wanted, shared, data) == ()
    next(built.folder.glob("debs/inner*")).write_bytes(b"?")
    (wrong,) = platform.verify(wanted, shared, data)
    assert "inner" in wrong.what
    assert wrong.do == f"dsv32-launch platform build inventories/prod-min.yaml --to {shared}"

    make_deb(repository, "inner", "1:2.0-1", "common (>= 1)")  # the same version, and another file
    files = {p.name: sha256_of(p) for p in repository.glob("*.deb")}
    (repository / "Packages").write_text("".join(mirror._stanzas(repository, files)))
    archive(repository)
    with pytest.raises(LauncherError) as refused:
        platform.build(wanted, shared, lambda event: None, data=data)
    assert [p.what.split()[0].split("_")[0] for p in refused.value.problems] == ["inner"]
