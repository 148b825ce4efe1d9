"""What a shell script starts, and with which variables, in all branches that there are; runs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from launcher.load.foreign.expand import (
    Scope,
    Word,
    common,
    common_words,
    expand,
    expand_document,
    expand_text,
)
from launcher.load.foreign.lexer import Token, lex
from launcher.load.foreign.marks import told, unresolved
from launcher.load.foreign.starts import BEGINS, TALK, Start, Text, begun, merge
from launcher.load.foreign.tree import Block, Branches, Command, Function, Loop, Subshell, parse
from launcher.model.problem import Problem

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
DECLARE = frozenset({"export", "declare", "local", "readonly", "typeset"})
DEEPEST = 12
"""Functions and scripts inside of each other."""
CHARACTERS_OF_A_COMMAND = 20
"""Of a script that is read once more: it costs as many commands as it may hold."""
COMMANDS_OF_A_FILE = 20
"""What opening a script costs, in commands that could be followed in its place."""
MOST = 256
"""Servers that one text starts."""


@dataclass(slots=True)
class Shell:
    """One reading of a script: collects servers and Problems."""

    path: str
    read_beside: Callable[[str], str | None]
    """Text of a file that a script names, if it lies beside."""
    starts: list[Start] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Here-documents that the script writes, by the last part of their paths."""
    _functions: dict[str, Function] = field(default_factory=dict)
    _called: set[str] = field(default_factory=set)
    _hints: list[str] = field(default_factory=list)
    _comments: dict[int, str] = field(default_factory=dict)
    _depth: int = 0
    _left: int = 20_000
    """Commands and copies of variables that are followed before a script is left alone."""
    _lost: int = 0
    """The last line whose flags belong to no command."""
    _target: str = ""
    """What the lines that follow make."""

    def script(self, text: str, scope: Scope, *, line: int = 1) -> None:
        """Reads a whole script; `line`: where it begins in its file."""
        lexed = lex(text, line)
        self._comments |= lexed.comments
        for opened in lexed.unclosed[:1]:
            what = "a quote or bracket that opens here is not closed"
            self._say(what, opened, do="close it; what follows was read as part of it")
        self._block(parse(lexed.tokens, self.path), scope)
        for name, function in list(self._functions.items()):
            if self._depth == 0 and name not in self._called:
                self._call(function, None, scope.copy())
        if self._depth == 0 and self.gave_up:
            what = "the script was not followed to its end: it is too long, or calls itself"
            self._say(what, line, do="name the script that starts the engine itself")

    @property
    def gave_up(self) -> bool:
        """Was a script not followed to its end?"""
        return self._left < 0

    def command(self, words: Sequence[Word], scope: Scope, *, line: int) -> None:
        """One command whose words are known: a server is kept, a script in an argument is read."""
        found = begun(words)
        if found is None or len(self.starts) >= MOST:
            return
        given = found if isinstance(found, Start) else found.start
        exported = {n: scope.variables[n] for n in scope.exported if n in scope.variables}
        more = scope.more_variables and not given.contained
        outside = Start((), line, variables={} if given.contained else exported, more_variables=more)
        start = replace(merge(outside, given), line=line, hints=(*given.hints, *self._near(line)))
        if isinstance(found, Start):
            self.starts.append(start)
        elif self._depth < DEEPEST:
            self._nested(found, start)

    def _nested(self, found: Text, start: Start) -> None:
        """The script within an argument: its own shell, with the variables that were handed on."""
        scope = Scope(dict(start.variables), set(start.variables), more_variables=start.more_variables)
        before, self._depth = len(self.starts), self._depth + 1
        self._hints.extend(start.hints)
        self.script(found.text, scope, line=found.start.line)
        del self._hints[len(self._hints) - len(start.hints) :]
        self._depth -= 1
        for index in range(before, len(self.starts)):
            inner = self.starts[index]
            image, container = inner.image or start.image, inner.container or start.container
            around = replace(inner, image=image, container=container, contained=start.contained)
            self.starts[index] = around

    def _near(self, line: int) -> tuple[str, ...]:
        """Texts around a line that may name its side, the nearest first."""
        above: list[str] = []
        while (comment := self._comments.get(line - 1 - len(above))) is not None:
            above.append(comment)
        return (*above, *reversed(self._hints), self._target)

    def _block(self, block: Block, scope: Scope) -> None:
        for item in block:
            self._left -= 1 if isinstance(item, Command) else 1 + len(scope.variables)
            if self.gave_up or len(self.starts) >= MOST:
                return
            if isinstance(item, Command):
                self._simple(item, scope)
            elif isinstance(item, Function):
                self._functions[item.name] = item
            elif isinstance(item, Subshell):
                self._block(item.body, scope.copy())
            elif isinstance(item, Loop):
                self._loop(item, scope)
            else:
                self._branches(item, scope)

    def _branches(self, item: Branches, scope: Scope) -> None:
        after: list[Scope] = [] if item.complete else [scope.copy()]
        for index, block in enumerate(item.blocks):
            branch = scope.copy()
            self._hints.append(item.labels[index] if item.labels else "")
            self._block(block, branch)
            self._hints.pop()
            after.append(branch)
        if after:
            _join(scope, after)

    def _loop(self, item: Loop, scope: Scope) -> None:
        inside = scope.copy()
        words = [w for t in item.words for w in expand(t.text, t.line, scope)]
        single = len(words) == 1 and told(words[0].text) and ".." not in words[0].text
        if item.name:
            inside.assign(item.name, words[0] if single else Word(unresolved(f"${item.name}"), item.line))
        self._block(item.body, inside)
        _join(scope, [scope.copy(), inside])

    def _simple(self, item: Command, scope: Scope) -> None:
        own, rest = scope, list(item.words)
        assigned: list[Token] = []
        while rest and (rest[0].kind == "array" or ASSIGNMENT.fullmatch(rest[0].text)):
            assigned.append(rest.pop(0))
        if assigned and rest:
            own = scope.copy()
        for token in assigned:
            name = self._assign(token, own)
            own.exported |= {name} if rest else set()
        documents = [t for t in item.targets if t.kind == "document"]
        if not rest:
            return
        if rest[0].text in DECLARE:
            self._declare(rest, scope)
            return
        words = [w for t in rest if t.kind == "word" for w in expand(t.text, t.line, own)]
        targets = [w.text for t in item.targets if t.kind == "word" for w in expand(t.text, t.line, own)]
        self._hints.extend(targets)
        if words:
            self._run(words, documents, targets, own, outer=scope, line=item.line)
        del self._hints[len(self._hints) - len(targets) :]

    def _run(
        self,
        words: list[Word],
        documents: list[Token],
        targets: list[str],
        scope: Scope,
        *,
        outer: Scope,
        line: int,
    ) -> None:
        name = words[0].text
        if name.endswith(":") and len(words) == 1:  # of a Makefile or Justfile
            self._target = name
        elif documents:
            self._document(name, words, documents[0], targets, scope)
        elif name in self._functions:
            self._call(self._functions[name], tuple(words[1:]), scope)
        elif name in _BUILTINS:
            _BUILTINS[name](self, words[1:], outer)
        elif name == "eval" and self._depth < DEEPEST:
            self._depth += 1
            self.script(" ".join(w.text for w in words[1:]), outer, line=line)
            self._depth -= 1
        elif name.startswith("--") and told(name):
            self._say_lost(name, line)
        else:
            self.command(words, scope, line=line)

    def _document(
        self, name: str, words: list[Word], document: Token, targets: list[str], scope: Scope
    ) -> None:
        """A here-document: a file that is written, or a script for a shell."""
        body = document.text
        body = body if document.literal else expand_document(body, document.line, scope)
        written = targets if name == "cat" else [w.text for w in words[1:]] if name == "tee" else []
        for target in written:
            self.files[target.rsplit("/", 1)[-1]] = body
        if BEGINS.search(body) and self._depth < DEEPEST and (written or name not in TALK):
            self._depth += 1
            self._hints.extend(written)
            self.script(body, Scope(), line=document.line)
            del self._hints[len(self._hints) - len(written) :]
            self._depth -= 1

    def _call(self, function: Function, args: tuple[Word, ...] | None, scope: Scope) -> None:
        self._called.add(function.name)
        if self._depth >= DEEPEST:
            return
        before, scope.positional = scope.positional, args
        self._depth += 1
        self._hints.append(function.name)
        self._hints.extend(w.text for w in args or ())
        self._block(function.body, scope)
        del self._hints[len(self._hints) - 1 - len(args or ()) :]
        self._depth -= 1
        scope.positional = before

    def _declare(self, tokens: Sequence[Token], scope: Scope) -> None:
        exports = tokens[0].text == "export" or any(t.text.startswith("-x") for t in tokens)
        for token in tokens[1:]:
            if token.kind == "array" or ASSIGNMENT.fullmatch(token.text):
                name = self._assign(token, scope)
                scope.exported |= {name} if exports else set()
            elif exports:
                scope.exported.update(w.text for w in expand(token.text, token.line, scope))

    def _assign(self, token: Token, scope: Scope) -> str:
        """`A=b`, `A+=b`, `A=(…)`, `A+=(…)`; gives the name."""
        if token.kind == "array":
            name = token.text.rstrip("+=")
            words = tuple(w for t in token.words for w in expand(t.text, t.line, scope))
            self._left -= len(scope.arrays.get(name, ()))
            scope.arrays[name] = (*(scope.all_of(name) or ()), *words) if "+" in token.text else words
            return name
        found = ASSIGNMENT.fullmatch(token.text)
        assert found is not None
        name, word = found[1], expand_text(found[3], token.line, scope)
        if found[2]:
            known = scope.look_up(name)
            before = known.text if known is not None else unresolved(f"${name}")
            word = Word(before + word.text, token.line)
        scope.assign(name, word)
        return name

    def _source(self, words: Sequence[Word], scope: Scope) -> None:
        name = words[0].text if words else ""
        if name.rsplit("/", 1)[-1] == "activate":
            return
        text = self.read_beside(name) if told(name) else None
        if text is None or self._depth >= DEEPEST:
            scope.more_variables = True
            return
        other = replace(self, path=name, starts=[], _comments={}, _depth=self._depth + 1)
        other.script(text, scope)
        # scripts that name each other would be read without end
        self._left = other._left - len(text) // CHARACTERS_OF_A_COMMAND - COMMANDS_OF_A_FILE

    def _set(self, words: Sequence[Word], scope: Scope) -> None:
        texts = [w.text for w in words]
        if "-a" in texts or "allexport" in texts:
            scope.export_all = True
        if "+a" in texts:
            scope.export_all = False
        if "--" in texts:
            scope.positional = tuple(words[texts.index("--") + 1 :])

    def _shift(self, words: Sequence[Word], scope: Scope) -> None:
        scope.positional = scope.positional[1:] if scope.positional else scope.positional

    def _unset(self, words: Sequence[Word], scope: Scope) -> None:
        for word in words:
            scope.variables.pop(word.text, None)
            scope.arrays.pop(word.text, None)

    def _read(self, words: Sequence[Word], scope: Scope) -> None:
        for word in words:
            if re.fullmatch(r"[A-Za-z_]\w*", word.text):
                scope.assign(word.text, Word(unresolved(f"${word.text}"), word.line))

    def _say_lost(self, name: str, line: int) -> None:
        """Said once for lines that follow each other."""
        if self._lost != line - 1:
            what = f"`{name}` begins a command of its own, it is no part of the one before"
            why = "the line before it does not end in `\\`, or a comment or a blank follows that"
            self._say(what, line, why=why, do="end the line before with `\\` and nothing after it")
        self._lost = line

    def _say(self, what: str, line: int, *, why: str = "", do: str) -> None:
        self.problems.append(Problem(what, where=f"{self.path}:{line}", why=why, do=do))


_BUILTINS: dict[str, Callable[[Shell, Sequence[Word], Scope], None]] = {
    "source": Shell._source,
    ".": Shell._source,
    "set": Shell._set,
    "shift": Shell._shift,
    "unset": Shell._unset,
    "read": Shell._read,
    "mapfile": Shell._read,
}


def _join(scope: Scope, after: Sequence[Scope]) -> None:
    """What is known once several ways meet again."""
    for name in {n for s in after for n in s.variables}:
        word = common([s.variables.get(name) for s in after], name)
        if word is not None:
            scope.variables[name] = word
    for name in {n for s in after for n in s.arrays}:
        scope.arrays[name] = common_words([s.arrays.get(name, ()) for s in after], name)
    scope.exported = set.intersection(*(s.exported for s in after))
    some = set().union(*(s.exported for s in after)) != scope.exported
    scope.more_variables = some or any(s.more_variables for s in after)
