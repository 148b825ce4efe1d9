"""scale under a steady load, with the real vllm-router and HAProxy before stub engines."""

from __future__ import annotations

import json
import threading
import urllib.request

from routed_fleet import RoutedFleet
from witness import active, said

STREAMS, TOKENS, TOKEN_S = 4, 8, 1.0


def streams(routed: RoutedFleet, whole: list[bool]) -> list[threading.Thread]:
    """Long streams, begun at once, so that both decode instances have some."""
    address, port = routed.entrance
    words = {"model": "tiny", "prompt": [1, 2], "stream": True, "max_tokens": TOKENS, "stub_token_s": TOKEN_S}
    told = {"Content-Type": "application/json"}
    url = f"http://{address}:{port}/v1/completions"

    def one() -> None:
        request = urllib.request.Request(url, json.dumps(words).encode(), told)
        with urllib.request.urlopen(request, timeout=60) as answer:
            whole.append(b"[DONE]" in answer.read())

    threads = [threading.Thread(target=one) for _ in range(STREAMS)]
    for thread in threads:
        thread.start()
    return threads


def pools(routed: RoutedFleet) -> dict[str, object]:
    read: dict[str, object] = json.loads((routed.folder / "stub.yaml").read_text())["pools"]["decode"]
    return read


def test_down_and_up_again_without_a_failed_request(routed: RoutedFleet) -> None:
    """What a removed instance has begun comes to its end; what the inventory says is edited and stays."""
    whole: list[bool] = []
    with routed.users() as load:
        long = streams(routed, whole)
        done = routed.run("scale", "decode=1", "-m", "a quiet night", "--yes", "--json")
        for thread in long:
            thread.join()
    print(f"scale decode=1: {load}")
    assert done.code == 0, done.stdout + done.stderr
    assert not load.failed
    assert whole == [True] * STREAMS
    assert pools(routed) == {"hosts": ["h02", "h03"], "instances": 1}
    assert active(routed.host("h03"), "dsv32-decode-1") != "active"
    assert "dsv32-" not in said(
        routed.host("h03"), "ls /etc/systemd/system | grep -e decode -e guard || true"
    )
    assert routed.plan().changes == []
    (edit,) = done.lines("edit")
    assert len(edit["lines"]) == 1

    with routed.users() as load:
        done = routed.run("scale", "decode=2", "--yes", "--json")
    print(f"scale decode=2: {load}")
    assert done.code == 0, done.stdout + done.stderr
    assert not load.failed
    assert pools(routed) == {"hosts": ["h02", "h03"], "instances": 2}
    assert routed.plan().changes == []
    assert routed.run("status").code == 0
