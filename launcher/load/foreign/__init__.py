"""Files that others wrote → Launches: command lines, scripts, environment files, units, Compose, Kubernetes.

Nothing is run and nothing is fetched. What a file does not tell is unknown, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.load.document import Document, parse_foreign
from launcher.load.foreign.build import Context, Given, build, settings, with_instances
from launcher.load.foreign.compose import is_compose, read_compose
from launcher.load.foreign.environment import is_environment, read_environment
from launcher.load.foreign.expand import Scope
from launcher.load.foreign.fenced import blocks, is_fenced
from launcher.load.foreign.loose import commands
from launcher.load.foreign.manifest import Pod, is_manifest, read_manifest
from launcher.load.foreign.marks import clean
from launcher.load.foreign.shell import MOST, Shell
from launcher.load.foreign.side import by_name
from launcher.load.foreign.starts import BEGINS
from launcher.load.foreign.template import branches, is_template, without_placeholders, without_template
from launcher.load.foreign.unit import is_unit, read_unit
from launcher.model.launch import Launch
from launcher.model.problem import InputError, Problem

__all__ = ["Given", "Reading", "read_file", "read_text"]

LARGEST = 1 << 20
"""Bytes."""
MARKED = re.compile(r"^(?:services|kind|apiVersion):", re.MULTILINE)
PINNED = re.compile(r"\bvllm(?:\[[\w,]*\])?==(\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?)")
MODULE_WITH_FLAGS = re.compile(r"\s-m\s+([A-Za-z_][\w.]*)\s+(?:--|\\$)")
LOOKED_FOR = (
    "looked for `vllm serve`, the module vllm.entrypoints.openai.api_server, other modules of vLLM that are "
    "given --model, and containers of vllm-openai"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file starts, and what of it could not be read or reads otherwise than it looks."""

    launches: tuple[Launch, ...]
    problems: tuple[Problem, ...] = ()
    """Empty `launches` has at least one that says why."""


def read_file(path: Path, *, given: Given) -> Reading:
    """A file of any of the forms, told by its content. Never raises for what is in it."""
    try:
        with path.open("rb") as file:  # which may be a pipe, or have no end
            content = file.read(LARGEST + 1)
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        return _nothing(Problem(f"cannot be read: {reason}", where=str(path), do="name a file"))
    if len(content) > LARGEST:
        what = f"the file is larger than {LARGEST >> 20} MiB"
        return _nothing(Problem(what, where=str(path), do="name the script or manifest itself"))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"byte 0x{content[error.start]:02x} is not UTF-8"
        where = f"{path}:{content.count(bytes([10]), 0, error.start) + 1}"
        return _nothing(Problem(what, where=where, do="name a text file"))
    return read_text(text, str(path), given=given, beside=path.parent)


def read_text(text: str, name: str, *, given: Given, beside: Path | None = None) -> Reading:
    """The text of such a file. `name` is how messages call it; files that it names are read from `beside`."""
    if "\0" in text or len(text) > LARGEST:
        return _nothing(Problem("this is no text file", where=name, do="name a script or manifest"))
    text = without_placeholders(clean(text))
    pinned = set(PINNED.findall(text))
    context = Context(name, _reader(beside), given, version=pinned.pop() if len(pinned) == 1 else "")
    problems: list[Problem] = []
    template = is_template(text)
    try:
        launches = _launches(without_template(text) if template else text, context, problems)
    except InputError as error:
        launches = []
        problems.extend(error.problems)
    if not launches and not problems:
        problems.append(_no_launch(text, name))
    if len(launches) >= MOST:
        problems.append(
            Problem(f"{MOST} launches and more, the others were not read", where=name, do="split it")
        )
    if template and (branches(text) or any(map(_filled_in, launches))):
        problems.insert(0, _template(name))
    return Reading(tuple(with_instances(launches[:MOST])), tuple(dict.fromkeys(problems)))


def _launches(text: str, context: Context, problems: list[Problem]) -> list[Launch]:
    if is_unit(text):
        return _of_unit(text, context, problems)
    if is_environment(text) and not BEGINS.search(text):  # `A=b vllm serve` is a command
        return [_of_environment(text, context)]
    found = [
        launch
        for document in _documents(text, context, problems)
        for launch in _of_document(document, context, problems)
    ]
    if found:
        return found
    return _of_texts(text, 1, context, problems)


def _of_texts(
    text: str, line: int, context: Context, problems: list[Problem], *, more_variables: bool = False
) -> list[Launch]:
    """A script, or the scripts within Markdown."""
    parts = blocks(text) if is_fenced(text) and not text.startswith("#!") else [(text, 1)]
    launches: list[Launch] = []
    for part, offset in parts:
        scope = Scope(more_variables=more_variables)
        launches += _of_script(part, line + offset - 1, context, problems, scope=scope)
        if len(launches) >= MOST:
            break
    return launches


def _documents(text: str, context: Context, problems: list[Problem]) -> list[Document]:
    """YAML documents, if the text looks like some; none: it is something else."""
    marked = MARKED.search(text) or context.path.endswith((".yaml", ".yml", ".json"))
    if not marked or text.startswith("#!") or "vllm" not in text.lower():
        return []
    try:
        return parse_foreign(text, context.path)
    except InputError as error:
        problems.extend(error.problems)
        return []


