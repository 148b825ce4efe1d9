"""RouterProcess: the router's command line over all API endpoints; knows no engine."""

from __future__ import annotations

from collections.abc import Iterator

from launcher.model.deployment import Argument, Instance, RouterProcess
from launcher.model.inventory import Host
from launcher.model.profile import RouterLayout, Setting, place_of
from launcher.resolve.argv import argument, environment_path
from launcher.resolve.ports import router_endpoints
from launcher.resolve.settings import Serving, router_environment, router_settings

# what resolve sets itself, whatever the settings say
COMPUTED = ("host", "port", "prometheus-host", "prometheus-port")


def router_process(
    host: Host, layout: RouterLayout, instances: tuple[Instance, ...], serving: Serving
) -> RouterProcess:
    """The router on one host, in front of all instances."""
    program, *rest = serving.router.command
    settings = {**router_settings(serving), **_listening(host, layout)}
    return RouterProcess(
        host=host.name,
        unit="dsv32-router.service",
        front_unit="dsv32-front.service",
        endpoints=router_endpoints(host, layout),
        command=(f"{environment_path(serving)}/bin/{program}", *rest),
        arguments=(
            *(argument(name, setting) for name, setting in sorted(settings.items())),
            *_workers(instances, serving),
        ),
        environment=dict(sorted(router_environment(serving).items())),
    )


def _listening(host: Host, layout: RouterLayout) -> dict[str, Setting]:
    router, metrics, _ = router_endpoints(host, layout)
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
