"""Runbooks for this inventory: their steps with all names filled in, and how far an earlier run came."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from launcher.flows.targets import units_of, unknown
from launcher.load.runbooks import NAME, texts_of
from launcher.model.deployment import Deployment, Instance
from launcher.model.inventory import Host
from launcher.model.problem import InputError, Problem
from launcher.model.runbook import LEAVES, Runbook, RunbookStep
from launcher.record import RunStory, read_run, read_runs

FLOW = "runbook"
# somebody else may have done anything after that
CONTINUED_WITHIN_S = 3600.0
PLACEHOLDERS = {"instance": "INSTANCE", "host": "HOST", "pool": "POOL"}
"""What stands for what nobody has named: a page for the wall holds for each of them."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a runbook is run for, and everything that its names may mean."""

    target: str
    """Empty: the whole fleet; or nothing was named, and names stay as they are."""
    instances: tuple[Instance, ...]
    hosts: tuple[str, ...]
    pool: str
    named: bool
    shared: str
    local: str


@dataclass(frozen=True, slots=True)
class Move:
    """A step with all names filled in, for one instance or host, or for all of the target."""

    id: str
    """`3`; `3 gpu06` where a step is done for each of several."""
    step: RunbookStep
    say: str
    expect: str
    words: tuple[str, ...] = ()
    """Of `do`: the command's verb and what follows."""
    run: tuple[str, ...] = ()
    """Of `on_host`: the command on each of `hosts`."""
    hosts: tuple[str, ...] = ()
    by_hand: str = ""
    instance: str = ""
    host: str = ""


def scope_of(
    book: Runbook, deployment: Deployment, hosts: Mapping[str, Host], target: str, *, must: bool
) -> Scope:
    """What the target means for this runbook; InputError where it is of another kind, or none although it
    `must` be named."""
    paths = deployment.paths
    if book.target == "fleet":
        if target:
            what = f"runbook {book.id} is for the whole fleet, and `{target}` is given"
            raise InputError(Problem(what, do=f"dsv32-launch runbook run {book.id}"))
        everything = tuple(hosts)
        return Scope("", deployment.instances, everything, "", True, paths.shared, paths.local)
    known = names_of(book, deployment, hosts)
    if target not in known:
        if target or must:
            raise InputError(wrong_target(book, target, known))
        return Scope("", (), (), "", False, paths.shared, paths.local)
    instances = tuple(i for i in deployment.instances if target in (i.name, i.pool) or target in i.hosts)
    own = {h for i in instances for h in i.hosts} if book.target != "host" else {target}
    pool = "" if book.target == "host" else instances[0].pool
    in_order = tuple(h for h in hosts if h in own)
    return Scope(target, instances, in_order, pool, True, paths.shared, paths.local)


def names_of(book: Runbook, deployment: Deployment, hosts: Mapping[str, Host]) -> list[str]:
    """What may be named as the target of this runbook."""
    if book.target == "host":
        return sorted(hosts)
    if book.target == "pool":
        return sorted({i.pool for i in deployment.instances})
    return sorted(i.name for i in deployment.instances) if book.target == "instance" else []


def wrong_target(book: Runbook, target: str, known: list[str]) -> Problem:
    """No target, or one of another kind."""
    if target:
        return unknown(target, book.target, known)
    article = "an" if book.target == "instance" else "a"
    what = f"runbook {book.id} is for {article} {book.target}, and none is named"
    return Problem(
        what, why=f"one of: {', '.join(known)}", do=f"dsv32-launch runbook run {book.id} {known[0]}"
    )


def moves(book: Runbook, scope: Scope, deployment: Deployment) -> tuple[Move, ...]:
    """Every step in turn, for each instance or host that it names."""
    found: list[Move] = []
    for number, step in enumerate(book.steps, start=1):
        variants = list(_variants(step, scope))
        for names in variants:
            told = " ".join(names[n] for n in ("instance", "host") if n in names) if len(variants) > 1 else ""
            found.append(_move(f"{number} {told}".rstrip(), step, names, scope, deployment))
    return tuple(found)


def _variants(step: RunbookStep, scope: Scope) -> Iterator[dict[str, str]]:
    """The names of each time that a step is done."""
    used = {name for text in texts_of(step) for name in NAME.findall(text)}
    if step.on_host and not step.on_host.hosts:
        used.add("host")
    if not scope.named:
        yield {name: word for name, word in PLACEHOLDERS.items() if name in used}
    elif {"instance", "host"} <= used:
        for i in scope.instances:
            yield from ({"instance": i.name, "host": h} for h in scope.hosts if h in i.hosts)
    elif "instance" in used:
        yield from ({"instance": i.name} for i in scope.instances)
    elif "host" in used:
        yield from ({"host": host} for host in scope.hosts)
    else:
        yield {}