def _of_script(
    text: str, line: int, context: Context, problems: list[Problem], *, scope: Scope
) -> list[Launch]:
    shell = Shell(context.path, context.read_beside)
    shell.script(text, scope, line=line)
    problems.extend(shell.problems if shell.starts or shell.gave_up else ())
    written = replace(context, read_beside=lambda name: _written(shell, name) or context.read_beside(name))
    return [build(start, written, problems) for start in shell.starts]


def _written(shell: Shell, name: str) -> str | None:
    return shell.files.get(name.rsplit("/", 1)[-1])


def _of_environment(text: str, context: Context) -> Launch:
    name = context.path.rsplit("/", 1)[-1]
    pool = context.given.pool or by_name([name])
    return Launch(
        name=name,
        flags={},
        variables=settings(read_environment(text), context.path),
        source=f"{context.path}:1",
        version=context.given.version,
        model=context.given.model,
        hardware=context.given.hardware,
        pool=pool,
        disaggregated=True if pool else None,
        more_flags=True,
        more_variables=True,
    )


def _of_unit(text: str, context: Context, problems: list[Problem]) -> list[Launch]:
    shell, directives = read_unit(text, context.path, context.read_beside)
    problems.extend(shell.problems)
    name = context.path.rsplit("/", 1)[-1]
    described = directives.get("Description", "")
    own = replace(context, name=name, unit=directives, hints=(name, described))
    return [build(start, own, problems) for start in shell.starts]


def _of_document(document: Document, context: Context, problems: list[Problem]) -> list[Launch]:
    shell = Shell(context.path, context.read_beside)
    launches: list[Launch] = []
    if is_compose(document):
        for name, start in read_compose(document, shell):
            launches.append(build(start, replace(context, name=f"service {name}"), problems))
    elif is_manifest(document):
        for found in read_manifest(document, shell):
            launches.append(build(found.start, _of_pod(found.pod, context), problems))
    problems.extend(shell.problems)
    return launches or _of_loose(document, context, problems)  # a ConfigMap, say, that holds a script


def _of_loose(document: Document, context: Context, problems: list[Problem]) -> list[Launch]:
    """Variables may be set anywhere around, in words that only the file's own program knows."""
    launches: list[Launch] = []
    for words, keys in commands(document):
        own = replace(context, hints=keys)
        if len(words) == 1:
            launches += _of_texts(words[0].text, words[0].line, own, problems, more_variables=True)
        else:
            shell = Shell(context.path, context.read_beside)
            shell.command(words, Scope(more_variables=True), line=words[0].line)
            launches += [build(start, own, problems) for start in shell.starts]
    return launches


def _of_pod(pod: Pod, context: Context) -> Context:
    """A pod's own words. The two templates of a group are one instance, each group of a document its own."""
    part = {"leaderTemplate": " leader", "workerTemplate": " worker"}.get(pod.group, "")
    name = f"{pod.kind}/{pod.name}"
    if pod.group and pod.part:
        name = f"{name} {pod.part}"
    place = ".".join(map(str, pod.owner))
    instance = f"{context.path} {pod.namespace} {pod.kind}/{pod.name} {place}" if pod.group else ""
    return replace(context, name=name + part, hints=(*pod.names, pod.name), hosts=pod.size, instance=instance)


def _reader(beside: Path | None) -> Callable[[str], str | None]:
    """Reads files that a text names, by the last part of their paths: those that lie beside it."""

    def read(name: str) -> str | None:
        last = name.rstrip("/").rsplit("/", 1)[-1]
        path = beside / last if beside is not None and last not in ("", ".", "..") else None
        try:
            if path is None or not path.is_file() or path.stat().st_size > LARGEST:
                return None
            return clean(path.read_text("utf-8"))
        except (OSError, ValueError):
            return None

    return read


def _filled_in(launch: Launch) -> bool:
    """Is some of it left to a template?"""
    texts = (str(s.value) for values in (launch.flags, launch.variables) for s in values.values())
    return any("{{" in text or "{%" in text for text in texts)


def _template(name: str) -> Problem:
    what = "this is a template: what stands in `{{ }}` is unknown, and all its branches are read"
    return Problem(what, where=name, do="render it first, for instance by `helm template`, and read that")


def _no_launch(text: str, name: str) -> Problem:
    """What to say of a text in which nothing starts vLLM: where it seems to, or which module it starts."""
    do = "name the file whose command starts the engine"
    for number, line in enumerate(text.splitlines(), 1):
        command = line.partition("#")[0]
        if begins := BEGINS.search(f" {command}"):
            what = f"how `{begins[0].strip()}` is run was not understood"
            why = "it stands in words that no command of the file was seen to run"
            return Problem(
                what, where=f"{name}:{number}", why=why, do="name a file that holds the command itself"
            )
        if module := MODULE_WITH_FLAGS.search(command):
            why = f"{LOOKED_FOR}; the flags of `-m {module[1]}` are not known"
            return Problem(f"no `vllm serve` in {name}", where=f"{name}:{number}", why=why, do=do)
    return Problem(f"no `vllm serve` in {name}", where=name, why=LOOKED_FOR, do=do)


def _nothing(problem: Problem) -> Reading:
    return Reading((), (problem,))
