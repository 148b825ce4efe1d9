"""host_lines, Pace, forecast_line, Together: how far weights are, in words; knows no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from launcher.cli.statustext import age
from launcher.cli.words import count

if TYPE_CHECKING:
    from launcher.flows.forecast import Forecast
    from launcher.flows.staging import HostWeights
    from launcher.model.run import Event


def host_lines(hosts: Sequence[HostWeights]) -> Iterator[str]:
    """A line each: state, revision, blocks, then rate and time left where something moves, or why not."""
    width = max((len(h.host) for h in hosts), default=0)
    for h in hosts:
        blocks = f"{h.blocks} of {h.blocks_of} blocks" if h.blocks_of else ""
        words = (h.revision, blocks, pace(h.per_s, h.left_s), h.note)
        yield f"{h.host:<{width}}  {h.state:<10}  {'  '.join(w for w in words if w)}".rstrip()


@dataclass(frozen=True, slots=True)
class Pace:
    """How far several hosts are together: bytes, bytes a second, seconds."""

    done: int
    total: int
    per_s: float
    left_s: float | None

    def of(self, hosts: int) -> str:
        """`6 hosts: 41% of 3.8 TiB, 12.1 GiB/s, 3 min left`."""
        share = f"{self.done / self.total:.0%} of {size(self.total)}" if self.total else "nothing known"
        return ", ".join(w for w in (f"{count(hosts, 'host')}: {share}", pace(self.per_s, self.left_s)) if w)


def pace(per_s: float, left_s: float | None) -> str:
    """`310 MiB/s, 2 min left`; nothing where nothing moves."""
    if not per_s:
        return ""
    return f"{size(per_s)}/s" + (f", {age(left_s)} left" if left_s is not None else "")


def size(amount: float) -> str:
    """Bytes in the unit in which it is a short number."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB")):
        if amount >= 1 << power:
            return f"{amount / (1 << power):.1f} {unit}"
    return f"{amount / 1024:.0f} KiB"


def forecast_line(told: Forecast | None) -> str:
    """What is to come, how long that takes, and what it saves; nothing where nothing is known."""
    if told is None:
        return ""
    hosts = count(told.hosts, "host")
    rate = f"at the {size(told.per_s)}/s that these hosts could read just now"
    once, all_of = age(told.once / told.per_s), age(told.total / told.per_s)
    if told.in_place:
        reading = f"weights in place: {size(told.total)} read by {hosts}: {all_of} {rate}"
        staged = f"staged (`paths: {{weights: staged}}`), {size(told.once)} would be read once: {once}"
        return f"{reading}; {staged}, if network and disks are as fast"
    staging = f"weights: {size(told.missing)} for {hosts}, {size(told.once)} of it read once"
    reads = f"each cold start of all reads {size(told.total)}: {all_of}"
    in_place = f"in place (`paths: {{weights: in-place}}`), {reads}"
    return f"{staging}: {once} {rate}, if network and disks are as fast; {in_place}"


@dataclass(slots=True)
class Together:
    """What jobs of several hosts told last, as one line of them all."""

    latest: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def heard(self, event: Event) -> str:
        """The line, after this event; nothing where it is not of such a job, or only one host has one."""
        if "per_s" not in event.data:
            return ""
        self.latest[event.host] = event.data
        told = self.latest.values()
        done, total, per_s = (sum(t[key] for t in told) for key in ("done", "total", "per_s"))
        left_s = max((t["left_s"] for t in told if t["left_s"] is not None), default=None)
        return Pace(done, total, per_s, left_s).of(len(told)) if len(told) > 1 else ""
