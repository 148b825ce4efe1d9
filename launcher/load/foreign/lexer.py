"""Shell text → words, operators, arrays and here-documents, with lines; knows not what any of them does."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from launcher.load.foreign.marks import CLOSE, OPEN

OPERATOR = re.compile(r"[0-9]*(?:&>>|<<<|<<-|&>|>&|<&|>>|<<|>\||<>|>|<)|;;&|;;|;&|&&|\|\||\|&|[;&|()\n]")
ARRAY = re.compile(r"[A-Za-z_]\w*\+?=")
HERE = re.compile(r"<<(?!<)(-?)[ \t]*(['\"\\]?)([A-Za-z_]\w*)['\"]?")
"""What announces a here-document."""
META = frozenset(" \t\n;&|()<>")
CLOSERS = {"$(": ")", "${": "}", '"': '"', "`": "`", "<(": ")", ">(": ")"}
DEEPEST = 40
"""Quotes and substitutions inside of each other; what lies deeper is taken as one piece."""


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of shell text, as written."""

    kind: Literal["word", "operator", "array", "document"]
    text: str
    """array: `NAME=` or `NAME+=`; document: the body of a here-document."""
    line: int
    words: tuple[Token, ...] = ()
    """Of an array."""
    literal: bool = False
    """A here-document in which nothing is substituted."""


@dataclass(frozen=True, slots=True)
class Lexed:
    """Tokens in order; comments by line."""

    tokens: tuple[Token, ...]
    comments: dict[int, str]
    unclosed: tuple[int, ...] = ()
    """Lines that open a quote or bracket which nothing closes."""


def lex(text: str, line: int = 1) -> Lexed:
    """Reads any text; `line` is the number of its first line."""
    lexer = _Lexer(text, line)
    tokens = lexer.tokens()
    return Lexed(tuple(tokens), lexer.comments, tuple(lexer.unclosed))


def piece_end(text: str, start: int, depth: int = 0) -> int:
    """Where the quote, substitution, mark or character that begins at `start` ends; beyond the text by one if
    nothing closes it.

    >>> piece_end("'a b'c", 0), piece_end("$(x)y", 0), piece_end("ab", 0)
    (5, 4, 1)
    """
    two = text[start : start + 2]
    if text[start] == OPEN:
        return _after(text, CLOSE, start)
    if text[start] == "\\":
        return min(start + 2, len(text))
    if text[start] == "'":
        return _after(text, "'", start + 1)
    if two == "$'":
        end = re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL).match(text, start + 2)
        return end.end() if end else len(text) + 1
    opener = two if two in CLOSERS else text[start]
    if opener not in CLOSERS:
        return start + 1
    return _closed(text, start + len(opener), opener, depth)


def _closed(text: str, at: int, opener: str, depth: int) -> int:
    closer, nested = CLOSERS[opener], 0
    announced: list[re.Match[str]] = []
    while at < len(text) and depth < DEEPEST:
        char = text[at]
        if char == closer and not nested:
            return at + 1
        if closer == ")" and (here := HERE.match(text, at)):
            announced.append(here)
            at = here.end()
            continue
        if char == "\n" and announced:
            at = _after_documents(text, at + 1, announced)
            announced = []
            continue
        if opener == '"' and char in "'<>":
            at += 1
            continue
        nested += (opener[-1] == "(" and char == "(") - (opener[-1] == "(" and char == ")")
        at = piece_end(text, at, depth + 1)
    return len(text) + 1


def _after_documents(text: str, start: int, announced: list[re.Match[str]]) -> int:
    """Behind the bodies of here-documents, in which quotes and brackets mean nothing; `start` if one has no
    end."""
    at = start
    for here in announced:
        tabs = r"\t*" if here[1] else ""
        end = re.compile(rf"^{tabs}{re.escape(here[3])}$\n?", re.MULTILINE).search(text, at)
        if end is None:
            return start
        at = end.end()
    return at


def _after(text: str, closer: str, start: int) -> int:
    found = text.find(closer, start)
    return found + len(closer) if found >= 0 else len(text) + 1


class _Lexer:
    """One pass over a text."""

    def __init__(self, text: str, line: int) -> None:
        self._text = text
        self._at = 0
        self._line = line
        self._waiting: list[tuple[int, str, bool, bool]] = []
        self.comments: dict[int, str] = {}
        self.unclosed: list[int] = []

    def tokens(self, *, array: bool = False) -> list[Token]:
        """All that is left, or the words up to the `)` that ends an array."""
        found: list[Token] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in " \t" or self._text.startswith("\\\n", self._at):
                self._skip(2 if char == "\\" else 1)
            elif char == "#":
                self._comment()
            elif array and char in ")\n":
                self._skip(1)
                if char == ")":
                    return found
            else:
                self._token(found)
        if array:
            self.unclosed.append(self._line)
        return found

    def _token(self, found: list[Token]) -> None:
        operator = OPERATOR.match(self._text, self._at)
        if operator and self._text[self._at : self._at + 2] not in ("<(", ">("):
            found.append(Token("operator", operator[0].lstrip("0123456789"), self._line))
            self._skip(len(operator[0]))
            if operator[0] == "\n":
                self._documents(found)
            return
        word = self._word()
        if ARRAY.fullmatch(word.text) and self._text.startswith("(", self._at):
            self._skip(1)
            word = replace(word, kind="array", words=tuple(self.tokens(array=True)))
        elif found and found[-1].kind == "operator" and found[-1].text in ("<<", "<<-"):
            ender = re.sub(r"['\"\\]", "", word.text)
            self._waiting.append((len(found), ender, found[-1].text == "<<-", ender != word.text))
        found.append(word)

    def _word(self) -> Token:
        start, line, end = self._at, self._line, self._at
        while end < len(self._text) and (end == start or self._text[end] not in META):
            end = piece_end(self._text, end)
        if end > len(self._text):
            self.unclosed.append(line)
        self._skip(end - start)
        text = self._text[start:end]
        # a here-document within keeps its lines
        return Token("word", text if "<<" in text else text.replace("\\\n", ""), line)

    def _comment(self) -> None:
        end = self._text.find("\n", self._at)
        end = len(self._text) if end < 0 else end
        self.comments[self._line] = self._text[self._at : end]
        self._at = end

    def _documents(self, found: list[Token]) -> None:
        """The bodies that the line before has announced."""
        for index, ender, tabs, literal in self._waiting:
            lines: list[str] = []
            first = self._line
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._skip(end + 1 - self._at)
                if (line.lstrip("\t") if tabs else line) == ender:
                    break
                lines.append(line)
            found[index] = Token("document", "\n".join(lines), first, literal=literal)
        self._waiting.clear()

    def _skip(self, characters: int) -> None:
        self._line += self._text.count("\n", self._at, self._at + characters)
        self._at += characters
