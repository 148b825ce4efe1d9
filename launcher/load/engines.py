"""configs/engines/ → Engine: a file, those it is based on, and the snapshot; knows no inventory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from launcher.load.choice import Choice, names, open_chosen
from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.document import Document, Location, Value
from launcher.load.schema import fill
from launcher.load.shape import is_null
from launcher.load.snapshot import parse_snapshot
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Engine
from launcher.model.snapshot import Snapshot

BASE = "based_on"


@dataclass(frozen=True, slots=True)
class Layers:
    """A file over those it is based on: values, and the line of the file where each of them stands."""

    values: Mapping[str, Value]
    places: Mapping[Location, str]
    names: tuple[str, ...]
    """The file, then what it is based on."""

    def place(self, location: Location) -> str:
        """`path:line` of a value, or of the nearest thing around it that some file has."""
        while location not in self.places:
            location = location[:-1]
        return self.places[location]


def read_engine(choice: Choice, data: Data) -> Engine:
    """An engine's file over its bases, and its snapshot; what others will compile must be compilable."""
    layers = _layers(choice, data)
    given = {"name": choice.name, "snapshot": None}
    engine = fill(Engine, {**layers.values}, place=layers.place, given=given)
    problems = Collector()
    problems.keep(_pattern_problems(engine, layers))
    if not _is_range(engine.versions):
        what = f"`versions` is `{engine.versions}`, expected a range of versions"
        do = 'write it like ">=0.32,<0.33"'
        problems.keep([Problem(what, where=layers.place(("versions",)), do=do)])
    problems.raise_any()
    return replace(engine, snapshot=_snapshot(layers.names, engine, data))


def read_engines(data: Data) -> Mapping[str, Engine]:
    """All there are, by name. InputError with the Problems of all."""
    problems = Collector()
    read = {n: problems.attempt(partial(read_engine, Choice(n, ""), data)) for n in names(Engine, data)}
    problems.raise_any()
    return {name: engine for name, engine in read.items() if engine is not None}


def _layers(choice: Choice, data: Data, above: tuple[str, ...] = ()) -> Layers:
    document = open_chosen(Engine, choice, data)
    values = document.values if isinstance(document.values, dict) else {}
    if BASE not in values:
        places = {location: document.place(location) for location in document.lines}
        return Layers(values, places, (choice.name,))
    where, base = document.place((BASE,)), str(values[BASE])
    if base in (*above, choice.name):
        chain = " → ".join((*above, choice.name, base))
        what = f"engines are based on each other: {chain}"
        raise InputError(Problem(what, where=where, do="remove one `based_on`"))
    below = _layers(Choice(base, where), data, (*above, choice.name))
    return _over(document, values, below, choice.name)


def _over(document: Document, values: dict[str, Value], below: Layers, name: str) -> Layers:
    """A file laid over its base. Mappings merge by key; all else replaces; an empty value removes."""
    own = {key: value for key, value in values.items() if key != BASE}
    places = dict(below.places)
    merged = _merge(own, below.values, (), places)
    places |= {location: document.place(location) for location in document.lines if location[:1] != (BASE,)}
    return Layers(merged, places, (name, *below.names))


def _merge(
    own: Mapping[str, Value], below: Mapping[str, Value], at: Location, places: dict[Location, str]
) -> dict[str, Value]:
    """Both mappings in one; forgets the places of what is replaced."""
    merged = dict(below)
    for key, value in own.items():
        base = merged.get(key)
        location = (*at, key)
        if isinstance(value, dict) and isinstance(base, dict):
            merged[key] = _merge(value, base, location, places)
            continue
        for inside in [p for p in places if p[: len(location)] == location]:
            del places[inside]
        merged[key] = value
    return {key: value for key, value in merged.items() if not is_null(value)}


def _pattern_problems(engine: Engine, layers: Layers) -> list[Problem]:
    patterns: dict[Location, str] = {("phases", i, "pattern"): p.pattern for i, p in enumerate(engine.phases)}
    for word, texts in (("fatal", engine.fatal), ("ignore", engine.ignore)):
        patterns |= {(word, i): text for i, text in enumerate(texts)}
    problems = []
    for location, pattern in patterns.items():
        try:
            re.compile(pattern)
        except re.error as error:
            what = f"pattern `{pattern}` is no regular expression: {error}"
            problems.append(Problem(what, where=layers.place(location), do="correct it"))
    return problems


def _is_range(text: str) -> bool:
    # late: hosts wait to be connected until everything is read
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


def _snapshot(chain: tuple[str, ...], engine: Engine, data: Data) -> Snapshot | None:
    """What the release accepts: its own snapshot, or the nearest base's with this release's spellings."""
    renamed = {name: spelling["flag"] for name, spelling in engine.renamed.items() if "flag" in spelling}
    for name in chain:
        path = data.find(f"configs/engines/{name}.json")
        if path is not None:
            snapshot = replace(parse_snapshot(data.text(path), data.shown(path)), renamed=renamed)
            return snapshot if name == engine.name else _respelled(snapshot, engine)
    return None


def _respelled(snapshot: Snapshot, engine: Engine) -> Snapshot:
    """A base's snapshot as that of a release which differs in spelling only."""
    moved = [spelling["env"] for spelling in engine.renamed.values() if "env" in spelling]
    gone = {name for name, spelling in engine.renamed.items() if "env" in spelling}
    return replace(
        snapshot,
        version=_first_of(engine.versions),
        options={snapshot.renamed.get(n, n): o for n, o in snapshot.options.items() if n not in gone},
        keys={snapshot.renamed.get(n, n): k for n, k in snapshot.keys.items() if n not in gone},
        variables=(*snapshot.variables, *moved),
    )


def _first_of(versions: str) -> str:
    """The first release of a range: `>=0.34,<0.35` begins with 0.34."""
    from packaging.specifiers import SpecifierSet

    return next((s.version for s in SpecifierSet(versions) if s.operator in (">=", "==", "~=")), "")
