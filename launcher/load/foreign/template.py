"""Text with `{{ }}` in it, as of Helm or Jinja2, or `<model>` → text that the other forms can read; renders
nothing."""

from __future__ import annotations

import re

from launcher.load.foreign.marks import unresolved

CONTROL = re.compile(r"^[ \t]*(?:\{\{-?(?:[^{}]|\{[^{]|\}[^}])*\}\}|\{%.*?%\})[ \t]*$", re.MULTILINE)
"""A line of nothing but template words: `if`, `end`, `include … | nindent`."""
INLINE = re.compile(r"\{\{(?:[^{}]|\{[^{]|\}[^}])*\}\}|\{%.*?%\}")

PLACEHOLDER = re.compile(r"(?<=[\s=\"'])<[A-Za-z][\w./:-]*(?: [\w./:-]+)*>(?=[\s\"']|$)")
"""`<model>`, as instructions have it; a shell would read it as two redirections."""


def is_template(text: str) -> bool:
    """Does it hold `{{ word }}`? JSON's `{{` has a quote or brace after it."""
    return re.search(r"\{\{-?\s*[.$A-Za-z(/]", text) is not None


def branches(text: str) -> bool:
    """Does it decide, so that not all that stands in it comes together?"""
    return re.search(r"(?:\{\{-?|\{%-?)\s*(?:if|else|range|with|for)\b", text) is not None


def without_template(text: str) -> str:
    """The text with what a template would fill in marked as unknown; line by line as before.

    >>> without_template("{{- if .x }}\\na: {{ .b }}\\n") == "\\na: " + unresolved("{{ .b }}") + "\\n"
    True
    """
    return INLINE.sub(lambda found: unresolved(found[0]), CONTROL.sub("", text))


def without_placeholders(text: str) -> str:
    """The text with what its reader is to fill in marked as unknown.

    >>> without_placeholders("vllm serve <model> -tp 2") == f"vllm serve {unresolved('<model>')} -tp 2"
    True
    >>> without_placeholders("run <in >out 2>err")
    'run <in >out 2>err'
    """
    return PLACEHOLDER.sub(lambda found: unresolved(found[0]), text)
