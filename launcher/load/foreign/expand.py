"""A shell word as written → the words it becomes, as far as the script tells; runs nothing."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from launcher.load.foreign.lexer import DEEPEST, lex, piece_end
from launcher.load.foreign.marks import CLOSE, MARKED, OPEN, unresolved

SPLIT = re.compile(rf"(?:{MARKED.pattern}|\S)+")
PARAMETER = re.compile(r"([A-Za-z_]\w*|[0-9]+|[@*#?$!-])(?:\[([^\]]*)\])?(:?[-=+?])?(.*)", re.DOTALL)
SIMPLE = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
NAMES = re.compile(r"\$?\{?([A-Za-z_]\w*)\}?")
ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
LONGEST = 1 << 20
"""Characters of one word: a script that doubles a variable again and again is not followed further."""


@dataclass(frozen=True, slots=True)
class Word:
    """What a program gets as one argument, and the line that wrote it. May hold marks."""

    text: str
    line: int


@dataclass(slots=True)
class Scope:
    """What is known of a shell's variables at one point of a script."""

    variables: dict[str, Word] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    arrays: dict[str, tuple[Word, ...]] = field(default_factory=dict)
    positional: tuple[Word, ...] | None = None
    """None: whatever the script is called with."""
    more_variables: bool = False
    """Something that we cannot read may have set more of them."""
    export_all: bool = False

    def copy(self) -> Scope:
        """For a branch or a subshell."""
        more, every = self.more_variables, self.export_all
        return Scope(
            dict(self.variables), set(self.exported), dict(self.arrays), self.positional, more, every
        )

    def assign(self, name: str, word: Word) -> None:
        """`name=word`."""
        self.variables[name] = Word(word.text[:LONGEST], word.line)
        self.arrays.pop(name, None)
        if self.export_all:
            self.exported.add(name)

    def look_up(self, name: str) -> Word | None:
        """A variable or positional parameter; None if the script does not set it."""
        if name.isdigit():
            index = int(name) - 1
            known = self.positional or ()
            return known[index] if 0 <= index < min(len(known), 99) else None
        if name in self.arrays:
            words = self.arrays[name]
            return words[0] if words else Word("", 0)
        return self.variables.get(name)

    def all_of(self, name: str) -> tuple[Word, ...] | None:
        """`${name[@]}`, or `$@`; None if the script does not tell."""
        if name in "@*":
            return self.positional
        found = self.arrays.get(name)
        single = self.variables.get(name)
        return found if found is not None or single is None else (single,)


def expand(written: str, line: int, scope: Scope) -> list[Word]:
    """The words that one word becomes: none, one or several."""
    fields = _Fields(line)
    _read(written, fields, scope, quoted=False)
    fields.close()
    return fields.words


def expand_text(written: str, line: int, scope: Scope) -> Word:
    """The same where nothing is split: the right side of an assignment."""
    fields = _Fields(line)
    _read(written, fields, scope, quoted=False, splits=False)
    fields.close()
    return Word(" ".join(w.text for w in fields.words)[:LONGEST], fields.script_line or line)


def expand_document(body: str, line: int, scope: Scope) -> str:
    """A here-document's body: quotes mean nothing in it."""
    fields = _Fields(line)
    _read(body, fields, scope, quoted=True)
    fields.close()
    return "".join(w.text for w in fields.words)[:LONGEST]


class _Fields:
    """Words under construction."""

    def __init__(self, line: int) -> None:
        self.words: list[Word] = []
        self._line = line
        self._open: list[str] | None = None
        self.depth = 0
        self.row = line
        """The line that is being read."""
        self.script_line = 0
        """Where a text of several lines begins that the words begin with; 0: they do not."""

    def add(self, text: str) -> None:
        """Joins the word that is open."""
        self._open = self._open or []
        self._open.append(text)

    def whole(self, word: Word) -> None:
        """Joins; if it is a script, its lines are counted from where it stands."""
        if "\n" in word.text and not any(self._open or ()) and not self.words:
            self._line = self.script_line = word.line or self._line
        self.add(word.text)

    def split(self, word: Word) -> None:
        """Joins, but blanks within end words."""
        pieces = SPLIT.findall(word.text)
        if not pieces or word.text[:1].isspace():
            self.close()
        for index, piece in enumerate(pieces):
            if index:
                self.close()
            self.add(piece)
            self._line = word.line or self._line
        if pieces and word.text[-1:].isspace():
            self.close()

    def many(self, words: tuple[Word, ...]) -> None:
        """Each is a word of its own."""
        for index, word in enumerate(words):
            if index:
                self.close()
            self.add(word.text)
            self._line = word.line or self._line

    def close(self) -> None:
        """Ends the open word, if there is one."""
        if self._open is not None:
            self.words.append(Word("".join(self._open), self._line))
        self._open = None


