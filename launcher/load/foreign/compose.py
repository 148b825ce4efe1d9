"""Compose files → servers of their services; knows no Docker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from launcher.load.document import Document, Location, Value
from launcher.load.foreign.container import of_service
from launcher.load.foreign.environment import read_environment
from launcher.load.foreign.expand import Scope, Word
from launcher.load.foreign.marks import unresolved
from launcher.load.foreign.shell import Shell
from launcher.load.foreign.starts import Start, merge, with_entry
from launcher.load.foreign.words import split, text_of, words_of

VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_]\w*)(?::?-([^${}]*))?[^{}]*\}|\$([A-Za-z_]\w*)")


def is_compose(document: Document) -> bool:
    """Does it hold services?"""
    values = document.values
    return isinstance(values, dict) and isinstance(values.get("services"), dict)


def read_compose(document: Document, shell: Shell) -> list[tuple[str, Start]]:
    """(service, server) of all services; `shell` reads their scripts and collects Problems."""
    services = document.values["services"] if isinstance(document.values, dict) else {}
    found: list[tuple[str, Start]] = []
    for name, service in services.items() if isinstance(services, dict) else ():
        if isinstance(service, dict):
            before = len(shell.starts)
            _run(service, ("services", name), document, shell)
            found += [(name, start) for start in shell.starts[before:]]
    return found


def _run(service: Mapping[str, Value], location: Location, document: Document, shell: Shell) -> None:
    scope = _environment(service, location, document, shell)
    words = _command(service.get("command"), (*location, "command"), document)
    entry = _command(service.get("entrypoint"), (*location, "entrypoint"), document)
    image = _interpolated(Word(text_of(service.get("image")), 0)).text
    words = [*entry, *words] if entry else with_entry(image, words)
    names = [text_of(service.get("container_name")), text_of(service.get("hostname")), str(location[-1])]
    before = len(shell.starts)
    shell.command(words, scope, line=words[0].line if words else 1)
    said = of_service(service, image)
    around = Start((), 1, image=image, hints=tuple(n for n in names if n), container=said)
    shell.starts[before:] = [merge(around, start) for start in shell.starts[before:]]


def _command(value: Value | None, location: Location, document: Document) -> list[Word]:
    words = [_interpolated(w) for w in words_of(value, location, document)]
    return words if isinstance(value, list) else [w for word in words for w in split(word)]


def _environment(service: Mapping[str, Value], location: Location, document: Document, shell: Shell) -> Scope:
    scope = Scope()
    for item in _listed(service.get("env_file")):
        name = text_of(item.get("path")) if isinstance(item, dict) else text_of(item)
        text = shell.read_beside(name) if name else None
        scope.more_variables |= text is None
        line = document.line((*location, "env_file"))
        for key, word in read_environment(text or "").items():
            scope.assign(key, Word(word.text, line))
    for key, word in _given(service.get("environment"), (*location, "environment"), document):
        scope.assign(key, word)
    scope.exported |= scope.variables.keys()
    return scope


def _given(value: Value | None, location: Location, document: Document) -> Iterator[tuple[str, Word]]:
    """A mapping, or a list of `A=b`. A name alone has the value that it has for whoever calls Compose."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, _interpolated(Word(text_of(item), document.line((*location, key))))
    for index, item in enumerate(value if isinstance(value, list) else ()):
        name, joined, rest = text_of(item).partition("=")
        line = document.line((*location, index))
        yield name, _interpolated(Word(rest, line)) if joined else Word(unresolved(f"${name}"), line)


def _interpolated(word: Word) -> Word:
    """`${A:-b}` and its like, which Compose itself replaces; `$$` is a dollar for a shell within."""

    def known(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return found[2] if found[2] is not None else unresolved(found[0])

    return Word(VARIABLE.sub(known, word.text), word.line)


def _listed(value: Value | None) -> list[Value]:
    return value if isinstance(value, list) else [] if value is None else [value]
