"""Process → arguments and environment, spelled for one engine release; knows not where they run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from launcher.model.deployment import Argument, Endpoint, Process
from launcher.model.profile import Engine, EnginePool, Setting, place_of
from launcher.model.values import Json
from launcher.resolve.settings import KV_TRANSFER, Serving, engine_environment, engine_settings, spelled
from launcher.resolve.topology import Seat


def model_path(serving: Serving) -> str:
    """The weights as each host sees them: staged, or in place."""
    paths = serving.inventory.paths
    root = paths.shared if paths.weights == "in-place" else paths.local
    return f"{root}/models/{serving.model.folder}"


def environment_path(serving: Serving) -> str:
    """The Python environment on each host; a new lock file is a new folder."""
    name = "-".join(filter(None, (serving.stack.name, serving.stack.lock_digest[:12])))
    return f"{serving.inventory.paths.local}/environments/{name}"


def process(seat: Seat, endpoints: tuple[Endpoint, ...], serving: Serving) -> Process:
    """One process with its command line and environment."""
    engine = serving.engine
    program, *rest = engine.command
    flags = dict(computed_flags(seat, endpoints, serving))
    for name, setting in sorted(engine_settings(serving, seat.pool).items()):
        if name != KV_TRANSFER and not (seat.headless and name in engine.api_only):
            flags[name] = setting
    moved = {spelled(n, engine)["env"]: s for n, s in flags.items() if "env" in spelled(n, engine)}
    model = Argument("", model_path(serving), place_of(serving.model, "folder"))
    return Process(
        instance=seat.instance,
        index=seat.index,
        host=seat.host.name,
        unit=f"dsv32-{seat.instance}.service",
        ranks=seat.ranks,
        leads=seat.leads,
        endpoints=endpoints,
        command=(f"{environment_path(serving)}/bin/{program}", *rest),
        arguments=(model, *flag_arguments(flags, engine)),
        environment=dict(
            sorted(
                {
                    **engine_environment(serving, seat.pool),
                    **{name: Setting(_switch(s.value), s.source) for name, s in moved.items()},
                    **computed_variables(seat, serving),
                }.items()
            )
        ),
    )


def computed_flags(
    seat: Seat, endpoints: tuple[Endpoint, ...], serving: Serving
) -> Iterator[tuple[str, Setting]]:
    """Flags that follow from where a process sits; a setting of the same name is refused."""
    layout, model = seat.layout, serving.model
    yield "served-model-name", Setting(model.served_name, place_of(model, "served_name"))
    api = next((e for e in endpoints if e.name == "api"), None)
    if api is not None:
        yield "host", Setting(seat.host.address, place_of(seat.host, "address"))
        yield "port", Setting(str(api.port), api.source)
    yield "tensor-parallel-size", Setting(str(layout.tensor_parallel), place_of(layout, "tensor_parallel"))
    if seat.spans:
        yield from _tensor_parallel_over_hosts(seat)
    elif seat.layout.data_parallel > 1:
        yield from _data_parallel(seat)
    if seat.headless:
        yield "headless", Setting(True, place_of(layout, "style"))
    transfer = kv_transfer(seat.pool, serving)
    if transfer is not None:
        yield KV_TRANSFER, transfer


def _tensor_parallel_over_hosts(seat: Seat) -> Iterator[tuple[str, Setting]]:
    layout, where = seat.layout, place_of(seat.layout, "hosts_per_instance")
    yield "nnodes", Setting(str(layout.hosts_per_instance), where)
    yield "node-rank", Setting(str(seat.index), where)
    yield "master-addr", Setting(seat.leader.address, place_of(seat.leader, "address"))
    yield "master-port", Setting(str(layout.rpc_port), place_of(layout, "rpc_port"))


def _data_parallel(seat: Seat) -> Iterator[tuple[str, Setting]]:
    """One host needs only the size (and, external, its ports). A start rank makes a process that is not
    headless a hybrid one, so the leader of the internal style has none; the other styles name it always."""
    layout = seat.layout
    several, external = layout.hosts_per_instance > 1, layout.style == "external"
    ranks, style = place_of(layout, "data_parallel"), place_of(layout, "style")
    yield "data-parallel-size", Setting(str(layout.data_parallel), ranks)
    if several or external:
        yield "data-parallel-size-local", Setting(str(len(seat.ranks)), ranks)
    if several:
        yield "data-parallel-address", Setting(seat.leader.address, place_of(seat.leader, "address"))
        yield "data-parallel-rpc-port", Setting(str(layout.rpc_port), place_of(layout, "rpc_port"))
    if external:
        supervisor = Setting(str(layout.supervisor_port), place_of(layout, "supervisor_port"))
        yield "data-parallel-multi-port-external-lb", Setting(True, style)
        yield "data-parallel-supervisor-port", supervisor
    elif several and layout.style == "hybrid":
        yield "data-parallel-hybrid-lb", Setting(True, style)
    if external or (several and (layout.style == "hybrid" or seat.headless)):
        yield "data-parallel-start-rank", Setting(str(seat.ranks[0].index), ranks)


def kv_transfer(pool: EnginePool, serving: Serving) -> Setting | None:
    """The connector of this pool, as the engine's data says, with the extra keys of the settings below it.

    A pool that stands alone has the connector that its settings name (DecodeBenchConnector), or none.
    """
    ours = serving.kv_transfer(pool)
    extra = engine_settings(serving, pool).get(KV_TRANSFER)
    values: dict[str, Json] = {key: setting.value for key, setting in ours.items()}
    inside = {key: setting.source for key, setting in ours.items()}
    sources = list(dict.fromkeys(inside.values()))
    if extra is not None and isinstance(extra.value, dict):
        values |= extra.value
        inside |= extra.inside
        sources.append(extra.source)
    return Setting(values, " + ".join(sources), inside) if "kv_connector" in values else None


def transfers(pool: EnginePool, serving: Serving) -> bool:
    """Does KV travel between instances? Of a pool alone if its settings name the engine's own connector."""
    if serving.layout.disaggregated:
        return True
    own = serving.engine.kv_transfer.get(pool, {}).get("kv_connector")
    here = kv_transfer(pool, serving)
    connector = here.value.get("kv_connector") if here and isinstance(here.value, dict) else None
    return own is not None and connector == own.value


