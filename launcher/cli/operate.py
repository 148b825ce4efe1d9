"""The commands that plan and change hosts: plan, up, down."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import (
    BelowMinimum,
    DataDir,
    Despite,
    DryRun,
    InventoryArgument,
    JsonLines,
    Limit,
    Verbose,
    Why,
    Yes,
)
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from launcher.cli.output import View
    from launcher.flows.preflight import Preflight
    from launcher.flows.targets import Limit as Limited
    from launcher.model.plan import Plan
    from launcher.model.wish import Wanted
    from launcher.rollout.planning import Goal


def plan(
    inventory: InventoryArgument = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no host: show every step, unit and command line.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Save the plan for `up --plan`.", show_default=False),
    ] = None,
    limit: Limit = "",
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
    verbose: Verbose = 0,
) -> None:
    """Show what `up` would do, in which order, and why. Changes nothing; exit 3 if there is anything to
    change, 6 if `up` would refuse."""
    from launcher.cli.output import choose

    view = choose(json_lines=json_lines, verbose=verbose)
    if offline:
        raise typer.Exit(_plan_offline(inventory, limit, data_dir, view, out))
    options = PlanOptions(limit=limit, out=out, data_dir=data_dir)
    raise typer.Exit(_plan(inventory, view, options))


def _plan_offline(
    inventory: Path | None, limit: str, data_dir: Path | None, view: View, out: Path | None
) -> Exit:
    """Every step as a change from something unknown, then units and command lines."""
    from launcher.cli.context import read_wanted
    from launcher.cli.findingtext import warning_line
    from launcher.cli.preview import drained_lines, remarks, title
    from launcher.flows.lint import judged
    from launcher.rollout.planning import limited, plan_offline

    wanted = read_wanted(inventory, data_dir, secrets=False)
    here = limited(wanted, limit_of(wanted, limit, view).hosts)
    planned = plan_offline(here)
    warnings = warning_line(judged(wanted, data_dir=data_dir), wanted.wish.inventory.path)
    view.plan(planned, title=title(wanted), remark=remarks(warnings, drained_lines(here)))
    view.offline(here)
    if out:
        save(view, wanted, out, planned)
    return Exit.CHANGES if planned else Exit.DONE


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What `plan` and `up --dry-run` have in common."""

    limit: str
    data_dir: Path | None
    out: Path | None = None
    saved: Path | None = None
    waived: frozenset[str] = frozenset()
    reboots: bool = True
    below_minimum: bool = False


def _plan(inventory: Path | None, view: View, options: PlanOptions) -> Exit:
    """What `up` would do, by what the hosts say."""
    from launcher.cli.context import connected, reached
    from launcher.cli.preview import dry_run
    from launcher.rollout.planning import propose

    with reached(inventory, options.data_dir, ahead=not options.limit) as (wanted, connections):
        goal, preflight = _goal(wanted, view, options), _preflight(options)
        with connected(wanted, over=connections) as fleet:
            proposal = propose(fleet, goal)
            code = dry_run(fleet, view, proposal, preflight)
    if options.out:
        save(view, wanted, options.out, proposal.plan)
    return code


def _goal(wanted: Wanted, view: View, options: PlanOptions) -> Goal:
    from launcher.rollout.planning import Goal
    from launcher.rollout.situation import Options

    allowed = Options(reboots=options.reboots, below_minimum=options.below_minimum)
    return Goal(wanted, limit_of(wanted, options.limit, view).hosts, allowed)


def _preflight(options: PlanOptions) -> Preflight:
    from launcher.flows.preflight import Preflight

    saved = read_plan(options.saved) if options.saved else ""
    return Preflight(options.data_dir, options.waived, saved, str(options.saved or ""))


def save(view: View, wanted: Wanted, path: Path, planned: Plan) -> None:
    """Save a plan for `up --plan`."""
    from launcher.execute.saved import saved_text

    write_plan(path, saved_text(planned))
    view.say(f"saved in {path}; apply it with: dsv32-launch up {wanted.wish.inventory.path} --plan {path}")


