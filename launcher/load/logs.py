"""Text of logs, as files hold it → LogLines: who wrote each, and when; knows no host, no signature."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from launcher.model.problem import InputError, Problem
from launcher.model.signature import LogLine

COLOURS = re.compile(r"\x1b\[[\d;]*m")
INSTANCE = re.compile(r"(?:^|[^a-z])(prefill|decode)-(\d+)(?:[^0-9]|$)")
OTHERS = re.compile(r"(?:^|[^a-z])(router|front)(?:[^a-z]|$)")
KERNEL = re.compile(r"dmesg|kern")
OURS = "dsv32-"
# what no log holds: models, archives, whole databases
LARGEST_BYTES = 256 << 20
ISO = r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6})\d*)?(?:Z|([+-]\d\d):?(\d\d))?"
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
# a host, then a program with its process id; the kernel has none
SAID_BY = r"(\S+) (?:(kernel)|[\w.@:()/-]+\[\d+\]): "

# journalctl -o short-iso, short-iso-precise
SHORT_ISO = re.compile(rf"^(?!\S+Z ){ISO} {SAID_BY}")
# our own run folders, docker and kubectl logs --timestamps
STAMPED = re.compile(rf"^{ISO} ?")
# journalctl's usual output, and syslog's
SHORT = re.compile(rf"^([A-Z][a-z]{{2}}) +(\d+) (\d\d:\d\d:\d\d)(?:\.(\d{{1,6}}))? {SAID_BY}")
# dmesg -T
DMESG = re.compile(r"^\[[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d+) (\d\d:\d\d:\d\d) (\d{4})\] ")
# what vLLM and torch's own C++ write into their lines: `INFO 11-29 18:10:03 `, `[W1129 18:10:03.123456789 `
OWN_TIMES = (
    re.compile(r"\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d:\d\d:\d\d)() "),
    re.compile(r"\[[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d*)? "),
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a line says of itself; empty where it does not."""

    time_s: float | None
    text: str
    host: str = ""
    unit: str = ""


def read_logs(paths: Sequence[Path], *, year: int) -> tuple[LogLine, ...]:
    """The lines of files, and of all files below folders. InputError where a path is none or holds no log.

    `year`: of times that name none. Times without a zone are UTC.
    """
    found: list[LogLine] = []
    for path in paths:
        if not path.exists():
            raise InputError(Problem("no such file or folder", where=str(path), do="correct --from"))
        root, files = files_of(path)
        for file in files:
            text = text_of(file)
            if text is not None:
                host, unit = named_by(file, root)
                found += lines_of(text, host=host, unit=unit, year=year)
    if not found:
        where = ", ".join(map(str, paths))
        raise InputError(Problem("no log lines there", where=where, do="name a log, or a folder with logs"))
    return tuple(found)


def files_of(path: Path) -> tuple[Path, Sequence[Path]]:
    """Where names begin to tell, and the files. Of a run or a bundle of ours the hosts' logs alone: what is
    beside them quotes them.
    """
    if not path.is_dir():
        return path, [path]
    hosts = path / "hosts"
    if hosts.is_dir():
        return hosts, sorted(hosts.rglob("*.log"))
    return path, sorted(p for p in path.rglob("*") if p.is_file())


def text_of(file: Path) -> str | None:
    """A file's text; None if it is no text, or larger than logs are. InputError where it cannot be read."""
    try:
        if file.stat().st_size > LARGEST_BYTES:
            return None
        content = file.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise InputError(Problem(f"cannot be read: {reason}", where=str(file), do="check its mode")) from None
    return None if b"\0" in content[:4096] else content.decode("utf-8", "replace")


def named_by(file: Path, given: Path) -> tuple[str, str]:
    """Host and unit, by `HOST/UNIT.log` in a folder; of a single file the name is all there is."""
    inside = file.relative_to(given).parts if given.is_dir() else ()
    host = inside[-2] if len(inside) > 1 else file.stem
    return host, "kernel" if KERNEL.search(file.stem) else file.stem


def lines_of(text: str, *, host: str, unit: str, year: int) -> Iterator[LogLine]:
    """The lines of one file; one that does not say when has the time of the line before."""
    time_s = 0.0
    for raw in text.splitlines():
        told = line_told(COLOURS.sub("", raw), year)
        time_s = told.time_s if told.time_s is not None else time_s
        where, by = told.host or host, told.unit or unit
        # systemd's and our own lines name the unit that they are about
        about = told.text if OURS in told.text else ""
        yield LogLine(where, by, time_s, told.text, instance_of(by) or instance_of(about))


