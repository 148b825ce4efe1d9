"""The agent: probes and ops of the host it runs on; knows nothing of our domain and none of our modules.

It comes through stdin of `python3 -IS` and is never written to disk; so it is standard library in the syntax
of Python 3.8, and imports late what not every request needs.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import stat
import sys
import threading
import time
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import Any, BinaryIO, NoReturn

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SILENCE_S = 30
"""Without a word from the controller for so long, it is taken for dead; it speaks every few seconds."""
COMPRESSED_FROM = 1 << 10
HASHED_UP_TO = 64 << 20
TEXT_UP_TO = 64 << 10
KEPT_OUTPUT = 1 << 16
TAIL_LINES = 20
QUERY_WITHIN_S = 30
UNIT_PROPERTIES = (
    "LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,MainPID,Result,ExecMainStatus,InvocationID,"
    "StateChangeTimestamp"
)
IN_PARALLEL = ("http", "command", "journal", "reach", "shards", "cuda", "over", "imports", "grown")
"""Kinds of probes that may wait for somebody else."""


class OpError(Exception):
    """An op that was not done, in parts that a program can read."""

    def __init__(self, text: str, *, number: int = 0, exit: int | None = None, tail: str = "") -> None:
        super().__init__(text)
        self.error: dict[str, Any] = {"text": text, "errno": number, "exit": exit, "tail": tail}


def spoken(problem: BaseException) -> str:
    """An exception as one line of text."""
    if isinstance(problem, OSError) and problem.strerror:
        path = f"{problem.filename}: " if problem.filename else ""
        return path + problem.strerror.lower()
    return f"{type(problem).__name__}: {problem}"


def failure(problem: BaseException) -> dict[str, Any]:
    """{ok, error} of an op that was not done."""
    if isinstance(problem, OpError):
        return {"ok": False, "error": problem.error}
    number = problem.errno if isinstance(problem, OSError) else 0
    return {"ok": False, "error": {"text": spoken(problem), "errno": number, "exit": None, "tail": ""}}


def tail_of(text: str) -> str:
    """The last lines of an output."""
    return "\n".join(text.rstrip().splitlines()[-TAIL_LINES:])


def text_of(path: str) -> str:
    """A small text file, or nothing if it is not there."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def http_answer(method: str, url: str, body: str, headers: Any, within_s: float) -> dict[str, Any]:
    """{status, body, seconds}, or {error}."""
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    began = time.monotonic()
    link = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=within_s)
    try:
        target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
        link.request(method, target, body=body.encode() or None, headers=dict(headers))
        answer = link.getresponse()
        text = b""
        while True:
            if time.monotonic() - began > within_s:
                return {"error": f"no whole answer within {within_s} s"}
            piece = answer.read1(KEPT_OUTPUT)
            if not piece:
                break
            text += piece
    except (OSError, http.client.HTTPException) as problem:
        return {"error": spoken(problem)}
    finally:
        link.close()
    took = round(time.monotonic() - began, 3)
    return {"status": answer.status, "body": text.decode("utf-8", "replace"), "seconds": took}


