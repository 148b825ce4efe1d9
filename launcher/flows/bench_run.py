"""One run of the client, as a job on a host of the fleet: it survives its controller, and is found again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launcher.bench import client as program
from launcher.bench.measure import result_of
from launcher.bench.workload import (
    RESULT,
    Once,
    Service,
    job_name,
    prompts_name,
    prompts_of,
    warm_up,
    words,
)
from launcher.execute.hands import Hands
from launcher.flows.bench_looks import Ports, asked_of_exporters, tracks_of
from launcher.health.hands import answers_of
from launcher.health.metrics import Reading, read
from launcher.model.bench import Measured, Method, Point, Result, Target
from launcher.model.deployment import Deployment
from launcher.model.facts import Probe, Unknown
from launcher.model.plan import Op
from launcher.model.problem import LauncherError, LockedError, Problem
from launcher.model.profile import Client, Engine
from launcher.model.run import Event, Listener
from launcher.model.sla import Sla, Workload
from launcher.model.telemetry import Telemetry
from launcher.wait import CLOCK, Clock, wait_for

FOLDER = "/var/lib/dsv32/bench"
BYTES = 32 << 20
RUNNING = ("systemctl", "list-units", "--plain", "--no-legend", "--state=running", "dsv32-job-bench-*")
OTHERS = Probe("command", (RUNNING, 20))
"""Benchmarks that run on a host, one a line."""
GRACE_S = 60
AGAIN_EVERY_S = 3.0
SHARED = ("queued", "prompt_tokens", "generation_tokens")
"""Counters that tell how the work was shared out among ranks."""


@dataclass(frozen=True, slots=True)
class Record:
    """Whom a benchmark tells, and who can end it."""

    listener: Listener
    keep: Callable[[str, str], str]
    """A name and a text → where it was kept."""
    interrupted: Callable[[], bool]
    told: Callable[[Measured], None] = lambda _: None
    """Of each point, as soon as it is measured; it keeps what is not to be measured again."""
    clock: Clock = CLOCK


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything that all runs of one call have in common."""

    deployment: Deployment
    engine: Engine
    client: Client
    target: Target
    workload: Workload
    sla: Sla | None
    method: Method
    seed: int
    """Of the first run at each point; each repeat has the next one."""
    repeats: int
    salt: str
    """Another one for each call."""
    telemetry: Telemetry = field(default_factory=lambda: Telemetry(1.0, 4, {}))
    """What exporters are asked for; nothing unless it is said."""
    ports: Ports = field(default_factory=dict)
    """Where they listen."""

    def line(self, point: Point, once: Once) -> tuple[str, ...]:
        """The client's command line."""
        limits = self.sla.limits if self.sla else {}
        return words(
            self.client,
            service_of(self),
            self.workload,
            point=point,
            once=once,
            method=self.method,
            limits=limits,
        )

    def job(self, point: Point, seed: int) -> str:
        """The name of a run: the same for the same load on the same service, whoever asks."""
        deployed = (
            (*p.argv(), *(f"{name}={setting.value}" for name, setting in p.environment.items()))
            for i in self.target.instances
            for p in i.processes
        )
        return job_name(self.line(point, Once(seed, salt="")), deployed)

    @property
    def pages(self) -> Mapping[str, str]:
        """Address of an engine's metrics → its instance."""
        return {f"{url}/metrics": i.name for i in self.target.instances for e in i.api for url in e.urls()}


def service_of(bench: Bench) -> Service:
    """What the client is told of the service."""
    deployment = bench.deployment
    arguments = bench.target.instances[0].processes[0].arguments
    mode = next((a.value for a in arguments if a.flag == "--tokenizer-mode"), None)
    return Service(
        deployment.environment_path,
        bench.target.url,
        deployment.served_name,
        deployment.model_path,
        mode or "",
    )


