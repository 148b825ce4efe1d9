"""A runbook being run: each move by its command, by a look at hosts, or by a person's word."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.flows.runbook import Earlier, Left, Move, Scope, left, next_book
from launcher.model.problem import Exit, InputError, LauncherError, Problem
from launcher.model.run import Event
from launcher.model.runbook import PROGRAM, Runbook
from launcher.model.wish import Wanted

if TYPE_CHECKING:
    from launcher.cli.output import View
    from launcher.cli.running import Running


@dataclass(frozen=True, slots=True)
class Doing:
    """One run of a runbook, and who is told of it."""

    book: Runbook
    books: Mapping[str, Runbook]
    scope: Scope
    wanted: Wanted
    running: Running
    view: View
    planned: tuple[Move, ...]
    data_dir: Path | None
    digest: str
    by_hand: Callable[[Move], bool]
    """Has this move, which is done by hand, been done? Somebody says so."""
    yes: bool
    json_lines: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a move did not go well, and what the command ends with."""

    code: Exit
    problem: Problem
    begun: bool = True
    """It was begun, and may have changed something."""


@cache
def program() -> Any:
    """The command line of this build as click has it; typer takes 90 ms to make it."""
    from typer.main import get_command

    from launcher.cli.app import app

    return get_command(app)


def command_table() -> Mapping[str, Any]:
    """The commands that this build has, by name."""
    commands: Mapping[str, Any] = program().commands
    return commands


def options_of(command: Any) -> frozenset[str]:
    """The options that a command takes."""
    return frozenset(o for p in command.params for o in p.opts if p.param_type_name == "option")


def refuse_missing(book: Runbook, planned: Sequence[Move]) -> None:
    """InputError where a step needs a command that this build does not have."""
    table = command_table()
    lacking = {m.step.source: m for m in planned if m.words and m.words[0] not in table}
    if lacking:
        do = f"install a newer dsv32-launch; or do it by hand, by dsv32-launch runbook render {book.id}"
        raise InputError(
            *(
                Problem(
                    f"step {m.id} needs `{PROGRAM} {m.words[0]}`, which this build does not have",
                    where,
                    do=do,
                )
                for where, m in lacking.items()
            )
        )


def complete(move: Move, book: Runbook, wanted: Wanted, *, data_dir: Path | None) -> tuple[str, ...]:
    """The words of its command, with inventory, data and reason where the command takes them."""
    command = command_table().get(move.words[0]) if move.words else None
    if command is None:
        return move.words
    options, words = options_of(command), list(move.words)
    path = wanted.wish.inventory.path
    if "--inventory" in options:
        words += ["-i", path]
    elif any(p.name == "inventory" for p in command.params):
        words.insert(1, path)
    if data_dir and "--data-dir" in options:
        words += ["--data-dir", str(data_dir)]
    if "--why" in options and not {"-m", "--why"} & set(words):
        words += ["-m", f"runbook {book.id}"]
    return tuple(words)


def do_all(doing: Doing, before: Earlier | None) -> tuple[Exit, tuple[Problem, ...]]:
    """Every move in turn but those that an earlier run has done, up to the first that does not go well."""
    from launcher.cli.interrupt import Stopped, stop_on_signal

    done: set[str] = set()
    if before:
        doing.view.say(f"goes on with {before.run}; --anew begins at the first step")
    for move in doing.planned:
        if before and move.id in before.done:
            tell(doing, move, "move-done", f"done in {before.run}")
            done.add(move.id)
            continue
        number, _, which = move.id.partition(" ")
        told = f"{number} of {len(doing.book.steps)}" + (f", {which}" if which else "")
        doing.view.say(f"\n{told}: {move.say}")
        stop_on_signal()  # a command before this one may have had its own way with ctrl-C
        try:
            stop = attempt(doing, move)
        except Stopped:
            doing.view.say("\n".join(["", *leftovers(doing, done, move)]))
            raise
        if stop:
            tell(doing, move, "move-failed", stop.problem.what)
            leaves = leftovers(doing, done, move if stop.begun else None)
            return stop.code, (explained(doing, move, stop.problem, leaves),)
        tell(doing, move, "move-done", "")
        done.add(move.id)
        # now, for a controller that is killed says nothing any more
        for one in left((move,), done):
            doing.view.say(f"  {ending(doing, one)}")
    doing.view.say("")
    doing.view.result(
        "runbook", {"id": doing.book.id, "moves": len(doing.planned)}, f"{doing.book.id}: all done"
    )
    return Exit.DONE, ()


def attempt(doing: Doing, move: Move) -> Stop | None:
    """Do a move, if it may be done; why it did not go well."""
    begun = False
    try:
        if stop := kept_from(doing, move):
            return stop
        begun = True
        return act(doing, move)
    except LauncherError as error:
        doing.view.problems(error.problems[:-1])
        return Stop(Exit(error.exit_code), error.problems[-1], begun)


def leftovers(doing: Doing, done: Collection[str], begun: Move | None) -> list[str]:
    """A line for each thing that this run leaves if it stops here, with the command that ends it."""
    return [ending(doing, one) for one in left(doing.planned, done, begun)]


