"""The agent's ops: what it can change on its host; travels with the first request that changes something."""

from __future__ import annotations

import contextlib
import json
import os
import time

from launcher.remote.agent import (
    QUERY_WITHIN_S,
    TAIL_LINES,
    OpError,
    Runner,
    failure,
    http_answer,
    job_progress,
    job_state,
    job_tail,
    job_unit,
    show_units,
    sysctl_path,
    tail_of,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# a router finishes what it has begun before it stops
SYSTEMCTL_WITHIN_S = 960
APT_WITHIN_S = 1800
APT = "apt-get -q -y -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold"
ORDER_WITHIN_S = 120
"""Until a guard has obeyed: a process may take 45 s to stop, and GPUs some more until they are free."""
# `refresh` first: who is to be reached no longer is stopped only after that
UNITS_ORDER = ("disable", "enable", "refresh", "stop", "restart", "start")
SYSTEMCTL_VERBS = {"refresh": "try-reload-or-restart"}
ANSWER_EVERY_S = 0.2


class Ops:
    """The ops of one request, of a run with its name and its key for orders. `pause` lets go of the host
    while something is waited for; `say` sends an event."""

    def __init__(
        self,
        blobs: dict[str, bytes],
        runner: Runner,
        *,
        run: str = "",
        key: str = "",
        pause: Callable[[float], None] = time.sleep,
        say: Callable[[dict[str, Any]], None] = lambda event: None,
        root: str = "",
    ) -> None:
        self.blobs = blobs
        self.runner = runner
        self.run, self.key = run, key
        self.pause = pause
        self.say = say
        self.root = root

    def do(self, op: dict[str, Any], record: Record) -> dict[str, Any]:
        """{ok, error}: one op, done or not."""
        try:
            if op["op"] not in VERBS:
                raise OpError(f"no op is called {op['op']}")
            args = dict(op["args"])
            if "sha256" in op:
                args["content"] = self.blobs[op["sha256"]]
            record.note(op, "begun")
            getattr(self, op["op"])(**args)
            record.note(op, "done")
        except Exception as problem:  # told in parts; what to do about it is decided over there
            result = failure(problem)
            with contextlib.suppress(OSError):  # a disk that is full is already the result
                record.note(op, "failed", result["error"])
            return result
        return {"ok": True}

    def put(self, path: str, content: bytes, mode: str = "0644", owner: str = "", group: str = "") -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        part = beside(path)
        try:
            # never readable by others before it has its mode: it may be a secret
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                set_attributes(file.fileno(), mode, owner, group)
                os.fsync(file.fileno())
            os.rename(part, path)
        except BaseException:
            forget(part)
            raise

    def folder(self, path: str, mode: str = "", owner: str = "", group: str = "") -> None:
        os.makedirs(path, exist_ok=True)
        set_attributes(path, mode, owner, group)

    def link(self, path: str, target: str) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        part = beside(path)
        os.symlink(target, part)
        try:
            os.rename(part, path)
        except BaseException:
            forget(part)
            raise

    def remove(self, path: str) -> None:
        import shutil

        if os.path.dirname(os.path.normpath(path)) == "/":
            raise OpError(f"{path} is a folder of the system itself")
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            forget(path)

    def attributes(self, path: str, mode: str = "", owner: str = "", group: str = "") -> None:
        set_attributes(path, mode, owner, group)

    def user(
        self,
        name: str,
        system: bool = True,
        shell: str = "",
        home: str = "",
        groups: list[str] | tuple[str, ...] = (),
    ) -> None:
        import pwd

        try:
            pwd.getpwnam(name)
            words = ["usermod", "-a"] if groups else ["usermod"]
        except KeyError:
            words = ["useradd", *(["-r"] if system else []), *(["-m"] if home or not system else [])]
        words += ["-s", shell] if shell else []
        words += ["-d", home] if home else []
        words += ["-G", ",".join(groups)] if groups else []
        if words != ["usermod"]:
            self.runner.must([*words, name], within_s=QUERY_WITHIN_S)

    def sysctl(self, file: str, key: str, value: str | None) -> None:
        kept = [x for x in text_of(file).splitlines() if x.partition("=")[0].strip() != key]
        lines = kept if value is None else [*kept, f"{key} = {value}"]
        self.put(file, "\n".join([*lines, ""]).encode())
        if not lines:
            forget(file)
        if value is not None and os.access(sysctl_path(key), os.W_OK):
            with open(sysctl_path(key), "w", encoding="utf-8") as setting:
                setting.write(value)

    def package(self, names: dict[str, str], hold: bool = False, **source: str) -> None:
        import shutil
        import tempfile

        words = [n + ("=" + v if v else "") for n, v in names.items()]
        mirror = source.get("from", "")
        os.makedirs(self.root + "/run/dsv32", exist_ok=True)
        lists = tempfile.mkdtemp(prefix="apt-", dir=self.root + "/run/dsv32")
        try:
            options = only_from(mirror, lists) if mirror else []
            if mirror:
                self._apt(*options, "update")
            changed = ["--allow-downgrades", "--allow-change-held-packages"]
            self._apt(*options, "--no-install-recommends", *changed, "install", *words)
        finally:
            shutil.rmtree(lists, ignore_errors=True)
        if hold:
            self.hold(list(names))

    def hold(self, names: list[str], free: bool = False) -> None:
        self.runner.must(["apt-mark", "unhold" if free else "hold", *names], within_s=QUERY_WITHIN_S)

    def purge(self, names: list[str], needless: bool = False) -> None:
        self._apt("--allow-change-held-packages", "autopurge" if needless else "purge", *names)

    def _apt(self, *words: str) -> None:
        # apt refuses on a host that has lost power in the middle of dpkg, until this is done
        for line in (["dpkg", "--force-confold", "--configure", "-a"], [*APT.split(), *words]):
            self.runner.must(line, within_s=APT_WITHIN_S, environment={"DEBIAN_FRONTEND": "noninteractive"})

    def reboot(self, **_: int) -> None:
        # later, so that this answer still gets there
        later = ["systemd-run", "-q", "--on-active=1s", "--timer-property=AccuracySec=100ms"]
        self.runner.must([*later, "systemctl", "reboot"], within_s=QUERY_WITHIN_S)

    def units(self, reload: bool = False, **verbs: list[str]) -> None:
        # systemd misses an edit with an older time than what it loaded: what starts is what the disk holds
        reload = reload or bool(verbs.get("start") or verbs.get("restart"))
        if reload and not (verbs.get("enable") or verbs.get("disable")):  # these two reload by themselves
            self.runner.must(["systemctl", "daemon-reload"], within_s=SYSTEMCTL_WITHIN_S)
        for verb in UNITS_ORDER:
            units = verbs.get(verb) or []
            if units:
                self._systemctl(verb, units)

    def _systemctl(self, verb: str, units: list[str]) -> None:
        try:
            told = SYSTEMCTL_VERBS.get(verb, verb)
            self.runner.must(["systemctl", "-q", told, "--", *units], within_s=SYSTEMCTL_WITHIN_S)
        except OpError as problem:
            failed = [u for u, s in show_units(self.runner, units).items() if s["ActiveState"] != "active"]
            log = ["journalctl", "-o", "cat", "--no-pager", "-q", "-n", str(TAIL_LINES)]
            log += [w for u in failed for w in ("-u", u)]
            said = self.runner.run(log, within_s=QUERY_WITHIN_S)["stdout"] if failed else ""
            status = problem.error["exit"]
            text = f"systemctl {verb} {' '.join(failed or units)} ended with {status}"
            raise OpError(text, exit=status, tail=tail_of(f"{problem.error['tail']}\n{said}")) from None

    def answer(self, url: str, within_s: float, body: str = "") -> None:
        """Wait until a GET, or a POST of a body, is answered with 200."""
        until = time.monotonic() + within_s
        headers = {"Content-Type": "application/json"} if body else {}
        while True:
            left = max(until - time.monotonic(), 1)
            told = http_answer("POST" if body else "GET", url, body, headers, left)
            if told.get("status") == 200:
                return
            if time.monotonic() >= until:
                status = told.get("status")
                text = f"{url} answers {status}" if status else f"{url} does not answer"
                said = str(told.get("body") or told.get("error"))
                raise OpError(f"{text} after {within_s} s", tail=said[-800:])
            self.pause(ANSWER_EVERY_S)

    def command(self, words: list[str], within_s: float, environment: dict[str, str] | None = None) -> None:
        self.runner.must(words, within_s=within_s, environment=environment)

    def order(self, instance: str, verb: str, unit: str, within_s: float = ORDER_WITHIN_S) -> None:
        """Tell the guard of this host to run or stop the instance, and wait until it has."""
        from launcher.remote.agent import digest_of

        guard, path = f"dsv32-guard-{instance}.service", f"{self.root}/etc/systemd/system/{unit}"
        if verb == "run":
            self.runner.must(["systemctl", "daemon-reload"], within_s=SYSTEMCTL_WITHIN_S)
        wish = {"run": self.run if verb == "run" else "", "key": self.key}
        wish["unit"] = digest_of(path) if os.path.exists(path) else ""
        began_s, until_s = time.time(), time.monotonic() + within_s
        self.put(f"{self.root}/var/lib/dsv32/guard/{instance}.order", json.dumps(wish).encode(), mode="0600")
        while True:
            states = show_units(self.runner, [guard, unit])
            if verb == "stop" and states[guard]["ActiveState"] in ("inactive", "failed"):
                self._systemctl("stop", [unit])  # nobody starts it again
                return
            told = json.loads(text_of(f"{self.root}/run/dsv32/guard-{instance}.json") or "{}")
            if told and obeyed(told, wish["run"], states[unit]["ActiveState"], began_s):
                return
            if time.monotonic() > until_s:
                waits = f"waits for {told['waits']}" if told.get("waits") else "says nothing of it"
                raise OpError(f"{instance}: {verb} took longer than {within_s} s; its guard {waits}")
            self.pause(0.2)

    def job(
        self, name: str, words: list[str], within_s: int, environment: dict[str, str] | None = None
    ) -> None:
        unit = job_unit(name)
        state = job_state(show_units(self.runner, [unit])[unit])
        if state in ("done", "failed"):  # of an earlier run: it is wanted again
            self.runner.run(["systemctl", "-q", "stop", unit], within_s=QUERY_WITHIN_S)
            self.runner.run(["systemctl", "-q", "reset-failed", unit], within_s=QUERY_WITHIN_S)
        # a job that runs learns it, too: the run that attaches to it starts its peers on other hosts
        key = f"{self.root}/run/dsv32/job-{name}.key"
        self.put(key, self.key.encode(), mode="0600")
        if state != "running":
            forget(f"{self.root}/run/dsv32/job-{name}.progress")
            # waits until the unit has begun: one whose start is only queued looks like one that has ended
            start = ["systemd-run", "-q", "--unit=" + unit, "--remain-after-exit"]
            start += [f"--property=RuntimeMaxSec={within_s}", "--property=Nice=5"]
            told = {"DSV32_PROGRESS": f"{self.root}/run/dsv32/job-{name}.progress", "DSV32_KEY": key}
            start += [f"--setenv={k}={v}" for k, v in {**told, **(environment or {})}.items()]
            self.runner.must([*start, "--", *words], within_s=QUERY_WITHIN_S)
        self._follow(name, within_s)

    def _follow(self, name: str, within_s: int) -> None:
        """Until the job has ended; its own unit bounds the time it takes."""
        unit, told, wait_s = job_unit(name), None, 0.05
        while True:
            shown = show_units(self.runner, [unit])[unit]
            state = job_state(shown)
            progress = job_progress(name, self.root)
            if progress != told:
                self.say({"job": name, "progress": progress})
                told = progress
            if state == "done":
                return
            if state != "running":
                status = int(shown["ExecMainStatus"] or 0)
                raise OpError(
                    f"ended: {shown['Result']}, status {status} (limit {within_s} s)",
                    exit=status,
                    tail="\n".join(job_tail(self.runner, name)),
                )
            self.pause(wait_s)
            wait_s = min(wait_s * 1.5, 1.0)


VERBS = frozenset(name for name in vars(Ops) if name[0] != "_") - {"do"}


def obeyed(told: dict[str, Any], run: str, active: str, since_s: float) -> bool:
    """Has the guard done what it was ordered? What it started may have ended again, after `since_s`."""
    if told["order"] != run or told["offered"] != run:
        return False
    runs = active not in ("inactive", "failed")
    if not run:
        return not runs and not told["alive"]
    ended = any(end["order"] == run and end["when"] >= since_s for end in told["ends"])
    return ended or (runs and told["phase"] == "run")


def beside(path: str) -> str:
    """A name in the same folder for what is to become `path`."""
    folder, name = os.path.split(path)
    return f"{folder}/.{name}.{os.getpid()}.part"


def forget(path: str) -> None:
    """Unlink, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def set_attributes(path: int | str, mode: str, owner: str, group: str) -> None:
    """Owner first: a change of owner takes set-user-id bits away. Empty: as it is."""
    import grp
    import pwd

    try:
        uid = (int(owner) if owner.isdigit() else pwd.getpwnam(owner).pw_uid) if owner else -1
        gid = (int(group) if group.isdigit() else grp.getgrnam(group).gr_gid) if group else -1
    except KeyError:
        raise OpError(f"no user {owner} or no group {group} on this host") from None
    if owner or group:
        os.chown(path, uid, gid)
    if mode:
        os.chmod(path, int(mode, 8))


def only_from(mirror: str, lists: str) -> list[str]:
    """Options that make apt-get know one folder of packages and nothing else; its own lists stay."""
    with open(lists + "/sources.list", "w", encoding="utf-8") as file:
        file.write(f"deb [trusted=yes] file:{mirror} ./\n")
    os.makedirs(lists + "/lists/partial")
    options = {
        "Dir::Etc::SourceList": lists + "/sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": lists + "/lists",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    return [w for k, v in options.items() for w in ("-o", f"{k}={v}")]


def target_of(op: dict[str, Any]) -> str:
    """What an op is done to, for the record of the host; never content."""
    args = op["args"]
    if op["op"] == "units":
        return " ".join(f"{v} {u}" for v in UNITS_ORDER for u in args.get(v) or []) or "reload"
    if op["op"] == "order":
        return f"{args['verb']} {args['instance']}"
    if "words" in args:
        return " ".join(args["words"])[:200]
    for name in ("path", "name", "key", "names", "url"):
        if name in args:
            return args[name] if isinstance(args[name], str) else " ".join(args[name])
    return ""


class Record:
    """What was done to this host, by whom and in which run: one JSON line before and one after each op."""

    def __init__(self, by: dict[str, str], root: str = "") -> None:
        path = root + "/var/log/dsv32/journal.jsonl"
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        self.by = by
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)

    def note(self, op: dict[str, Any], result: str, error: dict[str, Any] | None = None) -> None:
        """Add one line."""
        line = {
            "time": round(time.time(), 3),
            **self.by,
            "op": op["op"],
            "target": target_of(op),
            "result": result,
        }
        if error:
            line["error"] = {k: error[k] for k in ("text", "errno", "exit")}
        os.write(self.file, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        """Let go of the file."""
        os.close(self.file)
