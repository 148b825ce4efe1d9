"""A role step's parameters, compiled: which texts are templates, and where each stands; knows no host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from launcher.load.schema import near
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Setting
from launcher.model.role import Role, RoleStep
from launcher.model.values import Json
from launcher.resolve.templates import Template, compiled, is_template

CONTENT = ("content", "template", "file")
"""Words that all fill the parameter `content`: the text itself, a file in templates/, one in files/."""
OF_SUBJECT = frozenset({"host", "process", "instance", "router", "front"})
"""Names whose values differ from host to host; a text without them is rendered once."""

Tree: TypeAlias = "Template | Json | bytes | list[Tree] | dict[str, Tree]"


@dataclass(frozen=True, slots=True, eq=False)
class Param:
    """One parameter with its texts compiled."""

    tree: Tree
    source: str
    fixed: bool
    """Does not look up anything that differs from host to host."""

    def render(self, values: Mapping[str, object]) -> object:
        """The parameter with all its texts rendered."""
        return _render(self.tree, values)


def read_params(role: Role, step: RoleStep, *, has_content: bool) -> dict[str, Param]:
    """The step's parameters by name, `template` and `file` turned into `content` where the kind has one."""
    words = [w for w in CONTENT if w in step.params] if has_content else []
    if len(words) > 1:
        problem = Problem(
            what=f"step {role.name}/{step.name} has {' and '.join(words)}",
            where=step.params[words[1]].source,
            do="keep one of them",
        )
        raise InputError(problem)
    params = {name: _param(s) for name, s in step.params.items() if name not in words}
    if words:
        params["content"] = _content(role, words[0], step.params[words[0]])
    return params


def _param(setting: Setting) -> Param:
    path, _, line = setting.source.rpartition(":")
    return _compiled(setting.value, setting.source, path=path, line=int(line) if line.isdigit() else 1)


def _content(role: Role, word: str, setting: Setting) -> Param:
    name = str(setting.value)
    match word:
        case "content":
            return _param(setting)
        case "template":
            if name not in role.templates:
                raise InputError(_no_file(f"template `{name}`", setting.source, role.templates))
            path = f"{role.source.rpartition('/')[0]}/templates/{name}"
            return _compiled(role.templates[name], setting.source, path=path, line=1)
        case _:
            if name not in role.files:
                raise InputError(_no_file(f"file `{name}`", setting.source, role.files))
            return Param(_text_or_bytes(role.files[name]), setting.source, fixed=True)


def _text_or_bytes(content: bytes) -> str | bytes:
    """Text where it is text, for that can be shown as a difference."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _no_file(what: str, where: str, known: Mapping[str, object]) -> Problem:
    return Problem(f"the role has no {what}", where=where, do=near(what.split("`")[1], known))


def _compiled(value: Json, source: str, *, path: str, line: int) -> Param:
    tree = _compile(value, path, line)
    names = frozenset(name for template in _templates(tree) for name in template.names)
    return Param(tree, source, fixed=not names & OF_SUBJECT)


def _compile(value: Json, path: str, line: int) -> Tree:
    match value:
        case str() if is_template(value):
            return compiled(value, path, line)
        case list():
            return [_compile(v, path, line) for v in value]
        case dict():
            return {k: _compile(v, path, line) for k, v in value.items()}
        case _:
            return value


def _templates(tree: Tree) -> Iterator[Template]:
    match tree:
        case Template():
            yield tree
        case list():
            for inner in tree:
                yield from _templates(inner)
        case dict():
            for inner in tree.values():
                yield from _templates(inner)


def _render(tree: Tree, values: Mapping[str, object]) -> object:
    match tree:
        case Template():
            return tree.render(values)
        case list():
            return [_render(inner, values) for inner in tree]
        case dict():
            return {k: _render(inner, values) for k, inner in tree.items()}
        case _:
            return tree
