"""Shell tokens → commands, branches, loops, functions; knows not what a command does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from launcher.load.foreign.lexer import Token
from launcher.model.problem import InputError, Problem

DEEPEST = 60
"""Blocks inside of each other."""
REDIRECT = re.compile(r"&?[<>]{1,3}[-&|>]?")
NAME = re.compile(r"[A-Za-z_][\w.:-]*")


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: words and arrays as written, and where its streams go."""

    words: tuple[Token, ...]
    targets: tuple[Token, ...] = ()
    """Words of redirections, here-documents among them."""
    line: int = 1


@dataclass(frozen=True, slots=True)
class Branches:
    """One of several blocks runs, or, unless `complete`, none of them."""

    blocks: tuple[Block, ...]
    complete: bool
    labels: tuple[str, ...] = ()
    """Patterns of `case`."""
    line: int = 1


@dataclass(frozen=True, slots=True)
class Loop:
    """`for name in words`; without a name `while` or `until`."""

    name: str
    words: tuple[Token, ...]
    body: Block
    line: int = 1


@dataclass(frozen=True, slots=True)
class Function:
    """A function's definition."""

    name: str
    body: Block
    line: int = 1


@dataclass(frozen=True, slots=True)
class Subshell:
    """A block whose variables end with it."""

    body: Block


Block: TypeAlias = "tuple[Command | Branches | Loop | Function | Subshell, ...]"