def up(
    inventory: InventoryArgument = None,
    saved: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="Apply this saved plan, or refuse if anything moved since.",
            show_default=False,
        ),
    ] = None,
    limit: Limit = "",
    despite: Despite = "",
    no_reboot: Annotated[
        bool, typer.Option("--no-reboot", help="Boot no host anew; say which ones wait for it.")
    ] = False,
    below_minimum: BelowMinimum = False,
    dry_run: DryRun = False,
    why: Why = "",
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
    verbose: Verbose = 0,
) -> None:
    """Bring the fleet to what the inventory says, stage by stage, and prove that it serves."""
    from launcher.cli.changing import changing
    from launcher.cli.context import reached
    from launcher.cli.output import choose
    from launcher.flows.preflight import waived_checks
    from launcher.flows.up import up as flow

    approval_possible(yes=yes or dry_run or bool(saved))
    options = PlanOptions(
        limit=limit,
        data_dir=data_dir,
        saved=saved,
        waived=waived_checks(despite, why, data_dir),
        reboots=not no_reboot,
        below_minimum=below_minimum,
    )
    view, checks = choose(json_lines=json_lines, verbose=verbose), _preflight(options)
    if dry_run:
        raise typer.Exit(_plan(inventory, view, options))
    with reached(inventory, data_dir, ahead=not limit) as (wanted, over):
        goal, agreed = _goal(wanted, view, options), yes or bool(saved)
        with changing(wanted, view, flow="up", why=why, yes=agreed, over=over, checks=checks) as work:
            result = flow(work.fleet, goal, work, work.run())
            work.ended(result.findings, result.failed)
    if result.outcome:
        view.say(f"{result.outcome.done} of {result.outcome.planned} changes made")
        view.say(f"next: {result.outcome.next_command}" + (f" --data-dir {data_dir}" if data_dir else ""))
    raise typer.Exit(work.code)


def down(
    inventory: InventoryArgument = None,
    limit: Limit = "",
    why: Why = "",
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
    verbose: Verbose = 0,
) -> None:
    """Stop front and router, then the engines. Software and weights stay; `up` brings all back."""
    from launcher.cli.changing import changing
    from launcher.cli.context import read_wanted
    from launcher.cli.output import choose
    from launcher.cli.preview import title
    from launcher.flows import down as flow

    view = choose(json_lines=json_lines, verbose=verbose)
    wanted = read_wanted(inventory, data_dir)
    limited = limit_of(wanted, limit, view)
    approval_possible(yes=yes)
    with changing(wanted, view, flow="down", why=why, lock=limited.hosts, yes=yes) as work:
        waves = flow.units_to_stop(wanted, limited)
        planned = flow.plan_down(work.fleet, wanted, waves)
        view.plan(planned, title=title(wanted))
        failed = tuple(planned.unreached.values())
        if planned and work.approved(planned, ask=True, question="Stop?"):
            failed += flow.stop(work.fleet, waves, planned, work.running.listen)
        work.ended(failed=failed)
    raise typer.Exit(work.code)


def limit_of(wanted: Wanted, words: str, view: View) -> Limited:
    """What `--limit` means, and a word about what it adds and leaves out."""
    from launcher.flows.targets import limit_to
    from launcher.load.ranges import host_range

    limited = limit_to(words.split(","), wanted.steps, wanted.deployment)
    if limited.added:
        view.say(f"with {host_range(limited.added)}: an instance is taken as a whole")
    if limited.left_out:
        view.say(f"left out: {host_range(limited.left_out)}")
    return limited


def read_plan(path: Path) -> str:
    """The text of a saved plan; InputError where no text can be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "not readable").lower() if isinstance(error, OSError) else "not UTF-8"
        do = "name a file that dsv32-launch plan --out wrote"
        raise InputError(Problem(f"cannot read the plan: {reason}", where=str(path), do=do)) from None


def write_plan(path: Path, text: str) -> None:
    """Save a plan; InputError where that cannot be."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or "not writable").lower()
        problem = Problem(f"cannot save the plan: {reason}", where=str(path), do="name another file")
        raise InputError(problem) from None


def approval_possible(*, yes: bool) -> None:
    """InputError where nobody could be asked: a run that waits for an answer forever helps nobody."""
    if not yes and not sys.stdin.isatty():
        do = "give --yes; for up, --plan FILE with a plan that was reviewed"
        raise InputError(Problem("there is no terminal to ask for approval, and no --yes", do=do))


def agreed(question: str, *, yes: bool) -> bool:
    """Whether the user wants what was shown. InputError where nobody could be asked."""
    approval_possible(yes=yes)
    return yes or asked(question)


def asked(question: str) -> bool:
    """Ask on the terminal; only `y` and `yes` agree."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
