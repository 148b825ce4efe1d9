"""Redaction: texts without secrets, and if wanted without addresses; knows no file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from launcher.model.secret import Secret

ADDRESS = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
# of no use to anybody, and of use to readers
PUBLIC = frozenset({"0.0.0.0", "127.0.0.1"})


def without_secrets(text: str, secrets: Iterable[Secret]) -> str:
    """The text with each value replaced by its secret's name; as it is, and as JSON spells it."""
    for secret in secrets:
        value = secret.reveal()
        for spelled in {value, json.dumps(value)[1:-1]} - {""}:
            text = text.replace(spelled, f"<secret {secret.name}>")
    return text


class Redaction:
    """What is taken out of every text of one bundle, and how often that was done."""

    def __init__(
        self, secrets: Iterable[Secret], patterns: Iterable[str], *, hide_addresses: bool = False
    ) -> None:
        """`patterns`: regular expressions whose group `secret` is taken out."""
        self._secrets = tuple(secrets)
        self._patterns = [re.compile(p) for p in patterns]
        self._addresses: dict[str, str] | None = {} if hide_addresses else None
        self.count = 0

    def __call__(self, text: str) -> str:
        """The text without them; an address has one name in all texts."""
        known = without_secrets(text, self._secrets)
        self.count += known != text
        for pattern in self._patterns:
            known = pattern.sub(self._taken_out, known)
        return ADDRESS.sub(self._name, known) if self._addresses is not None else known

    def _taken_out(self, found: re.Match[str]) -> str:
        self.count += 1
        begin, end = found.span("secret")
        whole = found.group()
        return whole[: begin - found.start()] + "<redacted>" + whole[end - found.start() :]

    def _name(self, found: re.Match[str]) -> str:
        address = found.group()
        if self._addresses is None or address in PUBLIC:
            return address
        return self._addresses.setdefault(address, f"<address {len(self._addresses) + 1}>")
