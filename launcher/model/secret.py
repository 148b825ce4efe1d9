"""Secret: a value that prints as `<secret NAME>` and opens only with `.reveal()`."""

from __future__ import annotations


class Secret:
    """A named secret value; never in argv, unit text, plan, journal or log."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._value = value

    def reveal(self) -> str:
        """The value itself; call it only where it leaves for a host."""
        return self._value

    def __repr__(self) -> str:
        return f"<secret {self.name}>"

    __str__ = __repr__
