"""The commands that plan and change hosts: plan, up, down."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.gate import Despite, gate_of, red_hosts, refused_remark
from launcher.cli.options import BelowMinimum, DataDir, InventoryArgument, JsonLines, Limit, Verbose, Why, Yes
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from launcher.cli.output import View
    from launcher.execute.hands import Hands
    from launcher.flows.targets import Limit as Limited
    from launcher.model.plan import Plan
    from launcher.model.wish import Wanted


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
    """Show what `up` would change, and why. Changes nothing; exit 3 if there is anything to change."""
    from launcher.cli.context import connected, reached, read_wanted

    refused, coming = "", ""
    asked_nobody = nullcontext((read_wanted(inventory, data_dir, secrets=False), None)) if offline else None
    with asked_nobody or reached(inventory, data_dir, ahead=not limit) as (wanted, connections):
        from launcher.cli.output import choose
        from launcher.execute.saved import saved_text
        from launcher.flows import plan as flow
        from launcher.flows.drained import respecting

        view = choose(json_lines=json_lines, verbose=verbose)
        hosts = limit_of(wanted, limit, view).hosts
        if connections is None:
            here = flow.limited(wanted, hosts)
            planned = flow.plan_offline(here)
        else:
            with connected(wanted, over=connections) as fleet:
                here = flow.limited(respecting(fleet, wanted), hosts)
                planned = flow.plan(fleet, here)
                if planned:
                    refused = refused_remark(red_hosts(fleet, wanted, planned, data_dir))
                    coming = forecast_of(fleet, here, planned)
    remark = remark_of(wanted, data_dir) if planned else ""
    told = remarks(remark, coming, refused, drained_lines(here), unfinished_line(planned))
    view.plan(planned, title=title(wanted), remark=told)
    if offline:
        view.offline(here)
    if out:
        write_plan(out, saved_text(planned))
        view.say(f"saved in {out}; apply it with: dsv32-launch up {wanted.wish.inventory.path} --plan {out}")
    if planned.unreached:
        view.problems(tuple(planned.unreached.values()))
        raise typer.Exit(Exit.HOSTS_FAILED)
    raise typer.Exit(Exit.CHANGES if planned else Exit.DONE)


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
    why: Why = "",
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
    verbose: Verbose = 0,
) -> None:
    """Bring the fleet to what the inventory says, stage by stage, and prove that it serves."""
    from launcher.cli.context import reached

    approval_possible(yes=yes or bool(saved))
    gate = gate_of(despite, why, data_dir)
    saved_plan = read_plan(saved) if saved else None
    with reached(inventory, data_dir, ahead=not limit) as (wanted, over):
        from launcher.cli.changing import changing
        from launcher.cli.output import choose
        from launcher.execute.saved import refuse_if_moved
        from launcher.flows import up as flow
        from launcher.flows.drained import respecting

        view = choose(json_lines=json_lines, verbose=verbose)
        limited = limit_of(wanted, limit, view)
        agreed, lock = yes or bool(saved), limited.hosts
        with changing(wanted, view, flow="up", why=why, lock=lock, yes=agreed, over=over) as work:
            wanted = respecting(work.fleet, wanted)

            def approve(planned: Plan) -> bool:
                remark = remark_of(wanted, data_dir) if planned else ""
                coming = forecast_of(work.fleet, wanted, planned)
                told = remarks(remark, coming, drained_lines(wanted), unfinished_line(planned))
                view.plan(planned, title=title(wanted), remark=told)
                if saved_plan is not None:
                    refuse_if_moved(saved_plan, planned, path=str(saved))
                gate.ask(work.fleet, wanted, planned, work.running.listen)
                return work.approved(planned, ask=bool(planned))

            boots = flow.Boots(reboots=not no_reboot, below_minimum=below_minimum)
            result = flow.up(
                work.fleet, wanted, limited, approve, work.run(), work.keeper(wanted), boots=boots
            )
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
    from launcher.load.ranges import host_range
    from launcher.flows.targets import limit_to

    limited = limit_to(words.split(","), wanted.steps, wanted.deployment)
    if limited.added:
        view.say(f"with {host_range(limited.added)}: an instance is taken as a whole")
    if limited.left_out:
        view.say(f"left out: {host_range(limited.left_out)}")
    return limited


def remark_of(wanted: Wanted, data_dir: Path | None) -> str:
    """What rules warn of, in a line. InputError where they find that it cannot serve.

    Asked where something is to change: reading all rules would be a third of a run that changes nothing.
    """
    if wanted.deployment is None:
        return ""
    from launcher.cli.findingtext import warning_line
    from launcher.flows.lint import judged

    return warning_line(judged(wanted, data_dir=data_dir), wanted.wish.inventory.path)


def forecast_of(fleet: Hands, wanted: Wanted, planned: Plan) -> str:
    """How long the weights take that are to come. Asked where some are: it costs each host two requests."""
    if not planned.stage("weights"):
        return ""
    from launcher.cli.stagingtext import forecast_line
    from launcher.flows.forecast import forecast

    return forecast_line(forecast(fleet, wanted, planned))


def drained_lines(wanted: Wanted) -> str:
    """What is drained, a line each."""
    return "\n".join(str(drained) for drained in (wanted.deployment.drained if wanted.deployment else ()))


def unfinished_line(planned: Plan) -> str:
    """A run that has begun to make these hosts another revision, and has not ended."""
    from launcher.model.revision import unfinished

    entry = unfinished(planned.remembered.values())
    if entry is None:
        return ""
    to = f"run {entry.run} of {entry.who} to revision {entry.revision} has not ended"
    return f"{to}: if nobody is at it, give its command again, or dsv32-launch rollback"


def remarks(*texts: str) -> str:
    """Those that say something, a line each."""
    return "\n".join(text for text in texts if text)


def title(wanted: Wanted) -> str:
    """`prod · layout pd-wide-ep · stack current · vllm 0.33.0 · 6 hosts`."""
    from launcher.cli.words import count

    inventory, stack = wanted.wish.inventory, wanted.wish.profile.stack
    words = [inventory.cluster]
    if inventory.layout:
        words.append(f"layout {inventory.layout}")
    words.append(f"stack {stack.name}")
    if stack.engine_version:
        words.append(f"vLLM {stack.engine_version}")
    return " · ".join([*words, count(len(wanted.steps), "host")])


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
