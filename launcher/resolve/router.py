"""RouterProcess and Front: the routers' command lines over all API endpoints; knows no engine."""

from __future__ import annotations

from collections.abc import Iterator

from launcher.model.deployment import SLOTS, Argument, Front, Instance, RouterProcess, Slot
from launcher.model.inventory import Host
from launcher.model.profile import RouterLayout, Setting, place_of
from launcher.resolve.argv import argument, environment_path
from launcher.resolve.ports import front_endpoints, router_endpoints
from launcher.resolve.settings import Serving, router_environment, router_settings

# what resolve sets itself, whatever the settings say
COMPUTED = ("host", "port", "prometheus-host", "prometheus-port")


def router_processes(
    host: Host, layout: RouterLayout, instances: tuple[Instance, ...], serving: Serving
) -> Iterator[RouterProcess]:
    """The two routers of one host, in front of these instances."""
    program, *rest = serving.router.command
    for slot in SLOTS:
        settings = {**router_settings(serving), **_listening(host, layout, slot)}
        yield RouterProcess(
            host=host.name,
            slot=slot,
            unit=f"dsv32-router-{slot}.service",
            endpoints=router_endpoints(host, layout, slot),
            workers=tuple(i.name for i in instances),
            command=(f"{environment_path(serving)}/bin/{program}", *rest),
            arguments=(
                *(argument(name, setting) for name, setting in sorted(settings.items())),
                *_workers(instances, serving),
            ),
            environment=dict(sorted(router_environment(serving).items())),
            ready_path=serving.router.ready_path,
            finish_within_s=serving.router.finish_within_s,
        )


def front(host: Host, layout: RouterLayout, serving: Serving) -> Front:
    """The front of one host."""
    inventory, routing = serving.inventory, serving.inventory.pools["router"].hosts
    return Front(
        host.name,
        "dsv32-front.service",
        *front_endpoints(host, layout),
        inventory.front,
        others=tuple(inventory.hosts[name].address for name in routing if name != host.name),
        place=routing.index(host.name),
    )


def _listening(host: Host, layout: RouterLayout, slot: Slot) -> dict[str, Setting]:
    router, metrics = router_endpoints(host, layout, slot)
    return {
        "host": Setting(router.address, place_of(host, "address")),
        "port": Setting(str(router.port), router.source),
        "prometheus-host": Setting(metrics.address, place_of(host, "address")),
        "prometheus-port": Setting(str(metrics.port), metrics.source),
    }


def _workers(instances: tuple[Instance, ...], serving: Serving) -> Iterator[Argument]:
    """One flag an API endpoint: of each host in the hybrid style, of each rank in the external one."""
    for instance in instances:
        prefill = instance.pool == "prefill"
        flag = serving.router.prefill_flag if prefill else serving.router.decode_flag
        for endpoint in instance.api:
            yield from (Argument(flag, url, endpoint.source) for url in endpoint.urls())