def run(fleet: Hands, bench: Bench, point: Point, seed: int, record: Record) -> Result:
    """Begun, or attached to where it runs, or only picked up where it ended and nobody took its result.

    It can be picked up until it is `taken`.
    """
    host, name, subject = bench.target.host, bench.job(point, seed), f"{point}, seed {seed}"
    listener = record.listener
    _alone(fleet, bench, name, record, subject=subject)
    state = _state(fleet, bench, name)
    listener(Event("phase", SAID.get(state, f"measuring {bench.target.name}"), host, subject))
    begin = (*files(bench, point, seed), _job(bench, name))
    if state != "done":
        ops = begin[-1:] if state == "running" else begin
        within_s = bench.method.within_s + GRACE_S
        _do(fleet, host, ops, listener=listener, within_s=within_s, subject=subject)
    kept = f"bench/{slug(subject)}-{point.prompts}-prompts.json"
    result = _collected(fleet, bench, name, seed, keep=lambda text: record.keep(kept, text))
    when = f", ended at {result.date} by the client's clock" if state == "done" else ""
    listener(Event("measured", told(result) + when, host, subject, {"path": result.path}))
    return result


def taken(fleet: Hands, bench: Bench, point: Point, seeds: Iterable[int], record: Record) -> None:
    """Their results are kept: while the unit of a job is there, the next call for it would pick it up."""
    units = [f"dsv32-job-{bench.job(point, seed)}.service" for seed in seeds]
    stop = Op("units", {"stop": units})
    _do(
        fleet,
        bench.target.host,
        (stop,),
        listener=record.listener,
        within_s=GRACE_S,
        subject=str(point),
    )


SAID: Mapping[str, str] = {
    "running": "attached to a run that was begun before",
    "done": "picked up a run that had ended and was not collected",
}


def slug(words: str) -> str:
    """A name for a file: `concurrency-16-seed-1`."""
    return re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")


def told(result: Result) -> str:
    """A run in a line."""
    return (
        f"{result.completed} of {result.asked} requests in {result.figures.get('duration', 0):.1f} s, "
        f"TTFT {result.figures.get('mean_ttft_ms', 0):.1f} ms, "
        f"{result.figures.get('total_token_throughput', 0):.1f} tok/s"
    )


def files(bench: Bench, point: Point, seed: int) -> Iterator[Op]:
    """What the job needs in its folder: the program, and what it is to do."""
    folder = f"{FOLDER}/{bench.job(point, seed)}"
    ahead = Once(seed + bench.repeats, f"{bench.salt}-warm-up-{seed}", prompts=folder)
    counted = Once(seed, f"{bench.salt}-{seed}", folder, prompts=folder)
    # labels are looked at here: the program on the host keeps all lines of these names
    names = sorted({name.partition("{")[0] for name in bench.engine.metrics.values()})
    spec = {
        "warm_up": bench.line(warm_up(point, bench.method), ahead),
        "words": bench.line(point, counted),
        "begins": bench.client.begins,
        "ends": bench.client.ends,
        "pages": list(bench.pages),
        "counters": names,
        "settle_s": bench.method.settle_s,
        **asked_of_exporters(bench.target, bench.telemetry, bench.ports),
    }
    yield Op("put", {"path": f"{folder}/client.py"}, Path(program.__file__).read_bytes())
    if text := bench.workload.text:
        yield Op("put", {"path": f"{folder}/{prompts_name(text)}"}, prompts_of(text).encode())
    yield Op("put", {"path": f"{folder}/spec.json"}, json.dumps(spec, indent=1).encode())


def _job(bench: Bench, name: str) -> Op:
    folder = f"{FOLDER}/{name}"
    line = [f"{bench.deployment.environment_path}/bin/python", f"{folder}/client.py", folder]
    environment = dict(bench.method.environment)
    within_s = bench.method.within_s
    return Op("job", {"name": name, "words": line, "environment": environment, "within_s": within_s})


def _alone(fleet: Hands, bench: Bench, name: str, record: Record, *, subject: str) -> None:
    """Waits until no other benchmark runs on the client's host: the two would measure each other.

    Whoever began it is gone, for the host's lock is ours; its result stays there for the call that it is of.
    LockedError where the user does not wait.
    """
    host, own = bench.target.host, f"dsv32-job-{name}.service"

    def tell(other: str) -> None:
        text = f"waiting for a benchmark that nobody attends; to end it: ssh {host} systemctl stop {other}"
        record.listener(Event("phase", text, host, subject))

    other = wait_for(
        lambda: next((unit for unit in _running(fleet, host) if unit != own), ""),
        lambda other: not other,
        every_s=AGAIN_EVERY_S,
        interrupted=record.interrupted,
        on_change=tell,
        clock=record.clock,
    ).answer
    if other:
        what = "another benchmark is running, and the two would measure each other"
        do = f"wait for it, or end it: ssh {host} systemctl stop {other}"
        raise LockedError(Problem(what, f"{host}, unit {other}", "whoever began it is gone", do))


