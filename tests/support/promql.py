"""The metrics that a PromQL expression names, as far as ours are written."""

from __future__ import annotations

import re

STRINGS = re.compile(r'"(?:\\.|[^"\\])*"')
ASIDE = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on|ignoring)\s*\([^)]*\)")
"""Labels and ranges: no metric is named in them."""
WORD = re.compile(r"(?<![\w:.])[a-zA-Z_:][\w:]*(?![\w:])(?!\s*\()")
"""A name that no parenthesis follows: else it is a function."""
KEYWORDS = {
    "and",
    "or",
    "unless",
    "by",
    "without",
    "on",
    "ignoring",
    "bool",
    "offset",
    "sum",
    "avg",
    "min",
    "max",
}


def metrics_in(query: str) -> set[str]:
    """The names; `$limit` of alerts is none.

    >>> sorted(metrics_in('sum by (a) (rate(x:y_total{b="c d"}[5m])) / max(z) > $limit'))
    ['x:y_total', 'z']
    """
    bare = ASIDE.sub(" ", STRINGS.sub('""', query))
    bare = re.sub(r"\$\w+", "0", bare)
    return {name for name in WORD.findall(bare) if name not in KEYWORDS}
