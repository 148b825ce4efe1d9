#!/usr/bin/python3
"""What vLLM, vllm-router and HAProxy show to the outside, and nothing behind it.

    stub engine MODEL --host ADDRESS --port PORT ...    logs phases, answers health, metrics, completions
    stub router --prefill URL --decode URL ...          sends each request to a prefill, then to a decode
    stub front --host ADDRESS --port PORT --routers F   passes everything on to the router that users reach
    stub bench --base-url URL --num-prompts N ...       asks, and writes down what it measured

Of the engine's options one is its own, obeyed by every process but the one that leads: `--stub-dies` at its
start with a `traceback`, or `quietly` with status 0; `late`, while it listens and is not ready; at the first
`request`. Another one, `--stub-token-s`, says how long each takes for a token where a request does not.

Decode refuses the KV of a prefill out of another environment, or of another `--dtype`, as NIXL does.

Every process of an engine leaves a file in /var/lib/stub-lives, which says in which epoch its guard started
it; the file is as old as the process has been dead, or frozen. A child stands for its engine core.
"""

import hashlib
import itertools
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LATE_S = 3
RELEASE = os.path.dirname(os.path.abspath(__file__))
KV_BYTES_PER_TOKEN = 1152
JSON = {"Content-Type": "application/json"}


class Server(BaseHTTPRequestHandler):
    """Answers with (status, text) of the server's `get` and `post`."""

    def do_GET(self):
        self.reply(*self.server.get(self.path))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply(*self.server.post(self.path, body))

    def reply(self, status, text):
        if not isinstance(text, str):
            self.stream(status, text)
            return
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def stream(self, status, pieces):
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(f"data: {piece}\n\n".encode())
            self.wfile.flush()

    def log_message(self, *words):
        pass


def serve(host, port, get, post=None):
    server = ThreadingHTTPServer((host, int(port)), Server)
    server.get, server.post = get, post
    threading.Thread(target=server.serve_forever, daemon=True).start()


def witness():
    """Says, ten times a second, that this epoch is alive here."""
    with open("/proc/self/cgroup") as file:
        instance = file.read().partition("/dsv32-")[2].partition(".service")[0]
    with open(f"/var/lib/dsv32/guard/{instance}.json") as file:
        epoch = json.load(file)["told"]["epoch"]
    os.makedirs("/var/lib/stub-lives", exist_ok=True)
    path = f"/var/lib/stub-lives/{instance},{epoch},{time.time()}"
    while True:
        with open(path, "w"):
            time.sleep(0.1)


def engine(options):
    """One process of an instance."""
    threading.Thread(target=witness, daemon=True).start()
    core = subprocess.Popen(["VLLM::EngineCore", "infinity"], executable="/bin/sleep")
    threading.Thread(target=lambda: die(f"EngineDeadError: {core.wait()}"), daemon=True).start()
    rank = int(options.get("data-parallel-start-rank", ["0"])[0])
    leads = rank == 0 and "data-parallel-size" in options
    dies = "" if leads else options.get("stub-dies", [""])[0]
    print(f"stub engine starts, rank {rank}", flush=True)
    if dies == "traceback":
        raise ValueError("the stub was told to die, of 42 causes")
    if dies == "quietly":
        print("RuntimeError: a peer of the group is gone", flush=True)
        sys.exit(0)
    agreed = f"{RELEASE} {options.get('dtype', ['auto'])[0]}"
    slow_s = float(options.get("stub-token-s", ["0"])[0])
    count = dict.fromkeys(("prompt", "generation", "transfers", "transferred", "bytes", "running"), 0)
    count["held_until"] = 0

    def get(path):
        if path == "/metrics":
            return 200, metrics(count, rank)
        return 503 if dies == "late" else 200, "{}"

    def post(path, body):
        if dies == "request":
            die("RuntimeError: the stub was told to die at its first request")
        told = body.get("kv_transfer_params") or {}
        length = len(body["prompt"])
        # a test says how long it wants to wait for a token
        tokens, token_s = int(body.get("max_tokens", 1)), float(body.get("stub_token_s", slow_s))
        count["prompt"] += length
        count["generation"] += 1
        if told.get("agreed", agreed) != agreed:
            return 500, json.dumps({"error": "KV of another release or dtype"})
        if told.get("do_remote_prefill") and told.get("remote_host"):
            count["transfers"] += 1
            count["transferred"] += length
            count["bytes"] += length * KV_BYTES_PER_TOKEN
        answer = {
            "choices": [{"text": said_to(body["prompt"], tokens)}],
            "usage": {"prompt_tokens": length, "completion_tokens": 1},
        }
        if told.get("do_remote_decode"):
            told = {"do_remote_prefill": True, "remote_host": options["host"][0], "agreed": agreed}
            answer["kv_transfer_params"] = told
            tokens = 0
            # until when its KV waits for decode to fetch it
            count["held_until"] = time.time() + body.get("stub_holds_s", 0)
        if body.get("stream") and not told.get("do_remote_decode"):
            return 200, generated(answer, tokens, token_s)
        count["running"] += 1
        time.sleep(tokens * token_s)
        count["running"] -= 1
        return 200, json.dumps(answer)

    def generated(answer, tokens, token_s):
        count["running"] += 1
        try:
            for word in answer["choices"][0]["text"].splitlines(keepends=True):
                time.sleep(token_s)
                yield json.dumps({**answer, "choices": [{"text": word}]})
            yield "[DONE]"
        finally:
            count["running"] -= 1

    serve(options["host"][0], options["port"][0], get, post)
    print("stub engine listens", flush=True)
    if dies == "late":
        time.sleep(LATE_S)
        die("RuntimeError: the stub was told to die late")


