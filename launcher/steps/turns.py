"""turns: a service in two units, of which users reach one; the other one is changed, and takes over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from annotated_types import MaxLen, MinLen

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.owned import Owned, path
from launcher.model.plan import Action, Draft, Op
from launcher.steps import file, texts, unit
from launcher.steps.attributes import AbsolutePath

DESCRIPTION = re.compile(r"^Description=(.*)$", re.MULTILINE)
LIFE = (Action.START, Action.RESTART)
READY_WITHIN_S = 60
"""A router is ready 2 to 6 s after its start (vllm-router 0.1.17); the rest is for slow hosts."""
SERVES_WITHIN_S = 120
"""A first request may make connections between hosts and compile kernels."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One of the two units, and what makes it the one that users reach."""

    name: str
    """With its suffix: `dsv32-router-a.service`."""
    content: str = field(repr=False)
    """The unit's text. A stop of the unit lets running requests end."""
    ready: str
    """URL that answers 200 once it can serve."""
    serves: str
    """URL of a request that it must answer with 200 before users reach it."""
    request: str
    """The body of that request."""
    chosen: AbsolutePath
    """The file that says which of the two users reach; the same for both."""
    choice: str = field(repr=False)
    """What that file holds while it is this one; its first line differs from that of the other."""
    reader: str
    """The unit that reads that file, and reads it again when it is reloaded."""

    @property
    def unit(self) -> unit.Params:
        """The unit: both run, and start at boot."""
        return unit.Params(self.name, self.content, enabled=True)

    @property
    def file(self) -> file.Params:
        """The file, when users reach this slot."""
        return file.Params(self.chosen, self.choice)


@dataclass(frozen=True, slots=True)
class Params:
    """Both run what they should, and users reach either."""

    slots: Annotated[tuple[Slot, ...], MinLen(2), MaxLen(2)]


def owns(want: Params) -> tuple[Owned, ...]:
    """Both units, and the file that says which one users reach."""
    return (*(o for slot in want.slots for o in unit.owns(slot.unit)), path(want.slots[0].chosen, want))


def probes(want: Params) -> tuple[Probe, ...]:
    """Both units, their texts, the file, and its reader."""
    own = (p for s in want.slots for p in (*unit.probes(s.unit), *file.probes(s.file)))
    return (*own, Probe("unit", (want.slots[0].reader,)))


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """One draft for all of it: whoever wants the service elsewhere wants it all the way.

    The unit that nobody reaches is renewed first, and asked; then users are sent to it; then the other one
    ends what it has begun, and is renewed too. Each step looks as if it were the first: a run that was killed
    between two of them is continued by the next.
    """
    now = current(want, facts)
    first, second = _by_reach(want, facts)
    moved = [s for s in want.slots if _moves(s, facts)]
    if now in moved and _runs(first, facts):
        ops = (*_renew(second, facts), _asked(second), *_choose(second, facts), *_renew(first, facts))
    else:
        ops = (*_renew(first, facts), *_choose(first, facts), *_renew(second, facts))
    if not ops:
        return ()
    action = Action.UPDATE
    if moved:
        action = Action.RESTART if any(_runs(s, facts) for s in want.slots) else Action.START
    # of both the same lines: one of them is enough
    diffs = (d.diff for s in (first, second) for d in unit.changes(s.unit, facts) if d.diff)
    because = _what_differs(first, facts)
    return (
        Draft(
            action, "router", _state(first, facts), f"release {release(want)}", ops, because, next(diffs, "")
        ),
    )


def start_again(want: Params, facts: Facts, because: str) -> Draft:
    """RESTART of both, for a reason outside of them; what differs is changed with it. Users are sent to the
    one that has answered, and the other one ends what it has begun."""
    first, second = _by_reach(want, facts)
    ops = (
        *_renew(second, facts, anew=True),
        _asked(second),
        *_choose(second, facts),
        *_renew(first, facts, anew=True),
    )
    return Draft(Action.RESTART, "router", _state(first, facts), f"release {release(want)}", ops, because)


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """A REMOVE of both units, and of the file that names one."""
    units = tuple(draft for slot in want.slots for draft in unit.undone(slot.unit, facts))
    return (*units, *file.undone(want.slots[0].file, facts))