@dataclass(slots=True)
class _Reader:
    """The tokens and how far they are read."""

    tokens: Sequence[Token]
    where: str
    at: int = 0
    depth: int = field(default=0)

    def here(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def word(self) -> str:
        """The next word as written; empty before an operator and at the end."""
        token = self.here()
        return token.text if token and token.kind == "word" else ""

    def operator(self) -> str:
        token = self.here()
        return token.text if token and token.kind == "operator" else ""

    def blanks(self) -> None:
        while self.operator() in ("\n", ";"):
            self.at += 1


def parse(tokens: Sequence[Token], path: str) -> Block:
    """Reads any tokens; InputError only if blocks are nested without reason."""
    reader = _Reader(tokens, path)
    block: Block = ()
    while reader.here() is not None:
        block += _block(reader, frozenset())
        reader.at += 1  # a closing word that nothing has opened
    return block


def _block(reader: _Reader, ends: frozenset[str]) -> Block:
    """Up to a word or operator of `ends`, which stays; any block ends at what closes an outer one."""
    reader.depth += 1
    if reader.depth > DEEPEST:
        token = reader.here()
        where = f"{reader.where}:{token.line if token else 1}"
        raise InputError(Problem(f"blocks nested deeper than {DEEPEST}", where=where, do="is it a script?"))
    found: list[Command | Branches | Loop | Function | Subshell] = []
    while (token := reader.here()) is not None:
        if token.text in ends and token.kind in ("word", "operator"):
            break
        if token.kind == "operator" and token.text not in ("(",) and not REDIRECT.fullmatch(token.text):
            if token.text in (")", ";;", ";&", ";;&") and not ends:
                break
            reader.at += 1
            continue
        found.extend(_statement(reader))
    reader.depth -= 1
    return tuple(found)


def _statement(reader: _Reader) -> Block:
    word = reader.word()
    if word in _COMPOUND:
        return _COMPOUND[word](reader)
    if reader.operator() == "(":
        return _parenthesis(reader)
    ahead = [t.text for t in reader.tokens[reader.at + 1 : reader.at + 3] if t.kind == "operator"]
    if NAME.fullmatch(word) and ahead == ["(", ")"]:
        reader.at += 3
        return _function(reader, word)
    return _command(reader)


def _command(reader: _Reader) -> Block:
    words: list[Token] = []
    targets: list[Token] = []
    first = reader.here()
    while (token := reader.here()) is not None:
        if token.kind == "operator":
            if not REDIRECT.fullmatch(token.text):
                break
            reader.at += 1
            if (target := reader.here()) is not None and target.kind != "operator":
                targets.append(target)
                reader.at += 1
            continue
        words.append(token)
        reader.at += 1
    return (Command(tuple(words), tuple(targets), first.line if first else 1),)


def _parenthesis(reader: _Reader) -> Block:
    start = reader.at
    reader.at += 1
    if reader.operator() == "(":  # arithmetic
        _skip_parentheses(reader, start)
        return ()
    body = _block(reader, frozenset({")"}))
    reader.at += 1
    return (Subshell(body),)


def _skip_parentheses(reader: _Reader, start: int) -> None:
    reader.at, depth = start, 0
    while reader.here() is not None:
        depth += (reader.operator() == "(") - (reader.operator() == ")")
        reader.at += 1
        if depth == 0:
            return


def _if(reader: _Reader) -> Block:
    line = reader.tokens[reader.at].line
    before: Block = ()
    blocks: list[Block] = []
    while reader.word() in ("if", "elif"):
        reader.at += 1
        before += _block(reader, frozenset({"then", "fi"}))
        reader.at += 1
        blocks.append(_block(reader, frozenset({"elif", "else", "fi"})))
    complete = reader.word() == "else"
    if complete:
        reader.at += 1
        blocks.append(_block(reader, frozenset({"fi"})))
    reader.at += 1
    return (*before, Branches(tuple(blocks), complete, line=line))


def _while(reader: _Reader) -> Block:
    line = reader.tokens[reader.at].line
    reader.at += 1
    before = _block(reader, frozenset({"do", "done"}))
    return (*before, Loop("", (), _do(reader), line))


def _for(reader: _Reader) -> Block:
    line = reader.tokens[reader.at].line
    reader.at += 1
    name, words = reader.word(), []
    if reader.operator() == "(":
        name = ""
        _skip_parentheses(reader, reader.at)
    else:
        reader.at += 1
        reader.blanks()
        if reader.word() == "in":
            reader.at += 1
            while (token := reader.here()) is not None and token.kind != "operator":
                words.append(token)
                reader.at += 1
    reader.blanks()
    return (Loop(name, tuple(words), _do(reader), line),)


def _do(reader: _Reader) -> Block:
    """`do … done`, standing before it; nothing if there is none."""
    if reader.word() not in ("do", "{"):
        return ()
    closer = "done" if reader.word() == "do" else "}"
    reader.at += 1
    body = _block(reader, frozenset({closer}))
    reader.at += 1
    return body


def _case(reader: _Reader) -> Block:
    line = reader.tokens[reader.at].line
    reader.at += 1
    while reader.here() is not None and reader.word() not in ("in", "esac"):
        reader.at += 1
    reader.at += reader.word() == "in"
    blocks: list[Block] = []
    labels: list[str] = []
    while reader.here() is not None and reader.word() != "esac":
        label = ""
        while reader.here() is not None and reader.operator() != ")" and reader.word() != "esac":
            label = f"{label} {reader.word()}".strip()
            reader.at += 1
        if reader.operator() == ")":
            reader.at += 1
            labels.append(label)
            blocks.append(_block(reader, frozenset({";;", ";&", ";;&", "esac"})))
            reader.at += reader.operator() != ""
            reader.blanks()
    reader.at += 1
    return (Branches(tuple(blocks), "*" in labels, tuple(labels), line),)


def _braces(reader: _Reader) -> Block:
    reader.at += 1
    body = _block(reader, frozenset({"}"}))
    reader.at += 1
    return body


def _keyword_function(reader: _Reader) -> Block:
    reader.at += 1
    name = reader.word()
    reader.at += 1
    while reader.operator() in ("(", ")"):
        reader.at += 1
    return _function(reader, name)


def _function(reader: _Reader, name: str) -> Block:
    line = reader.tokens[min(reader.at, len(reader.tokens)) - 1].line
    reader.blanks()
    return (Function(name, _braces(reader) if reader.word() == "{" else _statement(reader), line),)


def _test(reader: _Reader) -> Block:
    while reader.here() is not None and reader.word() != "]]":
        reader.at += 1
    reader.at += 1
    return ()


def _nothing(reader: _Reader) -> Block:
    reader.at += 1
    return ()


_COMPOUND = {
    "if": _if,
    "while": _while,
    "until": _while,
    "for": _for,
    "select": _for,
    "case": _case,
    "{": _braces,
    "function": _keyword_function,
    "[[": _test,
    "!": _nothing,
    "time": _nothing,
}
