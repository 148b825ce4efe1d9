"""What engines must have in common to hand KV to each other, and where two of them differ; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode

from launcher.model.deployment import Deployment
from launcher.model.profile import EnginePool, Profile
from launcher.model.wish import Wanted
from launcher.resolve.settings import KV_TRANSFER, spelled

KvIdentity: TypeAlias = Mapping[str, str]
"""What NIXL compares before KV moves: the release, the connector, and all that engines call `kv_hash`."""
PAIRS: tuple[tuple[EnginePool, EnginePool], ...] = (("prefill", "decode"), ("decode", "prefill"))


def kv_identity(profile: Profile, deployment: Deployment, pool: EnginePool) -> KvIdentity:
    """What the other side of a pair must have, too; empty where there is no such pool."""
    engine, first = profile.engine, next((i for i in deployment.instances if i.pool == pool), None)
    if first is None or engine is None:
        return {}
    flags = {a.flag.removeprefix("--"): a.value or a.flag for a in first.processes[0].arguments}
    connector = json.loads(flags.get(KV_TRANSFER, "{}")).get("kv_connector", "")
    found = {"vLLM": profile.stack.engine_version, "connector": connector}
    for name in engine.kv_hash:
        flag, _, key = name.partition(".")
        own = spelled(flag, engine).get("flag", "")
        text = deployment.model_path if flag == "model" else flags.get(own, "")
        found[name] = str(json.loads(text).get(key, "")) if key and text.startswith("{") else text
    return found


def identity_text(identity: KvIdentity) -> str:
    """The identity as one word that a shell and systemd's units can hold."""
    return urlencode(identity)


def identity_in(text: str) -> KvIdentity:
    """The identity that `identity_text` wrote."""
    return dict(parse_qsl(text, keep_blank_values=True))


def differences(before: Wanted, after: Wanted) -> tuple[str, ...]:
    """What keeps prefill of one from decode of the other, in words; () where they may serve side by side."""
    return tuple(
        dict.fromkeys(
            text
            for one, other in PAIRS
            for text in between(_identity_of(before, one), _identity_of(after, other))
        )
    )


def _identity_of(wanted: Wanted, pool: EnginePool) -> KvIdentity:
    return kv_identity(wanted.wish.profile, wanted.deployment, pool) if wanted.deployment else {}


def between(runs: KvIdentity, wanted: KvIdentity) -> Iterator[str]:
    """What keeps an engine that runs from one that is wanted; nothing where one of the two is not known."""
    for name in {**runs, **wanted} if runs and wanted else ():
        if runs.get(name, "") != wanted.get(name, ""):
            yield f"{name} {runs.get(name) or 'default'} → {wanted.get(name) or 'default'}"