def _by_reach(want: Params, facts: Facts) -> tuple[Slot, Slot]:
    """The slot that users reach, and the other one; in order where nothing says it."""
    first = current(want, facts) or want.slots[0]
    return first, next(s for s in want.slots if s is not first)


def current(want: Params, facts: Facts) -> Slot | None:
    """The slot that the file names by its first line; None where it names neither, or could not be read."""
    for slot in want.slots:
        have = facts[file.probes(slot.file)[0]]
        if isinstance(have, Unknown) or have["type"] != "file":
            return None
        if have["sha256"] == texts.digest(slot.choice) or _head(have.get("text", "")) == _head(slot.choice):
            return slot
    return None


def release(want: Params) -> str:
    """Names what both units are to run."""
    return texts.digest(*(s.content for s in want.slots))[:16]


def units_of(want: object) -> tuple[unit.Params, ...]:
    """The units that a step of whatever kind is about."""
    if isinstance(want, Params):
        return tuple(slot.unit for slot in want.slots)
    return (want,) if isinstance(want, unit.Params) else ()


def _renew(slot: Slot, facts: Facts, *, anew: bool = False) -> tuple[Op, ...]:
    """The slot as it should be, and ready; `anew`: restarted, whatever it runs."""
    drafts = unit.changes(slot.unit, facts)
    kept = (op for draft in drafts if not (anew and draft.action in LIFE) for op in draft.ops)
    ops = (*kept, *(unit.life(slot.unit, Action.RESTART) if anew else ()))
    ready = Op("answer", {"url": slot.ready, "within_s": READY_WITHIN_S})
    return (*ops, ready) if anew or _moves(slot, facts) else ops


def _moves(slot: Slot, facts: Facts) -> bool:
    """Is it to start or to restart? A text that was only edited on disk is just written again."""
    return any(d.action in LIFE for d in unit.changes(slot.unit, facts))


def _asked(slot: Slot) -> Op:
    return Op("answer", {"url": slot.serves, "body": slot.request, "within_s": SERVES_WITHIN_S})


def _choose(slot: Slot, facts: Facts) -> Iterator[Op]:
    """Send users to a slot. What they have begun at the other one goes on there."""
    for draft in file.changes(slot.file, facts):
        yield from draft.ops
        reader = facts[Probe("unit", (slot.reader,))]
        if not isinstance(reader, Unknown) and reader["active"] in unit.RUNS:
            yield Op("units", {"refresh": [slot.reader]})


def _runs(slot: Slot, facts: Facts) -> bool:
    have = facts[unit.probe(slot.unit)]
    return not isinstance(have, Unknown) and unit.runs(have)


def _state(slot: Slot, facts: Facts) -> str:
    have: Mapping[str, Any] | Unknown = facts[unit.probe(slot.unit)]
    return str(have) if isinstance(have, Unknown) else unit.state(have)


def _what_differs(slot: Slot, facts: Facts) -> str:
    """Words that come and go in the unit's description, `workers +decode-1`; else that its flags do."""
    text = unit.unit_file(slot.unit)
    have = facts[file.probes(text)[0]] if text else None
    told = have.get("text", "") if isinstance(have, Mapping) else ""
    if not told:
        return ""
    was, wish = (_words(t) for t in (told, slot.content))
    moved = [*(f"+{w}" for w in wish if w not in was), *(f"-{w}" for w in was if w not in wish)]
    return f"workers {' '.join(moved)}" if moved else "other flags"


def _words(text: str) -> list[str]:
    found = DESCRIPTION.search(text)
    return found[1].replace(",", " ").split() if found else []


def _head(text: str) -> str:
    return text.partition("\n")[0]
