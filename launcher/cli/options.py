"""The options and arguments that commands share, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

INVENTORY_HELP = "Inventory file; default: $DSV32_INVENTORY, else the only file in inventories/."

InventoryArgument: TypeAlias = Annotated[
    Path | None, typer.Argument(metavar="INVENTORY", help=INVENTORY_HELP, show_default=False)
]
InventoryOption: TypeAlias = Annotated[
    Path | None, typer.Option("--inventory", "-i", metavar="FILE", help=INVENTORY_HELP, show_default=False)
]
JsonLines: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout.")]
Limit: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="NAME,...",
        help="Only these hosts or instances; an instance always as a whole.",
        show_default=False,
    ),
]
DataDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="A folder with roles/ or configs/ of your own; laid over the shipped ones.",
        show_default=False,
    ),
]
Every: TypeAlias = Annotated[
    float, typer.Option("--every", metavar="S", min=0.1, max=3600, help="Seconds between two looks.")
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Why: TypeAlias = Annotated[
    str,
    typer.Option("--why", "-m", metavar="TEXT", help="What it is for; kept with it.", show_default=False),
]
BelowMinimum: TypeAlias = Annotated[
    bool, typer.Option("--below-minimum", help="Even if too few of a pool serve meanwhile.")
]
IdleWithin: TypeAlias = Annotated[
    float, typer.Option("--within", metavar="S", min=0, help="Seconds to wait for requests it has begun.")
]
Verbose: TypeAlias = Annotated[
    int,
    typer.Option(
        "--verbose", "-v", count=True, help="Show diffs and each change as it starts.", show_default=False
    ),
]
UnitTarget: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="Instance, pool, host, `router`, `front`, `watch`, `front-address`; everything if left out.",
        show_default=False,
    ),
]
LogTime: TypeAlias = Annotated[
    str,
    typer.Option(
        "--since", metavar="WHEN", help="10m, 2h, 1d, or 2026-11-29T18:05 (UTC).", show_default=False
    ),
]
SinceStart: TypeAlias = Annotated[
    str,
    typer.Option(
        "--since",
        metavar="WHEN",
        help="30m, 2h, or 2026-11-29T18:05 (UTC); default: each unit's last start.",
        show_default=False,
    ),
]
LoneLayout: TypeAlias = Annotated[
    str,
    typer.Option(metavar="NAME", help="A layout of configs/layouts/ by itself, without an inventory."),
]
LoneStack: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="With --layout: from configs/stacks/.")
]
LoneHardware: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="With --layout: from configs/hardware/.")
]
LoneModel: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="With --layout: from configs/models/.")
]
Despite: TypeAlias = Annotated[
    str,
    typer.Option(
        "--despite",
        metavar="ID,...",
        help="Begin although these checks are red; needs --why.",
        show_default=False,
    ),
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, in which order; exit 3, or 6 if refused.")
]