def instance_of(unit: str) -> str:
    """`decode-0` of `dsv32-decode-0.service`; `router`, `front`; empty of others."""
    if found := INSTANCE.search(unit):
        return f"{found[1]}-{found[2]}"
    other = OTHERS.search(unit)
    return other[1] if other else ""


def line_told(line: str, year: int) -> Told:
    """A line in the first of the forms that it has; its program's own time counts where there is no other."""
    told = next((t for form in FORMS if (t := form(line, year))), Told(None, line))
    if told.time_s is not None:
        return told
    for own in OWN_TIMES:
        if found := own.search(told.text):
            month, day, clock, fraction = found.groups()
            return replace(told, time_s=epoch(f"{year}-{month}-{day}", clock, fraction))
    return told


def as_json(line: str, year: int) -> Told | None:
    """journalctl -o json."""
    if not line.startswith("{"):
        return None
    try:
        entry = json.loads(line)
        time_s = int(entry["__REALTIME_TIMESTAMP"]) / 1e6
    except (ValueError, KeyError, TypeError):
        return None
    message = entry.get("MESSAGE") or ""
    if isinstance(message, list):  # bytes that are no text
        message = bytes(message).decode("utf-8", "replace")
    kernel = entry.get("_TRANSPORT") == "kernel"
    unit = "kernel" if kernel else entry.get("UNIT") or entry.get("_SYSTEMD_UNIT") or ""
    return Told(time_s, COLOURS.sub("", str(message)), str(entry.get("_HOSTNAME") or ""), str(unit))


def as_short_iso(line: str, year: int) -> Told | None:
    """`2026-11-29T18:41:10+0000 gpu05 vllm[123]: text`."""
    if not (found := SHORT_ISO.match(line)):
        return None
    date, clock, fraction, hours, minutes, host, kernel = found.groups()
    time_s = epoch(date, clock, fraction, zone=(hours, minutes))
    return Told(time_s, line[found.end() :], host, kernel or "")


def as_short(line: str, year: int) -> Told | None:
    """`Nov 29 18:41:10 gpu05 kernel: text`."""
    found = SHORT.match(line)
    if not found or found[1] not in MONTHS:
        return None
    month, day, clock, fraction, host, kernel = found.groups()
    time_s = epoch(date_of(year, month, day), clock, fraction)
    return Told(time_s, line[found.end() :], host, kernel or "")


def as_dmesg(line: str, year: int) -> Told | None:
    """`[Sat Nov 29 18:41:10 2026] text`."""
    found = DMESG.match(line)
    if not found or found[1] not in MONTHS:
        return None
    month, day, clock, its_year = found.groups()
    return Told(epoch(date_of(int(its_year), month, day), clock), line[found.end() :], unit="kernel")


def as_stamped(line: str, year: int) -> Told | None:
    """`2026-11-29T18:41:10Z text`, or with a space within the time."""
    if not (found := STAMPED.match(line)):
        return None
    date, clock, fraction, hours, minutes = found.groups()
    # a program's own time stays in its text: forms of levels begin with it
    text = line[found.end() :] if line[10] == "T" else line
    return Told(epoch(date, clock, fraction, zone=(hours, minutes)), text)


FORMS: tuple[Callable[[str, int], Told | None], ...] = (
    as_json,
    as_short_iso,
    as_short,
    as_dmesg,
    as_stamped,
)


def date_of(year: int, month: str, day: str) -> str:
    """`2026-11-09` of a month's English name."""
    return f"{year}-{MONTHS.index(month) + 1:02d}-{int(day):02d}"


def epoch(
    date: str, clock: str, fraction: str | None = None, *, zone: tuple[str | None, str | None] = (None, None)
) -> float | None:
    """Seconds since the epoch; None for what is no time, like 31 February."""
    hours, minutes = zone
    offset = f"{hours}:{minutes}" if hours and minutes else "+00:00"
    micros = (fraction or "").ljust(6, "0")
    try:
        told = datetime.fromisoformat(f"{date}T{clock}.{micros}{offset}")
    except ValueError:
        return None
    return told.astimezone(timezone.utc).timestamp()
