"""Quantities of a process as its host sees it: ports that meet, queues of NICs, how long a stop may take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from launcher.lint.reading import Quantity, Reading
from launcher.lint.values import Value, number
from launcher.model.launch import Unknown
from launcher.model.profile import Setting

SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")
SECONDS = {"": 1.0, "s": 1, "sec": 1, "ms": 1e-3, "m": 60, "min": 60, "h": 3600, "hr": 3600, "d": 86400}
"""Units of systemd.time(7) that a time limit is written in, in seconds."""
DEFAULT_STOP_S = 90.0
"""DefaultTimeoutStopSec= of systemd-system.conf(5)."""
WORKERS_END_S = 5.0
"""What vLLM gives its workers to release memory; a supervisor of several ranks waits as long once more."""
SECRET = re.compile(r"(?!.*(?i:xxx|your|token|secret|change|dummy|empty))[\w.-]{8,}")
"""What may be a key, and no word that stands for one."""


def served_name(r: Reading) -> Value:
    """What requests call the model: as named, else its path."""
    return r.setting("served-model-name") or r.setting("model")


def port_clash(r: Reading) -> Value:
    """Two of its ports that are the same, in words; absent where none are."""
    for (one, first), (other, second) in combinations(_ports(r), 2):
        both = sorted({*first} & {*second})
        if both:
            return f"{one} and {other} at {both[0]}"
    return None


def _ports(r: Reading) -> Iterator[tuple[str, range]]:
    """What listens on this host for this process, and where."""
    supervised = r.on("data-parallel-multi-port-external-lb")
    api = r.size("port")
    if api is not None and not r.value("headless"):
        yield "the API", range(api, api + (r.whole("data_parallel_local") if supervised else 1))
    supervisor = r.size("data-parallel-supervisor-port")
    if supervisor is not None and supervised:
        yield "the supervisor", range(supervisor, supervisor + 1)
    handshake = r.size("data-parallel-rpc-port")
    if handshake is not None and r.value("spans_hosts") and r.value("leads"):
        yield "the engines' handshake", range(handshake, handshake + 1)
    side = number(r.variable("VLLM_NIXL_SIDE_CHANNEL_PORT"))
    if side is not None and "Nixl" in str(r.value("connector")):
        first = int(side) + _first_rank(r)
        yield "NIXL's side channel", range(first, first + r.whole("data_parallel_local"))


def _first_rank(r: Reading) -> int:
    """The first of its ranks, by which NIXL counts its ports."""
    for name in ("data-parallel-rank", "data-parallel-start-rank"):
        written = r.size(name)
        if written is not None:
            return written
    return (r.size("node-rank") or 0) * r.whole("data_parallel_local") if r.size("nnodes") else 0


def secrets_written(r: Reading) -> Value:
    """Names of variables whose secret stands in the file itself; absent where none does."""
    return r.told(_secrets(r))


def _secrets(r: Reading) -> Iterator[tuple[str, Setting]]:
    for name in r.words("secret-variables"):
        found = r.launch.variables.get(name)
        if found and not isinstance(found.value, Unknown) and SECRET.fullmatch(str(found.value)):
            yield name, found


def nvshmem_depth_wanted(r: Reading) -> Value:
    """Entries that DeepEP wants in NVSHMEM's queues; absent without a low-latency buffer."""
    tokens = number(r.value("ll_tokens"))
    # DeepEP, buffers/legacy.py: low_latency_dispatch asserts it, for each token is two requests
    return None if tokens is None else 2 * (int(tokens) + 1)


def stop_seconds(r: Reading) -> Value:
    """Seconds from SIGTERM to SIGKILL: TimeoutStopSec=, or systemd's default; absent without
    a unit and without a limit."""
    if r.launch.unit is None:
        return None
    written = r.directive("TimeoutStopSec") or r.directive("TimeoutSec")
    if written is None:
        return DEFAULT_STOP_S
    parts = SPAN.findall(str(written))
    if not parts or any(unit not in SECONDS for _, unit in parts):
        return None
    return sum(float(amount) * SECONDS[unit] for amount, unit in parts) or None


def stop_needed(r: Reading) -> Value:
    """Seconds that a stop with its drain takes: shutdown-timeout, and the end of workers and supervisor."""
    ends = 2 if r.on("data-parallel-multi-port-external-lb") else 1
    return (r.size("shutdown-timeout") or 0) + WORKERS_END_S * ends


def in_pod(r: Reading) -> Value:
    """Does it run in a pod of Kubernetes?"""
    return r.launch.container is not None and r.launch.container.pod


def image(r: Reading) -> Value:
    """The container's image; absent without one."""
    return (r.launch.container.image or None) if r.launch.container else None


def shm_gib(r: Reading) -> Value:
    """GiB of the container's own /dev/shm; absent where that is the host's."""
    return r.launch.container.shm_gib if r.launch.container else None


def locks_memory(r: Reading) -> Value:
    """May the container lock memory without a limit? Absent without one."""
    return r.launch.container.locks_memory if r.launch.container else None


def asked_ready(r: Reading) -> Value:
    """Is the container asked whether it serves before requests come? Absent without one."""
    return r.launch.container.asked_ready if r.launch.container else None


def killed_after_s(r: Reading) -> Value:
    """Seconds after which probes end a container that has not answered since its start; absent if none do."""
    return r.launch.container.killed_after_s if r.launch.container else None


QUANTITIES: dict[str, Quantity] = {
    "secrets_written": secrets_written,
    "in_pod": in_pod,
    "image": image,
    "shm_gib": shm_gib,
    "locks_memory": locks_memory,
    "asked_ready": asked_ready,
    "killed_after_s": killed_after_s,
    "served_name": served_name,
    "port_clash": port_clash,
    "nvshmem_depth_wanted": nvshmem_depth_wanted,
    "stop_seconds": stop_seconds,
    "stop_needed": stop_needed,
}
