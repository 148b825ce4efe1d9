"""Answers of the agent → the text that a question promises → values; knows no expectation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from launcher.checks.asked import Asked
from launcher.model.check import Question
from launcher.model.facts import Facts, Unknown

GIB = 1 << 30
NO_PROGRAM = 127


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A command that did not end in time: a fault of the host, as of a file system that hangs."""

    within_s: int


@dataclass(frozen=True, slots=True)
class Value:
    """One thing that was read, and of what."""

    of: str
    text: str

    def __str__(self) -> str:
        return f"{self.of} {self.text}" if self.of else self.text


Text: TypeAlias = "str | NoAnswer | Unknown | None"
"""None: the thing that was asked about is not there."""


def text_of(asked: Asked, facts: Facts) -> Text:
    """The answer as text."""
    if asked.question.clock:
        return f"ahead_s={facts.ahead_s:.3f}\n"
    if asked.probe is None:
        return ""
    answer = facts[asked.probe]
    return answer if isinstance(answer, Unknown) else TEXTS[asked.probe.kind](answer, asked.question)


def values_of(asked: Asked, text: str) -> tuple[Value, ...]:
    """What the check reads out of a text."""
    if asked.check.column:
        return tuple(_cells(text, asked.question.columns, asked.check.column))
    if not asked.read:
        return (Value("", text.strip()),) if text.strip() else ()
    return tuple(
        Value((m.groupdict().get("of") or "").strip(), (m["value"] or "").strip())
        for m in re.finditer(asked.read, text, re.MULTILINE)
    )


def _cells(text: str, columns: tuple[str, ...], wanted: str) -> Iterator[Value]:
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(columns):
            yield Value(f"{columns[0]} {cells[0]}", cells[columns.index(wanted)])


def _command(answer: Mapping[str, Any], question: Question) -> Text:
    if answer["exit"] is None:
        return NoAnswer(question.within_s)
    if answer["exit"] == NO_PROGRAM:
        return None
    return str(answer["stdout"] + (answer["stderr"] if answer["exit"] else ""))


def _files(answer: Mapping[str, str], question: Question) -> str | None:
    if not answer:
        return None
    if question.names:
        return "".join(f"{path}\n" for path in answer)
    if "*" not in question.file:
        return next(iter(answer.values()))
    lines = ((path, line) for path, text in answer.items() for line in text.splitlines())
    return "".join(f"{path}: {line}\n" for path, line in lines)


def _unit(answer: Mapping[str, Any], question: Question) -> str | None:
    if answer["load"] == "not-found":
        return None
    told = {**answer, "reload": "yes" if answer["needs_reload"] else "no"}
    return "".join(f"{name}={told[name]}\n" for name in ("active", "sub", "enabled", "result", "reload"))


def _disk(answer: Mapping[str, Any], question: Question) -> str:
    share = 100 * answer["free"] / answer["total"] if answer["total"] else 0
    return f"type={answer['type']}\nfree_gib={answer['free'] / GIB:.1f}\nfree_percent={share:.0f}\n"


def _host(answer: Mapping[str, Any], question: Question) -> str:
    told = {**answer, "os": f"{answer['os']['id']} {answer['os']['version']}"}
    return "".join(f"{name}={told[name]}\n" for name in ("hostname", "os", "kernel", "cpus", "memory_gib"))


def _listen(answer: list[Mapping[str, Any]], question: Question) -> str:
    return "".join(f"{end['port']} {end['address']} {end['unit'] or '-'}\n" for end in answer)


def _reach(answer: Mapping[str, Mapping[str, str]], question: Question) -> str:
    assert question.peers
    return "".join(f"{peer} {said}\n" for peer, said in answer[question.peers].items())


def _over(answer: Mapping[str, Mapping[str, Any]], question: Question) -> Text:
    if any(said["exit"] is None for said in answer.values()):
        return NoAnswer(question.within_s)
    told = {path: said for path, said in answer.items() if said["exit"] != NO_PROGRAM}
    texts = {path: _command(said, question) for path, said in told.items()}
    return "".join(f"{p}: {line}\n" for p, text in texts.items() for line in str(text).splitlines()) or None


def _packages(answer: list[list[str]], question: Question) -> str:
    return "".join(f"{' '.join(package)}\n" for package in answer)


def _lines(answer: Mapping[str, str], question: Question) -> str | None:
    return "".join(f"{name} {said}\n" for name, said in answer.items()) or None


def _page(answer: Mapping[str, Any], question: Question) -> str:
    if "error" in answer:
        return f"error={answer['error']}\n"
    return f"status={answer['status']}\n{answer['body']}"


TEXTS: Mapping[str, Callable[[Any, Question], Text]] = {
    "command": _command,
    "over": _over,
    "imports": _command,
    "files": _files,
    "grown": lambda answer, question: "".join(f"{path}: {by}\n" for path, by in answer.items()) or None,
    "packages": _packages,
    "package": lambda answer, question: answer["version"],
    "unit": _unit,
    "http": _page,
    "disk": _disk,
    "shards": _lines,
    "host": _host,
    "cuda": lambda answer, question: f"cuInit={answer['result']}\n" if answer["result"] is not None else None,
    "listen": _listen,
    "reach": _reach,
}
"""Probe → how its answer is written."""
