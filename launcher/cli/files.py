"""The commands that work on files: lint, stack, weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.options import DataDir, InventoryArgument, JsonLines
from launcher.model.problem import Exit

StackName = Annotated[str, typer.Argument(metavar="STACK", help="Its name in configs/stacks/.")]
stack = typer.Typer(
    help="Everything that hosts install, fetched once onto the shared file system.", no_args_is_help=True
)
weights = typer.Typer(help="The manifest by which hosts copy and verify a model.", no_args_is_help=True)


def lint(
    inventory: InventoryArgument = None, data_dir: DataDir = None, json_lines: JsonLines = False
) -> None:
    """Find everything that is wrong with an inventory and the data it leads to. Asks no host."""
    from launcher.cli.context import chosen_inventory
    from launcher.cli.output import choose
    from launcher.flows import lint as flow

    view = choose(json_lines=json_lines)
    path = chosen_inventory(inventory)
    problems = flow.lint(path, data_dir=data_dir)
    view.problems(problems)
    if problems:
        raise typer.Exit(Exit.INPUT_WRONG)
    view.result("lint", {"inventory": str(path), "problems": 0}, f"{path}: nothing wrong")


@stack.command()
def build(
    name: StackName,
    to: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The inventory's `paths.shared`, as this machine sees it.")
    ],
    status: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A dpkg status file of the hosts: what they have need not be fetched.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Fetch a stack's wheels and Debian packages, hash-checked; what is there and whole is kept."""
    from launcher.cli.output import choose
    from launcher.flows import stack as flow
    from launcher.load.data import Data, roots_of

    view = choose(json_lines=json_lines)
    data = Data(roots_of(data_dir))
    built = flow.build(flow.read(name, data), to, view.event, data=data, status=status)
    size_gib = built.size_bytes / 2**30
    view.result(
        "stack",
        built,
        f"{built.folder}: {built.wheels} wheels, {built.packages} packages, {size_gib:.1f} GiB",
    )


@stack.command()
def verify(
    name: StackName,
    at: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The inventory's `paths.shared`, as this machine sees it.")
    ],
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Read every byte of a built stack and compare it with its record."""
    from launcher.cli.output import choose
    from launcher.flows import stack as flow
    from launcher.load.data import Data, roots_of

    view = choose(json_lines=json_lines)
    problems = flow.verify(flow.read(name, Data(roots_of(data_dir))), at)
    view.problems(problems)
    if problems:
        raise typer.Exit(Exit.HOSTS_FAILED)
    view.result("stack", {"stack": name, "problems": 0}, f"{name}: whole")


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
