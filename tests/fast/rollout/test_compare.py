"""What another stack changes for one inventory, on the real data of releases."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import sample

from launcher.cli.comparetext import comparison_text
from launcher.compare.commands import command_changes, lines_of
from launcher.flows.compare import Comparison, compare
from launcher.flows.edited import edited_inventory
from launcher.flows.lint import read
from launcher.load import load
from launcher.load.data import Data, shipped
from launcher.load.edit import Edit, Put
from launcher.model.knowledge import Knowledge
from launcher.resolve import resolve


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return read(Data((shipped(),)))


def moved(path: Path, knowledge: Knowledge, *, stack: str, layout: str = "") -> Comparison:
    edits: list[Edit] = [Put(("stack",), stack)]
    edits += [Put(("layout",), layout)] if layout else []
    return compare(resolve(load(path)), edited_inventory(path, edits).wish, knowledge)


def prod(folder: Path, *, name: str = "prod-2p1d", more: str = "") -> Path:
    sample(name, folder)
    path = folder / "inventories/prod-2p1d.yaml"
    path.write_text(path.read_text() + more)
    return path


def told(made: Comparison) -> dict[str, tuple[str, str, str, str]]:
    return {d.name: (d.kind, d.before, d.after, " ".join(d.pools)) for d in made.lines}


def test_the_articles_stack_to_todays(tmp_path: Path, knowledge: Knowledge) -> None:
    """The same lines: what they mean otherwise, and what no line says."""
    made = moved(prod(tmp_path), knowledge, stack="current")
    lines = told(made)
    flag = "disable-nccl-for-dp-synchronization"
    assert lines[flag] == ("ignored", "false", "", "prefill")
    where = next(d for d in made.lines if d.name == flag)
    assert where.source == "configs/layouts/article-2p1d.yaml:23"
    assert "0.29.0" in where.why
    assert lines["attention-backend"] == (
        "decided",
        "FLASHMLA_SPARSE",
        "FLASH_ATTN_MLA_SPARSE",
        "prefill decode",
    )
    assert lines["max-num-batched-tokens"] == ("decided", "8192", "256", "decode"), "prefill sets it"
    assert lines["model_runner"][1:3] == ("v1", "v2")
    assert lines["eplb-config.use_async"][:3] == ("default", "false", "true")
    assert lines["gpu-memory-utilization"] == ("default", "0.9", "0.92", "decode"), "prefill sets it"
    lease = "kv-transfer-config.kv_connector_extra_config.kv_lease_duration"
    assert (lines[lease][2], lines["VLLM_NIXL_ABORT_REQUEST_TIMEOUT"][1]) == ("30", "480")
    assert "moe-backend" not in lines, "an option that came is no default that changed"

    assert {v.name: (v.before, v.after) for v in made.versions}.items() >= {
        ("torch", ("2.9.1", "2.14.0")),
        ("nixl", ("0.9.0", "1.5.0")),
        ("driver_minimum", ("525.60.13", "580")),
    }
    assert not made.needs, "both stacks have a lock"
    words = {word.name: (word.before, word.after) for group in made.commands for word in group.words}
    assert words == {"--kv-transfer-config.kv_role": ("kv_both", "kv_consumer")}
    assert [len(group.processes) for group in made.commands] == [4, 2]
    assert [f.rule for f in made.findings.new] == ["sync-flag-unread"]
    assert [m.pool for m in made.memory] == ["prefill", "decode"]
    assert all(m.kv_tokens[0] != m.kv_tokens[1] for m in made.memory)
    assert not made.problems


def test_with_its_layout_mtp_comes_and_the_flag_is_no_matter(tmp_path: Path, knowledge: Knowledge) -> None:
    made = moved(prod(tmp_path), knowledge, stack="current", layout="current-2p1d")
    words = {word.name: (word.before, word.after) for group in made.commands for word in group.words}
    assert words["--speculative-config.method"] == ("", "mtp")
    assert words["--disable-nccl-for-dp-synchronization"] == ("false", "")
    assert words["--eplb-config.step_interval"] == ("1000", "3000")
    assert "disable-nccl-for-dp-synchronization" not in told(made)
    assert told(made)["ll_buffer_gib"][1:] == ("4", "8", "decode")
    assert not made.findings.new


def test_back_to_the_articles_stack_is_refused_line_by_line(tmp_path: Path, knowledge: Knowledge) -> None:
    made = moved(prod(tmp_path, name="prod-2p1d-current"), knowledge, stack="article-0.14")
    lines = told(made)
    assert lines["moe-backend"] == ("later", "deep_gemm", "since 0.17.0", "prefill decode")
    assert lines["attention-backend"][:2] == ("refused", "FLASH_ATTN_MLA_SPARSE")
    assert "kernel-config" in lines
    assert "kernel-config.enable_flashinfer_autotune" not in lines, "with the flag that it is part of"
    assert any("has no style external" in p.what for p in made.problems)
    assert (made.move, made.no_memory) == (None, "it cannot be laid out")


WRITTEN = """
settings:
  all: {all2all-backend: pplx, swap-space: "8"}
