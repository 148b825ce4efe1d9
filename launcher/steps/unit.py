"""unit: a systemd unit, whether it runs and starts at boot, and the release that it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.owned import Owned
from launcher.model.plan import Action, Draft, Op
from launcher.steps import file, texts

FOLDER = "/etc/systemd/system"
SERVICE = re.compile(r"^\[Service\]$", re.MULTILINE)
RUNS = ("active", "activating", "reloading", "refreshing")
ENDED_AGAIN = "auto-restart"
"""systemd's word for a unit that has ended and waits for its next try; it counts as `activating`."""


VOLATILE = {"unit": frozenset({"main_pid", "since", "invocation"})}
"""Probe → parts of its answer that move by themselves."""


@dataclass(frozen=True, slots=True)
class Params:
    """A unit of ours (`content`), or one that some package brought (no `content`)."""

    name: str
    """With its suffix: `dsv32-decode-0.service`."""
    content: str = field(default="", repr=False)
    """The unit's text; resolve has rendered `template:` or read `file:` into it."""
    state: Literal["started", "stopped"] = "started"
    enabled: bool = False
    """Starts at boot."""
    guarded: str = ""
    """The instance whose guards start and stop it: it is ordered, never started by systemd or by us."""
    depends: str = ""
    """Digest over the content of the steps named in `restart_on`; another one makes the unit restart."""
    note: str = ""
    """One word that each start records beside the release, and that the unit's probe answers with."""


def owns(want: Params) -> tuple[Owned, ...]:
    """The unit, and the file that we give it."""
    text = unit_file(want)
    return (Owned("unit", _whole_name(want.name), want), *(file.owns(text) if text else ()))


def probes(want: Params) -> tuple[Probe, ...]:
    """The unit as systemd has it, and the file that we give it."""
    text = unit_file(want)
    return (probe(want), *(file.probes(text) if text else ()))


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """Apart from one another: the file, start at boot, and START, RESTART or STOP."""
    have = facts[probe(want)]
    text = unit_file(want)
    written = file.changes(text, facts) if text else ()
    drafts = [_with_reload(draft) for draft in written]
    if isinstance(have, Unknown):
        drafts.append(Draft(Action.START, want.name, str(have), _target(want), life(want, Action.RESTART)))
        return tuple(drafts)
    if have["needs_reload"] and not written:
        op = Op("units", {"reload": True})
        drafts.append(Draft(Action.UPDATE, want.name, "an older text is loaded", "loaded", (op,)))
    drafts.extend(_boot(want, have))
    drafts.extend(_life(want, have, rewritten=bool(written)))
    return tuple(drafts)


def probe(want: Params) -> Probe:
    """Asks systemd for the unit."""
    return Probe("unit", (want.name,))


def life(want: Params, action: Action, *, together: bool = False) -> tuple[Op, ...]:
    """The ops of START, RESTART or STOP; `together`: stop and start apart, so that peers can join in."""
    if want.guarded:
        stop = (_order(want, "stop"),) if action is not Action.START else ()
        return stop if action is Action.STOP else (*stop, _order(want, "run"))
    names = [want.name]
    if action is Action.STOP:
        return (Op("units", {"stop": names}),)
    if not together and (action is Action.RESTART or not want.content):
        # a package may have started its own unit meanwhile, without our files
        return (Op("units", {"restart": names}),)
    stop = (Op("units", {"stop": names}),) if action is Action.RESTART else ()
    return (*stop, Op("units", {"start": names}))


def _order(want: Params, verb: str) -> Op:
    return Op("order", {"instance": want.guarded, "verb": verb, "unit": want.name})


def restart(want: Params, facts: Facts, because: str) -> Draft | None:
    """A RESTART for a reason outside the unit itself; None where it does not run."""
    have = facts[probe(want)]
    if isinstance(have, Unknown) or not runs(have):
        return None
    ops = life(want, Action.RESTART)
    return Draft(Action.RESTART, want.name, state(have), _target(want), ops, because=because)


def start_again(want: Params, facts: Facts, because: str) -> Draft:
    """A RESTART for a reason outside the unit itself, or a START where it does not run."""
    if draft := restart(want, facts, because):
        return draft
    have = facts[probe(want)]
    before = str(have) if isinstance(have, Unknown) else state(have)
    return Draft(Action.START, want.name, before, _target(want), life(want, Action.START), because=because)


