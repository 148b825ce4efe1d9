"""person: who it is that runs a command, for records and holds."""

from __future__ import annotations

import getpass
from collections.abc import Mapping


def person(environment: Mapping[str, str]) -> str:
    """The login name; behind sudo that of whoever called it."""
    return environment.get("SUDO_USER") or getpass.getuser()
