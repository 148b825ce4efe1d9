"""The canary's request: a prompt no cache holds, and what a sane answer looks like; knows no pairs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from launcher.health.hands import Hands, look_within_s
from launcher.health.state import status
from launcher.model.facts import Probe, Unknown
from launcher.model.problem import Problem

# A first request also makes the connection between the two hosts and may compile kernels: an H200 that had
# compiled nothing took 4 minutes (docs/h200.md).
generate_within_s = 300
max_tokens = 8
# more than one block of the largest size in use (128), so that there is a full block to move
prompt_tokens = 160
# what a decode request must get back from a prefill is asked for with these, all filled in by the prefill
prefill_first: Mapping[str, Any] = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


def completion(served_name: str, *, nonce: str, turn: int) -> dict[str, Any]:
    """A request whose prompt is token numbers: every model has the first few hundred, the length is exact.

    Its first tokens differ from turn to turn and from nonce to nonce: a cached prompt needs no transfer.
    """
    mark = hashlib.sha256(f"{nonce} {turn}".encode()).digest()
    prompt = [3 + byte % 200 for byte in mark]
    prompt += [3 + i % 200 for i in range(prompt_tokens - len(prompt))]
    return {"model": served_name, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}


def send(fleet: Hands, host: str, url: str, body: Mapping[str, Any], *, request_id: str = "") -> Any:
    """Send a completion request from this host: the probe's answer, or a Problem or Unknown."""
    headers = [("Content-Type", "application/json")]
    if request_id:
        headers.append(("X-Request-Id", request_id))
    args = ("POST", f"{url}/v1/completions", json.dumps(body), tuple(headers), generate_within_s)
    probe = Probe("http", args)
    facts = fleet.ask({host: (probe,)}, within_s=generate_within_s + look_within_s)[host]
    return facts if isinstance(facts, Problem) else facts[probe]


def wrong(reply: Any, url: str, host: str) -> Problem | None:
    """What is wrong with a completion; None if it is one: status 200, some text, tokens counted."""
    where, do = f"{host}, {url}/v1/completions", "dsv32-launch status"
    if isinstance(reply, Problem):
        return reply
    if isinstance(reply, Unknown):
        return Problem("the canary's request had no answer", where, reply.reason, do)
    if status(reply) != 200:
        told = str(reply.get("body") or reply.get("error", ""))[:500]
        what = (
            f"the canary's request got status {status(reply)}"
            if status(reply)
            else "no connection for the canary"
        )
        return Problem(what, where, told, do)
    try:
        told = json.loads(reply["body"])
        text, tokens = told["choices"][0]["text"], told["usage"]["completion_tokens"]
    except (ValueError, KeyError, IndexError, TypeError):
        return Problem("the canary's answer is no completion", where, str(reply["body"])[:500], do)
    if not text or not tokens:
        return Problem(f"the canary's answer has {tokens} tokens and the text {text!r}", where, "", do)
    return None
