"""Known: a deployment and all that is known of its parts; what takes work is done once, when asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from launcher.explain.watched import reads_of
from launcher.lint.evaluate import evaluate
from launcher.model.finding import RuleFinding
from launcher.model.history import History
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch
from launcher.model.profile import Settings
from launcher.model.wish import Wanted


@dataclass(frozen=True, eq=False)
class Known:
    """What answers rest on. Without slots, for what is remembered; equal to itself only, so that what was
    made of it can be looked up by it."""

    wanted: Wanted
    launches: tuple[Launch, ...]
    read: Callable[[], Knowledge]
    """Reads rules and snapshots, which not every question needs."""
    directives: Settings
    """Directive → what systemd does with it."""

    @property
    def version(self) -> str:
        """The engine's release."""
        return self.wanted.wish.profile.stack.engine_version

    @property
    def history(self) -> History:
        """What is known of the engine's releases."""
        return self.wanted.wish.profile.history

    @cached_property
    def knowledge(self) -> Knowledge:
        """History, rules and snapshots."""
        return self.read()

    @cached_property
    def findings(self) -> Mapping[str, tuple[RuleFinding, ...]]:
        """Rule id → what it says of the deployment."""
        found: dict[str, tuple[RuleFinding, ...]] = {}
        for finding in evaluate(self.knowledge, self.launches):
            found[finding.rule] = (*found.get(finding.rule, ()), finding)
        return found

    @cached_property
    def reads(self) -> Mapping[str, Collection[str]]:
        """Quantity → the names that it looks at in these launches."""
        return reads_of(self.knowledge, self.launches)
