"""Wish → Deployment: seats, ports, processes and routers, or all Problems at once; knows no steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from packaging.specifiers import SpecifierSet

from launcher.model.deployment import SLOTS, Deployment, Drained, Endpoint, Instance
from launcher.model.inventory import Host, PoolName
from launcher.model.problem import InputError, Problem
from launcher.model.profile import EnginePool, RouterLayout
from launcher.model.wish import Wish
from launcher.resolve.argv import environment_path, model_path, process, transfers
from launcher.resolve.ports import collisions, engine_endpoints, front_endpoints, router_endpoints
from launcher.resolve.router import COMPUTED, front, router_processes
from launcher.resolve.settings import Serving, engine_settings, router_settings, setting_problems
from launcher.resolve.topology import Seat, seats, shape_problems, shared_gpu_problems

VARIABLE_WORDS = ("address", "interface", "kv_address", "kv_port")


def deploy(wish: Wish, drained: tuple[Drained, ...] = ()) -> Deployment:
    """Everything that serves; the routers know nothing of what is drained.

    InputError names all that keeps it from being laid out.
    """
    serving = serving_of(wish)
    problems = dict.fromkeys(
        (*_pool_problems(serving), *_engine_problems(serving), *setting_problems(serving))
    )
    if problems:
        raise InputError(*problems)
    groups = tuple(group for pool in serving.layout.engines for group in _pool_seats(serving, pool))
    problems = dict.fromkeys(_collision_problems(groups, serving))
    if problems:
        raise InputError(*problems)
    instances = tuple(_instance(group, serving) for group in groups)
    away = {d.instance for d in drained}
    workers = tuple(i for i in instances if i.name not in away)
    return Deployment(
        cluster=serving.inventory.cluster,
        model_path=model_path(serving),
        served_name=serving.model.served_name,
        environment_path=environment_path(serving),
        paths=serving.inventory.paths,
        instances=instances,
        routers=tuple(r for of in _routed(serving) for r in router_processes(*of, workers, serving)),
        fronts=tuple(front(*of, serving) for of in _routed(serving)),
        drained=tuple(d for d in drained if d.instance in {i.name for i in instances}),
    )


def serving_of(wish: Wish) -> Serving:
    """The wish with no part of its profile missing."""
    profile = wish.profile
    if not (profile.hardware and profile.model and profile.engine and profile.layout and profile.router):
        raise InputError(*_missing(wish))
    return Serving(
        inventory=wish.inventory,
        stack=profile.stack,
        hardware=profile.hardware,
        model=profile.model,
        engine=profile.engine,
        layout=profile.layout,
        router=profile.router,
        history=profile.history,
    )


def _missing(wish: Wish) -> Iterator[Problem]:
    for name in (f.name for f in fields(wish.profile) if getattr(wish.profile, f.name) is None):
        yield Problem(
            what=f"layout {wish.inventory.layout} is named, but no {name}",
            where=wish.inventory.path,
            why="what serves needs hardware, model, layout, and a stack with engine and router",
            do=f"add `{name}:` to the {'stack' if name in ('engine', 'router') else 'inventory'}",
        )


def _instance(group: tuple[Seat, ...], serving: Serving) -> Instance:
    first = group[0]
    return Instance(
        name=first.instance,
        pool=first.pool,
        style=first.layout.style,
        processes=tuple(process(s, engine_endpoints(s, serving.engine.rank_port), serving) for s in group),
    )


def _routed(serving: Serving) -> Iterator[tuple[Host, RouterLayout]]:
    """The hosts that route, if the layout has a router at all."""
    inventory, layout = serving.inventory, serving.layout.router
    if layout is not None:
        for name in inventory.pools["router"].hosts:
            yield inventory.hosts[name], layout


def _pool_seats(serving: Serving, pool: EnginePool) -> Iterator[tuple[Seat, ...]]:
    inventory = serving.inventory
    return seats(
        inventory.pools[pool],
        serving.pool_layout(pool),
        hardware=serving.hardware,
        hosts=inventory.hosts,
        transfers=transfers(pool, serving),
    )


def _pool_problems(serving: Serving) -> Iterator[Problem]:
    """Missing pools, and pools that the layout does not fit."""
    inventory, layout = serving.inventory, serving.layout
    wanted: tuple[PoolName, ...] = (*layout.engines, *(("router",) if layout.router else ()))
    for pool in wanted:
        if pool not in inventory.pools:
            yield Problem(
                what=f"layout {inventory.layout} needs a pool {pool}, the inventory has none",
                where=inventory.path,
                do=f"add `{pool}: {{hosts: [...], instances: 1}}` to pools",
            )
    for name, part in layout.engines.items():
        if name in inventory.pools:
            yield from shape_problems(inventory.pools[name], part, serving.hardware)
            yield from _style_problems(serving, name)


def _style_problems(serving: Serving, pool: EnginePool) -> Iterator[Problem]:
    layout, engine = serving.pool_layout(pool), serving.engine
    if layout.style not in engine.styles:
        yield Problem(
            what=f"{pool}: engine {engine.name} has no style {layout.style}",
            where=layout.source,
            why=f"{engine.source} lists {', '.join(engine.styles)}",
            do=f"write `style: {engine.styles[0]}`, or choose a stack with a newer engine",
        )
    count = engine_settings(serving, pool).get("api-server-count")
    if layout.style == "external" and count and count.value != "1":
        yield Problem(
            what=f"{pool}: api-server-count is {count.value} in style external",
            where=count.source,
            why="vLLM starts one API process for each rank there, and refuses another count",
            do="remove the line",
        )


def _engine_problems(serving: Serving) -> Iterator[Problem]:
    """An engine file that does not describe the stack's release, or uses a word that resolve lacks."""
    stack, engine = serving.stack, serving.engine
    if not SpecifierSet(engine.versions).contains(stack.engine_version, prereleases=True):
        yield Problem(
            what=f"stack {stack.name} has engine version {stack.engine_version}, "
            f"{engine.name} describes {engine.versions}",
            where=stack.source,
            do="name the engine file of that release, or write one (scripts/snapshot-flags lists its flags)",
        )
    for name, word in engine.variables.items():
        if word.value not in VARIABLE_WORDS:
            yield Problem(
                what=f"variable {name} holds {word.value!r}",
                where=word.source,
                do=f"use one of {', '.join(VARIABLE_WORDS)}",
            )
    for name, setting in router_settings(serving).items():
        if name in COMPUTED:
            yield Problem(
                what=f"router setting {name} is set, but resolve computes it",
                where=setting.source,
                do="remove the line; ports are set by `router:` of the layout",
            )


def _collision_problems(groups: tuple[tuple[Seat, ...], ...], serving: Serving) -> Iterator[Problem]:
    placed = [seat for group in groups for seat in group]
    yield from shared_gpu_problems(placed)
    yield from collisions(_listeners(placed, serving))


def _listeners(placed: list[Seat], serving: Serving) -> Iterator[tuple[str, str, Endpoint]]:
    for seat in placed:
        for endpoint in engine_endpoints(seat, serving.engine.rank_port):
            yield seat.instance, endpoint.source, endpoint
    for host, layout in _routed(serving):
        for slot in SLOTS:
            for endpoint in router_endpoints(host, layout, slot):
                yield f"router {slot}", endpoint.source, endpoint
        for endpoint in front_endpoints(host, layout):
            yield "router", endpoint.source, endpoint
