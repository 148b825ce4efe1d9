"""Report: a run's record, plan and events as one page for people; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Document: TypeAlias = Mapping[str, Any]


def report(run: Document, plan: Document | None, events: Sequence[Document]) -> str:
    """Markdown; the same from a run's folder as from the run itself."""
    lines = [f"# {run['id']}", "", *_head(run), ""]
    for problem in run.get("problems", ()):
        lines += _problem(problem)
    if plan is not None:
        lines += ["## Changes", "", *_changes(plan, events), ""]
    if events:
        lines += ["## What happened", "", *_story(events), ""]
    return "\n".join(lines)


def result_of(run: Document) -> str:
    """`done`, `exit 1`, or that nobody wrote down how it ended."""
    if run["exit_code"] is None:
        return "unfinished: it runs, or its controller was killed"
    return "done" if run["exit_code"] == 0 else f"exit {run['exit_code']}"


def _head(run: Document) -> list[str]:
    versions = ", ".join(f"{name} {text}" for name, text in run["versions"].items())
    return [
        f"- result: {result_of(run)}",
        f"- cluster: {run['cluster']}",
        f"- by: {run['who']} on {run['where_from']}",
        *([f"- why: {run['why']}"] if run.get("why") else []),
        f"- command: `{' '.join(run['argv'])}`",
        f"- time: {run['started']} to {run['ended'] or '-'}",
        f"- with: {versions}, data {run['data_digest'][:12]}",
    ]


def _problem(problem: Document) -> Iterator[str]:
    yield f"**{problem['what']}**"
    for part in ("where", "why", "do", "more"):
        if problem[part]:
            yield f"- {part}: {problem[part]}"
    yield ""


def _changes(plan: Document, events: Sequence[Document]) -> Iterator[str]:
    if not plan["changes"]:
        yield "None."
        return
    done = {(e["host"], e["subject"], e["text"]) for e in events if e["kind"] == "change-done"}
    yield "| stage | host | step | | before | after |"
    yield "|---|---|---|---|---|---|"
    for c in plan["changes"]:
        mark = "done" if (c["host"], c["step"], c["subject"]) in done else "not done"
        cells = (c["stage"], c["host"], c["step"], mark, c["before"], c["after"])
        yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _story(events: Sequence[Document]) -> Iterator[str]:
    for e in events:
        words = " ".join(w for w in (e["host"], e["subject"]) if w)
        yield f"- {e['time'][11:19]} {e['kind']} {words}{': ' if words and e['text'] else ''}{e['text']}"
