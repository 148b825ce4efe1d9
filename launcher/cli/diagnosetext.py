"""report_text: what was diagnosed as a person reads it; knows no colours."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from launcher.cli.words import count, problem_lines
from launcher.flows.diagnose import Report
from launcher.flows.hang import SERVING, Hang
from launcher.health.diagnose import Cause, Sure
from launcher.model.problem import Problem
from launcher.model.signature import LogLine

EVIDENCE = 4
"""Lines shown of one cause, one a log; the rest is counted."""
EFFECTS = 5
STACK_LINES = 60
LONGEST = 220
SURE: dict[Sure, str] = {
    "confirmed": "known, and its host confirms it",
    "matched": "known",
    "not seen now": "known, but its host does not show it now",
    "depends": "known of some releases; give --engine-version",
    "consequence": "a consequence; what it comes of is not in these logs",
    "unknown": "nothing is known of this line; it is the first error",
}


def cause_lines(cause: Cause, *, runbook: str = "") -> Iterator[str]:
    """What, then where, how sure, the lines, what came of it, what it is not, what to do; its runbook."""
    yield f"{cause.severity}: {short(cause.likely)}"
    line, known = cause.first.line, cause.signature
    yield from rows("where", [", ".join(dict.fromkeys((line.host, line.unit)))])
    yield from rows("sure", [sure_text(cause)])
    yield from rows("seen", evidence(cause))
    effects = [e for e in cause.effects if known or e.match not in cause.first_errors]
    yield from rows("then", [f"{stamp(e.match.line)}  {short(e.what)}" for e in effects[:EFFECTS]])
    if len(effects) > EFFECTS:
        yield f"         and {count(len(effects) - EFFECTS, 'other consequence')}"
    yield from rows("not", known.not_this if known else ())
    yield from rows("do", [cause.do])
    yield from rows("more", [runbook] if runbook else [])
    yield from rows("source", [f"{known.known_from} ({known.id})"] if known else [])


def cause_document(cause: Cause, *, runbook: str) -> dict[str, object]:
    """A cause for programs."""
    known = cause.signature
    return {
        "signature": known.id if known else "",
        "severity": cause.severity,
        "likely": cause.likely,
        "sure": cause.sure,
        "do": cause.do,
        "not_this": known.not_this if known else (),
        "runbook": runbook,
        "count": cause.count,
        "evidence": [match.line for match in cause.evidence],
        "first_errors": [] if known else [match.line for match in cause.first_errors],
        "effects": [
            {
                "what": e.what,
                "signature": e.match.signature.id if e.match.signature else "",
                "line": e.match.line,
            }
            for e in cause.effects
        ],
        "close": cause.close,
    }


def sure_text(cause: Cause) -> str:
    """How sure, and where clocks leave the order open."""
    known = cause.signature
    text = SURE[cause.sure]
    if cause.sure == "depends" and known:
        text += " (" + ", ".join(t for t in (_since(known.since), _until(known.until)) if t) + ")"
    if cause.close:
        text += f"; clocks may differ: {', '.join(cause.close)} told of something within seconds, too"
    return text


def _since(version: str) -> str:
    return f"since {version}" if version else ""


def _until(version: str) -> str:
    return f"before {version}" if version else ""


def evidence(cause: Cause) -> Iterator[str]:
    """The first line of each log that has it; of what nobody knows, the first error of each host."""
    shown = cause.evidence[:EVIDENCE] if cause.signature else cause.first_errors
    yield from (f"{stamp(match.line)}  {short(match.text)}" for match in shown)
    if cause.count > min(len(cause.evidence), EVIDENCE):
        yield f"{count(cause.count, 'line')} like it in {count(len(cause.evidence), 'log')}"


def hang_problem(hang: Hang) -> Problem:
    """A process that others wait for, and what it does instead."""
    stuck, process = hang.stuck, hang.stuck.process
    instance = process.instance
    what = (
        f"{instance} waits for its process on {process.host}, in phase {stuck.phase} for {stuck.for_s:.0f} s"
    )
    if stuck.phase == SERVING:
        what = f"{instance} waits for its process on {process.host}"
        what += f", and has made no token for {stuck.for_s:.0f} s or longer" if stuck.for_s else ""
    elif stuck.late:
        what += f", budget {stuck.budget_s} s"
    do = f"dsv32-launch restart {instance}" if stuck.late else f"dsv32-launch logs {instance} --follow"
    more = ""
    if hang.stacks:
        more = "\n".join(hang.stacks.text.splitlines()[:STACK_LINES]) or f"for its stacks: {hang.stacks.how}"
    why = f"its last line: {short(stuck.last)}" if stuck.last else "its log says nothing of it"
    return Problem(what, f"{process.host}, unit {process.unit}", hang.halted or why, do, more)


def report_text(report: Report) -> str:
    """All of it, for a file."""
    problems = [*report.problems, *(hang_problem(h) for h in report.hangs)]
    return "\n".join((*causes_lines(report), *problem_lines(problems), verdict(report))) + "\n"


def causes_lines(report: Report) -> Iterator[str]:
    """Every cause; the first one with its runbook."""
    for n, cause in enumerate(report.diagnosis.causes):
        yield from cause_lines(cause, runbook="" if n else report.runbook(cause))


def verdict(report: Report) -> str:
    """All in one line."""
    causes = report.diagnosis.causes
    looked = f"{count(report.lines, 'line')} read"
    if not report.found:
        further = "; --since 2h looks further back than each unit's last start" if report.last_start else ""
        return f"nothing wrong; {looked}{further}"
    words = [count(len(causes), "cause")] if causes else []
    words += [f"{count(len(report.hangs), 'instance')} that waits"] if report.hangs else []
    words += [count(len(report.problems), "problem")] if report.problems else []
    return f"{', '.join(words)}; {looked}"


def rows(word: str, texts: Iterable[str]) -> Iterator[str]:
    """The first beside the word, the others below it."""
    for text in texts:
        yield f"  {word:<6} {text}"
        word = ""


def stamp(line: LogLine) -> str:
    """`18:40:44.1 gpu05`, UTC; the host alone where nothing tells the time."""
    if not line.time_s:
        return line.host
    return f"{time.strftime('%H:%M:%S', time.gmtime(line.time_s))}.{int(line.time_s % 1 * 10)} {line.host}"


def short(text: str) -> str:
    """So much of a line as a person reads."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
