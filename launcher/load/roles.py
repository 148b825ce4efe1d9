"""roles/ → Role with raw templates, sorted by stage and `needs`; knows nothing of rendering and kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from pathlib import Path

from launcher.load.collect import Collector
from launcher.load.data import Data, unknown
from launcher.load.document import Document, Location, Value
from launcher.load.schema import fill, filled, near
from launcher.load.shape import as_text
from launcher.model.inventory import PoolName
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Platform, Setting, Stack
from launcher.model.role import STAGES, Each, Role, RoleStep, Stage


@dataclass(frozen=True, slots=True)
class RoleFile:
    """role.yaml, as written; its steps are read apart, for their parameters belong to their kinds."""

    about: str
    """One sentence: what is true on a host that has this role."""
    stage: Stage
    pools: tuple[PoolName, ...] = ()
    """The pools whose hosts get it; absent: all hosts."""
    needs: tuple[str, ...] = ()
    """Roles that come before, within the same stage or earlier."""
    halts: bool = False
    """Its changes are made only while no engine runs on the host: drivers, and what they serve."""


@dataclass(frozen=True, slots=True)
class StepFile:
    """The words of a step that are the same for all kinds."""

    kind: str
    each: Each = "host"
    restart_on: tuple[str, ...] = field(default=())
    stays: bool = False


def read_roles(
    stack: Stack, data: Data, problems: Collector, *, platform: Platform | None = None
) -> tuple[Role, ...]:
    """The roles of stack and platform in the order in which they are applied; a role of both counts once.
    Roles that are not there are left out."""
    known = data.names("roles", holding="role.yaml")
    named = dict.fromkeys((*stack.roles, *(platform.roles if platform else ())))
    names = [name for name in named if name in known]
    problems.keep(_repeated(stack))
    problems.keep(_repeated(platform) if platform else ())
    read = [problems.attempt(partial(read_role, name, data)) for name in names]
    roles = {role.name: role for role in read if role is not None}
    if len(roles) < len(named):
        return ()
    wrong = tuple(_need_problems(roles, stack))
    problems.keep(wrong)
    return () if wrong else problems.attempt(partial(_sorted, roles)) or ()


def read_role(name: str, data: Data) -> Role:
    """One folder of roles/."""
    path = data.find(f"roles/{name}/role.yaml")
    if path is None:
        raise InputError(unknown("role", name, where="roles", known=data.names("roles", holding="role.yaml")))
    document = data.document(path)
    assert isinstance(document.values, dict)
    problems = Collector()
    head = problems.attempt(lambda: filled(RoleFile, document, without="steps"))
    steps = problems.attempt(lambda: _read_steps(document))
    problems.raise_any()
    assert head is not None
    assert steps is not None
    templates = {p.name: data.text(p) for p in _files(path.parent / "templates")}
    files = {p.name: data.content(p) for p in _files(path.parent / "files")}
    return Role(
        name=name,
        about=head.about,
        stage=head.stage,
        pools=head.pools,
        needs=head.needs,
        halts=head.halts,
        steps=steps,
        templates=templates,
        files=files,
        source=document.place(()),
    )


@lru_cache(maxsize=256)
def _read_steps(document: Document) -> tuple[RoleStep, ...]:
    assert isinstance(document.values, dict)
    written = document.values.get("steps", {})
    if not isinstance(written, dict):
        if written == "":
            return ()
        what = "`steps` is not a mapping of names to steps"
        raise InputError(Problem(what, where=document.place(("steps",)), do="write `name: {kind: ...}`"))
    problems = Collector()
    read = [
        problems.attempt(partial(_read_step, document, ("steps", name), value))
        for name, value in written.items()
    ]
    steps = tuple(step for step in read if step is not None)
    for step in steps:
        for index, other in enumerate(step.restart_on):
            if other not in written:
                where = document.place(("steps", step.name, "restart_on", index))
                problems.keep([Problem(f"unknown step `{other}`", where=where, do=near(other, written))])
    problems.raise_any()
    return steps


def _read_step(document: Document, location: Location, value: Value) -> RoleStep:
    where = document.place(location)
    if not isinstance(value, dict):
        raise InputError(Problem(f"step `{location[-1]}` has no keys", where=where, do="add `kind:`"))
    common = {f.name for f in fields(StepFile)}
    words = {key: item for key, item in value.items() if key in common}

    def place(inner: Location) -> str:
        return document.place((*location, *inner))

    head = fill(StepFile, words, place=place)
    params = {
        key: Setting(as_text(item), document.place((*location, key)))
        for key, item in value.items()
        if key not in common
    }
    return RoleStep(
        name=str(location[-1]),
        kind=head.kind,
        each=head.each,
        restart_on=head.restart_on,
        params=params,
        source=where,
        stays=head.stays,
    )


def _files(folder: Path) -> Iterator[Path]:
    """Plain files of a folder; hidden ones are an editor's."""
    if folder.is_dir():
        yield from (p for p in sorted(folder.iterdir()) if p.is_file() and not p.name.startswith("."))


def _repeated(stack: Stack | Platform) -> Iterator[Problem]:
    for name in dict.fromkeys(stack.roles):
        if stack.roles.count(name) > 1:
            what = f"role `{name}` is listed {stack.roles.count(name)} times"
            yield Problem(what, where=stack.source, do="keep one of them: `needs` says the order")


def _need_problems(roles: Mapping[str, Role], stack: Stack) -> Iterator[Problem]:
    for role in roles.values():
        for need in role.needs:
            other = roles.get(need)
            if other is None:
                what = f"role `{role.name}` needs `{need}`, which stack `{stack.name}` does not have"
                yield Problem(what, where=role.source, do=f"add `{need}` to roles in {stack.source}")
            elif STAGES.index(other.stage) > STAGES.index(role.stage):
                what = f"role `{role.name}` ({role.stage}) needs `{need}` of a later stage ({other.stage})"
                yield Problem(what, where=role.source, do="remove the need, or move one of them")


def _sorted(roles: Mapping[str, Role]) -> tuple[Role, ...]:
    """By stage; within one, after all that a role needs, else by name. InputError where needs go round."""
    waiting = sorted(roles.values(), key=lambda role: (STAGES.index(role.stage), role.name))
    done: dict[str, Role] = {}
    while waiting:
        ready = next((role for role in waiting if all(need in done for need in role.needs)), None)
        if ready is None:
            what = f"roles need each other in a circle: {', '.join(role.name for role in waiting)}"
            raise InputError(Problem(what, where=waiting[0].source, do="remove one `needs`"))
        done[ready.name] = ready
        waiting.remove(ready)
    return tuple(done.values())
