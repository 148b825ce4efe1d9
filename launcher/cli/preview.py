"""preview: a proposed change as people and programs see it, whoever proposes it."""

from __future__ import annotations

from collections.abc import Callable

from launcher.cli.findingtext import warning_line
from launcher.cli.output import View
from launcher.cli.stagingtext import forecast_line
from launcher.cli.words import count
from launcher.execute.hands import Hands
from launcher.flows.preflight import Report
from launcher.model.plan import Plan
from launcher.model.problem import Exit
from launcher.model.revision import unfinished
from launcher.model.wish import Wanted
from launcher.rollout.planning import Proposal


def show(view: View, proposal: Proposal, report: Report) -> None:
    """The plan and the order of its moves, under what is to be known before."""
    remark = remarks(
        warning_line(report.warnings, proposal.wanted.wish.inventory.path),
        forecast_line(report.forecast),
        drained_lines(proposal.wanted),
        unfinished_line(proposal.plan),
        *proposal.remarks,
    )
    view.plan(proposal.plan, title=title(proposal.wanted), remark=remark)


def dry_run(
    fleet: Hands, view: View, proposal: Proposal, preflight: Callable[[Hands, Proposal], Report]
) -> Exit:
    """Show what the command would do, and what would refuse it; how the command ends."""
    report = preflight(fleet, proposal)
    show(view, proposal, report)
    if report.refusals:
        view.problems(report.refusals[0].problems)
        return report.refusals[0].exit_code
    if unreached := proposal.plan.unreached:
        view.problems(tuple(unreached.values()))
        return Exit.HOSTS_FAILED
    return Exit.CHANGES if proposal.plan else Exit.DONE


def drained_lines(wanted: Wanted) -> str:
    """What is drained, a line each."""
    return "\n".join(str(drained) for drained in (wanted.deployment.drained if wanted.deployment else ()))


def unfinished_line(planned: Plan) -> str:
    """A run that has begun to make these hosts another revision, and has not ended."""
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
    inventory, stack = wanted.wish.inventory, wanted.wish.profile.stack
    words = [inventory.cluster]
    if inventory.layout:
        words.append(f"layout {inventory.layout}")
    words.append(f"stack {stack.name}")
    if stack.engine_version:
        words.append(f"vLLM {stack.engine_version}")
    return " · ".join([*words, count(len(wanted.steps), "host")])
