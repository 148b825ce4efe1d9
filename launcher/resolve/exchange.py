"""Whether engines of two deployments can hand KV to each other, by what their releases hash; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from launcher.model.profile import EnginePool
from launcher.model.wish import Wanted
from launcher.resolve.settings import KV_TRANSFER, spelled


def differences(before: Wanted, after: Wanted) -> tuple[str, ...]:
    """What keeps prefill of one from decode of the other, in words; () where they may serve side by side.

    NIXL compares the release, the connector and what the engine's data calls `kv_hash`: where one of them
    differs, decode refuses the first request.
    """
    sides: tuple[tuple[EnginePool, EnginePool], ...] = (("prefill", "decode"), ("decode", "prefill"))
    pairs = ((_agreed(before, one), _agreed(after, other)) for one, other in sides)
    return tuple(dict.fromkeys(text for was, will in pairs for text in _told(was, will)))


def _told(was: Mapping[str, str], will: Mapping[str, str]) -> Iterator[str]:
    """Nothing, where one of the sides has no such pool: there is no pair then."""
    for name in {**was, **will} if was and will else ():
        if was.get(name, "") != will.get(name, ""):
            yield f"{name} {was.get(name) or 'default'} → {will.get(name) or 'default'}"


def _agreed(wanted: Wanted, pool: EnginePool) -> dict[str, str]:
    """What the other side must have, too: name → text."""
    engine, deployment = wanted.wish.profile.engine, wanted.deployment
    instances = [i for i in deployment.instances if i.pool == pool] if deployment else []
    if not instances or not engine or not deployment:
        return {}
    flags = {a.flag.removeprefix("--"): a.value or a.flag for a in instances[0].processes[0].arguments}
    connector = json.loads(flags.get(KV_TRANSFER, "{}")).get("kv_connector", "")
    found = {"vLLM": wanted.wish.profile.stack.engine_version, "connector": connector}
    for name in engine.kv_hash:
        flag, _, key = name.partition(".")
        own = spelled(flag, engine).get("flag", "")
        text = deployment.model_path if flag == "model" else flags.get(own, "")
        found[name] = str(json.loads(text).get(key, "")) if key and text.startswith("{") else text
    return found