environment:
  all: {VLLM_RPC_TIMEOUT: "20000", VLLM_NIXL_ABORT_REQUEST_TIMEOUT: "120", VLLM_MOE_DP_CHUNK_SIZE: "512"}
"""


def test_what_is_written_and_gone(tmp_path: Path, knowledge: Knowledge) -> None:
    """Flags, values and variables of the inventory's own, each with its line and what to write instead."""
    path = prod(tmp_path, more=WRITTEN)
    made = moved(path, knowledge, stack="current")
    lines = told(made)
    assert lines["all2all-backend"][:2] == ("value", "pplx")
    assert lines["swap-space"][0] == "gone"
    assert lines["VLLM_RPC_TIMEOUT"][0] == "gone"
    assert "kv_lease_duration" in lines["VLLM_NIXL_ABORT_REQUEST_TIMEOUT"][2]
    assert "max-num-batched-tokens" in lines["VLLM_MOE_DP_CHUNK_SIZE"][2]
    source = next(d.source for d in made.lines if d.name == "VLLM_RPC_TIMEOUT")
    assert source.startswith(f"{path}:2")
    assert [p for p in made.problems if "swap-space" in p.what]


def test_how_it_would_move(tmp_path: Path, knowledge: Knowledge) -> None:
    """Releases apart: half and half, or not without a break; the same release: one after the other."""
    path = prod(tmp_path)
    alone = moved(path, knowledge, stack="current").move
    assert alone
    assert "vLLM 0.14.1 → 0.33.0" in alone.apart
    assert (alone.first, alone.breaks) == ((), ("pool decode has 1, it takes 2",))
    text = path.read_text().replace('"gpu[05-06]"', '"gpu[05-08]"').replace("gpu[01-06]", "gpu[01-08]")
    path.write_text(text.replace("10.0.0.[11-16]", "10.0.0.[11-18]"))
    halves = moved(path, knowledge, stack="current").move
    assert halves
    assert halves.first == ("prefill-0", "decode-0")
    assert halves.rest == ("prefill-1", "decode-1")
    same = moved(path, knowledge, stack="article-0.14", layout="article-2p1d").move
    assert same
    assert (same.apart, same.breaks) == ((), ())


def test_routers_have_lines_too_without_their_workers(tmp_path: Path) -> None:
    wanted = resolve(load(prod(tmp_path)))
    assert wanted.deployment
    lines = lines_of((), wanted.deployment.routers, wanted.wish.profile.router)
    assert list(lines) == ["router a on gpu01", "router b on gpu01"]
    assert "--policy" in lines["router a on gpu01"]
    assert not [flag for flag in lines["router a on gpu01"] if flag in ("--prefill", "--decode")]
    other = {name: {**words, "--policy": "random"} for name, words in lines.items()}
    (group,) = command_changes(lines, other)
    assert group.processes == tuple(lines)
    assert [(w.name, w.after) for w in group.words] == [("--policy", "random")]


def test_as_text(tmp_path: Path, knowledge: Knowledge) -> None:
    made = moved(prod(tmp_path), knowledge, stack="current")
    text = comparison_text(made, cluster="prod")
    assert text.startswith("prod: stack article-0.14 → current\n\nversions\n")
    assert (
        "  prefill-0 on gpu01–gpu02; prefill-1 on gpu03–gpu04\n      ~ --kv-transfer-config.kv_role" in text
    )
    assert "not without a break: pool decode has 1, it takes 2" in text


def test_the_same_stack_differs_in_nothing(tmp_path: Path, knowledge: Knowledge) -> None:
    path = prod(tmp_path)
    made = moved(path, knowledge, stack="article-0.14")
    assert (made.versions, made.lines, made.commands) == ((), (), ())
    assert (made.findings.new, made.findings.gone) == ((), ())


def test_hosts_that_only_are_provisioned(tmp_path: Path, knowledge: Knowledge) -> None:
    path = tmp_path / "bare.yaml"
    path.write_text(
        "cluster: bare\nstack: article-0.14\npaths: {shared: /a, local: /b}\n"
        "hosts: {h1: {address: 10.0.0.1}}\n"
    )
    made = moved(path, knowledge, stack="current")
    assert made.versions
    assert (made.move, made.commands) == (None, ())
