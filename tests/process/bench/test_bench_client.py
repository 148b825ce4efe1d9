"""The program of the job, run as the job runs it, before a client and an engine that only look like them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from launcher.bench import client

LIKE_A_CLIENT = """
import pathlib, sys, time, urllib.request
what, folder, seconds, status, url = sys.argv[1:]
until = time.process_time() + float(seconds)
begun = time.process_time()
while time.process_time() < begun + 0.3: pass  # imports
print("begin here", flush=True)
urllib.request.urlopen(url + "/" + what).read()
while time.process_time() < until + 0.3: pass
print("end here", flush=True)
if what == "counts" and status == "0": pathlib.Path(folder, "result.json").write_text('{"completed": 1}')
sys.exit(int(status))
"""


@pytest.fixture
def engine() -> Iterator[tuple[str, list[str]]]:
    """An address with one counter, which grows with each request, and the requests it had."""
    had: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                body = f"# TYPE x counter\nvllm:x_total {len(had)}\nvllm:other 1\n".encode()
            else:
                had.append(self.path)
                body = b""
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listener.server_port}", had
        listener.shutdown()


def run(folder: Path, url: str, *, status: int = 0, warm_up_status: int = 0) -> tuple[int, dict[str, Any]]:
    """The program to its end, and what it told."""

    def words(what: str, code: int) -> list[str]:
        return [sys.executable, "-c", LIKE_A_CLIENT, what, str(folder), "0.3", str(code), url]

    spec = {
        "warm_up": words("warms-up", warm_up_status),
        "words": words("counts", status),
        "begins": "begin here",
        "ends": "end here",
        "pages": [f"{url}/metrics", "http://127.0.0.1:9/metrics"],
        "counters": ["vllm:x_total"],
        "settle_s": 0,
        "exporters": [f"{url}/metrics", "http://127.0.0.1:9/metrics"],
        "series": ["vllm:other"],
        "every_s": 0.05,
        "most_looks": 4,
    }
    (folder / "spec.json").write_text(json.dumps(spec))
    (folder / "told.json").write_text("of an earlier run")
    done = subprocess.run([sys.executable, client.__file__, str(folder)], timeout=120, capture_output=True)
    told = folder / "told.json"
    return done.returncode, json.loads(told.read_text()) if told.exists() else {}


def test_the_warm_up_is_over_when_counters_are_read(tmp_path: Path, engine: tuple[str, list[str]]) -> None:
    url, had = engine
    code, told = run(tmp_path, url)
    assert (code, had) == (0, ["/warms-up", "/counts"])
    assert told["before"][f"{url}/metrics"] in ("vllm:x_total 1\n", "vllm:x_total 2\n"), (
        "it has begun by then"
    )
    assert told["after"] == {f"{url}/metrics": "vllm:x_total 2\n"}, "who does not answer is left out"
    assert (tmp_path / "result.json").exists()


def test_exporters_are_looked_at_until_the_end_and_no_more_often_than_is_kept(
    tmp_path: Path, engine: tuple[str, list[str]]
) -> None:
    url, _ = engine
    _, told = run(tmp_path, url)
    assert 2 <= len(told["looks"]) <= 4
    assert all(pages == {f"{url}/metrics": "vllm:other 1\n"} for _, pages in told["looks"])
    times = [when for when, _ in told["looks"]]
    assert times == sorted(times)


def test_imports_of_the_client_are_not_its_load(tmp_path: Path, engine: tuple[str, list[str]]) -> None:
    """It spins all the time; only the part between its two lines is to count, and that is within it."""
    _, told = run(tmp_path, engine[0])
    assert 0 < told["cpu_percent"] <= 110
    assert client.percent([(10.0, 3.0), (14.0, 5.0)]) == 50.0
    assert client.percent([(10.0, 3.0)]) == 0.0


@pytest.mark.parametrize("failing", [{"status": 3}, {"warm_up_status": 3}])
def test_a_client_that_fails_fails_the_job(
    tmp_path: Path, engine: tuple[str, list[str]], failing: dict[str, int]
) -> None:
    code, told = run(tmp_path, engine[0], **failing)
    assert code == 3
    assert told.get("status", 3) == 3
    assert not (tmp_path / "result.json").exists()