def computed_variables(seat: Seat, serving: Serving) -> dict[str, Setting]:
    """Variables that follow from where a process sits. Which ones an engine needs is its own data."""
    host = seat.host
    words = {
        "address": Setting(host.address, place_of(host, "address")),
        "interface": Setting(host.interface, place_of(host, "interface")),
    }
    if seat.transfers:
        words["kv_address"] = words["address"]
        words["kv_port"] = Setting(str(seat.layout.kv_port), place_of(seat.layout, "kv_port"))
    variables = ((name, str(word.value)) for name, word in serving.engine.variables.items())
    return {name: words[word] for name, word in variables if word in words}


def flag_arguments(flags: Mapping[str, Setting], engine: Engine) -> Iterator[Argument]:
    """Flags as this release spells them; those it reads from the environment are left out."""
    for name, setting in flags.items():
        flag = spelled(name, engine).get("flag")
        if flag is not None:
            yield argument(flag, setting)


def argument(name: str, setting: Setting) -> Argument:
    """true is `--name`, false `--no-name`, a mapping or list JSON, anything else its text."""
    match setting.value:
        case True:
            return Argument(f"--{name}", None, setting.source)
        case False:
            return Argument(f"--no-{name}", None, setting.source)
        case dict() | list():
            text = json.dumps(setting.value, separators=(",", ":"))
            return Argument(f"--{name}", text, setting.source, setting.inside)
        case value:
            return Argument(f"--{name}", str(value), setting.source)


def _switch(value: Json) -> str:
    match value:
        case True:
            return "1"
        case False:
            return "0"
        case dict() | list():
            return json.dumps(value, separators=(",", ":"))
        case _:
            return str(value)
