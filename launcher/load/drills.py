"""configs/drills and configs/stand-ins → Drills and StandIns, with every mistake in them; knows no host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.runbooks import NAME, read_runbooks
from launcher.load.schema import filled, near
from launcher.load.signatures import read_log_knowledge
from launcher.model.drill import WORDS, Act, Drill, StandIn
from launcher.model.problem import InputError, Problem
from launcher.model.runbook import Runbook

FOLDER = "configs/drills"
STAND_INS = "configs/stand-ins"
KINDS = ("signal", "power", "fill", "script", "kernel", "says", "stand_in", "answers", "files", "wait_s")


def read_drills(data: Data) -> Mapping[str, Drill]:
    """All drills by id. InputError with every Problem of every file."""
    problems = Collector()
    books = read_runbooks(data)
    signatures = {s.id for s in read_log_knowledge(data).signatures}
    stand_ins = data.names(STAND_INS, holding=".yaml")
    found: dict[str, Drill] = {}
    for name in data.names(FOLDER, holding=".yaml"):
        drill = problems.attempt(partial(_drill, name, data))
        if drill is not None:
            found[name] = drill
            problems.keep(_problems(drill, books, signatures, stand_ins))
    problems.raise_any()
    return found


def read_stand_ins(data: Data) -> Mapping[str, StandIn]:
    """All stand-ins by name; InputError."""
    return {name: _stand_in(name, data) for name in data.names(STAND_INS, holding=".yaml")}


def drills_named(names: Iterable[str], drills: Mapping[str, Drill]) -> tuple[Drill, ...]:
    """The drills of these names; InputError for those that are none."""
    wrong = [n for n in names if n not in drills]
    if wrong:
        raise InputError(
            *(Problem(f"no drill is called `{n}`", where=FOLDER, do=near(n, drills)) for n in wrong)
        )
    return tuple(drills[n] for n in names)


def texts_of(act: Act) -> tuple[str, ...]:
    """Every text of an act that may hold names."""
    answers = (text for told in act.answers.values() for text in told.values())
    return (act.script, act.unit, *act.kernel, *act.says, *act.files.values(), *answers)


def _drill(name: str, data: Data) -> Drill:
    path = data.find(f"{FOLDER}/{name}.yaml")
    assert path is not None, "names() lists what find() finds"
    document = data.document(path)
    return filled(Drill, document, id=name)


def _stand_in(name: str, data: Data) -> StandIn:
    path = data.find(f"{STAND_INS}/{name}.yaml")
    assert path is not None, "names() lists what find() finds"
    document = data.document(path)
    return filled(StandIn, document, name=name)


def _problems(
    drill: Drill, books: Mapping[str, Runbook], signatures: Iterable[str], stand_ins: Iterable[str]
) -> Iterator[Problem]:
    for act in (*drill.plant, *drill.lift):
        yield from _act_problems(act, stand_ins)
    yield from _pattern_problems(drill.status, drill.source)
    yield from _pattern_problems(drill.ended, drill.source)
    if drill.diagnose and drill.diagnose not in signatures:
        what = f"`diagnose` is `{drill.diagnose}`, which is no signature"
        yield Problem(what, drill.source, do=near(drill.diagnose, signatures))
    yield from _runbook_problems(drill, books)
    if drill.lift and not (drill.lasts_s or drill.lift_at):
        yield Problem("nothing says when it is lifted", drill.source, do="add `lasts_s:` or `lift_at:`")


def _runbook_problems(drill: Drill, books: Mapping[str, Runbook]) -> Iterator[Problem]:
    if not drill.runbook:
        return
    book = books.get(drill.runbook)
    if book is None:
        what = f"`runbook` is `{drill.runbook}`, which is no runbook"
        yield Problem(what, drill.source, do=near(drill.runbook, books))
        return
    by_hand = [str(n) for n, step in enumerate(book.steps, start=1) if step.by_hand]
    if drill.lift_at and str(drill.lift_at) not in by_hand:
        what = f"`lift_at` is {drill.lift_at}, and that step of {book.id} is not done by hand"
        yield Problem(what, drill.source, do=f"one of: {', '.join(by_hand) or 'none'}")


def _act_problems(act: Act, stand_ins: Iterable[str]) -> Iterator[Problem]:
    given = [kind for kind in KINDS if getattr(act, kind)]
    if len(given) != 1:
        what = f"an act is one of {', '.join(KINDS)}; this one has {' and '.join(given) or 'none'}"
        yield Problem(what, act.source, do="make an act of each")
    for name in (name for text in texts_of(act) for name in NAME.findall(text)):
        if name not in WORDS:
            yield Problem(f"`{{{{{name}}}}}` names nothing here", act.source, do=near(name, WORDS))
    if act.stand_in and act.stand_in not in stand_ins:
        yield Problem(f"`{act.stand_in}` is no stand-in", act.source, do=near(act.stand_in, stand_ins))
    yield from _pattern_problems(act.process, act.source)


def _pattern_problems(pattern: str, where: str) -> Iterator[Problem]:
    try:
        re.compile(pattern)
    except re.error as error:
        yield Problem(f"`{pattern}` is no regular expression: {error}", where, do="correct it")