def said_to(prompt, tokens):
    """An answer that is another one for each prompt, a word and a line for each token."""
    told = hashlib.sha256(json.dumps(prompt).encode()).hexdigest()
    return "".join(f"{told[2 * n % 64 :][:4]}\n" for n in range(tokens))


def die(words):
    print(words, flush=True)
    os._exit(1)


def metrics(count, rank):
    rows = {
        "vllm:nixl_xfer_time_seconds_count": count["transfers"],
        "vllm:nixl_bytes_transferred_sum": count["bytes"],
        "vllm:prompt_tokens_total": count["prompt"],
        "vllm:generation_tokens_total": count["generation"],
        "vllm:num_requests_running": count["running"],
        "vllm:num_requests_waiting": 0,
        "vllm:kv_cache_usage_perc": 0.25 if time.time() < count["held_until"] else 0,
    }
    lines = [f'{name}{{engine="{rank}"}} {value}' for name, value in rows.items()]
    source = f'vllm:prompt_tokens_by_source_total{{engine="{rank}",source="external_kv_transfer"}}'
    return "\n".join([*lines, f"{source} {count['transferred']}", ""])


def router(options):
    """Health of the workers is asked when somebody asks for the router's."""
    pools = {"prefill": options["prefill"], "decode": options["decode"]}
    turns = {pool: itertools.cycle(urls) for pool, urls in pools.items()}

    def health():
        return {url: send(url + "/health")[0] == 200 for urls in pools.values() for url in urls}

    def get(path):
        now = health()
        told = {
            pool: {"healthy": sum(now[u] for u in urls), "total": len(urls)} for pool, urls in pools.items()
        }
        return 200 if all(p["healthy"] for p in told.values()) else 503, json.dumps(told)

    def get_metrics(path):
        lines = [f'vllm_router_worker_health{{worker="{u}"}} {int(good)}\n' for u, good in health().items()]
        return 200, "".join(lines)

    def post(path, body):
        first = {**body, "max_tokens": 1, "kv_transfer_params": {"do_remote_decode": True}}
        status, text = send(next(turns["prefill"]) + path, first)
        if status != 200:
            return status, text
        second = {**body, "kv_transfer_params": json.loads(text)["kv_transfer_params"]}
        return send(next(turns["decode"]) + path, second)

    serve(options["prometheus-host"][0], options["prometheus-port"][0], get_metrics)
    serve(options["host"][0], options["port"][0], get, post)


def front(options):
    def to():
        with open(options["routers"][0]) as file:
            servers = [line.split() for line in file]
        return next(f"http://{words[2]}" for words in servers if words[:1] == ["server"])

    serve(options["host"][0], options["port"][0], lambda p: send(to() + p), lambda p, b: send(to() + p, b))


def send(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 502, str(error)


def bench(options):
    """Streams from the service, so many at once; ends when all have been answered."""
    asked, tokens = (int(options[name][0]) for name in ("num-prompts", "output-len"))
    url, prompt = options["base-url"][0] + "/v1/completions", options["seed"][0] * 20
    times = []

    def once(number):
        body = {"model": options["model"][0], "prompt": f"{prompt} {number}", "max_tokens": tokens}
        sent = json.dumps({**body, "stream": True}).encode()
        began_s = time.monotonic()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, sent, JSON)) as answer:
                seen_s = [time.monotonic() - began_s for line in answer if line.startswith(b"data: {")]
            times.append((seen_s[0], seen_s[-1]))
        except (OSError, IndexError) as error:
            print(f"request {number} failed: {error}", flush=True)

    print("the run begins", flush=True)
    began_s = time.monotonic()
    with ThreadPoolExecutor(int(options["max-concurrency"][0])) as threads:
        list(threads.map(once, range(asked)))
    lasted_s = time.monotonic() - began_s
    print("the run has ended", flush=True)
    if "result-dir" in options:
        told = figures(times, tokens, lasted_s)
        with open(os.path.join(options["result-dir"][0], options["result-filename"][0]), "w") as file:
            json.dump({"num_prompts": asked, **told}, file)
    sys.exit(0)


def figures(times, tokens, lasted_s):
    """By the names of `vllm bench serve`."""
    count = len(times)
    first_s = sum(first for first, _ in times) / max(count, 1)
    whole_s = sum(whole for _, whole in times) / max(count, 1)
    return {
        "completed": count,
        "duration": lasted_s,
        "total_output_tokens": count * tokens,
        "request_throughput": count / lasted_s,
        "total_token_throughput": count * tokens / lasted_s,
        "mean_ttft_ms": 1000 * first_s,
        "mean_tpot_ms": 1000 * (whole_s - first_s) / max(tokens - 1, 1),
        "mean_e2el_ms": 1000 * whole_s,
    }


def read(words):
    """Option → its values; a flag that stands alone has none."""
    options = {}
    for word in words:
        if word.startswith("--"):
            values = options.setdefault(word[2:], [])
        elif options:
            values.append(word)
    return options


if __name__ == "__main__":
    {"engine": engine, "router": router, "front": front, "bench": bench}[sys.argv[1]](read(sys.argv[2:]))
    threading.Event().wait()
