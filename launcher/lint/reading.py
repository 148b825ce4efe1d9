"""Reading: one launch with its settings by their current names, defaults filled in; knows no rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from launcher.lint.releases import THE_RELEASE, value_at
from launcher.lint.values import UntoldError, Value, number, plain, untold
from launcher.model.architecture import Architecture
from launcher.model.history import History, known_in, release
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch, Unknown
from launcher.model.profile import Hardware, Setting
from launcher.model.snapshot import Option, Snapshot

Quantity: TypeAlias = "Callable[[Reading], Value]"
"""A documented function; raises UntoldError where it depends on something unknown."""


@dataclass(slots=True)
class Basis:
    """What answers rest on, in the order in which it was looked at."""

    places: dict[str, None] = field(default_factory=dict)
    """`file:line` of written settings."""
    hidden: dict[str, str] = field(default_factory=dict)
    """Names taken for not given, in a launch that may give more than its file shows → what may give them;
    empty where the file does not say."""

    def rests_on(self, setting: Setting) -> None:
        """A written setting; one that was put together from several lines has them all as its source."""
        self.places.update(dict.fromkeys(setting.source.split(" + ")))

    def add(self, other: Basis) -> None:
        """Rests on that too."""
        self.places.update(other.places)
        self.hidden.update(other.hidden)


class Reading:
    """What a launch says and what follows from it. Remembers what each answer rests on."""

    def __init__(self, launch: Launch, knowledge: Knowledge, quantities: Mapping[str, Quantity]) -> None:
        self.launch = launch
        self.knowledge = knowledge
        self._quantities = quantities
        self._told: dict[str, tuple[Value | UntoldError, Basis]] = {}
        self._bases = [Basis()]
        self.named: set[str] = set()
        """Settings and variables that a finding has spoken of."""
        self._snapshots = _nearest(launch.version, knowledge.snapshots)
        own = {spelled: name for s in self._snapshots for name, spelled in s.renamed.items()}
        self.written = dict(_by_current_name(launch, knowledge.history, own))
        self.sometimes = {
            own.get(name) or knowledge.history.current(name): what for name, what in launch.sometimes.items()
        } | dict(launch.sometimes)

    @property
    def version(self) -> str:
        """The release; empty: unknown."""
        return self.launch.version

    @property
    def side(self) -> str:
        """`prefill` or `decode`, where it is known; else empty."""
        try:
            return str(self.value("pool") or "")
        except UntoldError:
            return ""

    def setting(self, name: str) -> Value:
        """A setting as written, else the release's default; None is absent. UntoldError where releases that
        it may be have different defaults."""
        found = self.given(name)
        return self._default(name) if found is None else _known(found, name)

    def given(self, name: str) -> Setting | None:
        """A setting if it was written, dotted names from within JSON."""
        return self._noted(name, self._written(name), hidden=self._hides(name))

    def variable(self, name: str) -> Value:
        """A variable as given, else its default in this release; None is absent."""
        found = self.given_variable(name)
        if found is not None:
            return _known(found, name)
        entry = self.knowledge.history.variables.get(name)
        return value_at(entry.defaults, self.version) if entry else None

    def given_variable(self, name: str) -> Setting | None:
        """A variable if it was given."""
        return self._noted(
            name, self.launch.variables.get(name), hidden="" if self.launch.more_variables else None
        )

    def directive(self, name: str) -> Value:
        """A directive of the unit; None is absent. UntoldError without a unit."""
        if self.launch.unit is None:
            raise untold("the unit")
        return self.launch.unit.get(name)

    def value(self, name: str) -> Value:
        """A quantity; worked out once."""
        if name not in self._told:
            self._bases.append(Basis())
            told: Value | UntoldError
            try:
                told = self._quantities[name](self)
            except UntoldError as error:
                told = error
            self._told[name] = (told, self._bases.pop())
        told, basis = self._told[name]
        self._bases[-1].add(basis)
        if isinstance(told, UntoldError):
            raise told
        return told

    def behaviour(self, name: str) -> str | None:
        """What this release decides by itself; None: nothing is known of it."""
        entry = self.knowledge.history.behaviours.get(name)
        return (value_at(entry.values, self.version) or None) if entry else None

    def default(self, name: str) -> Value:
        """What the release sets where a setting is not written; UntoldError where releases differ."""
        return self._default(name)

    def figure(self, name: str) -> float | None:
        """A behaviour that is a number; None where nothing is known of it. UntoldError if it is none."""
        written = self.behaviour(name)
        found = number(written)
        if written is not None and found is None:
            raise untold(f"what number `{written}` of {name} is")
        return found

    def words(self, name: str) -> list[str]:
        """A behaviour that is a list of words; empty where nothing is known of it."""
        return (self.behaviour(name) or "").split()

    def whole(self, name: str) -> int:
        """A quantity that is a whole number, 0 where it is absent."""
        found = number(self.value(name))
        return int(found) if found is not None else 0

    def size(self, name: str) -> int | None:
        """A setting that is a whole number; None where it is absent or none."""
        found = number(self.setting(name))
        return int(found) if found is not None else None

    def size_given(self, name: str) -> int | None:
        """A setting that is a whole number, as written; None where it is not."""
        return self.size(name) if self.given(name) else None

    def on(self, name: str) -> bool:
        """A setting that is true; absent is false."""
        return plain(self.setting(name)) is True

    def architecture(self) -> Architecture:
        """The model's dimensions; UntoldError if they are unknown."""
        if self.launch.model is None or self.launch.model.architecture is None:
            raise untold("the model")
        return self.launch.model.architecture

    def hardware(self) -> Hardware:
        """The host type; UntoldError if it is unknown."""
        if self.launch.hardware is None:
            raise untold("the hardware")
        return self.launch.hardware

    def told(self, found: Iterable[tuple[str, Setting]]) -> str | None:
        """What was found in settings, as one text that rests on them; None for nothing."""
        words = []
        for word, setting in found:
            words.append(word)
            self._bases[-1].rests_on(setting)
        return ", ".join(words) or None

    def beyond(self) -> bool:
        """Is the release newer than every snapshot? It may know what they do not."""
        return bool(self.version) and all(
            release(s.version) < release(self.version) for s in self.knowledge.snapshots.values()
        )

    def gather(self) -> Basis:
        """What all answers since the last call rest on."""
        basis, self._bases[-1] = self._bases[-1], Basis()
        return basis

    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshot of this release; without one those before and after it; all if it is unknown."""
        return self._snapshots

    def _written(self, name: str) -> Setting | None:
        if name in self.written:
            return self.written[name]
        head, _, inside = name.partition(".")
        around = self.written.get(head)
        if not inside or around is None:
            return None
        value, rest = around.value, inside
        while rest and isinstance(value, dict):
            if rest in value:
                return Setting(value[rest], around.inside.get(inside, around.source))
            key, _, rest = rest.partition(".")
            value = value.get(key)
        return None

    def _hides(self, name: str) -> str | None:
        """What may give a flag that is not seen; empty: the file does not say; None: nothing."""
        branch = self.sometimes.get(name) or self.sometimes.get(name.partition(".")[0])
        if branch is not None or not self.launch.more_flags:
            return branch
        return " and ".join(self.launch.unread)

    def _noted(self, name: str, found: Setting | None, *, hidden: str | None) -> Setting | None:
        if found is not None:
            self._bases[-1].rests_on(found)
        elif hidden is not None:
            self._bases[-1].hidden[name] = hidden
        return found

    def _default(self, name: str) -> Value:
        entry = self.knowledge.history.settings.get(name)
        if entry and entry.defaults:
            return value_at(entry.defaults, self.version)
        head, _, rest = name.partition(".")
        options = [_option(snapshot, head, rest) for snapshot in self._snapshots]
        defaults = [option.default for option in options if option]
        if any(plain(default) != plain(defaults[0]) for default in defaults):
            raise untold(f"the default of {name} in {self.version}" if self.version else THE_RELEASE)
        return defaults[0] if defaults else None


def _known(found: Setting, name: str) -> Value:
    if isinstance(found.value, Unknown):
        raise untold(f"what {name} `{found.value}` is")
    return found.value


def _by_current_name(
    launch: Launch, history: History, own: Mapping[str, str]
) -> Iterator[tuple[str, Setting]]:
    """Other spellings first, so that a current one beside them counts. `own`: the release's → current."""
    for name, setting in launch.variables.items():
        entry = history.variables.get(name)
        read = entry and (not launch.version or known_in(entry, launch.version))
        if read and history.current(name) in history.settings:
            yield history.current(name), setting
    for name, setting in launch.flags.items():
        current = own.get(name) or history.current(name)
        if current != name:
            yield current, setting
    yield from launch.flags.items()


def _option(snapshot: Snapshot, head: str, rest: str) -> Option | None:
    head = snapshot.renamed.get(head, head)
    return snapshot.keys.get(head, {}).get(rest) if rest else snapshot.options.get(head)


def _nearest(version: str, snapshots: Mapping[str, Snapshot]) -> tuple[Snapshot, ...]:
    ordered = sorted(snapshots.values(), key=lambda s: release(s.version))
    if not version:
        return tuple(ordered)
    wanted = release(version)
    exact = [s for s in ordered if release(s.version) == wanted]
    before = [s for s in ordered if release(s.version) < wanted]
    after = [s for s in ordered if release(s.version) > wanted]
    return tuple(exact[:1]) or (*before[-1:], *after[:1])
