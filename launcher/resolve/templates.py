"""Text + values → text, looked up strictly: an unknown name is a Problem; knows no domain."""

from __future__ import annotations

import functools
import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from html import escape as html_escape
from types import TracebackType

import jinja2
import jinja2.meta

from launcher.model.problem import InputError, Problem

UNQUOTED = re.compile(r"[A-Za-z0-9_@+=:,./-]+")
"""Words that mean themselves in a unit file."""
ESCAPES = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "%": "%%"}


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A compiled text and the names that it looks up."""

    path: str
    """File for messages; `line` is where in it the text's first line stands."""
    line: int
    names: frozenset[str]
    compiled: jinja2.Template

    def render(self, values: Mapping[str, object]) -> str:
        """The text with `values` in it; InputError with file:line where a name leads nowhere."""
        try:
            return self.compiled.render(values)
        except jinja2.UndefinedError as error:
            raise InputError(self._problem(str(error.message), error.__traceback__, values)) from None
        except (
            jinja2.TemplateError,
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            raise InputError(self._problem(str(error), error.__traceback__, values)) from None

    def _problem(self, text: str, trace: TracebackType | None, values: Mapping[str, object]) -> Problem:
        line = 1
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.path:
                line = trace.tb_lineno
            trace = trace.tb_next
        return Problem(
            what=f"template: {text}",
            where=f"{self.path}:{self.line + line - 1}",
            do=f"use a name that there is: {', '.join(sorted(values))}",
        )


class Unknown(jinja2.StrictUndefined):
    """A name that leads nowhere, told in our words: which thing has it not, and what it has."""

    @property
    def _undefined_message(self) -> str:
        thing = self._undefined_obj
        if not is_dataclass(thing):
            return str(super()._undefined_message)
        known = ", ".join(f.name for f in fields(thing))
        return f"`{type(thing).__name__.lower()}` has no `{self._undefined_name}`, it has {known}"


def is_template(text: str) -> bool:
    """Whether rendering could change a text."""
    return "{{" in text or "{%" in text or "{#" in text


@functools.lru_cache(maxsize=4096)
def compiled(text: str, path: str, line: int = 1, *, html: bool = False) -> Template:
    """A template that stands at `path`:`line`; InputError if it is none. Into `html` values go escaped."""
    environment = _environment(html)
    try:
        tree = environment.parse(text, filename=path)
        code = environment.compile(tree, filename=path)
    except jinja2.TemplateSyntaxError as error:
        problem = Problem(
            what=f"template: {error.message}",
            where=f"{path}:{line + error.lineno - 1}",
            do="check braces, quotes and filter names",
        )
        raise InputError(problem) from None
    made = jinja2.Template.from_code(environment, code, environment.globals)
    return Template(path, line, frozenset(jinja2.meta.find_undeclared_variables(tree)), made)


@functools.cache
def _environment(html: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        undefined=Unknown,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=html,
    )
    environment.filters.update(
        unit_quote=unit_quote, json=as_json, basename=posixpath.basename, cell=table_cell
    )
    return environment


def unit_quote(word: object, *, expands: bool = True) -> str:
    """One word as systemd reads it back unchanged from ExecStart=; `expands=false`: from Environment=,
    where `$` means nothing and doubling would show.

    >>> print(unit_quote('{"a": "50%"}'), unit_quote("--port"), unit_quote("it's $HOME"))
    '{"a": "50%%"}' --port "it's $$HOME"
    """
    text = str(word)
    if UNQUOTED.fullmatch(text):
        return text
    mark = "'" if '"' in text and "'" not in text else '"'
    quoted = "".join(f"\\{c}" if c == mark else ESCAPES.get(c, c) for c in text)
    return mark + (quoted.replace("$", "$$") if expands else quoted) + mark


def table_cell(value: object) -> str:
    """A text within a line of Markdown that means only itself.

    >>> print(table_cell("a|b <i>"))
    a\\|b &lt;i&gt;
    """
    text = html_escape(" ".join(str(value).split()), quote=False)
    return re.sub(r"([\\|`*_\[\]])", r"\\\1", text)


def as_json(value: object) -> str:
    """Compact JSON; mappings keep their order."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
