"""The commands about a model's files: weights manifest, weights status, weights verify."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.options import DataDir, Every, InventoryArgument, JsonLines, Limit, Why
from launcher.model.problem import Exit

weights = typer.Typer(
    help="A model's manifest, and what hosts have of it on their disks.", no_args_is_help=True
)


@weights.command()
def manifest(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The model's folder: config.json, shards, tokenizer.")
    ],
    json_lines: JsonLines = False,
) -> None:
    """Read every file of a model folder and write manifest.json into it."""
    from launcher.cli.output import choose
    from launcher.flows.weights import write_manifest

    view = choose(json_lines=json_lines)
    written = write_manifest(folder, view.event)
    size_gib = written.size_bytes / 2**30
    view.result(
        "manifest",
        written,
        f"{written.path}: {written.files} files, {size_gib:.1f} GiB, revision {written.revision[:12]}",
    )


@weights.command()
def status(
    inventory: InventoryArgument = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again every few seconds.")] = False,
    every_s: Every = 5.0,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Show each host's revision, blocks, rate and time left, and the fleet's. Exit 1 if one lacks any."""
    from launcher.cli.context import connected, read_wanted
    from launcher.cli.output import choose
    from launcher.cli.stagingtext import Pace, host_lines
    from launcher.flows import staging as flow
    from launcher.wait import looks

    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    staged = flow.staged_by(wanted, wanted.steps)
    with connected(wanted) as fleet:
        for _ in looks(every_s):
            now = flow.look(fleet, staged)
            for host, line in zip(now.hosts, host_lines(now.hosts), strict=True):
                view.result("host-weights", host, line)
            told = Pace(now.done, now.total, now.per_s, now.left_s)
            view.result("weights", {**asdict(told), "complete": now.complete}, told.of(len(now.hosts)))
            if not watch:
                break
    raise typer.Exit(Exit.DONE if now.complete else Exit.HOSTS_FAILED)


@weights.command()
def verify(
    inventory: InventoryArgument = None,
    limit: Limit = "",
    why: Why = "",
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Read every byte that hosts have, all at once, and name files that are wrong; `up` mends these alone.

    It reads as fast as disks do: not while users' requests must be quick. Exit 1 if a byte is wrong.
    """
    from launcher.cli.changing import changing
    from launcher.cli.context import read_wanted
    from launcher.cli.operate import limit_of
    from launcher.cli.output import choose
    from launcher.flows import staging as flow

    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    staged = flow.staged_by(wanted, limit_of(wanted, limit, view).hosts)
    with changing(wanted, view, flow="weights", why=why, lock=staged, yes=True) as work:
        work.ended(flow.verify(work.fleet, staged, work.run(why="verify").listener))
    raise typer.Exit(work.code)