def _move(
    number: str, step: RunbookStep, names: Mapping[str, str], scope: Scope, deployment: Deployment
) -> Move:
    paths = {"shared": scope.shared, "local": scope.local}
    pool = {"pool": scope.pool} if scope.pool else {}
    every = {**paths, **pool, **names}
    hosts: tuple[str, ...] = ()
    if step.on_host:
        where = step.on_host.hosts
        units = units_of(deployment, fill_in(where, every)) if where else ()
        hosts = tuple(dict.fromkeys(u.host for u in units)) or (names["host"],)
    return Move(
        id=number,
        step=step,
        say=fill_in(step.say, every),
        expect=fill_in(step.expect, every),
        words=tuple(fill_in(w, every) for w in shlex.split(step.do)[1:]),
        run=tuple(fill_in(w, every) for w in step.on_host.run) if step.on_host else (),
        hosts=hosts,
        by_hand=fill_in(step.by_hand, every),
        instance=names.get("instance", ""),
        host=names.get("host", ""),
    )


def fill_in(text: str, names: Mapping[str, str]) -> str:
    """The text with its names replaced; the loader has seen that there are no others."""
    return NAME.sub(lambda found: names[found[1]], text)


def danger_of(book: Runbook, scope: Scope) -> str:
    """Its danger, with all that its names mean."""
    told = {
        "instance": ", ".join(i.name for i in scope.instances) or PLACEHOLDERS["instance"],
        "host": ", ".join(scope.hosts) or PLACEHOLDERS["host"],
        "pool": scope.pool or PLACEHOLDERS["pool"],
    }
    return fill_in(book.danger, {**told, "shared": scope.shared, "local": scope.local})


def next_book(move: Move, scope: Scope, books: Mapping[str, Runbook]) -> str:
    """The command to go on with when a move did not go well; empty: escalate."""
    if not move.step.otherwise:
        return ""
    instance = scope.instances[0].name if len(scope.instances) == 1 else ""
    host = scope.hosts[0] if len(scope.hosts) == 1 else ""
    book = books[move.step.otherwise]
    return command_for(book, instance=move.instance or instance, host=move.host or host)


def command_for(book: Runbook, *, instance: str, host: str) -> str:
    """How that runbook is run for an instance or a host; shown only, where what it is for is not known."""
    pool = re.sub(r"-\d+$", "", instance)
    target = {"instance": instance, "host": host, "pool": pool, "fleet": ""}[book.target]
    verb = "run" if target or book.target == "fleet" else "show"
    return f"dsv32-launch runbook {verb} {book.id} {target}".rstrip()


@dataclass(frozen=True, slots=True)
class Left:
    """What a move has begun and no other has ended."""

    move: Move
    what: str
    """`decode-0 gets no requests`."""
    ends: Move
    """The one command that ends it."""
    sure: bool
    """The move came to its end; else it may have got as far as that."""


def left(planned: Sequence[Move], done: Collection[str], begun: Move | None = None) -> tuple[Left, ...]:
    """What a run that stops now leaves, the last first, as it is to be ended; `begun`: the move it is at."""
    found: list[Left] = []
    for place, move in enumerate(planned):
        if not move.words or move.words[0] not in LEAVES or (move.id not in done and move is not begun):
            continue
        verb, what = LEAVES[move.words[0]]
        subject = _subject(move.words)
        enders = (m for m in planned[place:] if m.id in done and m.words[:1] == (verb,))
        if any(_subject(m.words) in ("", subject) for m in enders):
            continue
        option = ("--limit",) if "--limit" in move.words else ()
        ends = replace(move, words=(verb, *option, *((subject,) if subject else ())))
        found.append(Left(move, what.format(subject or "everything"), ends, move.id in done))
    return tuple(reversed(found))


def _subject(words: Sequence[str]) -> str:
    """What a command is for; empty: everything."""
    if "--limit" in words:
        return words[words.index("--limit") + 1]
    return words[1] if len(words) > 1 and not words[1].startswith("-") else ""


def digest_of(planned: Iterable[Move]) -> str:
    """Names these moves: an earlier run of others is not gone on with."""
    return hashlib.sha256("\n".join(repr(m) for m in planned).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier run that stopped, and what it had done."""

    run: str
    done: frozenset[str]
    """Ids of moves."""


def earlier(runs: Path, *, cluster: str, digest: str, now_s: float) -> Earlier | None:
    """The last run of the same moves, if it stopped within the hour with something done."""
    for run in reversed(read_runs(runs)):
        if run["flow"] != FLOW or run["cluster"] != cluster:
            continue
        story = read_run(runs, run["id"])
        done = [e for e in story.events if e["kind"] == "move-done" and e["data"]["digest"] == digest]
        if not done and not _is_of(story, digest):
            continue
        if run["exit_code"] == 0 or not done or now_s - _moment(done[-1]["time"]) > CONTINUED_WITHIN_S:
            return None
        return Earlier(run["id"], frozenset(e["subject"] for e in done))
    return None


def _is_of(story: RunStory, digest: str) -> bool:
    return any(e["data"].get("digest") == digest for e in story.events)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc).timestamp()
