"""forecast: how long weights take that a plan is to bring, by what the shared file system gives just now."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from launcher.execute.hands import Hands
from launcher.flows.staging import FleetWeights, questions, standing
from launcher.health.hands import look_within_s
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Plan
from launcher.model.problem import Problem
from launcher.model.wish import Wanted
from launcher.steps import weights

SAMPLE_MIB, SAMPLE_WITHIN_S = 256, 5
"""Read by each host: some tenths of a second of a file system that is quick, five of one that is not."""
SAMPLE = f"""
read_it() {{
    LC_ALL=C timeout -s INT {SAMPLE_WITHIN_S} dd if="$0" of=/dev/null bs=16M count={SAMPLE_MIB // 16} $1 2>&1
}}
told=$(read_it iflag=direct)
case "$told" in *copied*) echo "$told" ;; *) read_it ;; esac
"""
"""Past the page cache, where the file system can do that."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is to come to how many hosts, and how fast it can be read."""

    hosts: int
    missing: int
    """Bytes, of all hosts together."""
    once: int
    """Bytes that are read from the shared file system, and handed on, or would be if they were staged."""
    total: int
    """Bytes that engines of these hosts read at a start, all of them together."""
    per_s: float
    """Bytes a second, that these hosts read at once just now, or that they are limited to."""
    in_place: bool
    """Nothing is handed on: each host reads all of its own."""


def forecast(fleet: Hands, wanted: Wanted, planned: Plan) -> Forecast | None:
    """Of what a plan is to stage; None where it stages nothing, or no host could read a sample.

    Each host reads a piece of another shard, all at once: this costs a second, and some load.
    """
    hosts = dict.fromkeys(c.host for c in planned.stage("weights"))
    steps = ((h, s.want) for h in hosts for s in wanted.steps.get(h, ()))
    staged = {h: want for h, want in steps if isinstance(want, weights.Params)}
    answers = fleet.ask({h: questions(want) for h, want in staged.items()}, within_s=look_within_s)
    seen = FleetWeights(tuple(standing(h, want, answers[h]) for h, want in staged.items()))
    missing = [h.total - h.done for h in seen.hosts]
    if not any(missing):
        return None
    samples = _samples(staged, answers)
    read = fleet.ask(samples, within_s=look_within_s)
    per_s = sum(_rate(read[host], samples[host][0]) for host in samples)
    if limit := next((want.read_mib_s for want in staged.values() if want.read_mib_s), 0):
        per_s = min(per_s, limit * 2**20)
    if not per_s:
        return None
    in_place = any(want.in_place for want in staged.values())
    return Forecast(len(seen.hosts), sum(missing), max(missing), seen.total, per_s, in_place)


def _samples(
    staged: Mapping[str, weights.Params], answers: Mapping[str, Facts | Problem]
) -> Mapping[str, tuple[Probe, ...]]:
    """Host → the read of one of the largest files, another one for each host."""
    found = {}
    for number, (host, want) in enumerate(staged.items()):
        facts = answers[host]
        told = facts[weights.manifest_of(want)] if isinstance(facts, Facts) else Unknown("not asked")
        if not isinstance(told, Unknown) and "text" in told:
            files = json.loads(told["text"])["files"]
            largest = sorted(files, key=lambda name: (-int(files[name]["size"]), name))[: len(staged)]
            path = f"{want.origin}/{largest[number % len(largest)]}"
            found[host] = (Probe("command", (("sh", "-c", SAMPLE, path), 3.0 * SAMPLE_WITHIN_S)),)
    return found


def _rate(answer: Facts | Problem, sample: Probe) -> float:
    """Bytes a second, by dd's last line; 0 where there is none."""
    said = answer[sample] if isinstance(answer, Facts) else Unknown("not asked")
    if isinstance(said, Unknown):
        return 0.0
    told = re.search(r"^(\d+) bytes .*copied, ([\d.e-]+) s", said["stdout"], re.MULTILINE)
    return int(told[1]) / max(float(told[2]), 1e-6) if told else 0.0
