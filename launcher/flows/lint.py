"""lint: all that is wrong with an inventory or with foreign files, and what is known of such launches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.load import load
from launcher.load.data import Data, roots_of
from launcher.load.schema import near
from launcher.model.finding import RuleFinding
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch
from launcher.model.problem import Exit, InputError, Problem
from launcher.model.rule import Rule
from launcher.model.wish import Wanted
from launcher.resolve import resolve

if TYPE_CHECKING:
    from launcher.load.foreign import Given

RELEASE = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+|$)")
"""What follows a release's numbers (`rc1`, `+cu130`) makes no other one of it."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the user says of foreign files, which do not say it themselves; empty: unknown."""

    release: str = ""
    model: str = ""
    hardware: str = ""
    pool: str = ""

    def check(self, foreign: Sequence[Path]) -> None:
        """InputError where there are no files that it is said of, or the release is none."""
        if self.release and not RELEASE.match(self.release):
            what = f"`{self.release}` is no release of vLLM"
            raise InputError(Problem(what, "--release", do="write it with three numbers, like 0.33.0"))
        said = [word for word in ("release", "model", "hardware") if getattr(self, word)]
        if said and not foreign:
            what = f"--{said[0]} is about the files of --from, and none is named"
            do = "add --from FILE; an inventory says it itself, by its stack, model and hardware"
            raise InputError(Problem(what, f"--{said[0]}", do=do))


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong, and what rules say of the launches."""

    problems: tuple[Problem, ...] = ()
    remarks: tuple[Problem, ...] = ()
    """What in a foreign file cannot be read, or reads otherwise than it looks."""
    findings: tuple[RuleFinding, ...] = ()
    rules: tuple[Rule, ...] = ()
    launches: int = 0

    @property
    def exit_code(self) -> Exit:
        """Errors and warnings that nobody accepted; notes, and what cannot be told, are no reason to stop."""
        severities = {f.severity for f in self.findings if f.counts}
        if self.problems or "error" in severities:
            return Exit.INPUT_WRONG
        return Exit.WARNINGS if severities or self.remarks else Exit.DONE


def lint(
    inventory: Path | None, foreign: Sequence[Path] = (), *, told: Told, data_dir: Path | None = None
) -> Report:
    """Every Problem of the inventory's files, or else of what they add up to, and every finding of the rules.
    Secrets stay closed."""
    told.check(foreign)
    data = Data(roots_of(data_dir))
    knowledge = read(data)
    problems: list[Problem] = []
    remarks: list[Problem] = []
    launches: list[Launch] = []
    if inventory:
        try:
            wanted = resolve(load(inventory, data_dir=data_dir))
            problems += accept_problems(wanted, knowledge)
            launches += _launches_of(wanted)
        except InputError as error:
            problems += error.problems
    if foreign:
        from launcher.load.foreign import read_file

        given = _given(told, data, knowledge)
        for reading in (read_file(path, given=given) for path in foreign):
            (remarks if reading.launches else problems).extend(reading.problems)
            launches += reading.launches
    from launcher.lint.evaluate import evaluate

    findings = evaluate(knowledge, launches)
    return Report(tuple(problems), tuple(remarks), findings, knowledge.rules, len(launches))


def read(data: Data) -> Knowledge:
    """All that is known. InputError with every mistake in it."""
    from launcher.lint.quantities import QUANTITIES
    from launcher.load.knowledge import read_knowledge

    return read_knowledge(data, quantities=QUANTITIES)


def judged(wanted: Wanted, *, data_dir: Path | None = None) -> tuple[RuleFinding, ...]:
    """The findings of a deployment. InputError where one that is an error is not accepted: it would be
    launched to fail."""
    from launcher.lint.evaluate import evaluate

    if wanted.deployment is None:
        return ()
    knowledge = read(Data(roots_of(data_dir)))
    findings = evaluate(knowledge, _launches_of(wanted))
    problems = (
        *accept_problems(wanted, knowledge),
        *(problem_of(f) for f in findings if f.counts and f.severity == "error"),
    )
    if problems:
        raise InputError(*problems)
    return findings


def accept_problems(wanted: Wanted, knowledge: Knowledge) -> Iterator[Problem]:
    """Accepted rules that there are not."""
    from launcher.flows.launches import accepted_of

    ids = [rule.id for rule in knowledge.rules]
    for name, reason in accepted_of(wanted).items():
        if name not in ids:
            yield Problem(f"`accept` names an unknown rule `{name}`", where=reason.source, do=near(name, ids))


def problem_of(finding: RuleFinding) -> Problem:
    """A finding as a Problem."""
    where = "; ".join(finding.places)
    do = f"{finding.fix}; or say why it is meant, in the inventory: accept: {{{finding.rule}: ...}}"
    return Problem(finding.what, where, finding.why, do, more=f"dsv32-launch lint --rule {finding.rule}")


def rules(*, data_dir: Path | None = None) -> tuple[Rule, ...]:
    """All there are."""
    return read(Data(roots_of(data_dir))).rules


def rule_named(name: str, *, data_dir: Path | None = None) -> Rule:
    """One rule; InputError, with what was probably meant, if there is none of that id."""
    by_id = {rule.id: rule for rule in rules(data_dir=data_dir)}
    if name not in by_id:
        raise InputError(Problem(f"unknown rule `{name}`", do=near(name, by_id)))
    return by_id[name]


def _launches_of(wanted: Wanted) -> tuple[Launch, ...]:
    from launcher.flows.launches import launches_of

    return launches_of(wanted)


def _given(told: Told, data: Data, knowledge: Knowledge) -> Given:
    from launcher.load.choice import Choice, names
    from launcher.load.choice import read as chosen
    from launcher.load.foreign import Given
    from launcher.model.profile import Hardware, Model

    models = [chosen(Model, Choice(name, "configs/models"), data) for name in names(Model, data)]
    return Given(
        snapshots=knowledge.snapshots,
        models=models,
        model=chosen(Model, Choice(told.model, "--model"), data) if told.model else None,
        hardware=chosen(Hardware, Choice(told.hardware, "--hardware"), data) if told.hardware else None,
        version=told.release,
        pool=told.pool,
    )
