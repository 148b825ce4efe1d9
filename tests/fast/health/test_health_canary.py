"""A pair counts as served when its own counters say that KV moved; who is not reached is asked directly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_clock import FakeClock
from samples import ROOT, sample
from scripted_hosts import ScriptedHosts

from launcher.health import canary
from launcher.health.metrics import read
from launcher.health.pairs import Answering, Pair, all_pairs, served
from launcher.model.finding import Severity
from launcher.model.wish import Wanted
from launcher.resolve import resolve

DATA = ROOT / "tests/support/logs"
NAMES = {
    "prompt_tokens": "vllm:prompt_tokens_total",
    "kv_transfers": "vllm:nixl_xfer_time_seconds_count",
    "kv_bytes": "vllm:nixl_bytes_transferred_sum",
    "transferred_prompt_tokens": 'vllm:prompt_tokens_by_source_total{source="external_kv_transfer"}',
}
PREFILL = Answering("prefill-0", "h01", ("http://10.77.0.11:8000",))
DECODES = tuple(Answering("decode-0", f"h0{n}", (f"http://10.77.0.1{n}:8000",)) for n in (2, 3))


@pytest.fixture
def wanted(tmp_path: Path) -> Wanted:
    """prefill-0 on h01, decode-0 over h02 and h03, each with an API endpoint."""
    return resolve(sample("sandbox-dp2", tmp_path))


def test_counters_of_a_real_decode_are_read_by_name_and_label() -> None:
    reading = read((DATA / "decode.metrics").read_text(), NAMES)

    assert reading.total("kv_transfers") == 65
    assert reading.total("kv_bytes") == 1325991936
    assert reading.ranks("transferred_prompt_tokens") == {"0": 258117.0}


def test_traffic_of_others_makes_no_pair(wanted: Wanted) -> None:
    assert wanted.deployment
    pairs = all_pairs(wanted.deployment, {"prefill-0", "decode-0"})
    assert [str(p) for p in pairs.seen] == ["prefill-0@h01 → decode-0@h02", "prefill-0@h01 → decode-0@h03"]
    (prefill, first), (_, second) = ((p.prefill, p.decode) for p in pairs.seen)
    before = {side: counters() for side in (prefill, first, second)}

    one = served(pairs, before, {**before, prefill: counters(prompt=9), first: counters(transfers=1, kv=70)})
    both = {prefill: counters(prompt=9), first: counters(transfers=1), second: counters(transfers=1)}

    assert one is not None
    assert one[0] == Pair(prefill, first)
    assert one[1].kv_bytes == 70
    assert served(pairs, before, both) is None
    assert served(pairs, before, {**before, prefill: counters(prompt=9)}) is None


def counters(*, prompt: int = 0, transfers: int = 0, kv: int = 0) -> Any:
    return read(page({"prompt": prompt, "transfers": transfers, "kv": kv}), NAMES)


def page(numbers: Mapping[str, int]) -> str:
    return (
        f'vllm:prompt_tokens_total{{engine="0"}} {numbers["prompt"]}\n'
        f'vllm:nixl_xfer_time_seconds_count{{engine="0"}} {numbers["transfers"]}\n'
        f'vllm:nixl_bytes_transferred_sum{{engine="0"}} {numbers["kv"]}\n'
    )


@dataclass
class Engines:
    """Engines behind a router that takes the decode processes it likes; each counts as vLLM does."""

    routed_to: tuple[str, ...]
    moves_kv: bool = True
    text: str = " ok"
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    prompts: list[tuple[int, ...]] = field(default_factory=list)
    direct: list[tuple[str, Any]] = field(default_factory=list)
    turn: int = 0

    def count(self, url: str) -> dict[str, int]:
        return self.counts.setdefault(url, {"prompt": 0, "transfers": 0, "kv": 0})

    def pages(self, url: str) -> str | None:
        return page(self.count(url.removesuffix("/metrics"))) if url.endswith("/metrics") else None

    def post(self, url: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        base = url.removesuffix("/v1/completions")
        params = body.get("kv_transfer_params")
        if base not in (PREFILL.urls[0], *(d.urls[0] for d in DECODES)):
            self.prompts.append(tuple(body["prompt"]))
            self.prefill(PREFILL.urls[0])
            self.decode(self.routed_to[self.turn % len(self.routed_to)])
            self.turn += 1
        else:
            self.direct.append((base, params))
            if params and params.get("do_remote_decode"):
                self.prefill(base)
                return self.reply({"remote_engine_id": "e1", "do_remote_prefill": True})
            self.decode(base)
        return self.reply(None)

    def prefill(self, url: str) -> None:
        self.count(url)["prompt"] += 160

    def decode(self, url: str) -> None:
        if self.moves_kv:
            self.count(url)["transfers"] += 1
            self.count(url)["kv"] += 368640

    def reply(self, params: Any) -> dict[str, Any]:
        told = {
            "choices": [{"text": self.text}],
            "usage": {"completion_tokens": 8},
            "kv_transfer_params": params,
        }
        return {"status": 200, "body": json.dumps(told)}


def findings_of(wanted: Wanted, engines: Engines) -> dict[str, Any]:
    hosts = ScriptedHosts({}, post=engines.post, pages=engines.pages)
    serving = {"prefill-0", "decode-0"}
    found = canary.canary(hosts, wanted, lambda event: None, serving=serving, nonce="r1", clock=FakeClock())
    return {f.subject: f for f in found}


def test_every_pair_is_seen_through_the_router_with_a_prompt_of_its_own(wanted: Wanted) -> None:
    engines = Engines(routed_to=tuple(d.urls[0] for d in DECODES))

    found = findings_of(wanted, engines)

    assert {f.severity for f in found.values()} == {Severity.OK}
    assert all("through the router: 368,640 bytes of KV moved" in f.text for f in found.values())
    assert engines.direct == []
    assert len(set(engines.prompts)) == len(engines.prompts) == 2, "a cached prompt would need no transfer"


def test_a_pair_that_the_router_does_not_choose_is_asked_directly(wanted: Wanted) -> None:
    engines = Engines(routed_to=(DECODES[0].urls[0],))

    found = findings_of(wanted, engines)

    assert "through the router" in found["prefill-0@h01 → decode-0@h02"].text
    assert "asked directly" in found["prefill-0@h01 → decode-0@h03"].text
    (first, asked), (second, passed_on) = engines.direct
    assert (first, second) == (PREFILL.urls[0], DECODES[1].urls[0])
    assert asked["do_remote_decode"] is True
    assert passed_on == {"remote_engine_id": "e1", "do_remote_prefill": True}, "verbatim"


def test_an_answer_without_transfer_is_an_error(wanted: Wanted) -> None:
    found = findings_of(wanted, Engines(routed_to=(DECODES[0].urls[0],), moves_kv=False))

    assert {f.severity for f in found.values()} == {Severity.ERROR}
    assert all("no KV moved" in f.text for f in found.values())


def test_an_empty_answer_is_no_answer(wanted: Wanted) -> None:
    found = findings_of(wanted, Engines(routed_to=(DECODES[0].urls[0],), text=""))

    assert [f.subject for f in found.values()] == ["front"]
    assert "the text ''" in found["front"].text


def test_without_a_router_each_engine_is_asked_at_its_own_address(tmp_path: Path) -> None:
    wanted = resolve(sample("sandbox-single", tmp_path))
    asked: list[str] = []

    def post(url: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        asked.append(url)
        told = {"choices": [{"text": " ok"}], "usage": {"completion_tokens": 8}}
        return {"status": 200, "body": json.dumps(told)} if len(asked) == 1 else {"status": 500, "body": "no"}

    hosts = ScriptedHosts({}, post=post)
    good, bad = (
        canary.canary(hosts, wanted, lambda event: None, serving={"decode-0"}, nonce=nonce, clock=FakeClock())
        for nonce in ("r1", "r2")
    )
    assert asked == ["http://10.77.0.11:8000/v1/completions"] * 2
    assert [(f.severity, f.subject) for f in good] == [(Severity.OK, "decode-0@h01")]
    assert [(f.severity, f.text) for f in bad] == [(Severity.ERROR, "the canary's request got status 500")]
    assert canary.canary(hosts, wanted, lambda event: None, serving=(), nonce="r3", clock=FakeClock()) == ()
