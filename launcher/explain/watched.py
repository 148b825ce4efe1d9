"""Watched: a reading of a launch that remembers which names each quantity looks at; knows no rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from launcher.lint import names
from launcher.lint.quantities import QUANTITIES
from launcher.lint.reading import Reading
from launcher.lint.values import UntoldError, Value
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch
from launcher.model.profile import Setting


class Watched(Reading):
    """A reading that remembers which names each quantity looks at."""

    def __init__(self, launch: Launch, knowledge: Knowledge) -> None:
        super().__init__(launch, knowledge, QUANTITIES)
        self.looked: dict[str, set[str]] = {}
        self._looking: list[set[str]] = [set()]

    def value(self, name: str) -> Value:
        """A quantity; what it looks at, the one that asks for it looks at too."""
        if name in self.looked:
            self._looking[-1] |= self.looked[name]
            return super().value(name)
        self._looking.append(set())
        try:
            return super().value(name)
        finally:
            self.looked[name] = self._looking.pop()
            self._looking[-1] |= self.looked[name] | {name}

    def given(self, name: str) -> Setting | None:
        """A setting if it was written."""
        self._looking[-1].add(name)
        return super().given(name)

    def given_variable(self, name: str) -> Setting | None:
        """A variable if it was given."""
        self._looking[-1].add(name)
        return super().given_variable(name)


def reads_of(knowledge: Knowledge, launches: Iterable[Launch]) -> Mapping[str, Collection[str]]:
    """Quantity → the names that it looks at in these launches."""
    reads: dict[str, set[str]] = {}
    for reading in (Watched(launch, knowledge) for launch in launches):
        for name in QUANTITIES.keys() - names.QUANTITIES.keys():
            with suppress(UntoldError):
                reading.value(name)
        for name, looked in reading.looked.items():
            reads.setdefault(name, set()).update(looked)
    return reads