def _read(written: str, fields: _Fields, scope: Scope, *, quoted: bool, splits: bool = True) -> None:
    if fields.depth > DEEPEST:
        fields.add(unresolved(written))
        return
    fields.depth += 1
    at, row = 0, fields.row
    while at < len(written):
        fields.row = row
        single = quoted and (written[at] in "'\"<>" or written.startswith("$'", at))
        end = at + 1 if single else min(piece_end(written, at), len(written))
        piece = written[at:end]
        if piece[0] == "$" and not single and not piece.startswith("$'"):
            end = _dollar(written, at, fields, scope, splits=splits and not quoted)
        elif piece[0] == "`" or piece[:2] in ("<(", ">("):
            _command(piece, fields, scope, splits=splits and not quoted and piece[0] == "`")
        elif piece[0] == "\\" and len(piece) == 2:
            escapes = not quoted or piece[1] in '$`"\\\n'
            fields.add("" if piece[1] == "\n" else piece[1] if escapes else piece)
        elif quoted:
            fields.add(piece)
        elif piece[0] == '"':
            fields.add("")
            _read(piece[1:].removesuffix('"'), fields, scope, quoted=True)
        elif piece[0] == "'" or piece.startswith("$'"):
            fields.add(piece.lstrip("$")[1:].removesuffix("'"))
        else:
            fields.add(piece)
        row += written.count("\n", at, end)
        at = end
    fields.depth -= 1


def _dollar(written: str, at: int, fields: _Fields, scope: Scope, *, splits: bool) -> int:
    """What begins with `$`; gives where it ends."""
    end = min(piece_end(written, at), len(written))
    piece = written[at:end]
    if piece.startswith("$((") and piece.endswith("))"):
        fields.add(_arithmetic(piece, scope))
    elif piece.startswith("$("):
        _command(piece, fields, scope, splits=splits)
    elif piece.startswith("${"):
        _parameter(piece[2:].removesuffix("}"), piece, fields, scope, splits=splits)
    elif simple := SIMPLE.match(written, at + 1):
        end = simple.end()
        _parameter(simple[0], written[at:end], fields, scope, splits=splits)
    else:
        fields.add(piece)
    return end


def _parameter(inner: str, piece: str, fields: _Fields, scope: Scope, *, splits: bool) -> None:
    """`${inner}`: plain, of an array, or with a default."""
    parsed = PARAMETER.fullmatch(inner)
    if not parsed:
        fields.add(unresolved(piece))
        return
    name, index, test, rest = parsed.groups(default="")
    if index in ("@", "*") or name in ("@", "*"):
        words = scope.all_of(name) if not rest else None
        fields.many(words if words is not None else (Word(unresolved(piece), 0),))
        return
    known = scope.look_up(name) if not index or index == "0" else _element(scope, name, index)
    if test:
        _with_default(known, test, rest, piece, fields, scope, name=name, splits=splits)
    elif known is None or rest:
        fields.add(unresolved(piece))
    elif splits:
        fields.split(known)
    else:
        fields.whole(known)


def _command(piece: str, fields: _Fields, scope: Scope, *, splits: bool) -> None:
    """`$(…)`, in backquotes, or `<(…)`: unresolved unless the text itself says what the command prints."""
    inner = piece[1:-1] if piece[0] == "`" else piece[2:-1]
    printed = _printed(inner, fields.row, scope)
    if printed is None:
        fields.add(unresolved(piece))
    elif splits:
        fields.split(printed)
    else:
        fields.whole(printed)


def _printed(command: str, line: int, scope: Scope) -> Word | None:
    """What `cat <<EOF` or `echo` prints; None for all other commands."""
    tokens = [token for token in lex(command, line).tokens if token.text != "\n"]
    words = [token.text for token in tokens if token.kind == "word"]
    document = next((token for token in tokens if token.kind == "document"), None)
    if words == ["cat"] and document is not None and len(tokens) == 3:
        body = document.text
        text = body if document.literal else expand_document(body, document.line, scope)
        return Word(text.rstrip("\n"), document.line)
    if words[:1] == ["echo"] and len(words) == len(tokens) and not words[-1].startswith("-"):
        said = [word for token in tokens[1:] for word in expand(token.text, token.line, scope)]
        if not any(word.text.startswith("-") or "\\" in word.text for word in said[:1]):
            return Word(" ".join(word.text for word in said), line)
    return None


