"""profile: what an instance's processes do for some seconds, recorded by themselves, fetched and added up."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from launcher.bench.profile import time_of
from launcher.execute.hands import Hands
from launcher.health.hands import answers_of, look_within_s
from launcher.load.traces import read_trace
from launcher.model.deployment import Deployment, Instance
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.problem import InputError, LauncherError, Problem
from launcher.model.profile import Engine, Profiler
from launcher.model.run import Event, Listener
from launcher.model.trace import Capture, RankTime

START_WITHIN_S = 60
PIECES = 200
"""Of a file in one request."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom it is asked of, and how."""

    instance: Instance
    profiler: Profiler
    folder: str
    """On each of its hosts."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A file that a process left on its host."""

    host: str
    path: str
    size: int

    @property
    def label(self) -> str:
        """Host, and what its name says of the rank: `h01 dp0_pp0_tp0_dcp0_ep0_rank0`."""
        return f"{self.host} {Path(self.path).name.partition('.')[0]}"


def asked_of(deployment: Deployment, engine: Engine, name: str) -> Asked:
    """The instance of that name. InputError, with what to set, where its profiler is not on."""
    instance = next((i for i in deployment.instances if i.name == name), None)
    if instance is None:
        known = ", ".join(i.name for i in deployment.instances)
        raise InputError(Problem(f"`{name}` is no instance", "INSTANCE", do=f"name one of {known}"))
    profiler = engine.profiler
    if profiler is None:
        raise InputError(
            Problem(f"engine {engine.name} has no profiler", engine.source, do="describe it there")
        )
    flag = f"--{profiler.setting}"
    given = next((a.value for a in instance.processes[0].arguments if a.flag == flag), None)
    told = json.loads(given) if given and given.startswith("{") else {}
    if not told.get(profiler.folder) or any(told.get(k) != v for k, v in profiler.wants.items()):
        raise InputError(_off(profiler, instance))
    return Asked(instance, profiler, str(told[profiler.folder]))


def _off(profiler: Profiler, instance: Instance) -> Problem:
    variables = {k: v for k, v in profiler.advice.items() if k.isupper()}
    keys = {k: v for k, v in profiler.advice.items() if k not in variables}
    told = {**profiler.wants, profiler.folder: "/nvme/traces", **keys}
    shown = ", ".join(f"{k}: {v}" for k, v in told.items())
    environment = ", ".join(f'{k}: "{v}"' for k, v in variables.items())
    return Problem(
        f"the profiler of {instance.name} is not on",
        f"setting {profiler.setting}",
        "an engine is started with it, and keeps its endpoints closed otherwise",
        f"write into the inventory, and dsv32-launch up:\n"
        f"settings: {{{instance.pool}: {{{profiler.setting}: {{{shown}}}}}}}\n"
        f"environment: {{{instance.pool}: {{{environment}}}}}",
    )


def captured(
    fleet: Hands, asked: Asked, capture: Capture, *, wait: Callable[[], None], listener: Listener
) -> tuple[Trace, ...]:
    """What the processes wrote of the time until `wait` returns. LauncherError where any does not begin; then
    none goes on."""
    before = {(t.host, t.path) for t in traces_of(fleet, asked)}
    stop_within_s = int(capture.stop_within_s)
    try:
        _post(fleet, asked, asked.profiler.start, within_s=START_WITHIN_S)
        listener(Event("phase", "recording", subject=asked.instance.name))
        wait()
    except BaseException:
        with suppress(LauncherError):
            _post(fleet, asked, asked.profiler.stop, within_s=stop_within_s)
        raise
    listener(Event("phase", "writing", subject=asked.instance.name))
    _post(fleet, asked, asked.profiler.stop, within_s=stop_within_s)
    left = tuple(t for t in traces_of(fleet, asked) if (t.host, t.path) not in before)
    if not left:
        what = f"{asked.instance.name} left no trace in {asked.folder}"
        do = f"dsv32-launch logs {asked.instance.name}"
        raise LauncherError(Problem(what, ", ".join(asked.instance.hosts), do=do))
    return left


