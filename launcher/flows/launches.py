"""The launches of a deployment, as rules look at them: flags, variables and unit of each engine process."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from launcher.model.deployment import Argument, Instance, Process
from launcher.model.launch import Launch
from launcher.model.profile import Setting
from launcher.model.values import Json
from launcher.model.wish import Wanted
from launcher.steps import unit

KV_TRANSFER = "kv-transfer-config"
CONTINUED = re.compile(r"\\\n\s*")


def launches_of(wanted: Wanted) -> tuple[Launch, ...]:
    """One for each engine process, in the order of the instances; none where nothing is to serve."""
    deployment = wanted.deployment
    return tuple(
        _launch(wanted, instance, process)
        for instance in (deployment.instances if deployment else ())
        for process in instance.processes
    )


def accepted_of(wanted: Wanted) -> dict[str, Setting]:
    """Rule id → why what it finds is meant: the layout's reasons, and above them the inventory's."""
    layout = wanted.wish.profile.layout
    return {**(layout.accept if layout else {}), **wanted.wish.inventory.accept}


def _launch(wanted: Wanted, instance: Instance, process: Process) -> Launch:
    """A pool that stands alone is a side of nothing, unless a connector plays the other side for it."""
    inventory, profile = wanted.wish.inventory, wanted.wish.profile
    flags = dict(_flag(argument) for argument in process.arguments)
    disaggregated = profile.layout is not None and profile.layout.disaggregated
    return Launch(
        name=f"{instance.name} on {process.host}",
        flags=flags,
        variables=process.environment,
        source=inventory.pools[instance.pool].source,
        version=profile.stack.engine_version,
        model=profile.model,
        hardware=profile.hardware,
        instance=instance.name,
        pool=instance.pool if disaggregated or KV_TRANSFER in flags else "",
        disaggregated=disaggregated,
        hosts=len(instance.processes),
        unit=_directives(wanted, process),
        accepted={rule: str(reason.value) for rule, reason in accepted_of(wanted).items()},
    )


def _flag(argument: Argument) -> tuple[str, Setting]:
    """As `Launch.flags` has it: the model's path is `model`, `--no-x` is false, JSON a mapping or list."""
    name = argument.flag.removeprefix("--") or "model"
    if argument.value is None:
        return name.removeprefix("no-"), Setting(not name.startswith("no-"), argument.source)
    value: Json = argument.value
    if argument.value.startswith(("{", "[")):
        value = json.loads(argument.value)
    return name, Setting(value, argument.source, argument.inside)


def _directives(wanted: Wanted, process: Process) -> dict[str, str] | None:
    """Directive → its text (the last, where there are several) of the unit as it will be written."""
    for step in wanted.steps.get(process.host, ()):
        if step.instance == process.instance and isinstance(step.want, unit.Params):
            return dict(_pairs(step.want.content))
    return None


def _pairs(content: str) -> Iterator[tuple[str, str]]:
    for line in CONTINUED.sub("", content).splitlines():
        name, sign, text = line.partition("=")
        if sign and not line.startswith(("#", ";")):
            yield name, text
