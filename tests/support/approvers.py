"""Approvers: tests approve changes by them, with nobody asked and no check of hosts."""

from __future__ import annotations

from dataclasses import dataclass, field

from launcher.execute.hands import Hands
from launcher.flows.preflight import Report, no_preflight
from launcher.rollout.planning import Proposal


@dataclass
class Approver:
    """Agrees to whatever its plan does not refuse, and keeps what it was shown."""

    shown: list[Proposal] = field(default_factory=list)

    def preflight(self, fleet: Hands, proposal: Proposal) -> Report:
        return no_preflight(fleet, proposal)

    def show(self, proposal: Proposal, report: Report) -> None:
        self.shown.append(proposal)

    def agrees(self, proposal: Proposal) -> bool:
        return True
