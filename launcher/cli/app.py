"""app: which commands there are, under which heading; what one does is imported when it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from launcher import __version__
from launcher.cli import (
    benching,
    checking,
    comparing,
    diagnosing,
    drain,
    drilling,
    experimenting,
    files,
    fitting,
    holding,
    inventories,
    look,
    operate,
    platforms,
    profiling,
    removing,
    reporting,
    restarting,
    revising,
    runbooks,
    scaling,
    stacks,
    staging,
    tuning,
    upgrading,
)
from launcher.cli.words import EXIT_CODES

EVERY_DAY = "every day"
MEASURE = "measure"
SERVING = "keep it serving"
KEEP = "who does what"
LOOK_INSIDE = "look inside"
PREPARE = "prepare"


class Commands(TyperGroup):
    """All commands; `sandbox` is imported only when it is meant or listed: it takes half of a start."""

    # Any: Context is click's class or typer's own copy of it, by the release of typer
    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help."""
        return [*super().list_commands(ctx), "sandbox"]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name."""
        if cmd_name != "sandbox":
            return super().get_command(ctx, cmd_name)
        from launcher.cli.sandbox import app as sandbox

        found = get_group(sandbox)
        found.name, found.rich_help_panel = "sandbox", PREPARE
        return found


app = typer.Typer(
    name="dsv32-launch",
    cls=Commands,
    help="Deploy and operate DeepSeek-V3.2 on H200 hosts: plan, bring up, look, take down.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(wanted: bool) -> None:
    """`dsv32-launch 0.1.0`, and no command."""
    if wanted:
        typer.echo(f"dsv32-launch {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Deploy and operate DeepSeek-V3.2 on H200 hosts: plan, bring up, look, take down."""


PANELS: Mapping[str, tuple[Callable[..., None], ...]] = {
    EVERY_DAY: (operate.plan, operate.up, look.status, diagnosing.diagnose, look.logs, operate.down),
    MEASURE: (
        benching.bench,
        reporting.report,
        comparing.compare,
        comparing.gate,
        tuning.tune,
        experimenting.experiment,
        profiling.profile,
    ),
    SERVING: (
        restarting.restart,
        drain.drain,
        drain.undrain,
        scaling.scale,
        upgrading.upgrade,
        revising.rollback,
        removing.remove,
        drilling.drill,
    ),
    KEEP: (holding.lock, holding.unlock, holding.audit, look.runs, revising.revisions),
    LOOK_INSIDE: (checking.check, look.explain, diagnosing.bundle),
    PREPARE: (inventories.init, files.lint, fitting.fit, fitting.predict, inventories.inventory),
}
for panel, commands in PANELS.items():
    for command in commands:
        # a flag of vLLM with its dashes is a subject, too
        settings = {"ignore_unknown_options": True} if command is look.explain else None
        app.command(rich_help_panel=panel, epilog=EXIT_CODES, context_settings=settings)(command)
app.add_typer(runbooks.runbook, name="runbook", rich_help_panel=EVERY_DAY)
app.add_typer(stacks.stack, name="stack", rich_help_panel=PREPARE)
app.add_typer(platforms.platform, name="platform", rich_help_panel=PREPARE)
app.add_typer(staging.weights, name="weights", rich_help_panel=PREPARE)
