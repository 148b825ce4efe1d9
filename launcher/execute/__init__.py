"""Plan to reality: observe, make_plan, apply."""

from launcher.execute.apply import apply
from launcher.execute.observe import Observed, observe
from launcher.execute.outcome import HostOutcome, Outcome
from launcher.execute.planner import make_plan

__all__ = ["HostOutcome", "Observed", "Outcome", "apply", "make_plan", "observe"]
