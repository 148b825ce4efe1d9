"""HostName of a host in an ssh_config; knows the lines Host and HostName, and no connection."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase


def host_name(text: str, alias: str) -> str:
    """What `HostName` says for `alias`, the first match winning as in ssh; empty if nothing does.

    Include lines are not followed, and what stands under Match is left out.

    >>> host_name("Host gpu* !gpu9\\n  HostName 10.0.0.1", "gpu3")
    '10.0.0.1'
    """
    applies = True
    for line in text.splitlines():
        found = re.match(r"\s*(\w+)(?:\s*=\s*|\s+)(.*?)\s*$", line)
        if found is None:
            continue
        word, value = found[1].lower(), found[2].strip('"')
        if word == "match":
            applies = False
        elif word == "host":
            applies = _matches(alias, value.split())
        elif word == "hostname" and applies:
            return value.replace("%h", alias).replace("%%", "%")
    return ""


def _matches(alias: str, patterns: list[str]) -> bool:
    if any(p.startswith("!") and fnmatchcase(alias, p[1:]) for p in patterns):
        return False
    return any(fnmatchcase(alias, p) for p in patterns if not p.startswith("!"))
