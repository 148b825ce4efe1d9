"""The agent's probes on folders and programs of this machine; none needs a host."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from launcher.remote.agent import Probes, Runner, epoch_of, sysctl_path

DPKG = """Package: haproxy
Status: install ok installed
Architecture: amd64
Version: 2.6.12-1

Package: haproxy-doc
Status: install ok installed
Version: 9

Package: libnuma1
Status: deinstall ok config-files
Version: 2.0.16-1

Package: libucx0
Status: install ok not-installed
Architecture: i386

Package: libucx0
Status: install ok installed
Architecture: amd64
Version: 1.13.1-1

Package: nvidia-open
Status: hold ok installed
Version: 580.159.04-1ubuntu1

"""


def ask(*probes: tuple[Any, ...], root: Path | str = "") -> dict[str, Any]:
    return Probes([(kind, args) for kind, *args in probes], Runner(), str(root)).answer()


def answer(*probe: Any, root: Path | str = "") -> Any:
    got = ask(probe, root=root)
    assert got["unknown"] == {}
    return got["answers"][0]


def test_path_of_each_type(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "file").chmod(0o4750)
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    file = answer("path", f"{tmp_path}/file")
    assert (file["type"], file["mode"]) == ("file", "4750")
    assert (file["owner"], file["group"], file["size"]) == ("root", "root", 7)
    assert file["sha256"] == hashlib.sha256(b"content").hexdigest()
    assert answer("path", f"{tmp_path}/link")["target"] == "nowhere"
    types = [answer("path", f"{tmp_path}/{n}")["type"] for n in ("link", "pipe", "none", "file/below", "")]
    assert types == ["link", "other", "absent", "absent", "folder"]


def test_path_has_the_text_only_where_another_one_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("ours\n")
    same = hashlib.sha256(b"ours\n").hexdigest()
    assert "text" not in answer("path", str(path), same)
    assert "text" not in answer("path", str(path))
    assert answer("path", str(path), "0" * 64)["text"] == "ours\n"
    path.write_bytes(b"x" * (1 << 17))
    assert "text" not in answer("path", str(path), "0" * 64)


def test_owner_without_a_name_is_its_number(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.chown(tmp_path / "file", 54321, 54322)
    found = answer("path", f"{tmp_path}/file")
    assert (found["owner"], found["group"]) == ("54321", "54322")


def test_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"caf\xc3\xa9 \xff")
    assert answer("read", f"{tmp_path}/file", 100) == {"text": "café �"}
    assert answer("read", f"{tmp_path}/file", 3) == {"text": "caf", "truncated": True}
    assert answer("read", f"{tmp_path}/none", 3) == {"absent": True}
    assert answer("read", f"{tmp_path}/file", -3) == {"text": "� �", "truncated": True}
    assert answer("read", f"{tmp_path}/file", -100) == {"text": "café �"}


def test_what_cannot_be_had_is_unknown_and_the_rest_is_answered(tmp_path: Path) -> None:
    got = ask(("read", str(tmp_path), 3), ("path", str(tmp_path)), ("guess",))
    assert got["unknown"] == {0: f"{tmp_path}: is a directory", 2: "LookupError: no probe is called guess"}
    assert got["answers"][1]["type"] == "folder"


def test_private_names_are_no_probes() -> None:
    assert set(ask(("answer",), ("_name", "user", 0))["unknown"]) == {0, 1}


def test_packages(tmp_path: Path) -> None:
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(DPKG)
    names = ("haproxy", "haproxy-doc", "libnuma1", "libucx0", "ucx0")
    got = ask(*(("package", n) for n in names), root=tmp_path)
    assert [a["version"] for a in got["answers"]] == ["2.6.12-1", "9", None, "1.13.1-1", None]
    held = answer("package", "nvidia-open", root=tmp_path)
    assert held == {"version": "580.159.04-1ubuntu1", "held": True}
    assert answer("packages", ["lib*", "nvidia*"], root=tmp_path) == [
        ["install", "libucx0", "1.13.1-1"],
        ["hold", "nvidia-open", "580.159.04-1ubuntu1"],
    ]


def test_units_of_a_folder(tmp_path: Path) -> None:
    assert answer("units", "dsv32-*", root=tmp_path) == []
    folder = tmp_path / "etc/systemd/system"
    for name in ("dsv32-b.service", "dsv32-a.service", "ssh.service"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "dsv32-a.service.d").mkdir()
    assert answer("units", "dsv32-*", root=tmp_path) == ["dsv32-a.service", "dsv32-b.service"]


def test_sysctl(tmp_path: Path) -> None:
    file = tmp_path / "90.conf"
    file.write_text("# kernel.ostype = Mach\nkernel.ostype=Plan9\nkernel.ostype =  Linux  \nother = 1\n")
    got = answer("sysctl", str(file), "kernel.ostype")
    assert got == {"line": "kernel.ostype = Linux", "value": "Linux", "writable": False}
    assert answer("sysctl", str(file), "no.such.key") == {"line": None, "value": None, "writable": False}
    assert sysctl_path("net.ipv4.conf.eth0/7.rp_filter") == "/proc/sys/net/ipv4/conf/eth0.7/rp_filter"


def test_weights(tmp_path: Path) -> None:
    assert answer("weights", f"{tmp_path}/none") == {"manifest": None, "files": {}}
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.safetensors").write_bytes(b"123")
    (tmp_path / ".complete").write_text("abc\n")
    assert answer("weights", str(tmp_path)) == {"manifest": "abc", "files": {"sub/a.safetensors": 3}}


def test_disk_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    there, parent = (answer("disk", path) for path in (f"{tmp_path}/a/b", str(tmp_path)))
    # what is free changes while others write
    assert {**there, "free": 0} == {**parent, "free": 0}
    assert there["free"] > 0
    assert answer("disk", "/proc")["type"] == "proc"


def test_user() -> None:
    assert answer("user", "root")["home"] == "/root"
    assert answer("user", "nobody-of-that-name") is None


def test_host() -> None:
    got = answer("host")
    assert got["hostname"] == socket.gethostname()
    assert got["os"]["id"]
    assert got["memory_gib"] > 0.1
    assert abs(got["time"] - time.time()) < 60


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_listen(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as listening:
        try:
            listening.bind((address, 0))
        except OSError:
            pytest.skip(f"this machine has no {address}")
        listening.listen()
        port = listening.getsockname()[1]
        mine = next(e for e in answer("listen") if e["port"] == port)
    assert (mine["address"], mine["pid"]) == (address, os.getpid())


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(418)
        self.end_headers()
        self.wfile.write(self.path.encode() + b" " + self.headers["X-Request-Id"].encode() + b" " + body)

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(100):  # an answer that never ends
            self.wfile.write(b".")
            time.sleep(0.1)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


def test_http(url: str) -> None:
    got = answer("http", "POST", url + "/v1?a=b", "{}", [["X-Request-Id", "7"]], 5)
    assert (got["status"], got["body"]) == (418, "/v1?a=b 7 {}")


def test_http_has_a_deadline_even_when_bytes_keep_coming(url: str) -> None:
    assert answer("http", "GET", url, "", [], 0.5) == {"error": "no whole answer within 0.5 s"}


def test_http_without_anybody_there() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        assert "refused" in answer("http", "GET", f"http://127.0.0.1:{port}/", "", [], 5)["error"]


def test_command() -> None:
    got = answer("command", ["sh", "-c", "echo out; echo err >&2; exit 3"], 5)
    assert (got["exit"], got["stdout"], got["stderr"]) == (3, "out\n", "err\n")
    assert answer("command", ["/no/such/program"], 5)["exit"] == 127


def test_a_command_and_its_children_end_at_the_deadline(tmp_path: Path) -> None:
    script = f"echo $$ >{tmp_path}/pid; echo begun; sleep 60 | sleep 60"
    got = answer("command", ["sh", "-c", script], 0.5)
    assert (got["exit"], got["stdout"]) == (None, "begun\n")
    group = int((tmp_path / "pid").read_text())
    alive = [p for p in os.listdir("/proc") if p.isdigit() and group_of(int(p)) == group]
    assert alive == []


def group_of(pid: int) -> int:
    """The process group of what is no zombie."""
    try:
        state, _, group = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return 0
    return 0 if state == "Z" else int(group)


def test_commands_of_one_request_run_beside_each_other(tmp_path: Path) -> None:
    # each waits for the other: one after the other, both would run out of time
    pair = [
        (
            "command",
            ["sh", "-c", f"touch {tmp_path}/{a}; until [ -e {tmp_path}/{b} ]; do sleep 0.05; done"],
            10,
        )
        for a, b in (("one", "two"), ("two", "one"))
    ]
    assert [a["exit"] for a in ask(*pair)["answers"]] == [0, 0]


def test_time_of_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert epoch_of("Sun 2026-11-29 18:09:09 UTC") == 1795975749
    assert epoch_of("") == epoch_of("n/a") == 0


def test_files_by_a_pattern_and_names_alone(tmp_path: Path) -> None:
    for name, content in {"a/state": "live\n", "b/state": "dead\n"}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(content)
    (tmp_path / "c/state").mkdir(parents=True)
    (tmp_path / os.uname().release).write_text("this one")
    got = answer("files", "/*/state", 2, root=tmp_path)
    assert got == {"/a/state": "li", "/b/state": "de"}, "what cannot be read is left out"
    assert answer("files", "/*/state", 0, root=tmp_path) == {"/a/state": "", "/b/state": "", "/c/state": ""}
    assert answer("files", "/{kernel}", 9, root=tmp_path) == {f"/{os.uname().release}": "this one"}
    assert answer("files", "/nothing", 9, root=tmp_path) == {}


def test_a_command_over_each_path_of_a_pattern(tmp_path: Path) -> None:
    for name in ("nvme0n1", "nvme1n1", "nvme1n1p1"):
        (tmp_path / name).write_text(f"of {name}\n")
    got = answer("over", ["cat"], f"{tmp_path}/nvme*n1", 5)
    assert {path.rpartition("/")[2]: said["stdout"] for path, said in got.items()} == {
        "nvme0n1": "of nvme0n1\n",
        "nvme1n1": "of nvme1n1\n",
    }


def test_what_an_environment_imports(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    got = answer("imports", str(tmp_path), ["json", "no_such_module", "os"], 30)
    broken = "ModuleNotFoundError: No module named 'no_such_module'"
    assert got["stdout"].splitlines() == ["json whole", f"no_such_module {broken}", "os whole"]
    assert answer("imports", f"{tmp_path}/none", ["json"], 30)["exit"] == 127


def test_what_counters_grow_by(tmp_path: Path) -> None:
    (tmp_path / "still").write_text("7\n")
    (tmp_path / "grows").write_text("7\n")
    later = threading.Timer(0.1, (tmp_path / "grows").write_text, ("12\n",))
    later.start()
    assert answer("grown", f"{tmp_path}/*", 0.4) == {f"{tmp_path}/still": 0, f"{tmp_path}/grows": 5}


def test_shards_by_their_headers(tmp_path: Path) -> None:
    header = json.dumps({"__metadata__": {}, "w": {"dtype": "F8", "data_offsets": [0, 100]}}).encode()
    whole = len(header).to_bytes(8, "little") + header + bytes(100)
    (tmp_path / "1.safetensors").write_bytes(whole)
    (tmp_path / "2.safetensors").write_bytes(whole[:-1])
    (tmp_path / "3.safetensors").write_bytes(whole[:9])
    (tmp_path / "4.safetensors").write_bytes(whole.replace(b'"w"', b"'w'"))
    (tmp_path / "5.safetensors").write_bytes(b"")
    index = {"weight_map": {"a": "1.safetensors", "b": "6.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert answer("shards", str(tmp_path)) == {
        "1.safetensors": "whole",
        "2.safetensors": "cut",
        "3.safetensors": "cut",
        "4.safetensors": "garbled",
        "5.safetensors": "cut",
        "6.safetensors": "missing",
    }
    assert answer("shards", f"{tmp_path}/none") == {}


def test_ports_and_packets_reach_a_peer_or_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        ports = (taken.getsockname()[1], closed.getsockname()[1])
        got = answer("reach", "lo", [("a", "127.0.0.1", ports), ("b", "255.255.255.255", (80,))], 0.3)
    assert got["ports"][f"a:{ports[0]}"] == "open"
    assert got["ports"][f"a:{ports[1]}"] == "refused"
    assert got["ports"]["b:80"] not in ("open", "refused")
    assert got["size"]["a"] == "whole"
    assert got["size"]["b"] == "silent"


def test_no_driver_is_an_answer() -> None:
    assert answer("cuda") == {"result": None}
