"""A systemd unit → the servers that its ExecStart= starts; knows systemd's quoting, which is no shell's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from launcher.load.foreign.environment import read_environment
from launcher.load.foreign.expand import Scope, Word
from launcher.load.foreign.marks import unresolved
from launcher.load.foreign.shell import Shell
from launcher.load.foreign.words import PIECE, unquoted

SECTION = re.compile(r"\[(Unit|Service|Install)\]\s*", re.MULTILINE)
VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)")
SPECIFIER = re.compile(r"%(.)")


@dataclass(frozen=True, slots=True)
class _Line:
    section: str
    name: str
    value: str
    number: int


def is_unit(text: str) -> bool:
    """Has it a section that units have, on a line of its own?"""
    return re.search(r"^\[(Service|Unit)\]\s*$", text, re.MULTILINE) is not None


def read_unit(text: str, path: str, read_beside: Callable[[str], str | None]) -> tuple[Shell, dict[str, str]]:
    """Its servers and Problems, and its directives of [Unit] and [Service], of each the last."""
    shell = Shell(path, read_beside)
    scope, directives = Scope(), {}
    for line in _lines(text):
        if line.section in ("Unit", "Service"):
            directives[line.name] = line.value
        if line.section == "Service" and line.name == "Environment":
            _environment(line, scope)
        elif line.section == "Service" and line.name == "EnvironmentFile":
            _environment_file(line, scope, read_beside)
    for line in _lines(text):
        if line.section == "Service" and line.name == "ExecStart" and line.value:
            words = list(_words(line, scope))
            shell.command(words, scope, line=line.number)
    return shell, directives


def _lines(text: str) -> Iterator[_Line]:
    """Directives with the section and line they stand on; `\\` joins lines, comments may stand between."""
    section, held, first = "", "", 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.lstrip()[:1] in ("#", ";") or (not held and not line.strip()):
            continue
        first = first if held else number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        whole, held = (held + line).strip(), ""
        header = re.fullmatch(r"\[([^\]]*)\]", whole)
        if header:
            section = header[1]
        elif "=" in whole:
            name, _, value = whole.partition("=")
            yield _Line(section, name.strip(), value.strip(), first)


def _environment(line: _Line, scope: Scope) -> None:
    if not line.value:
        scope.variables.clear()
        scope.exported.clear()
    for piece in PIECE.finditer(line.value):
        name, joined, value = _specifiers(unquoted(piece[1])).partition("=")
        if joined:
            scope.assign(name, Word(value, line.number))
            scope.exported.add(name)


def _environment_file(line: _Line, scope: Scope, read_beside: Callable[[str], str | None]) -> None:
    """Its variables, if it lies beside. They stand on lines of another file: the directive's counts."""
    text = read_beside(line.value.removeprefix("-")) if line.value else ""
    if text is None:
        scope.more_variables = True
        return
    for name, word in read_environment(text).items():
        scope.assign(name, Word(word.text, line.number))
        scope.exported.add(name)


def _words(line: _Line, scope: Scope) -> Iterator[Word]:
    """Arguments of a command line: a variable that is a word of its own is split at blanks."""
    for index, piece in enumerate(PIECE.finditer(line.value)):
        written = piece[1].lstrip("-@:+!|") if index == 0 else piece[1]
        alone = re.fullmatch(r"\$([A-Za-z_]\w*)", written)
        if alone:
            known = scope.look_up(alone[1])
            for text in known.text.split() if known else [unresolved(f"${alone[1]}")]:
                yield Word(text, line.number)
        elif written:
            yield Word(_substituted(_specifiers(unquoted(written)), scope), line.number)


def _specifiers(text: str) -> str:
    return SPECIFIER.sub(lambda found: "%" if found[1] == "%" else unresolved(found[0]), text)


def _substituted(text: str, scope: Scope) -> str:
    def known(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        word = scope.look_up(found[1] or found[2])
        return word.text if word is not None else unresolved(found[0])

    return VARIABLE.sub(known, text)
