"""The commands about what hosts install: stack lock, stack build, stack verify."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import DataDir, InventoryOption, JsonLines, Why
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from launcher.cli.output import View
    from launcher.flows.stack import Builder
    from launcher.load.data import Data

StackName = Annotated[str, typer.Argument(metavar="STACK", help="Its name in configs/stacks/.")]
Shared = "The inventory's `paths.shared`, as this machine sees it."
stack = typer.Typer(
    help="Everything that hosts install, fetched once onto the shared file system.", no_args_is_help=True
)


@stack.command()
def lock(
    name: StackName,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Resolve a stack's requirements with uv, and write its lock: one hashed wheel of each package."""
    from launcher.cli.output import choose
    from launcher.flows import stack as flow
    from launcher.load.data import Data, roots_of

    view = choose(json_lines=json_lines)
    data = Data(roots_of(data_dir))
    wanted = flow.read(name, data)
    for file, text in flow.locks(wanted, data).items():
        path = Path(wanted.source.rpartition(":")[0] or wanted.source).parent / file
        path.write_text(text, encoding="utf-8")
        pins = text.count("--hash=")
        view.result("lock", {"path": str(path), "packages": pins}, f"{path}: {pins} packages")


@stack.command()
def build(
    name: StackName,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help=Shared)],
    status: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A dpkg status file of the hosts: what they have need not be fetched.",
            show_default=False,
        ),
    ] = None,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="HOST",
            help="The host of the inventory that builds what is only there as source, as a job.",
            show_default=False,
        ),
    ] = "",
    inventory: InventoryOption = None,
    why: Why = "",
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Fetch a stack's wheels and Debian packages, hash-checked; what is there and whole is kept.

    Hosts go on with what was there before until all of it is. Only --on asks a host.
    """
    from launcher.cli.output import choose
    from launcher.flows import stack as flow
    from launcher.load.data import Data, roots_of

    view = choose(json_lines=json_lines)
    data = Data(roots_of(data_dir))
    wanted = flow.read(name, data)
    made = building(on, inventory, view, data, why=why, data_dir=data_dir) if on else contextlib.nullcontext()
    with made as builder:
        built = flow.build(wanted, to, view.event, data=data, status=status, builder=builder)
    size_gib = built.size_bytes / 2**30
    view.result(
        "stack",
        built,
        f"{built.folder}: {built.wheels} wheels, {built.packages} packages, {size_gib:.1f} GiB",
    )


@contextmanager
def building(
    on: str, inventory: Path | None, view: View, data: Data, *, why: str, data_dir: Path | None
) -> Iterator[Builder]:
    """A run in which one host, locked, builds. InputError for one that the inventory does not have."""
    from launcher.cli.context import connected, read_wanted
    from launcher.cli.running import Running
    from launcher.flows.source_builds import BuildHost
    from launcher.load.schema import near

    wanted = read_wanted(inventory, data_dir)
    known = wanted.wish.inventory
    if on not in known.hosts:
        raise InputError(Problem(f"no host is called `{on}`", known.path, do=near(on, known.hosts)))
    with (
        Running(wanted.wish, view, flow="stack-build", why=why) as run,
        connected(wanted, run_id=run.id, why=why, lock=[on]) as fleet,
    ):
        yield BuildHost(fleet, on, known.paths.shared, data, run.listen)
        run.ended(Exit.DONE, ())


@stack.command()
def verify(
    name: StackName,
    at: Annotated[Path, typer.Option(metavar="FOLDER", help=Shared)],
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Read every byte of a built stack: what is missing, changed, or too many, and versions that disagree."""
    from launcher.cli.output import choose
    from launcher.flows import stack as flow
    from launcher.load.data import Data, roots_of

    view = choose(json_lines=json_lines)
    data = Data(roots_of(data_dir))
    problems = flow.verify(flow.read(name, data), at, data)
    view.problems(problems)
    if problems:
        raise typer.Exit(Exit.HOSTS_FAILED)
    view.result("stack", {"stack": name, "problems": 0}, f"{name}: whole")
