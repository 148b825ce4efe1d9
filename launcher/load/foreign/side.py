"""Which side of a P/D deployment a launch is, and over how many hosts; knows not how its text was read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from launcher.model.launch import Launch, Unknown
from launcher.model.profile import Setting, Settings
from launcher.model.values import Json

KV_TRANSFER = "kv-transfer-config"
ROLES = {"kv_producer": "prefill", "kv_consumer": "decode"}
WITHIN = re.compile("Offloading|DecodeBench|SharedStorage|Example|SimpleCPU")
"""Connectors of vLLM that move nothing between a prefill and a decode instance: to slower memory, a disk, or
nowhere (0.33.0, distributed/kv_transfer/kv_connector/factory.py)."""
LEADERS = (
    ("data-parallel-size", "data-parallel-address", "data-parallel-rpc-port"),
    ("nnodes", "master-addr", "master-port"),
)
"""Flags that all processes of an instance share: how many they are, and where they meet."""
HOST_FLAGS = frozenset(
    {
        "nnodes",
        "data-parallel-size",
        "data-parallel-size-local",
        "data-parallel-rank",
        "data-parallel-external-lb",
        "distributed-executor-backend",
        "data-parallel-backend",
        "headless",
    }
)
"""Flags that tell over how many hosts an instance is."""
SIDE = re.compile(r"(?<![a-z])(prefill|decode|producer|consumer)(?:er|r|s)?(?![a-z])")
MEANING = {"prefill": "prefill", "producer": "prefill", "decode": "decode", "consumer": "decode"}


def side(flags: Settings, *, more_flags: bool, hints: Iterable[str]) -> tuple[str, bool | None]:
    """(pool, disaggregated): the pool by the KV role, or by the nearest name that says one."""
    setting = flags.get(KV_TRANSFER)
    if setting is None:
        return (by_name(hints), None) if more_flags else ("", False)
    if not isinstance(setting.value, dict):
        return by_name(hints), None
    connectors = [c for c in _connectors(setting.value) if not _within(c)]
    if not connectors:
        return "", False
    roles = {str(c.get("kv_role")) for c in connectors}
    pools = {pool for role, pool in ROLES.items() if role in roles}
    pool = pools.pop() if len(pools) == 1 else by_name(hints)
    return pool, True if pool else None


def _connectors(config: dict[str, Json], depth: int = 0) -> Iterator[dict[str, Json]]:
    """The connector, or those that a MultiConnector holds."""
    extra = config.get("kv_connector_extra_config")
    inner = extra.get("connectors") if isinstance(extra, dict) else None
    if isinstance(inner, list) and depth < 3:
        for each in inner:
            if isinstance(each, dict):
                yield from _connectors(each, depth + 1)
    else:
        yield config


def _within(connector: dict[str, Json]) -> bool:
    return WITHIN.search(str(connector.get("kv_connector", ""))) is not None


def by_name(hints: Iterable[str]) -> str:
    """The pool that names around a launch agree on, the nearest that say one; empty if none does.

    >>> by_name(["# start it", "vllm-prefill"]), by_name(["prefill and decode"])
    ('prefill', '')
    """
    for hint in hints:
        found = {MEANING[side] for side in SIDE.findall(hint.lower())}
        if len(found) == 1:
            return found.pop()
    return ""


def hosts_of(flags: Settings, *, more_flags: bool) -> int | None:
    """Hosts of the instance, by its flags; None: they do not say."""
    nnodes, local, whole = (
        flags.get(name) for name in ("nnodes", "data-parallel-size-local", "data-parallel-size")
    )
    if nnodes is not None:
        return _number(nnodes)
    rank = "data-parallel-rank" in flags or "data-parallel-external-lb" in flags
    ray = any(
        s is not None and s.value not in ("mp", "uni")
        for s in (flags.get("distributed-executor-backend"), flags.get("data-parallel-backend"))
    )
    if more_flags or rank or ray:
        return None
    if whole is None:
        return 1
    size, here = _number(whole), _number(local) if local is not None else None
    if local is None:
        return None if size is None or "headless" in flags or "data-parallel-start-rank" in flags else 1
    return -(-size // here) if size and here else None


def _number(setting: Setting) -> int | None:
    text = setting.value
    if isinstance(text, Unknown) or not re.fullmatch("[0-9]{1,6}", str(text)):
        return None
    return int(str(text))


def instance_key(launch: Launch) -> str | None:
    """Launches with the same key are parts of one instance; None: it stands alone, or cannot be told."""
    for words in LEADERS:
        values = [launch.flags[word].value for word in words if word in launch.flags]
        if len(values) >= 2 and words[1] in launch.flags and not any(isinstance(v, Unknown) for v in values):
            return " ".join(filter(None, (launch.pool, *map(str, values))))
    return None


def part_of_instance(launch: Launch) -> str:
    """Which of its processes it is, by its rank; the leader may have none."""
    ranks = (
        launch.flags.get(name) for name in ("node-rank", "data-parallel-start-rank", "data-parallel-rank")
    )
    return next((str(rank.value) for rank in ranks if rank is not None), "0")
