"""TextView: results, news and problems as text for people; the only door to rich."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import rich.console
from rich.table import Table
from rich.text import Text

from launcher.cli.plantext import Section, move_lines, offline_lines, sections, summary
from launcher.cli.stagingtext import Together
from launcher.cli.statustext import entrance_lines, guard_lines, live_lines, notes, process_rows, verdict
from launcher.cli.words import problem_lines
from launcher.model.finding import Finding, Severity
from launcher.model.plan import Plan
from launcher.model.problem import Problem
from launcher.model.run import Event
from launcher.model.wish import Wanted

if TYPE_CHECKING:
    from launcher.flows.status import Status

# colour repeats what a mark or a word says already; NO_COLOR and pipes lose nothing
STYLES = {"+": "green", "~": "yellow", "-": "red", "▶": "green", "↻": "yellow", "■": "red", "!": "cyan"}
# a long job tells of itself often; a line every so many seconds is enough to see that it moves
JOB_LINE_EVERY_S = 5.0
PIPE_WIDTH = 400
LOUD = frozenset({"change-failed", "host-failed", "instance-failed"})
QUIET = frozenset({"run-started", "run-ended", "observed", "planned", "change-started"})


class Console(rich.console.Console):
    """rich's, but who no longer listens is told of by the exception that it is."""

    def on_broken_pipe(self) -> None:
        """Rich itself would end the process, with exit code 1."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class TextView:
    """Text for a terminal of any width, or for a pipe."""

    def __init__(self, *, verbose: int = 0) -> None:
        """`verbose` 1: diffs and every change as it starts."""
        self._verbose = verbose
        self._began_s = time.monotonic()
        self._told_s: dict[tuple[str, str], float] = {}
        self._together = Together()
        self._out = Console(highlight=False, width=width())
        self._err = Console(stderr=True, highlight=False, soft_wrap=True)

    def event(self, event: Event) -> None:
        """One line: when, where, what."""
        if event.kind == "job" and (line := self._together.heard(event)):
            self.event(Event("job", line, subject="weights of all"))
        if (event.kind in QUIET and not self._verbose) or self._too_soon(event):
            return
        where = " ".join(w for w in (event.host, event.subject) if w)
        budget = f" (budget {event.data['within_s']} s)" if "within_s" in event.data else ""
        clock = f"{time.monotonic() - self._began_s:7.1f} s"
        words = f"{clock}  {event.kind:<15} {where:<30} {event.text}{budget}"
        self._err.print(Text(words.rstrip(), style="red" if event.kind in LOUD else ""))

    def _too_soon(self, event: Event) -> bool:
        if event.kind != "job":
            return False
        key, now_s = (event.host, event.subject), time.monotonic()
        if now_s - self._told_s.get(key, -JOB_LINE_EVERY_S) < JOB_LINE_EVERY_S:
            return True
        self._told_s[key] = now_s
        return False

    def plan(self, plan: Plan, *, title: str, remark: str = "") -> None:
        """Stage by stage: hosts, mark, step, before → after, and the line that asks for it."""
        self._out.print(title, style="bold")
        for hold in plan.holds:
            self._out.print(Text(str(hold), style="yellow"))
        if remark:
            self._out.print(Text(remark, style="yellow"))
        for line in move_lines(plan.rollout):
            self._out.print(Text(line))
        for section in sections(plan):
            self._out.print()
            self._out.print(section.stage, style="bold")
            self._out.print(plan_table(section))
            if self._verbose:
                self._diffs(section)
        for host, problem in plan.unreached.items():
            self._err.print(Text(f"{host} was not reached: {problem.what}", style="red"))
        self._out.print(f"\n{summary(plan)}" if plan else summary(plan))

    def _diffs(self, section: Section) -> None:
        for row in section.rows:
            if row.diff:
                self._out.print(Text(f"\n  {row.hosts}: {row.step}", style="bold"))
                self._out.print(Text("".join(f"    {line}\n" for line in row.diff.splitlines())))

    def offline(self, wanted: Wanted) -> None:
        """Unit texts, then command lines as a shell would take them."""
        for line in offline_lines(wanted):
            self._out.print(Text(line), soft_wrap=True)

    def findings(self, findings: Iterable[Finding]) -> None:
        """One line each; what is wrong follows as problems."""
        for f in findings:
            mark, style = ("ok", "green") if f.severity is Severity.OK else (f.severity.name.lower(), "red")
            self._out.print(Text.assemble((f"{mark:<6}", style), f"{f.subject}: {f.text}"))

    def problems(self, problems: Sequence[Problem]) -> None:
        """What, where, why, do; the same problem of many hosts once."""
        for line in problem_lines(problems):
            self._err.print(Text(line, style="bold red" if line.startswith("error:") else ""))

    def status(self, status: Status) -> None:
        """A table of processes and ranks, then where users come in, then the verdict in one line."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for name in (
            "instance",
            "host",
            "state",
            "ready",
            "rank",
            "KV use",
            "running",
            "waiting",
            "P/D tokens",
        ):
            table.add_column(name, justify="right" if name in ("KV use", "running", "waiting") else "left")
        for row in process_rows(status):
            table.add_row(*(Text(cell) for cell in row.cells), style="" if row.up else "red")
        self._out.print(table)
        for line in (*live_lines(status), *entrance_lines(status), *guard_lines(status), *notes(status)):
            self._out.print(Text(line))
        self._out.print(Text(verdict(status), style="bold green" if status.serving else "bold red"))

    def result(self, kind: str, value: object, text: str) -> None:
        """The text, as it is; nothing for none."""
        if text:
            self._out.print(Text(text), soft_wrap=True)

    def say(self, text: str) -> None:
        """A remark beside the results."""
        self._err.print(Text(text))


def width() -> int | None:
    """None: the terminal's. A pipe has none, and a folded line cannot be searched."""
    return None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH


def plan_table(section: Section) -> Table:
    """The rows of a stage in columns that share the width there is."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(5):
        table.add_column(overflow="fold")
    for row in section.rows:
        style = STYLES.get(row.mark, "")
        table.add_row(
            Text(f"  {row.hosts}"),
            Text(f"{row.mark} {row.step}", style=style),
            Text(row.subject),
            Text(f"{row.before} → {row.after}"),
            Text(row.because, style="dim"),
        )
    return table
