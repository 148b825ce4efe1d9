"""The command that writes benchmarks down for people: report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.comparing import RUN_HELP
from launcher.cli.options import DataDir, JsonLines


def report(
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN...", help=RUN_HELP)] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            help="Where it goes; else the last run's folder.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Write benchmarks as one page, several side by side: bench.html, which opens offline, and bench.md.

    Beside them stand published figures, and what keeps each of these from being a yardstick. Asks no host.
    """
    from launcher.cli.output import choose
    from launcher.flows.against import kept
    from launcher.flows.report import reports, write
    from launcher.load.data import Data, roots_of
    from launcher.record import runs_folder

    view = choose(json_lines=json_lines)
    found = [kept(os.environ, name) for name in runs or ["last"]]
    folder = to or runs_folder(os.environ) / found[-1].run
    for path in write(reports(found, Data(roots_of(data_dir))), folder):
        view.result("report", {"path": str(path)}, str(path))
