"""The commands for runbooks: runbook list, show, render, run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import DataDir, InventoryOption, JsonLines, Why, Yes
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from launcher.flows.runbook import Move, Scope
    from launcher.model.deployment import Deployment
    from launcher.model.runbook import Runbook
    from launcher.model.wish import Wanted

Name = Annotated[str, typer.Argument(metavar="NAME", help="As `runbook list` shows it.")]
Target = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="The instance, host or pool that it is for.", show_default=False),
]
runbook = typer.Typer(help="What a person on call does about something, step by step.", no_args_is_help=True)


@runbook.command("list")
def list_all(data_dir: DataDir = None, json_lines: JsonLines = False) -> None:
    """List them: what each is for, and about."""
    from launcher.cli.output import choose
    from launcher.cli.runbooktext import book_row

    view = choose(json_lines=json_lines)
    for book in read_books(data_dir).values():
        view.result("runbook", book, book_row(book))


@runbook.command()
def show(name: Name, data_dir: DataDir = None, json_lines: JsonLines = False) -> None:
    """Show one whole."""
    from launcher.cli.output import choose
    from launcher.cli.runbooktext import book_lines
    from launcher.load.runbooks import runbook_named

    book = runbook_named(name, read_books(data_dir))
    choose(json_lines=json_lines).result("runbook", book, "\n".join(book_lines(book)))


@runbook.command()
def render(
    name: Name,
    target: Target = "",
    inventory: InventoryOption = None,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Print one for paper, as Markdown, with the names of this inventory. Asks no host.

    Without a target, a page for the wall: INSTANCE and HOST stand for each of those that it lists.
    """
    from launcher.cli.context import read_wanted
    from launcher.cli.output import choose
    from launcher.cli.runbookrun import complete
    from launcher.cli.runbooktext import page

    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir, secrets=False)
    books = read_books(data_dir)
    book, scope, deployment, planned = planned_of(name, target, wanted, books, must=False)
    told = [(m, complete(m, book, wanted, data_dir=data_dir)) for m in planned]
    view.result(
        "page", {"runbook": name, "moves": planned}, "\n".join(page(book, scope, deployment, told, books))
    )


@runbook.command()
def run(
    name: Name,
    target: Target = "",
    inventory: InventoryOption = None,
    why: Why = "",
    done: Annotated[
        list[str] | None,
        typer.Option(
            "--done", metavar="N", help="Step N, which is done by hand, has been done.", show_default=False
        ),
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="From the first step, whatever was done before.")
    ] = False,
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Do it, step by step: each command shows its plan and asks; a step that does not go well ends it.

    Given again within the hour, it goes on with the step that it had stopped at. What is done by hand is
    asked for; without a terminal, say so by --done.
    """
    from launcher.cli.changing import changing
    from launcher.cli.context import read_wanted
    from launcher.cli.operate import approval_possible, asked
    from launcher.cli.output import choose
    from launcher.cli.runbookrun import Doing, do_all, refuse_missing
    from launcher.flows import runbook as flow
    from launcher.record import runs_folder

    approval_possible(yes=yes)
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    books = read_books(data_dir)
    book, scope, _, planned = planned_of(name, target, wanted, books, must=True)
    refuse_missing(book, planned)
    digest, on_terminal = flow.digest_of(planned), sys.stdin.isatty()
    cluster = wanted.wish.inventory.cluster
    found = flow.earlier(runs_folder(os.environ), cluster=cluster, digest=digest, now_s=time.time())
    before = None if anew else found
    view.say(f"{book.id}: {book.title}\n  danger {flow.danger_of(book, scope)}")
    if not yes and not asked(f"{len(planned)} steps. Begin?"):
        raise typer.Exit(Exit.DONE)
    why = why or f"runbook {name}"
    with changing(wanted, view, flow=flow.FLOW, why=why, lock=(), yes=yes) as work:
        doing = Doing(
            book=book,
            books=books,
            scope=scope,
            wanted=wanted,
            running=work.running,
            view=view,
            planned=planned,
            data_dir=data_dir,
            digest=digest,
            by_hand=lambda m: m.id in (done or ()) or (on_terminal and asked(f"  {m.expect} Is it done?")),
            yes=yes,
            json_lines=json_lines,
        )
        code, problems = do_all(doing, before)
        work.ended(code=code, because=problems)
    raise typer.Exit(work.code)


def read_books(data_dir: Path | None) -> Mapping[str, Runbook]:
    """All runbooks, by id."""
    from launcher.load.data import Data, roots_of
    from launcher.load.runbooks import read_runbooks

    return read_runbooks(Data(roots_of(data_dir)))


def planned_of(
    name: str, target: str, wanted: Wanted, books: Mapping[str, Runbook], *, must: bool
) -> tuple[Runbook, Scope, Deployment, tuple[Move, ...]]:
    """The runbook of that name, what it is for, and its moves. InputError where one is not known."""
    from launcher.cli.context import deployment_of
    from launcher.flows.runbook import moves, scope_of
    from launcher.load.runbooks import runbook_named

    book, deployment = runbook_named(name, books), deployment_of(wanted)
    scope = scope_of(book, deployment, wanted.wish.inventory.hosts, target, must=must)
    planned = moves(book, scope, deployment)
    if not planned:
        what = f"runbook {name} has nothing to do for {target}"
        raise InputError(Problem(what, do="dsv32-launch status shows what is there"))
    return book, scope, deployment, planned