def _element(scope: Scope, name: str, index: str) -> Word | None:
    words = scope.arrays.get(name, ())
    return words[int(index)] if re.fullmatch("[0-9]{1,4}", index) and int(index) < len(words) else None


def _with_default(
    known: Word | None,
    test: str,
    rest: str,
    piece: str,
    fields: _Fields,
    scope: Scope,
    *,
    name: str,
    splits: bool,
) -> None:
    """`:-` and its like. A variable that a script leaves to its caller has the default that it names."""
    missing = known is None or (test[0] == ":" and known.text == "")
    if test[-1] == "+":
        if known is None:
            fields.add(unresolved(piece, ("", expand_text(rest, 0, scope).text)))
        elif not missing:
            _read(rest, fields, scope, quoted=not splits)
    elif not missing and known is not None:
        fields.split(known) if splits else fields.add(known.text)
    elif test[-1] == "?":
        fields.add(unresolved(piece))
    else:
        if test[-1] == "=":
            scope.assign(name, expand_text(rest, 0, scope))
        _read(rest, fields, scope, quoted=not splits)


def _arithmetic(piece: str, scope: Scope) -> str:
    """`$((…))` over whole numbers; unresolved if it holds anything else.

    >>> _arithmetic("$((2 * N + 1))", Scope({"N": Word("4", 1)}))
    '9'
    """

    def number(found: re.Match[str]) -> str:
        known = scope.look_up(found[1])
        return known.text.strip() if known is not None else "?"

    written = NAMES.sub(number, piece[3:-2]).strip()
    if not re.fullmatch(r"[0-9\s+*/%()-]{1,200}", written) or "**" in written:
        return unresolved(piece)
    try:
        return str(_number(ast.parse(written.replace("/", "//"), mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return unresolved(piece)


def _number(expression: ast.expr) -> int:
    if isinstance(expression, ast.Constant) and isinstance(expression.value, int):
        return expression.value
    if isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.USub):
        return -_number(expression.operand)
    if isinstance(expression, ast.BinOp) and type(expression.op) in ARITHMETIC:
        return ARITHMETIC[type(expression.op)](_number(expression.left), _number(expression.right))
    raise ValueError("no number")


def common(words: Sequence[Word | None], name: str) -> Word | None:
    """What a variable is after several branches: the words that all begin with, and then one of the rests.

    None: a branch that leaves it unset, so that it is what the script's caller has.
    """
    known = [word for word in words if word is not None]
    if not known:
        return None
    texts = [word.text if word is not None else unresolved(f"${{{name}}}") for word in words]
    if len(set(texts)) == 1:
        return known[0]
    end = _shared(texts)
    head = texts[0][:end]
    written = f"${{{name}…}}" if head.strip() else f"${{{name}}}"
    blank = " " if head and not head[-1].isspace() else ""
    line = next((word.line for word in known if word.text.rstrip() == head.rstrip()), known[0].line)
    return Word(head + blank + unresolved(written, (text[end:] for text in texts)), line)


def common_words(arrays: Sequence[tuple[Word, ...]], name: str) -> tuple[Word, ...]:
    """The words that arrays begin with alike, then one that stands for whatever may follow."""
    if len({tuple(w.text for w in words) for words in arrays}) == 1:
        return arrays[0]
    shared: list[Word] = []
    for words in zip(*arrays, strict=False):
        if len({w.text for w in words}) > 1:
            break
        shared.append(words[0])
    line = next(word.line for words in arrays for word in words[len(shared) :])
    # a blank within a word ends none
    rests = (" ".join(re.sub(r"\s", "_", w.text) for w in words[len(shared) :]) for words in arrays)
    return (*shared, Word(unresolved(f"${{{name}[@]}}", rests), line))


def _shared(texts: Sequence[str]) -> int:
    """How many characters of whole words all texts begin with; 0 for JSON, whose blanks end no words."""
    if any(text.lstrip()[:1] in ("{", "[") for text in texts):
        return 0
    first, last = min(texts), max(texts)  # what these two share, all others share
    most = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    ends = (
        end
        for end in range(most, 0, -1)
        if texts[0].count(OPEN, 0, end) == texts[0].count(CLOSE, 0, end)
        and (texts[0][end - 1].isspace() or all(not text[end : end + 1].strip() for text in texts))
    )
    return next(ends, 0)
