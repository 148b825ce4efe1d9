"""What is kept of what was wanted: its name, its archive, its history; and where a rollback goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from resolve_wish import wish
from small_wanted import HOSTS, wanted_of
from table_fleet import fleet_of, quiet

from launcher.flows import revisions
from launcher.load import load, load_kept
from launcher.load.kept import pack, unpack
from launcher.model.facts import Unknown
from launcher.model.problem import InputError, LauncherError
from launcher.model.revision import (
    FOLDER,
    HISTORY,
    KEPT,
    Entry,
    entries_in,
    good_before,
    history_text,
    merged,
    running,
)
from launcher.model.wish import Wanted
from launcher.resolve import resolve
from launcher.resolve.exchange import differences
from launcher.resolve.revision import revision_of
from launcher.rollout.planning import plan
from launcher.rollout.run import Run

LAYOUT = "prefill: {}\ndecode: {}\nrouter: {}\n"
SECRETS = 'front: {api_key: users}\nsecrets: {users: "env:USERS_KEY"}\n'


def entry(revision: str, flow: str = "up", result: str = "good", *, minute: int = 0) -> Entry:
    run = f"20261129T18{minute:02d}00Z-{flow}"
    return Entry(revision, run, flow, "ana", "", "s", "1.0", result)  # type: ignore[arg-type]


def entries(*told: tuple[str, str, str]) -> list[Entry]:
    return [entry(r, flow, result, minute=n) for n, (r, flow, result) in enumerate(told)]


def run_of(name: str) -> Run:
    return Run(name, quiet, lambda *_: "", lambda: False, "ana", "2026-11-29T18:05:00Z", "why", flow="up")


def test_a_revision_is_what_is_wanted_not_how_it_is_written(tmp_path: Path) -> None:
    plain = wish(tmp_path, LAYOUT)
    path = tmp_path / "test.yaml"
    written = path.read_text()

    def name(text: str) -> str:
        return revision_of(resolve(load(path, data_dir=tmp_path / "data", text=text)))

    first = revision_of(resolve(plain))
    assert name(written) == first
    assert (
        name("# for the night\n" + written.replace("{shared: /gpfs, local", "{shared:   /gpfs, local"))
        == first
    )
    assert name(written + "settings: {decode: {max-num-seqs: 17}}\n") != first
    assert name(written + "settings: {decode: {max-num-seqs: 18}}\n") != first
    assert path.read_text() == written, "a text given is not written"


def test_an_archive_reads_back_to_the_same_steps_wherever_it_lies(tmp_path: Path) -> None:
    then = wish(tmp_path, LAYOUT, more=SECRETS)
    opened = {"USERS_KEY": "of-that-day"}
    then = load(tmp_path / "test.yaml", data_dir=tmp_path / "data", environment=opened)
    archive = pack(then.files)
    assert archive == pack(dict(reversed(list(then.files.items()))))
    assert not any(b"of-that-day" in content for content in then.files.values())

    (tmp_path / "data/configs/layouts/test.yaml").write_text("about: another one by now\nprefill: {}\n")
    unpack(archive, tmp_path / "kept")
    kept = load_kept(tmp_path / "kept", then.inventory, environment={"USERS_KEY": "of-today"})
    assert revision_of(resolve(kept)) == revision_of(resolve(then)), "secrets are of the day"
    assert kept.secrets["users"].reveal() == "of-today"


def test_hosts_are_where_the_present_inventory_has_them(tmp_path: Path) -> None:
    then = wish(tmp_path, LAYOUT)
    unpack(pack(then.files), tmp_path / "kept")
    hosts = {n: replace(h, address=f"10.9.9.{n[-1]}") for n, h in then.inventory.hosts.items()}
    kept = load_kept(tmp_path / "kept", replace(then.inventory, hosts=hosts, path="prod.yaml"))
    assert {h.address for h in kept.inventory.hosts.values()} == {h.address for h in hosts.values()}
    assert kept.inventory.path == "prod.yaml"


def test_hosts_that_there_are_no_more_are_named_if_they_served(tmp_path: Path) -> None:
    then = wish(tmp_path, LAYOUT)
    unpack(pack(then.files), tmp_path / "kept")
    used = [host for pool in then.inventory.pools.values() for host in pool.hosts]
    present = {name: host for name, host in then.inventory.hosts.items() if name in used}
    assert len(present) < len(then.inventory.hosts)
    kept = load_kept(tmp_path / "kept", replace(then.inventory, hosts=present))
    assert kept.inventory.hosts.keys() == present.keys(), "those that served nothing are left out"
    del present[used[0]]
    with pytest.raises(InputError) as caught:
        load_kept(tmp_path / "kept", replace(then.inventory, hosts=present, path="prod.yaml"))
    (problem,) = caught.value.problems
    assert problem.what == f"the revision needs {used[0]}, which the inventory no longer has"
    assert f"{used[0]} was of pool prefill" in problem.why
    assert f"write what you want of {tmp_path / 'kept/inventory.yaml'} into prod.yaml" in problem.do


@pytest.mark.parametrize(
    "archive",
    [b"", b"no archive", pack({"../outside": b"x"}), pack({"a": b"x"})[:-9]],
    ids=["empty", "text", "outside", "cut"],
)
def test_what_is_no_archive_of_ours_is_refused(tmp_path: Path, archive: bytes) -> None:
    with pytest.raises(InputError, match="not an archive"):
        unpack(archive, tmp_path / "kept")
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    ("told", "present", "expected"),
    [
        ([("a", "up", "good"), ("b", "up", "good")], "b", "a"),
        ([("a", "up", "good"), ("b", "up", "good"), ("c", "up", "failed")], "c", "b"),
        ([("a", "up", "good"), ("b", "up", "begun")], "b", "a"),
        ([("a", "up", "good"), ("b", "upgrade", "begun")], "a", "a"),
        ([("a", "up", "good"), ("b", "upgrade", "failed")], "a", "a"),
        ([("a", "up", "good"), ("b", "up", "good"), ("c", "upgrade", "bad")], "c", "b"),
        (
            [("z", "up", "good"), ("a", "up", "good"), ("b", "up", "good"), ("a", "rollback", "good")],
            "b",
            "z",
        ),
        ([("a", "up", "good"), ("b", "up", "good"), ("a", "rollback", "begun")], "b", "a"),
        ([("a", "up", "good"), ("b", "up", "good"), ("a", "rollback", "good")], "b", None),
        ([("a", "up", "good"), ("b", "up", "good")], "never applied", "a"),
        ([("a", "up", "good")], "a", None),
        ([], "a", None),
    ],
)
def test_where_a_rollback_goes(told: list[tuple[str, str, str]], present: str, expected: str | None) -> None:
    assert good_before(entries(*told), present) == expected


def test_of_a_run_that_some_hosts_missed_the_end_counts() -> None:
    begun, good = entry("a", result="begun"), entry("a")
    assert merged([[begun], [good], []]) == merged([[good], [begun]]) == (good,)
    faulty = replace(begun, fault="ttft_ms mean 49 → 151")
    assert merged([[begun], [faulty]]) == merged([[faulty], [begun]]) == (faulty,), "it goes back"
    assert (faulty.goes_back, replace(faulty, result="bad").goes_back) == (True, False)
    assert entries_in({"text": history_text([good, faulty])}) == (good, faulty)
    assert good.when == "2026-11-29T18:00:00Z"
    assert running([entry("a"), entry("b", result="failed", minute=1)]) == "a"
    assert entries_in(Unknown("no host")) == entries_in({"absent": True}) == ()
    assert entries_in({"text": 'half a line"}\n{"revision": 1}\n[]\n'}) == ()


def remember(fleet: object, wanted: Wanted, name: str, *, result: str = "good") -> None:
    planned = plan(fleet, replace(wanted, steps=dict.fromkeys(wanted.steps, ())))  # type: ignore[arg-type]
    with revisions.remembered(fleet, wanted, planned, run_of(name)) as note:  # type: ignore[arg-type]
        note.result = result  # type: ignore[assignment]


def other(number: int) -> Wanted:
    return wanted_of(engine=f"[Service]\nExecStart=/bin/engine --release {number}\n")


def test_hosts_remember_the_last_revisions_and_always_a_good_one() -> None:
    fleet = fleet_of(HOSTS)
    remember(fleet, other(0), "20261129T170000Z-up")
    for number in range(1, KEPT + 3):
        remember(fleet, other(number), f"20261129T18{number:02d}00Z-up", result="failed")
    told, lost = revisions.recall(fleet, HOSTS)
    assert lost == ()
    assert {e.revision for e in told} == {revision_of(other(n)) for n in (0, *range(3, KEPT + 3))}
    for table in fleet.tables.values():
        archives = {p for p in table.paths if p.startswith(FOLDER) and p != HISTORY}
        assert archives == {f"{FOLDER}/{e.revision}.tgz" for e in told}
    assert revisions.chosen(told, revision_of(other(0))[:6]).result == "good"
    with pytest.raises(InputError, match="no revision `nothing` is kept"):
        revisions.chosen(told, "nothing")


def test_nothing_is_written_where_nothing_is_new() -> None:
    fleet = fleet_of(HOSTS)
    remember(fleet, other(0), "20261129T170000Z-up")
    fleet.log.clear()
    remember(fleet, other(0), "20261129T180000Z-up")
    assert {what for _, what in fleet.log} == {"ask"}


def test_a_run_that_is_refused_midway_has_failed() -> None:
    fleet = fleet_of(HOSTS)
    planned = plan(fleet, other(0))

    def refused() -> None:
        with revisions.remembered(fleet, other(0), planned, run_of("x-up")):  # type: ignore[arg-type]
            (begun,), _ = revisions.recall(fleet, HOSTS)
            assert begun.result == "begun"
            raise LauncherError

    with pytest.raises(LauncherError):
        refused()
    (failed,), _ = revisions.recall(fleet, HOSTS)
    assert failed.result == "failed"


def test_which_engines_can_hand_kv_to_each_other(tmp_path: Path) -> None:
    def of(more: str = "", stack: str = "current") -> Wanted:
        return resolve(wish(tmp_path, LAYOUT, stack=stack, more=more))

    plain = of()
    assert differences(plain, of("settings: {all: {max-num-seqs: 17}}\n")) == ()
    assert differences(plain, of("settings: {all: {kv-cache-dtype: bfloat16}}\n")) == (
        "kv-cache-dtype default → bfloat16",
    )
    assert differences(plain, of(stack="article-0.14"))[0] == "vLLM 0.33.0 → 0.14.1"
    alone = resolve(wish(tmp_path, "prefill: {}\n", stack="current"))
    assert differences(alone, alone) == (), "who hands KV to nobody"