class Runner:
    """Starts programs, each in a session of its own, and ends them at their deadline or with the agent."""

    def __init__(self) -> None:
        self.running: set[int] = set()

    def run(
        self, words: list[str], *, within_s: float, environment: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """{exit: None if it ran out of time, stdout, stderr, seconds}; exit 127: there is no such program."""
        import subprocess

        began = time.monotonic()
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except OSError as problem:
            return {"exit": 127, "stdout": "", "stderr": spoken(problem), "seconds": 0.0}
        self.running.add(process.pid)
        try:
            out, err = process.communicate(timeout=within_s)
            status = process.returncode
        except subprocess.TimeoutExpired:
            out, err = self._cut_off(process)
            status = None
        finally:
            self.running.discard(process.pid)
        took = round(time.monotonic() - began, 3)
        kept = [b[-KEPT_OUTPUT:].decode("utf-8", "replace") for b in (out, err)]
        return {"exit": status, "stdout": kept[0], "stderr": kept[1], "seconds": took}

    def _cut_off(self, process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        import subprocess

        self._kill(process.pid)
        try:
            return process.communicate(timeout=1)
        except subprocess.TimeoutExpired as late:  # a grandchild left the session and holds the pipe
            return late.stdout or b"", late.stderr or b""

    def _kill(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(pid, 9)

    def kill_all(self) -> None:
        """End whatever still runs."""
        for pid in list(self.running):
            self._kill(pid)

    def must(self, words: list[str], *, within_s: float, environment: dict[str, str] | None = None) -> str:
        """Output of a program that has to succeed; OpError otherwise."""
        got = self.run(words, within_s=within_s, environment=environment)
        if got["exit"] == 0:
            return str(got["stdout"])
        said = tail_of(got["stderr"] or got["stdout"])
        if got["exit"] is None:
            raise OpError(f"{words[0]} took longer than {within_s} s", tail=said)
        raise OpError(f"{words[0]} ended with {got['exit']}", exit=got["exit"], tail=said)


class Probes:
    """The answers to one request; whatever several probes need is read once. `root` is / but in tests."""

    def __init__(self, asked: list[Any], runner: Runner, root: str = "") -> None:
        self.asked = asked
        self.runner = runner
        self.root = root
        self.names: dict[tuple[str, int], str] = {}
        self.dpkg: bytes | None = None
        self.shown: dict[str, dict[str, str]] | None = None

    def answer(self) -> dict[str, Any]:
        """{answers: in the order of the questions, unknown: {index: reason}}."""
        answers: list[Any] = [None] * len(self.asked)
        unknown: dict[int, str] = {}

        def one(index: int) -> None:
            kind, args = self.asked[index]
            try:
                if kind in PROBES:
                    answers[index] = getattr(self, kind)(*args)
                else:
                    from launcher.remote.agent_looks import look

                    answers[index] = look(self, kind, *args)
            except Exception as problem:  # an answer that cannot be had is a value over there
                unknown[index] = spoken(problem)

        waiting = [i for i, (kind, _) in enumerate(self.asked) if kind in IN_PARALLEL]
        threads = [threading.Thread(target=one, args=(i,), daemon=True) for i in waiting]
        for thread in threads:
            thread.start()
        for i in sorted(set(range(len(self.asked))) - set(waiting)):
            one(i)
        for thread in threads:
            thread.join()
        return {"answers": answers, "unknown": unknown}

    def host(self) -> dict[str, Any]:
        release = dict(
            line.split("=", 1) for line in text_of(self.root + "/etc/os-release").splitlines() if "=" in line
        )
        memory = text_of("/proc/meminfo").split(None, 2)
        name = os.uname()
        return {
            "hostname": name.nodename,
            "os": {
                "id": release.get("ID", "").strip('"'),
                "version": release.get("VERSION_ID", "").strip('"'),
            },
            "kernel": name.release,
            "python": ".".join(map(str, sys.version_info[:3])),
            "cpus": len(os.sched_getaffinity(0)),
            "memory_gib": round(int(memory[1]) / (1 << 20), 1),
            "boot_id": text_of("/proc/sys/kernel/random/boot_id").strip(),
            "time": time.time(),
        }

    def path(self, path: str, wanted: str = "") -> dict[str, Any]:
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return {"type": "absent"}
        answer: dict[str, Any] = {
            "type": "other",
            "mode": f"{stat.S_IMODE(found.st_mode):04o}",
            "owner": self._name("user", found.st_uid),
            "group": self._name("group", found.st_gid),
            "size": found.st_size,
            "sha256": None,
            "target": None,
        }
        if stat.S_ISDIR(found.st_mode):
            answer["type"] = "folder"
        elif stat.S_ISLNK(found.st_mode):
            answer.update(type="link", target=os.readlink(path))
        elif stat.S_ISREG(found.st_mode):
            answer["type"] = "file"
            if found.st_size <= HASHED_UP_TO:
                answer["sha256"] = digest_of(path)
            if wanted and answer["sha256"] != wanted and found.st_size <= TEXT_UP_TO:
                answer["text"] = text_of(path)  # for the diff; what is as wanted does not travel
        return answer

    def _name(self, of: str, number: int) -> str:
        import grp
        import pwd

        if (of, number) not in self.names:
            try:
                name = pwd.getpwuid(number).pw_name if of == "user" else grp.getgrgid(number).gr_name
            except KeyError:
                name = str(number)
            self.names[of, number] = name
        return self.names[of, number]

    def read(self, path: str, max_bytes: int) -> dict[str, Any]:
        try:
            with open(path, "rb") as file:
                if max_bytes < 0 and os.fstat(file.fileno()).st_size > -max_bytes:
                    file.seek(max_bytes, os.SEEK_END)
                    return {"text": file.read().decode("utf-8", "replace"), "truncated": True}
                content = file.read(abs(max_bytes) + 1)
        except (FileNotFoundError, NotADirectoryError):
            return {"absent": True}
        cut = {"truncated": True} if len(content) > abs(max_bytes) else {}
        return {"text": content[: abs(max_bytes)].decode("utf-8", "replace"), **cut}

    def unit(self, name: str) -> dict[str, Any]:
        shown = self._show(name)  # a timer has no main process: systemctl leaves those lines out
        release, _, note = text_of(f"{self.root}/run/dsv32/{name}").partition("\n")
        return {
            "load": shown["LoadState"],
            "active": shown["ActiveState"],
            "sub": shown["SubState"],
            "enabled": shown["UnitFileState"],
            "needs_reload": shown["NeedDaemonReload"] == "yes",
            "release": release.strip(),
            **({"note": note.strip()} if note else {}),
            "main_pid": int(shown.get("MainPID") or 0),
            "result": shown["Result"],
            "exit_status": int(shown.get("ExecMainStatus") or 0),
            "invocation": shown["InvocationID"],
            "since": epoch_of(shown["StateChangeTimestamp"]),
        }

    def _show(self, name: str) -> dict[str, str]:
        """One unit's properties, all units and jobs of the request being asked for at the first call."""
        if self.shown is None:
            units = [a[0] if k == "unit" else job_unit(a[0]) for k, a in self.asked if k in ("unit", "job")]
            self.shown = show_units(self.runner, list(dict.fromkeys(units)))
        return self.shown[name]

    def units(self, glob: str) -> list[str]:
        import fnmatch

        folder = self.root + "/etc/systemd/system"
        try:
            names = sorted(fnmatch.filter(os.listdir(folder), glob))
        except FileNotFoundError:
            return []
        return [n for n in names if not os.path.isdir(f"{folder}/{n}")]

    def package(self, name: str) -> dict[str, Any]:
        status = dpkg_status(self)
        at = -1
        while True:  # one paragraph for each architecture
            at = status.find(b"\nPackage: " + name.encode() + b"\n", at + 1)
            if at < 0:
                return {"version": None}
            paragraph = status[at : status.find(b"\n\n", at)]
            word = paragraph.partition(b"\nStatus: ")[2].partition(b" ok installed\n")[0]
            if word in (b"install", b"hold"):
                version = paragraph.split(b"\nVersion: ", 1)[1].split(b"\n", 1)[0]
                return {"version": version.decode(), **({"held": True} if word == b"hold" else {})}

    def user(self, name: str) -> dict[str, Any] | None:
        import grp
        import pwd

        try:
            found = pwd.getpwnam(name)
        except KeyError:
            return None
        groups = [g for g in os.getgrouplist(name, found.pw_gid) if g != found.pw_gid]
        return {
            "uid": found.pw_uid,
            "gid": found.pw_gid,
            "shell": found.pw_shell,
            "home": found.pw_dir,
            "groups": sorted(grp.getgrgid(g).gr_name for g in groups),
        }

    def sysctl(self, file: str, key: str) -> dict[str, Any]:
        setting = sysctl_path(key)
        line = None
        for text in text_of(file).splitlines():
            name, equals, value = text.partition("=")
            if equals and name.strip() == key:
                line = f"{key} = {' '.join(value.split())}"
        kernel = " ".join(text_of(setting).split()) if os.path.exists(setting) else None
        return {"line": line, "value": kernel, "writable": os.access(setting, os.W_OK)}

    def weights(self, folder: str) -> dict[str, Any]:
        recorded = text_of(folder + "/.complete").strip()
        files = {}
        for here, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(here, name)
                if name != ".complete":
                    files[os.path.relpath(path, folder)] = os.stat(path).st_size
        return {"manifest": recorded or None, "files": files}

    def job(self, name: str) -> dict[str, Any]:
        state = job_state(self._show(job_unit(name)))
        return {
            "state": state,
            "progress": job_progress(name, self.root),
            "tail": job_tail(self.runner, name) if state == "failed" else [],
        }

    def disk(self, path: str) -> dict[str, Any]:
        while not os.path.isdir(path):
            path = os.path.dirname(path)
        found = os.statvfs(path)
        real = os.path.realpath(path)
        mounts = [line.split() for line in text_of("/proc/self/mounts").splitlines()]
        over = [(len(m[1]), m[2]) for m in mounts if (real + "/").startswith(m[1].rstrip("/") + "/")]
        return {
            "total": found.f_blocks * found.f_frsize,
            "free": found.f_bavail * found.f_frsize,
            "type": max(enumerate(over), key=lambda m: (m[1][0], m[0]))[1][1] if over else "",
        }

    def listen(self) -> list[dict[str, Any]]:
        import socket

        found = []
        for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
            for line in text_of("/proc/net/" + name).splitlines()[1:]:
                words = line.split()
                if words[3] == "0A":
                    address, port = words[1].split(":")
                    raw = bytes.fromhex(address)  # 32-bit words in the byte order of the host
                    packed = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
                    found.append((int(port, 16), socket.inet_ntop(family, packed), words[9]))
        pids = pids_of_sockets({inode for _, _, inode in found})
        return [
            {"port": p, "address": a, "pid": pids.get(i, 0), "unit": unit_of(pids.get(i, 0))}
            for p, a, i in sorted(found)
        ]

    def http(self, method: str, url: str, body: str, headers: Any, within_s: float) -> dict[str, Any]:
        return http_answer(method, url, body, headers, within_s)

    def journal(self, unit: str, invocation: str, lines: int, after: str) -> dict[str, Any]:
        words = ["journalctl", "-o", "json", "--output-fields=MESSAGE,_PID,PRIORITY", "--no-pager", "-q"]
        if after == "" or after[0] == "@":
            words += ["-n", str(lines)] + (["--since", after] if after else [])
        elif after != "start":
            words += ["--after-cursor", after]
        if unit == "kernel":
            words += ["_TRANSPORT=kernel"]
        elif invocation:  # what the unit's processes said, and what systemd said of them
            words += ["_SYSTEMD_INVOCATION_ID=" + invocation, "+", "INVOCATION_ID=" + invocation]
        else:
            words += ["-u", unit]
        # head ends it at the first `lines`, which journalctl itself has learned only lately
        limit = ["sh", "-c", 'n=$1; shift; "$@" | head -n "$n"', "sh", str(lines)]
        entries = []
        for line in self.runner.must(limit + words, within_s=QUERY_WITHIN_S).splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:  # the first line of an output that was too long to be kept whole
                continue
        return {
            "entries": [journal_entry(e) for e in entries],
            "cursor": entries[-1]["__CURSOR"] if entries else after,
        }

    def command(self, words: list[str], within_s: float) -> dict[str, Any]:
        return self.runner.run(words, within_s=within_s)


PROBES = frozenset(name for name in vars(Probes) if name[0] != "_") - {"answer"}


def dpkg_status(probes: Probes) -> bytes:
    """dpkg's account of all packages, a newline before it; read once for a request."""
    if probes.dpkg is None:
        with open(probes.root + "/var/lib/dpkg/status", "rb") as file:
            probes.dpkg = b"\n" + file.read()
    return probes.dpkg


def digest_of(path: str) -> str:
    """sha256 of a file's content."""
    import hashlib

    digest = hashlib.sha256()
    with open(path, "rb", 0) as file:
        while True:
            piece = file.read(1 << 20)
            if not piece:
                return digest.hexdigest()
            digest.update(piece)


def epoch_of(stamp: str) -> int:
    """Seconds since 1970 of systemd's `Sun 2026-11-29 18:09:09 UTC`; 0 for none."""
    words = stamp.split()
    if len(words) != 4:
        return 0
    year, month, day = (int(w) for w in words[1].split("-"))
    hour, minute, second = (int(w) for w in words[2].split(":"))
    return int(time.mktime((year, month, day, hour, minute, second, 0, 0, 0)))  # TZ is UTC here


def show_units(runner: Runner, names: list[str]) -> dict[str, dict[str, str]]:
    """Properties of all these units, by one systemctl."""
    words = ["systemctl", "show", "-p", UNIT_PROPERTIES, "--", *names]
    paragraphs = runner.must(words, within_s=QUERY_WITHIN_S).strip("\n").split("\n\n")
    if len(paragraphs) != len(names):
        raise OpError(f"systemctl show told of {len(paragraphs)} units, {len(names)} were asked")
    return {n: dict(x.split("=", 1) for x in p.splitlines()) for n, p in zip(names, paragraphs)}  # noqa: B905


def sysctl_path(key: str) -> str:
    """Where the kernel keeps it; `/` in a key is a dot in a name."""
    return "/proc/sys/" + key.translate({46: 47, 47: 46})


def pids_of_sockets(inodes: set[str]) -> dict[str, int]:
    """Socket inode → a process that holds it."""
    found: dict[str, int] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for number in os.listdir(f"/proc/{pid}/fd"):
                target = os.readlink(f"/proc/{pid}/fd/{number}")
                if target.startswith("socket:[") and target[8:-1] in inodes:
                    found.setdefault(target[8:-1], int(pid))
        except OSError:  # it has ended meanwhile
            continue
    return found


def unit_of(pid: int) -> str:
    """The systemd unit that a process belongs to."""
    for line in text_of(f"/proc/{pid}/cgroup").splitlines():
        for part in reversed(line.split("/")):
            if part.endswith((".service", ".scope")):
                return part
    return ""


def journal_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """One line of the journal, as journalctl's JSON has it."""
    message = entry.get("MESSAGE")
    if isinstance(message, list):  # bytes that are no text
        message = bytes(message).decode("utf-8", "replace")
    return {
        "time": int(entry["__REALTIME_TIMESTAMP"]) / 1e6,
        "message": message or "",
        "pid": int(entry.get("_PID", 0)),
        "priority": int(entry.get("PRIORITY", 6)),
    }


def job_unit(name: str) -> str:
    """The unit a job runs in."""
    return f"dsv32-job-{name}.service"


def job_state(shown: dict[str, str]) -> str:
    """absent, running, done or failed: a job's unit stays after its end so that this can be read."""
    if shown["ActiveState"] == "failed":
        return "failed"
    if shown["ActiveState"] == "active" and shown["SubState"] == "exited":
        return "done"
    return "absent" if shown["ActiveState"] == "inactive" else "running"


def job_progress(name: str, root: str = "") -> Any:
    """What the job last wrote of itself: {text, done, total}."""
    try:
        return json.loads(text_of(f"{root}/run/dsv32/job-{name}.progress"))
    except ValueError:
        return None


def job_tail(runner: Runner, name: str) -> list[str]:
    """The last lines that the job itself has said, without what systemd says of it."""
    words = ["journalctl", "-o", "cat", "--no-pager", "-q", "-n", str(TAIL_LINES)]
    words.append("_SYSTEMD_UNIT=" + job_unit(name))
    return str(runner.run(words, within_s=QUERY_WITHIN_S)["stdout"]).splitlines()


class Agent:
    """Requests in, answers out. A second thread listens: a lost controller is noticed during an op."""

    def __init__(self, source: BinaryIO, out: int, root: str = "") -> None:
        self.source = source
        self.out = out
        self.root = root
        self.runner = Runner()
        self.inbox: queue.Queue[tuple[dict[str, Any], dict[str, bytes]]] = queue.Queue()
        self.speaking = threading.Lock()
        self.changing = threading.Lock()
        """Held while an op runs: the listener ends the agent only when it gets it, so at an op's boundary."""
        self.deserted = False
        self.lock_file = -1
        self.data = bytearray()

    def serve(self) -> None:
        """Answer requests until the controller is gone."""
        self.say({"agent": list(sys.version_info[:3]), "pid": os.getpid()})
        threading.Thread(target=self.listen, daemon=True).start()
        while True:
            frame, blobs = self.inbox.get()
            try:
                reply = self.reply(frame, blobs)
            except OSError as problem:  # of what the agent itself needs: its lock, its record
                reply = failure(problem)
            self.say({"id": frame["id"], **reply})

    def reply(self, frame: dict[str, Any], blobs: dict[str, bytes]) -> dict[str, Any]:
        """The answer to one request."""
        if "do" in frame:
            return {"results": self.do(frame, blobs)}
        received = time.time()
        reply = self.lock(frame["lock"]) if "lock" in frame else {}
        if "ask" in frame:
            reply.update(Probes(frame["ask"], self.runner, self.root).answer())
            reply["at"] = [
                received,
                time.time(),
            ]  # between these two the controller's clock must have been, too
        return reply

    def do(self, frame: dict[str, Any], blobs: dict[str, bytes]) -> list[dict[str, Any]]:
        """Op after op, up to the first that is not done."""
        from launcher.remote.agent_ops import Ops, Record

        def pause(seconds: float) -> None:
            self.changing.release()
            time.sleep(seconds)
            self.changing.acquire()

        def say(event: dict[str, Any]) -> None:
            self.say({"id": frame["id"], "event": event})

        run, key = frame["by"]["run"], frame["key"]
        ops = Ops(blobs, self.runner, run=run, key=key, pause=pause, say=say, root=self.root)
        record = Record(frame["by"], self.root)
        results = []
        for op in frame["do"]:
            with self.changing:
                if self.deserted:  # the listener waits for this boundary, and may not get the lock in between
                    self.end()
                results.append(ops.do(op, record))
            if not results[-1]["ok"]:
                break
        record.close()
        return results

    def lock(self, holder: dict[str, Any]) -> dict[str, Any]:
        """{held: true}, or {holder: who has it}. It is let go by the end of this process, however it ends."""
        import fcntl

        # beside /run/dsv32, which is a role's to make: a lock alters no plan
        path = self.root + "/run/dsv32.lock"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if self.lock_file < 0:
            self.lock_file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self.lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            try:
                return {"holder": json.loads(text_of(path))}
            except ValueError:  # it holds the lock and has not yet written who it is
                return {"holder": {}}
        os.ftruncate(self.lock_file, 0)
        os.pwrite(self.lock_file, json.dumps({**holder, "since": round(time.time(), 3)}).encode(), 0)
        return {"held": True}

    def say(self, frame: dict[str, Any]) -> None:
        """Send one frame."""
        line = json.dumps(frame, separators=(",", ":")).encode() + b"\n"
        if len(line) > COMPRESSED_FROM:
            packed = zlib.compress(line)
            line = b'{"zlib":%d}\n' % len(packed) + packed
        rest = memoryview(line)
        with self.speaking:
            try:
                while rest:
                    rest = rest[os.write(self.out, rest) :]
            except OSError:  # nobody listens any more; who speaks during an op only waits for a job
                self.end()

    def listen(self) -> None:
        """Take in frames; leave between two ops when there will be no more."""
        self.data = bytearray(self.source.peek())  # type: ignore[attr-defined]  # what the start read too far
        self.source.read(len(self.data))
        while True:
            frame = json.loads(self.take(None))
            if "zlib" in frame:
                frame = json.loads(zlib.decompress(self.take(frame["zlib"])))
            blobs = {name: self.take(size) for name, size in frame.get("blobs", ())}
            if "id" in frame:
                self.inbox.put((frame, blobs))
            elif "module" in frame:
                load_module(frame["module"], blobs["source"])
            elif not self.speaking.locked():  # a heartbeat; an answer under way says as much as another one
                self.say({})

    def take(self, size: int | None) -> bytes:
        """So many bytes from the controller; None: a line."""
        while True:
            end = self.data.find(b"\n") if size is None else size
            if 0 <= end <= len(self.data):
                taken = bytes(self.data[:end])
                del self.data[: end + (size is None)]
                return taken
            self.more()

    def more(self) -> None:
        """Wait for more bytes; without any there is no controller any more."""
        ready = select.select([self.source], [], [], SILENCE_S)[0]
        piece = os.read(self.source.fileno(), 1 << 18) if ready else b""
        if not piece:
            self.deserted = True
            self.changing.acquire()
            self.end()
        self.data += piece

    def end(self) -> NoReturn:
        """Leave, and leave no program of a probe behind."""
        self.runner.kill_all()
        os._exit(0)


def load_module(name: str, source: bytes) -> None:
    """Make a module that was sent importable here, under the name it has over there."""
    import types

    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(zlib.decompress(source), name, "exec"), vars(module))


def main() -> None:
    """Answer the controller at the other end of stdin and stdout."""
    os.environ.update(PATH=PATH, LC_ALL="C.UTF-8", TZ="UTC")
    time.tzset()
    os.umask(0o022)
    out = os.dup(1)  # frames only; whatever else is printed goes to stderr
    os.dup2(2, 1)
    sys.modules["launcher.remote.agent"] = sys.modules[__name__]
    Agent(sys.stdin.buffer, out).serve()


if __name__ == "__main__":
    main()