def _post(fleet: Hands, asked: Asked, path: str, *, within_s: int) -> None:
    """To every API of the instance, each on its own host; LauncherError where one does not agree."""
    probes: dict[str, list[Probe]] = {}
    for process in asked.instance.processes:
        for url in process.urls:
            probes.setdefault(process.host, []).append(Probe("http", ("POST", url + path, "", (), within_s)))
    answers = fleet.ask(probes, within_s=within_s + look_within_s)
    for host, own in probes.items():
        facts = answers[host]
        if isinstance(facts, Problem):
            raise LauncherError(facts)
        for probe in own:
            told = facts[probe]
            status = told if isinstance(told, Unknown) else told.get("error") or told.get("status")
            if status != 200:
                what = f"{asked.instance.name} answers {path} with {status}, expected 200"
                raise LauncherError(Problem(what, host, do=f"dsv32-launch logs {asked.instance.name}"))


def traces_of(fleet: Hands, asked: Asked) -> tuple[Trace, ...]:
    """All traces that are in the folder of the instance's hosts, with their sizes."""
    line = ("find", asked.folder, "-maxdepth", "1", "-name", asked.profiler.traces, "-printf", r"%s %p\n")
    listed = Probe("command", (line, 30))
    found: list[Trace] = []
    for host, facts in answers_of(fleet, dict.fromkeys(asked.instance.hosts, (listed,))).items():
        told = facts[listed]
        lines = "" if isinstance(told, Unknown) else told["stdout"]
        pairs = (line.split(" ", 1) for line in lines.splitlines())
        found += [Trace(host, path, int(size)) for size, path in pairs]
    return tuple(found)


def chosen(traces: Sequence[Trace], glob: str) -> tuple[Trace, ...]:
    """Those whose label fits. InputError where none does."""
    found = tuple(t for t in traces if fnmatch(t.label, glob))
    if not found:
        do = "name some of: " + ", ".join(t.label for t in traces)
        raise InputError(Problem(f"no trace fits `{glob}`", "--ranks", do=do))
    return found


def fetched(fleet: Hands, trace: Trace, capture: Capture, folder: Path) -> Path:
    """The file, on this machine. LauncherError where it is too large, or cannot be had whole."""
    if trace.size > capture.largest_mib << 20:
        what = f"the trace has {trace.size >> 20} MiB, at most {capture.largest_mib} are fetched"
        do = f"scp {trace.host}:{trace.path} . and dsv32-launch profile --from FILE; or capture for less time"
        raise LauncherError(Problem(what, f"{trace.host}, {trace.path}", do=do))
    path = folder / trace.host / Path(trace.path).name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for piece in _pieces(fleet, trace, capture.piece_kib << 10):
            file.write(piece)
    if path.stat().st_size != trace.size:
        what = f"{path.stat().st_size} of {trace.size} bytes came"
        raise LauncherError(Problem(what, f"{trace.host}, {trace.path}", do="dsv32-launch profile again"))
    return path


def _pieces(fleet: Hands, trace: Trace, piece: int) -> Iterator[bytes]:
    for begin in range(0, trace.size, piece * PIECES):
        places = range(begin, min(begin + piece * PIECES, trace.size), piece)
        script = f'tail -c +"$1" "$0" | head -c {piece} | base64 -w 0'
        probes = [Probe("command", (("sh", "-c", script, trace.path, str(at + 1)), 60)) for at in places]
        facts = answers_of(fleet, {trace.host: probes})[trace.host]
        yield from (_piece(facts, probe) for probe in probes)


def _piece(facts: Facts, probe: Probe) -> bytes:
    told = facts[probe]
    return b"" if isinstance(told, Unknown) else base64.b64decode(told["stdout"])


def times(traces: Mapping[str, Path], capture: Capture) -> tuple[RankTime, ...]:
    """Where the time of each went. InputError for what is no whole trace."""
    return tuple(time_of(label, read_trace(path), capture) for label, path in traces.items())
