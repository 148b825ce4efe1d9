"""Marks: what a log line says that it is worth, in the form of the program that wrote it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from launcher.health.errors import alternatives
from launcher.model.signature import Level, LogForms

Mark: TypeAlias = Level | Literal[""]
"""Empty: the line does not say."""


class Marks:
    """Reads marks, with all forms compiled once."""

    def __init__(self, forms: LogForms) -> None:
        """`forms`: configs/logs.yaml."""
        self._info, self._warning = alternatives(forms.info), alternatives(forms.warning)
        self._error = alternatives(forms.error)

    def of(self, text: str) -> Mark:
        """The mark of a line; news that quotes an error is news."""
        if self._info.search(text):
            return "info"
        if self._warning.search(text):
            return "warning"
        return "error" if self._error.search(text) else ""