def _running(fleet: Hands, host: str) -> list[str]:
    """Units of benchmarks."""
    told = answers_of(fleet, {host: (OTHERS,)})[host][OTHERS]
    listed = "" if isinstance(told, Unknown) else told["stdout"]
    return [line.split()[0] for line in listed.splitlines() if line.strip()]


def _state(fleet: Hands, bench: Bench, name: str) -> str:
    """Of the job: absent, running, done, failed, or old: done so long ago that it tells nothing of today."""
    job, unit, clock = Probe("job", (name,)), Probe("unit", (f"dsv32-job-{name}.service",)), Probe("host")
    facts = answers_of(fleet, {bench.target.host: (job, unit, clock)})[bench.target.host]
    for answer in (facts[job], facts[unit], facts[clock]):
        if isinstance(answer, Unknown):
            return "absent"
    state = str(facts[job]["state"])
    ended_s = facts[clock]["time"] - facts[unit]["since"]
    return "old" if state == "done" and ended_s > bench.method.picked_up_within_s else state


def _collected(fleet: Hands, bench: Bench, name: str, seed: int, *, keep: Callable[[str], str]) -> Result:
    """The job's three files, read and kept: whoever began it, its spec says what the client was told."""
    host, folder = bench.target.host, f"{FOLDER}/{name}"
    probes = tuple(Probe("read", (f"{folder}/{file}", BYTES)) for file in (RESULT, "told.json", "spec.json"))
    facts = answers_of(fleet, {host: probes})[host]
    texts = ["" if isinstance(facts[p], Unknown) else facts[p].get("text", "") for p in probes]
    try:
        document, beside, spec = (json.loads(text) for text in texts)
    except ValueError:
        what = "the client ended well and left no result"
        do = f"dsv32-launch bench again; its words: ssh {host} journalctl -u dsv32-job-{name}"
        raise LauncherError(Problem(what, f"{host}, {folder}", do=do)) from None
    before, after = readings(beside["before"], bench), readings(beside["after"], bench)
    tracks, untold = tracks_of(beside["looks"], bench.target, bench.telemetry, bench.ports)
    return result_of(
        document,
        seed=seed,
        cpu_percent=float(beside["cpu_percent"]),
        counters=_growth(before, after, bench),
        ranks=_ranks(before, after),
        silent=tuple(i.name for i in bench.target.instances if not {i.name} <= before.keys() & after.keys()),
        restarted=tuple(n for n in before if n in after and _fell(before[n], after[n])),
        path=keep(texts[0]),
        words=tuple(spec["words"]),
        tracks=tracks,
        untold=untold,
    )


def readings(pages: Mapping[str, str], bench: Bench) -> Mapping[str, Reading]:
    """Instance → its counters, all its addresses together; one of which any is missing is left out."""
    texts: dict[str, list[str]] = {}
    for url, instance in bench.pages.items():
        texts.setdefault(instance, []).append(pages.get(url, ""))
    return {name: read("".join(own), bench.engine.metrics) for name, own in texts.items() if all(own)}


def _growth(
    before: Mapping[str, Reading], after: Mapping[str, Reading], bench: Bench
) -> Mapping[str, Mapping[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for instance in bench.target.instances:
        if instance.name in before and instance.name in after:
            pool = found.setdefault(instance.pool, {})
            for word in bench.engine.metrics:
                grown = after[instance.name].total(word) - before[instance.name].total(word)
                pool[word] = pool.get(word, 0.0) + grown
    return found


def _ranks(
    before: Mapping[str, Reading], after: Mapping[str, Reading]
) -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """How the work of each instance was shared out among its ranks."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in before.keys() & after.keys():
        for word in SHARED:
            for rank, value in after[name].ranks(word).items():
                grown = value - before[name].ranks(word).get(rank, 0.0)
                found.setdefault(name, {}).setdefault(rank, {})[word] = grown
    return found


def _fell(before: Reading, after: Reading) -> bool:
    """A counter that only rises is lower than it was: the engine started anew."""
    return any(after.total(word) < before.total(word) for word in ("prompt_tokens", "generation_tokens"))


def _do(
    fleet: Hands, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str
) -> None:
    done = fleet.do(host, ops, listener=listener, within_s=within_s, subject=subject)
    if done.error:
        raise LauncherError(done.error)
