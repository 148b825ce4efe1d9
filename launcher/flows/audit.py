"""audit: who did what, when and why: what hosts have written down, and the runs of this controller."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from launcher.health.hands import Hands, look_within_s
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.problem import Problem
from launcher.record import read_runs, runs_folder
from launcher.record.report import Document, result_of

RECORD = "/var/log/dsv32/journal.jsonl"
# some five thousand ops; logrotate keeps what is older beside it
BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Deed:
    """One op on one host, as the host wrote it down."""

    time_s: float
    host: str
    who: str
    where_from: str
    run: str
    why: str
    op: str
    target: str
    result: str
    """`done`, `failed: …`, or `begun`: nobody wrote down how it ended."""


@dataclass(frozen=True, slots=True)
class RunDeeds:
    """One run: what this controller knows of it, if it was started here, and what hosts wrote down of it."""

    run: str
    time_s: float
    who: str
    where_from: str
    why: str
    command: str
    """Its words; empty: another controller's, or its folder is gone."""
    result: str
    """Empty: as `command`."""
    done: Mapping[str, int]
    """Host → ops that were done there."""
    failed: Mapping[str, int]
    """Host → ops that failed, or have no end."""


def read_deeds(fleet: Hands, hosts: Iterable[str]) -> tuple[tuple[Deed, ...], tuple[Problem, ...]]:
    """Everything that these hosts remember, by time; and the hosts that do not answer."""
    probe = Probe("read", (RECORD, -BYTES))
    answers = fleet.ask(dict.fromkeys(hosts, (probe,)), within_s=look_within_s)
    deeds: list[Deed] = []
    for host, answer in answers.items():
        told = answer[probe] if isinstance(answer, Facts) else {}
        deeds += deeds_in(host, "" if isinstance(told, Unknown) else told.get("text", ""))
    problems = tuple(a for a in answers.values() if isinstance(a, Problem))
    return tuple(sorted(deeds, key=lambda d: d.time_s)), problems


def deeds_in(host: str, text: str) -> Iterator[Deed]:
    """The ops of one host's record, the line of an op's beginning and that of its end together."""
    begun: dict[tuple[str, str, str], Deed] = {}
    for line in text.splitlines():
        try:
            told = json.loads(line)
        except ValueError:  # the first of a record that is read from its middle; the last of a host that died
            continue
        deed = _deed(host, told)
        key = (deed.run, deed.op, deed.target)
        if deed.result == "begun":
            begun[key] = deed
            continue
        begun.pop(key, None)
        yield deed
    yield from begun.values()


def _deed(host: str, told: Document) -> Deed:
    error = told.get("error") or {}
    return Deed(
        time_s=told["time"],
        host=host,
        who=told["who"],
        where_from=told["from"],
        run=told["run"],
        why=told.get("why", ""),
        op=told["op"],
        target=told["target"],
        result=told["result"] + (f": {error['text']}" if error else ""),
    )


def by_run(deeds: Iterable[Deed], environment: Mapping[str, str], *, cluster: str) -> tuple[RunDeeds, ...]:
    """Runs of a cluster, oldest first: those of this controller, and those that only hosts know of."""
    of_run: dict[str, list[Deed]] = {}
    for deed in deeds:
        of_run.setdefault(deed.run, []).append(deed)
    runs = [run for run in read_runs(runs_folder(environment)) if run["cluster"] == cluster]
    here = {run["id"]: run for run in runs}
    found = [_run(name, here.get(name), of_run.get(name, ())) for name in {**here, **of_run}]
    return tuple(sorted(found, key=lambda r: r.time_s))


def _run(name: str, run: Document | None, deeds: Iterable[Deed]) -> RunDeeds:
    deeds = tuple(deeds)
    done: dict[str, int] = {}
    failed: dict[str, int] = {}
    for deed in deeds:
        into = done if deed.result == "done" else failed
        into[deed.host] = into.get(deed.host, 0) + 1
    if run is None:
        first = deeds[0]
        told = (first.time_s, first.who, first.where_from, first.why, "", "")
    else:
        words = " ".join(run["argv"])
        told = (moment(run), run["who"], run["where_from"], run.get("why", ""), words, result_of(run))
    return RunDeeds(name, *told, done=done, failed=failed)


def moment(run: Document) -> float:
    """When a run began, as seconds since the epoch."""
    return datetime.fromisoformat(run["started"].replace("Z", "+00:00")).astimezone(timezone.utc).timestamp()