def release(want: Params) -> str:
    """Names what a start of the unit would run; empty where the unit has no service of ours to record it."""
    if SERVICE.search(want.content) or (want.depends and not want.content):
        return texts.digest(want.content, want.depends)[:16]
    return ""


def unit_file(want: Params) -> file.Params | None:
    """The unit's text, or a drop-in for a packaged unit, with the line that records the release."""
    service = f"[Service]\n{recording(want)}"
    if want.content:
        # a text without that section stays as it is; a function, for the text may hold backslashes
        return file.Params(f"{FOLDER}/{want.name}", SERVICE.sub(lambda _: service, want.content, count=1))
    if want.depends:
        return file.Params(f"{FOLDER}/{want.name}.d/dsv32-release.conf", f"{service}\n")
    return None


def recording(want: Params) -> str:
    """The line that records, at each start, the release that is started, and the note."""
    # + : as root and outside the unit's own sandboxing; %n is the unit's full name
    path, note = "/run/dsv32/%n", want.note.replace("%", "%%")  # systemd reads % as a specifier
    also = f' && echo "{note}" >>{path}' if note else ""
    return f"ExecStartPre=+/bin/sh -c 'mkdir -p /run/dsv32 && echo {release(want)} >{path}{also}'"


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """One REMOVE: our text of it is gone; one of ours, or that we had enabled, is stopped and starts at no
    boot. Any other one of a package goes on as it is: nobody knows what it did before."""
    have, text = facts[probe(want)], unit_file(want)
    written = file.undone(text, facts) if text else ()
    ends: tuple[Op, ...] = ()
    if want.content or want.enabled:
        up = isinstance(have, Unknown) or runs(have)
        stop = life(want, Action.STOP) if up else ()
        there = up or have["enabled"] == "enabled"
        ends = (*stop, Op("units", {"disable": [want.name]})) if there else ()
    if not (ends or written):
        return ()
    removed = (*(op for draft in written for op in draft.ops), Op("units", {"reload": True}))
    before = str(have) if isinstance(have, Unknown) else state(have)
    after = "stopped, and starts at no boot" if ends else "as its package has it"
    return (Draft(Action.REMOVE, want.name, before, after, (*ends, *removed)),)


def _with_reload(draft: Draft) -> Draft:
    return replace(draft, ops=(*draft.ops, Op("units", {"reload": True})))


def _boot(want: Params, have: Mapping[str, Any]) -> Iterator[Draft]:
    before = have["enabled"] or "absent"
    if want.enabled and before != "enabled":
        op = Op("units", {"enable": [want.name]})
        yield Draft(Action.UPDATE, want.name, before, "starts at boot", (op,))
    # `static` and the like are not for us to disable
    if not want.enabled and before == "enabled":
        op = Op("units", {"disable": [want.name]})
        yield Draft(Action.UPDATE, want.name, before, "does not start at boot", (op,))


def _life(want: Params, have: Mapping[str, Any], *, rewritten: bool) -> Iterator[Draft]:
    if want.state == "stopped":
        if runs(have):
            yield Draft(Action.STOP, want.name, state(have), "stopped", life(want, Action.STOP))
        return
    if not runs(have):
        yield Draft(Action.START, want.name, state(have), _target(want), life(want, Action.START))
        return
    wish = release(want)
    if have["release"] != wish if wish else rewritten:
        yield Draft(Action.RESTART, want.name, state(have), _target(want), life(want, Action.RESTART))


def runs(have: Mapping[str, Any]) -> bool:
    """Is it up, or on its way? One that ends again and again is neither."""
    return have["active"] in RUNS and have.get("sub") != ENDED_AGAIN


def state(have: Mapping[str, Any]) -> str:
    """What the unit does now, in a word or two."""
    if have.get("sub") == ENDED_AGAIN:
        return "ending again and again"
    if have["active"] in RUNS:
        return f"release {have['release']}" if have["release"] else "running"
    if have["active"] == "failed":
        code = f"exit {have['exit_status']}" if have["result"] == "exit-code" else have["result"]
        return f"failed ({code})"
    return "absent" if have["load"] == "not-found" else "stopped"


def _target(want: Params) -> str:
    if want.state == "stopped":
        return "stopped"
    name = release(want)
    return f"release {name}" if name else "running"


def _whole_name(name: str) -> str:
    """As systemd knows it: a name without a suffix is a service's."""
    return name if "." in name else f"{name}.service"