def ending(doing: Doing, one: Left) -> str:
    """`left: decode-0 gets no requests, since step 3; dsv32-launch undrain decode-0 … ends that`."""
    head = f"left: {one.what}" if one.sure else f"perhaps left: {one.what}"
    words = shlex.join(complete(one.ends, doing.book, doing.wanted, data_dir=doing.data_dir))
    return f"{head}, since step {one.move.id}; {PROGRAM} {words} ends that"


def tell(doing: Doing, move: Move, kind: Any, text: str) -> None:
    """Write into the journal how a move went: what a later run goes on from."""
    data = {"digest": doing.digest, "runbook": doing.book.id, "target": doing.scope.target}
    doing.running.journal(Event(kind, text, move.host, move.id, data))


def explained(doing: Doing, move: Move, problem: Problem, leaves: Sequence[str]) -> Problem:
    """What did not go well, and the way on: another runbook, or whom to ask; and `leaves`, a line each."""
    other = next_book(move, doing.scope, doing.books)
    ways = [problem.do or other or "mend that", f"then {again(doing)}, which goes on here"]
    ways += [f"or instead {other}"] if problem.do and other else []
    more = (problem.more, f"expected: {move.expect}", *leaves, f"if nothing helps: {doing.book.escalate}")
    return replace(
        problem,
        what=f"{doing.book.id}, step {move.id}: {problem.what}",
        do="; ".join(ways[:1] if move.by_hand else ways),
        more="\n".join(text for text in more if text),
    )


def again(doing: Doing) -> str:
    """The command that goes on with this run."""
    return f"dsv32-launch runbook run {doing.book.id} {doing.scope.target}".rstrip()


def kept_from(doing: Doing, move: Move) -> Stop | None:
    """Why a move must not be done now. LockedError where somebody else is at work."""
    if not move.step.only_if:
        return None
    from launcher.cli.context import connected, deployment_of
    from launcher.flows import runbook_looks as looks
    from launcher.flows.status import status

    wanted = doing.wanted
    inventory = wanted.wish.inventory
    if "minimum" in move.step.only_if:
        with connected(wanted) as fleet:
            deployment = deployment_of(wanted)
            now = status(fleet, wanted, deployment)
            found = looks.below_minimum(doing.scope, inventory, deployment.instances, now)
        if found:
            return Stop(Exit.HOSTS_FAILED, found[0], begun=False)
    if "alone" in move.step.only_if:
        hosts = looks.held_hosts(doing.scope, inventory.hosts)
        with connected(wanted, run_id=doing.running.id, lock=hosts):
            pass  # nobody else has it; the command that comes takes it itself
    return None


def act(doing: Doing, move: Move) -> Stop | None:
    """Do it."""
    from launcher.cli.runbooktext import move_text

    words = complete(move, doing.book, doing.wanted, data_dir=doing.data_dir)
    doing.view.say(f"  {move_text(move, words)}")
    if move.by_hand:
        return confirmed(doing, move)
    if move.run:
        return looked(doing, move)
    return commanded(doing, move, words)


def confirmed(doing: Doing, move: Move) -> Stop | None:
    """A person's word that it is done."""
    if doing.by_hand(move):
        return None
    do = f"do it, then {again(doing)} --done '{move.id}'"
    return Stop(
        Exit.HOSTS_FAILED, Problem("this is done by hand, and nobody says that it is", move.by_hand, do=do)
    )


def looked(doing: Doing, move: Move) -> Stop | None:
    """What hosts show, shown; or what they do not."""
    from launcher.cli.context import connected
    from launcher.flows.runbook_looks import look

    with connected(doing.wanted) as fleet:
        seen = look(fleet, move)
    if isinstance(seen, Problem):
        return Stop(Exit.HOSTS_FAILED, seen)
    for host, text in seen:
        shown = "\n".join(f"    {line}" for line in text.splitlines())
        doing.view.result(
            "look", {"step": move.id, "host": host, "text": text}, f"  {host}\n{shown}".rstrip()
        )
    return None


def commanded(doing: Doing, move: Move, given: Sequence[str]) -> Stop | None:
    """A command of ours, run here as if it had been typed."""
    words = [*given]
    options = options_of(command_table()[move.words[0]])
    words += ["--yes"] if doing.yes and "--yes" in options else []
    words += ["--json"] if doing.json_lines and "--json" in options else []
    try:
        code = program().main(words, prog_name=PROGRAM, standalone_mode=False) or 0
    except LauncherError as error:
        if error.exit_code not in move.step.exits:
            raise
        doing.view.problems(error.problems)
        return None
    if code in move.step.exits:
        return None
    ends = " or ".join(map(str, move.step.exits))
    end = Exit(code) if code in (Exit.LOCKED, Exit.INTERRUPTED, Exit.INPUT_WRONG) else Exit.HOSTS_FAILED
    return Stop(end, Problem(f"{PROGRAM} {move.words[0]} ended with {code}, expected {ends}"))
