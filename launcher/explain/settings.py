"""Settings and variables: their value in each process, and what the engine of this release does with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from launcher.explain.fact import Fact, Topic, shown, together
from launcher.explain.known import Known
from launcher.explain.rules import rule_facts
from launcher.explain.units import every_line
from launcher.lint.quantities import QUANTITIES
from launcher.lint.reading import Reading
from launcher.lint.values import UntoldError
from launcher.model.deployment import RouterProcess
from launcher.model.history import Entry, History, default_in, ignored_in, known_in
from launcher.model.launch import Launch
from launcher.model.profile import Engine, Setting
from launcher.model.snapshot import Option, Snapshot
from launcher.resolve.settings import current, spelled

AT_START = "decided at the start"
RESOLVED = {
    "all2all-backend": "all2all",
    "api-server-count": "api_servers",
    "async-scheduling": "async_scheduling",
    "attention-backend": "attention_backend",
    "compilation-config.cudagraph_mode": "cudagraph_mode",
    "kv-cache-dtype": "kv_dtype",
    "max-model-len": "max_context",
    "max-num-batched-tokens": "batched_tokens",
    "max-num-seqs": "max_seqs",
}
"""Setting → the quantity that says what the engine makes of it where nothing is written."""
NOTHING = "nothing is written about what it does; the release accepts it"


@dataclass(frozen=True, slots=True)
class Named:
    """A setting or variable of the engine, under the name that everybody writes today."""

    name: str
    spelled: str
    """As this release reads it: `--max-num-seqs`, or a variable."""
    entry: Entry | None
    option: Option | None
    """As the release has it; None: it is a variable, or not known to it."""
    variable: bool

    @property
    def does(self) -> str:
        """What the engine does with it, where somebody has written that."""
        return self.entry.does if self.entry else ""


def setting_topics(subject: str, known: Known) -> Iterator[Topic]:
    """A flag, a key of its JSON (`eplb-config.use_async`) or a variable: of engines, of routers."""
    word = subject.lstrip("-")
    engine = known.wanted.wish.profile.engine
    named = _named(word, engine, known) if engine else None
    routed = tuple(_of_routers(word, known))
    if named:
        yield Topic(f"{named.name}, {_what(named)} of vLLM {known.version}", tuple(_of_engine(named, known)))
        successor = known.history.current(named.name)
        if successor != named.name and successor not in (word, named.name):
            yield from setting_topics(successor, known)
    yield from routed
    if not named and not routed:
        yield from _of_units(word, known)


def about_flag(name: str, known: Known) -> str:
    """What the engine does with a flag, spelled as this release does, or a variable."""
    engine = known.wanted.wish.profile.engine
    named = _named(name.lstrip("-") or "model", engine, known) if engine else None
    return (named.does or NOTHING) if named else ""


def known_names(known: Known) -> set[str]:
    """All that this release accepts, and all that the history tells of."""
    history, engine = known.history, known.wanted.wish.profile.engine
    snapshot = engine.snapshot if engine else None
    options = set(snapshot.options) | set(snapshot.variables) if snapshot else set()
    return {*history.settings, *history.variables, *options}


def _named(word: str, engine: Engine, known: Known) -> Named | None:
    """What a word means, of the spellings that people use: today's, the release's own, `no-x`, `-tp`."""
    history, snapshot = known.history, engine.snapshot or Snapshot("", {})
    shorts = {option.short: name for name, option in snapshot.options.items() if option.short}
    candidates = (current(word, engine), word.removeprefix("no-"), shorts.get(word, word))
    for name in dict.fromkeys(candidates):
        option = _option(name, engine, snapshot)
        variable = name in history.variables or name in snapshot.variables
        entry = history.entry(name)
        if entry or option or variable or _is_written(name, known):
            how = spelled(name, engine)
            flag = how.get("env") or f"--{how['flag']}"
            return Named(name, name if variable else flag, entry, option, variable)
    return None


def _is_written(name: str, known: Known) -> bool:
    return any(_reading(launch, known).given(name) for launch in known.launches)


def _what(named: Named) -> str:
    if named.variable:
        return "a variable"
    return "a key of JSON" if "." in named.name else "a flag"


def _option(name: str, engine: Engine, snapshot: Snapshot) -> Option | None:
    head, _, key = name.partition(".")
    head = spelled(head, engine).get("flag", "")
    option = snapshot.keys.get(head, {}).get(key) if key else snapshot.options.get(head)
    return snapshot.options.get(option.same_as, option) if option else None


def _of_engine(named: Named, known: Known) -> Iterator[Fact]:
    engine = known.wanted.wish.profile.engine
    launches = known.launches or (Launch("", {}, {}, "", version=known.version),)
    values = together(_value(named, launch, known) for launch in launches)
    yield from sorted(values, key=lambda fact: fact.kind == "default")
    source = named.entry.source if named.entry and named.does else ""
    if named.does or named.option or named.variable:
        yield Fact("does", value=named.does or NOTHING, source=source)
    yield from _release(named, known.history, known.version)
    if named.option and named.option.choices:
        source = engine.snapshot.source if engine and engine.snapshot else ""
        yield Fact("release", value=f"takes {', '.join(named.option.choices)}", source=source)
    yield from rule_facts((named.name,), known)


def _value(named: Named, launch: Launch, known: Known) -> Fact:
    of = (launch.name,) if launch.name else ()
    reading = _reading(launch, known)
    given = reading.given_variable(named.name) if named.variable else reading.given(named.name)
    if given is not None:
        return Fact("value", named.spelled, shown(given.value), of, given.source, named.does)
    value, source = _default(named, reading, known)
    return Fact("default", named.spelled, f"not set: {value}", of, source, named.does)


def _default(named: Named, reading: Reading, known: Known) -> tuple[str, str]:
    """What holds where nothing is written, and who says so."""
    entry = named.entry
    if entry and not known_in(entry, known.version):
        return "not known to this release", entry.source
    if entry and default_in(entry, known.version) is not None:
        return f"{default_in(entry, known.version)} by default", entry.source
    if named.variable:
        return "no default is known", entry.source if entry else ""
    engine = known.wanted.wish.profile.engine
    source = engine.snapshot.source if engine and engine.snapshot else ""
    try:
        value = reading.setting(named.name)
    except UntoldError:
        value = None
    if value is not None:
        return f"{shown(value)} by default", source
    try:
        follows = reading.value(RESOLVED[named.name]) if named.name in RESOLVED else None
    except UntoldError:
        follows = None
    return AT_START if follows is None else f"{shown(follows)}, {AT_START}", source


def _release(named: Named, history: History, version: str) -> Iterator[Fact]:
    """What is so in this release, and was or will be in others."""
    entry = named.entry
    if named.spelled.removeprefix("--") != named.name:
        yield Fact("release", value=f"spelled {named.spelled} in vLLM {version}")
    if entry is None:
        return
    words = [
        f"not known to vLLM {version}" if not known_in(entry, version) else "",
        _ignored(entry, version),
        f"since {entry.since}" if entry.since else "",
        _until(entry),
        f"back since {entry.back}" if entry.back else "",
        _instead(named.name, entry, history),
        *(f"`{value}` does nothing since {since}" for value, since in entry.gone.items()),
    ]
    told = [*words, *_older_names(named.name, history)]
    if any(told):
        yield Fact(
            "release", value="; ".join(filter(None, told)), source=entry.source, about=entry.known_from
        )
    if len(entry.defaults) > 1:
        steps = (
            f"{value} {'at first' if at == '0' else f'since {at}'}" for at, value in entry.defaults.items()
        )
        yield Fact(
            "release", value=f"default {', '.join(steps)}", source=entry.source, about=entry.known_from
        )
    if entry.because:
        yield Fact("why", value=entry.because, source=entry.source, about=entry.known_from)


def _ignored(entry: Entry, version: str) -> str:
    if not entry.ignored_since:
        return ""
    here = "ignored here" if ignored_in(entry, version) else "heeded here"
    return f"{here}: accepted without effect since {entry.ignored_since}"


def _until(entry: Entry) -> str:
    if entry.until == "0.0.0":
        return "never known to any release"
    return f"gone since {entry.until}" if entry.until else ""


def _instead(name: str, entry: Entry, history: History) -> str:
    if not entry.instead:
        return ""
    return f"renamed to {history.current(name)}" if history.entry(entry.instead) else entry.instead


def _older_names(name: str, history: History) -> Iterator[str]:
    entries: Mapping[str, Entry] = {**history.settings, **history.variables}
    for old, entry in entries.items():
        if entry.instead == name:
            yield f"called {old} before {entry.until}"


def _of_routers(word: str, known: Known) -> Iterator[Topic]:
    kind, deployment = known.wanted.wish.profile.router, known.wanted.deployment
    routers = deployment.routers if deployment else ()
    facts = list(together(f for router in routers for f in _in_router(word, router)))
    if kind is None or not (facts or word in kind.does):
        return
    if not facts:
        facts = [Fact("default", word, "not set")]
    does = kind.does.get(word, Setting(NOTHING, ""))
    facts.append(Fact("does", value=str(does.value), source=does.source))
    yield Topic(f"{word}, a flag of {kind.name}", tuple(facts))


def _in_router(word: str, router: RouterProcess) -> Iterator[Fact]:
    of = (f"router {router.slot} on {router.host}",)
    for argument in router.arguments:
        if argument.flag in (f"--{word}", f"--no-{word}"):
            value = argument.value or str(not argument.flag.startswith("--no-")).lower()
            yield Fact("value", argument.flag, value, of, argument.source)
    variable = router.environment.get(word)
    if variable:
        yield Fact("value", word, str(variable.value), of, variable.source)


def _of_units(word: str, known: Known) -> Iterator[Topic]:
    """Variables that a unit's template sets itself."""
    lines = [
        (line, f"{step.want.name} on {step.host}")
        for step, line in every_line(known)
        if line.directive == "Environment" and line.value.startswith(f"{word}=")
    ]
    values = (
        Fact("value", word, line.value.partition("=")[2], (of,), line.source, line.why) for line, of in lines
    )
    reasons = (Fact("does", value=line.why or NOTHING, source=line.source) for line, _ in lines)
    if lines:
        yield Topic(f"{word}, a variable of units", (*together(values), *together(reasons)))


def _reading(launch: Launch, known: Known) -> Reading:
    return Reading(launch, known.knowledge, QUANTITIES)
