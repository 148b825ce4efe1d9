"""Deployment → whom a load goes to, and from which host; knows no load."""

from __future__ import annotations

from collections.abc import Iterator

from launcher.model.bench import Target
from launcher.model.deployment import Deployment, Front, Instance
from launcher.model.problem import InputError, Problem

SERVICE = "service"


def target_of(deployment: Deployment, name: str) -> Target:
    """What `name` means here: the whole service, an instance, or the first instance of a pool; without a
    router, the service is the first instance. InputError for any other name, and for many addresses."""
    away = {d.instance for d in deployment.drained}
    serving = tuple(i for i in deployment.instances if i.name not in away)
    if name == SERVICE and deployment.fronts:
        return _through(deployment.fronts[0], serving)
    found = next((i for i in deployment.instances if name in (i.name, i.pool, SERVICE)), None)
    if found is None:
        known = ", ".join(dict.fromkeys(_names(deployment)))
        what = f"`{name}` is no target of this deployment"
        raise InputError(Problem(what, "--target", do=f"name one of {known}"))
    return _alone(found)


def _names(deployment: Deployment) -> Iterator[str]:
    yield SERVICE
    for instance in deployment.instances:
        yield from (instance.pool, instance.name)


def _through(front: Front, instances: tuple[Instance, ...]) -> Target:
    hosts = [host for instance in instances for host in instance.hosts]
    own = front.host in hosts
    if front.settings.closed and not own:
        raise InputError(
            Problem(
                f"the front on {front.host} asks for a key, and no engine is on that host",
                where=front.endpoint.source,
                why="the client runs where an engine is, and only the front's own host needs no key",
                do="put a host of an engine pool into pools.router, or say --target prefill-0",
            )
        )
    host = front.host if own else hosts[0]
    url = front.own_url if own else front.url
    return Target(SERVICE, url, host, f"the front on {front.host}", instances)


def _alone(instance: Instance) -> Target:
    urls = [url for endpoint in instance.api for url in endpoint.urls()]
    if len(urls) > 1:
        raise InputError(
            Problem(
                f"{instance.name} has {len(urls)} addresses, and its ranks are spread over them",
                where=instance.api[0].source,
                why="`vllm bench serve` asks one address: the others' ranks would be idle",
                do="benchmark the service, or a layout with `style: internal`",
            )
        )
    return Target(
        instance.name, urls[0], instance.hosts[0], f"its own API on {instance.hosts[0]}", (instance,)
    )
