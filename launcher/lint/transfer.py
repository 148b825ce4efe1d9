"""Quantities of KV transfer: which side of a disaggregated service a launch is, and by which connector."""

from __future__ import annotations

from launcher.lint.reading import Quantity, Reading
from launcher.lint.releases import THE_RELEASE
from launcher.lint.values import Value, untold

# vLLM's roles: a producer prefills, a consumer decodes; `kv_both` may be either
SIDES = {"kv_producer": "prefill", "kv_consumer": "decode"}


def connector(r: Reading) -> Value:
    """The KV connector; absent without one."""
    return r.setting("kv-transfer-config.kv_connector")


def kv_role(r: Reading) -> Value:
    """`kv_producer`, `kv_consumer` or `kv_both`; absent without a connector."""
    return r.setting("kv-transfer-config.kv_role")


def disaggregated(r: Reading) -> Value:
    """Is this one side of a prefill/decode service?"""
    if r.launch.disaggregated is not None:
        return r.launch.disaggregated
    found = r.value("connector")
    return found is not None and str(found) not in r.words("connectors-alone")


def pool(r: Reading) -> Value:
    """`prefill` or `decode`; absent where nothing is disaggregated."""
    if r.launch.pool:
        return r.launch.pool
    if not r.value("disaggregated"):
        return None
    side = SIDES.get(str(r.value("kv_role")))
    if side is None:
        raise untold("which side of the service this is")
    return side


def release(r: Reading) -> Value:
    """The release of vLLM."""
    if not r.version:
        raise untold(THE_RELEASE)
    return r.version


QUANTITIES: dict[str, Quantity] = {
    "connector": connector,
    "kv_role": kv_role,
    "disaggregated": disaggregated,
    "pool": pool,
    "release": release,
}
