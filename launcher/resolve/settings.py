"""Which layer wins for each setting, and what this engine release refuses; knows no processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from launcher.model.history import History
from launcher.model.inventory import ENGINE_POOLS, Inventory
from launcher.model.problem import Problem
from launcher.model.profile import (
    Engine,
    EnginePool,
    Hardware,
    Layout,
    Model,
    PoolLayout,
    RouterKind,
    Setting,
    Settings,
    SettingsByPool,
    Stack,
)
from launcher.resolve.options import option_problems
from launcher.resolve.releases import release_problems, unknown_variable_problems

KV_TRANSFER = "kv-transfer-config"


@dataclass(frozen=True, slots=True)
class Serving:
    """An inventory that serves, and all parts of its profile."""

    inventory: Inventory
    stack: Stack
    hardware: Hardware
    model: Model
    engine: Engine
    layout: Layout
    router: RouterKind
    history: History

    def pool_layout(self, pool: EnginePool) -> PoolLayout:
        """The layout of an engine pool; KeyError if this layout has it not."""
        return self.layout.engines[pool]

    def kv_transfer(self, pool: EnginePool) -> Settings:
        """The keys of kv-transfer-config that are ours: none where no pool prefills for another."""
        return self.engine.kv_transfer.get(pool, {}) if self.layout.disaggregated else {}


def merged(layers: Iterable[Settings]) -> dict[str, Setting]:
    """Later layers win; None removes what lower layers made."""
    result: dict[str, Setting] = {}
    for layer in layers:
        result.update(layer)
    return {name: setting for name, setting in result.items() if setting.value is not None}


def engine_settings(serving: Serving, pool: EnginePool) -> dict[str, Setting]:
    """Flags of a pool's processes, without the computed ones, by their current names, even where a file
    has this release's own."""
    layout = serving.layout
    below = (serving.model.settings, serving.hardware.settings, layout.settings)
    own = serving.pool_layout(pool).settings
    layers = _stack(below, own=own, above=serving.inventory.settings, pool=pool)
    return merged({current(name, serving.engine): s for name, s in layer.items()} for layer in layers)


def engine_environment(serving: Serving, pool: EnginePool) -> dict[str, Setting]:
    """Variables of a pool's processes, without the computed ones."""
    layout = serving.layout
    below = (serving.model.environment, serving.hardware.environment, layout.environment)
    own = serving.pool_layout(pool).environment
    return merged(_stack(below, own=own, above=serving.inventory.environment, pool=pool))


def router_settings(serving: Serving) -> dict[str, Setting]:
    """Flags of the router, without the computed ones. `all` means all engines, not the router."""
    own = serving.layout.router.settings if serving.layout.router else {}
    return merged((serving.router.settings, own, serving.inventory.settings.get("router", {})))


def router_environment(serving: Serving) -> dict[str, Setting]:
    """Variables of the router."""
    own = serving.layout.router.environment if serving.layout.router else {}
    return merged((own, serving.inventory.environment.get("router", {})))


def _stack(
    below: tuple[SettingsByPool, ...], *, own: Settings, above: SettingsByPool, pool: EnginePool
) -> Iterator[Settings]:
    for by_pool in below:
        yield by_pool.get("all", {})
        yield by_pool.get(pool, {})
    yield own
    yield above.get("all", {})
    yield above.get(pool, {})


def setting_problems(serving: Serving) -> Iterator[Problem]:
    """Every setting and variable that the engine release or resolve itself refuses."""
    yield from _pool_name_problems(serving)
    for pool in serving.layout.engines:
        for name, setting in engine_settings(serving, pool).items():
            yield from _flag_problems(name, setting, serving=serving, pool=pool)
        for name, setting in engine_environment(serving, pool).items():
            yield from _variable_problems(name, setting, serving)


def _pool_name_problems(serving: Serving) -> Iterator[Problem]:
    """Settings for pools that there are not; a model or a host type may speak of any that there could be."""
    layout = serving.layout
    here = ("all", *layout.engines, *(("router",) if layout.router else ()))
    ever = ("all", *ENGINE_POOLS, "router")
    parts = ((serving.model, ever), (serving.hardware, ever), (layout, here), (serving.inventory, here))
    for part, known in parts:
        for by_pool in (part.settings, part.environment):
            for pool in set(by_pool) - set(known):
                where = next((s.source for s in by_pool[pool].values()), "")
                yield Problem(f"settings for {pool!r}", where=where, do=f"use one of {', '.join(known)}")


def _flag_problems(name: str, setting: Setting, *, serving: Serving, pool: EnginePool) -> Iterator[Problem]:
    engine = serving.engine
    if name in engine.computed:
        yield _computed_problem(name, setting)
        return
    if name == KV_TRANSFER:
        yield from _kv_transfer_problems(setting, serving.kv_transfer(pool))
    foreign = [*_release_problems(name, setting, serving)]
    yield from foreign
    if not foreign and "flag" in spelled(name, engine):
        yield from option_problems(spelled(name, engine)["flag"], setting, engine)


def _release_problems(name: str, setting: Setting, serving: Serving) -> Iterator[Problem]:
    history, engine, version = serving.history, serving.engine, serving.stack.engine_version
    return release_problems(name, setting, history=history, engine=engine, version=version)


def _kv_transfer_problems(setting: Setting, ours: Settings) -> Iterator[Problem]:
    if not isinstance(setting.value, dict):
        yield Problem(
            what=f"{KV_TRANSFER} is {setting.value!r}, expected a mapping of extra keys",
            where=setting.source,
            do="write, for instance, `kv-transfer-config: {kv_buffer_device: cpu}`",
        )
        return
    for key in sorted(set(setting.value) & set(ours)):
        yield Problem(
            what=f"{KV_TRANSFER} sets {key}, which resolve computes",
            where=setting.source,
            why=f"it is {ours[key].value} by {ours[key].source}",
            do=f"remove the key {key}",
        )


def _variable_problems(name: str, setting: Setting, serving: Serving) -> Iterator[Problem]:
    engine, history = serving.engine, serving.history
    if name in engine.computed or name in engine.variables:
        yield _computed_problem(name, setting)
        return
    yield from _release_problems(name, setting, serving)
    yield from unknown_variable_problems(name, setting, history=history, engine=engine)
    if not isinstance(setting.value, str):
        yield Problem(
            what=f"variable {name} is {setting.value!r}, expected text",
            where=setting.source,
            why="a variable of the environment has no type",
            do='quote it, for instance "1" or "true"',
        )


def _computed_problem(name: str, setting: Setting) -> Problem:
    return Problem(
        what=f"{name} is set, but resolve computes it",
        where=setting.source,
        why="ranks, addresses and ports of a deployment must agree with each other",
        do="remove the line; a layout sets sizes (tensor_parallel, data_parallel) and ports, "
        "and `dsv32-launch explain INSTANCE` shows what this is and why",
    )


def spelled(name: str, engine: Engine) -> Mapping[str, str]:
    """How this release spells a setting: {flag: NAME} or {env: VARIABLE}."""
    return engine.renamed.get(name) or {"flag": name}


def current(name: str, engine: Engine) -> str:
    """The current name of what this release spells so."""
    return next((n for n, spelling in engine.renamed.items() if spelling.get("flag") == name), name)
