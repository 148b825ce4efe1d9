"""The commands about what hosts install below their stack: platform lock, platform build, platform verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.options import DataDir, InventoryArgument, JsonLines
from launcher.model.problem import Exit

Shared = "The inventory's `paths.shared`, as this machine sees it."
Status = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A dpkg status file of bare hosts: what they have need not be fetched.",
        show_default=False,
    ),
]
platform = typer.Typer(
    help="Driver, RDMA, CUDA and the rest below a stack, fetched once onto the shared file system.",
    no_args_is_help=True,
)


@platform.command()
def lock(
    inventory: InventoryArgument = None,
    status: Status = None,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Ask this machine's apt for the platform's packages, and write its lock: the sha256 of each file."""
    from launcher.cli.context import read_wanted
    from launcher.cli.output import choose
    from launcher.flows import platform as flow

    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    named = flow.platform_of(wanted)
    source = Path(named.source.rpartition(":")[0])
    path = source.with_name(named.lock or f"{named.name}.lock")
    text = flow.lock_text(wanted, status=status)
    path.write_text(text, encoding="utf-8")
    packages = len(text.splitlines())
    hint = "" if named.lock else f"; write `lock: {path.name}` into {source}"
    view.result("lock", {"path": str(path), "packages": packages}, f"{path}: {packages} packages{hint}")


@platform.command()
def build(
    to: Annotated[Path, typer.Option(metavar="FOLDER", help=Shared)],
    inventory: InventoryArgument = None,
    status: Status = None,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Fetch what the inventory's hosts install below their stack, by this machine's apt, hash-checked."""
    from launcher.cli.context import read_wanted
    from launcher.cli.output import choose
    from launcher.flows import platform as flow
    from launcher.load.data import Data, roots_of

    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    built = flow.build(wanted, to, view.event, data=Data(roots_of(data_dir)), status=status)
    size_gib = built.size_bytes / 2**30
    view.result("platform", built, f"{built.folder}: {built.packages} packages, {size_gib:.1f} GiB")


@platform.command()
def verify(
    at: Annotated[Path, typer.Option(metavar="FOLDER", help=Shared)],
    inventory: InventoryArgument = None,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Read every byte of a built platform: what is missing, changed, too many, or not of its lock."""
    from launcher.cli.context import read_wanted
    from launcher.cli.output import choose
    from launcher.flows import platform as flow
    from launcher.load.data import Data, roots_of

    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    problems = flow.verify(wanted, at, Data(roots_of(data_dir)))
    view.problems(problems)
    if problems:
        raise typer.Exit(Exit.HOSTS_FAILED)
    name = flow.platform_of(wanted).name
    view.result("platform", {"platform": name, "problems": 0}, f"{name}: whole")
