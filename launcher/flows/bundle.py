"""bundle: one archive for a ticket or a vendor: what runs, what it said, what hosts are; without secrets."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher import __version__
from launcher.flows.diagnose import CONFIRM_WITHIN_S, journals, kernels
from launcher.flows.targets import Unit, units_of
from launcher.health.hands import Hands, look_within_s
from launcher.model.deployment import Deployment
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.problem import InputError, Problem
from launcher.model.signature import LogLine
from launcher.model.wish import Wanted
from launcher.record import runs_folder

# a vendor's upload form takes tens of MiB; text shrinks to a tenth
FILE_AT_MOST = 4 << 20
ALL_AT_MOST = 128 << 20
RUNS_AT_MOST = 3
UNIT_TEXT_AT_MOST = 64 << 10
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "nvidia-smi": ("nvidia-smi", "-q"),
    "topology": ("nvidia-smi", "topo", "-m"),
    "addresses": ("ip", "-br", "address"),
    "infiniband": ("ibstat",),
    "disks": ("df", "-h"),
    "memory": ("free", "-m"),
    "modules": ("lsmod",),
    "units": ("systemctl", "list-units", "--all", "--no-pager", "dsv32-*", "nvidia-*"),
    "uptime": ("uptime",),
}


@dataclass(frozen=True, slots=True)
class Bundle:
    """What was written."""

    path: Path
    files: int
    size_bytes: int
    left_out: tuple[str, ...]
    """Files that were cut or did not fit any more, and hosts that did not answer."""


def collect(
    fleet: Hands, wanted: Wanted, deployment: Deployment, target: str, *, since_s: float
) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """Name → text of everything that the hosts of a target have to say; and the hosts that say nothing."""
    units = units_of(deployment, target)
    logs, silent = journals(fleet, units, since_s)
    found = {
        f"hosts/{host}/{unit.removesuffix('.service')}.log": text_of(log)
        for (host, unit), log in logs.items()
    }
    by_host: dict[str, list[LogLine]] = {}
    for line in kernels(fleet, units, since_s or time.time() - 86400):
        by_host.setdefault(line.host, []).append(line)
    found |= {f"hosts/{host}/kernel.log": text_of(log) for host, log in by_host.items()}
    found |= facts(fleet, units)
    found["inventory.yaml"] = Path(wanted.wish.inventory.path).read_text(encoding="utf-8")
    stack = wanted.wish.profile.stack
    versions = {"dsv32-launch": __version__, "stack": stack.name, "engine": stack.engine_version}
    found["versions.json"] = json.dumps(versions, indent=1)
    return found, silent


def facts(fleet: Hands, units: Iterable[Unit]) -> dict[str, str]:
    """What hosts are and how their units read: one request a host."""
    files: dict[str, dict[Probe, str]] = {}
    for unit in units:
        asked = files.setdefault(unit.host, {Probe("host"): "host.json", Probe("listen"): "ports.json"})
        asked[Probe("read", (f"/etc/systemd/system/{unit.name}", UNIT_TEXT_AT_MOST))] = unit.name
        for name, words in QUESTIONS.items():
            asked[Probe("command", (words, CONFIRM_WITHIN_S))] = f"{name}.txt"
    answers = fleet.ask({host: tuple(asked) for host, asked in files.items()}, within_s=look_within_s)
    return {
        f"hosts/{host}/{name}": told(answer[probe])
        for host, asked in files.items()
        for probe, name in asked.items()
        if isinstance(answer := answers[host], Facts)
    }


def told(answer: object) -> str:
    """An answer as text: of a command what it wrote, of a file its content."""
    if isinstance(answer, Unknown):
        return str(answer)
    if isinstance(answer, dict) and "stdout" in answer:
        return str(answer["stdout"]) + str(answer["stderr"])
    if isinstance(answer, dict) and "text" in answer:
        return str(answer["text"])
    return json.dumps(answer, indent=1)


def text_of(log: Iterable[LogLine]) -> str:
    """A log as `diagnose --from` reads it."""
    stamps = ((time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(x.time_s)), x) for x in log)
    return "".join(f"{stamp}.{int(x.time_s % 1 * 1e6):06d}Z {x.text}\n" for stamp, x in stamps)


def last_runs(environment: Mapping[str, str], cluster: str) -> dict[str, str]:
    """The last few runs of this cluster, file by file."""
    found: dict[str, str] = {}
    folders = sorted(runs_folder(environment).glob("*/run.json"), reverse=True)
    of_cluster = (
        path.parent for path in folders if json.loads(path.read_text("utf-8"))["cluster"] == cluster
    )
    for folder, _ in zip(of_cluster, range(RUNS_AT_MOST), strict=False):
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            found[f"runs/{folder.name}/{path.relative_to(folder)}"] = path.read_text("utf-8", "replace")
    return found


def write(
    path: Path, files: Mapping[str, str], redact: Callable[[str], str], *, notes: Iterable[str] = ()
) -> Bundle:
    """The archive, for its owner alone to read, CONTENTS.txt first. InputError where it cannot be written."""
    kept: dict[str, bytes] = {}
    left_out = list(notes)
    size = 0
    for name, text in files.items():
        content = redact(text).encode()
        if len(content) > FILE_AT_MOST:
            left_out.append(f"{name}: all but its last {FILE_AT_MOST >> 20} MiB")
            content = content[-FILE_AT_MOST:]
        if size + len(content) > ALL_AT_MOST:
            left_out.append(f"{name}: no room")
            continue
        size += len(content)
        kept[name] = content
    contents = [f"{len(content):>10}  {name}" for name, content in kept.items()]
    contents += [f"left out: {line}" for line in left_out]
    kept = {"CONTENTS.txt": ("\n".join(contents) + "\n").encode(), **kept}
    try:
        path.touch(mode=0o600)
        with tarfile.open(path, "w:gz") as archive:
            for name, content in kept.items():
                entry = tarfile.TarInfo(f"{path.name.partition('.')[0]}/{name}")
                entry.size, entry.mode, entry.mtime = len(content), 0o600, int(time.time())
                archive.addfile(entry, io.BytesIO(content))
    except OSError as error:
        reason = (error.strerror or "not writable").lower()
        do = "name another file with --to"
        raise InputError(Problem(f"cannot write the bundle: {reason}", where=str(path), do=do)) from None
    return Bundle(path, len(kept), path.stat().st_size, tuple(left_out))
