"""Kubernetes manifests → servers of their containers, wherever a kind keeps its pods; knows no cluster."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from launcher.load.document import Document, Location, Value
from launcher.load.foreign.container import of_pod
from launcher.load.foreign.expand import Scope, Word
from launcher.load.foreign.marks import unresolved
from launcher.load.foreign.shell import Shell
from launcher.load.foreign.starts import Start, with_entry
from launcher.load.foreign.words import MOST_VALUES, text_of, words_of

REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
STRUCTURE = frozenset({"spec", "template", "items", "roles", "leaderWorkerTemplate"})
"""Keys on the way to a group that name no part of a document."""
GROUP = ("LWS_LEADER_ADDRESS", "LWS_WORKER_INDEX", "LWS_GROUP_SIZE")
"""Variables that LeaderWorkerSet gives each pod."""


@dataclass(frozen=True, slots=True)
class Pod:
    """What stands around a container."""

    kind: str
    name: str
    namespace: str = ""
    location: Location = ()
    group: str = ""
    """leaderTemplate or workerTemplate; empty: no group."""
    size: int | None = None
    """Pods of the group."""
    part: str = ""
    """What the document calls the part of it that the group is: a role; empty: it has one group."""
    owner: Location = ()
    """Where the two templates of the group stand."""
    names: tuple[str, ...] = ()
    """Names and labels around it, the nearest first."""
    around: Mapping[str, Value] = field(default_factory=dict)
    """The specification that lists the container."""


@dataclass(frozen=True, slots=True)
class Found:
    """A server of a container, and where."""

    start: Start
    pod: Pod


def is_manifest(document: Document) -> bool:
    """Does it say which kind of thing of Kubernetes it is?"""
    return isinstance(document.values, dict) and {"kind", "apiVersion"} <= set(document.values)


def read_manifest(document: Document, shell: Shell) -> list[Found]:
    """All servers of a document's containers; `shell` reads their scripts and collects Problems."""
    found: list[Found] = []
    for container, pod in _containers(document):
        before = len(shell.starts)
        _run(container, pod, document, shell)
        found += [Found(start, pod) for start in shell.starts[before:]]
    return found


def _containers(document: Document) -> Iterator[tuple[dict[str, Value], Pod]]:
    """Mappings in a list called `containers`, at any depth."""
    values = document.values if isinstance(document.values, dict) else {}
    metadata = values.get("metadata")
    name = text_of(metadata.get("name")) if isinstance(metadata, dict) else ""
    namespace = text_of(metadata.get("namespace")) if isinstance(metadata, dict) else ""
    whole = Pod(text_of(values.get("kind")), name, namespace)
    pending: deque[tuple[Value, Pod]] = deque([(values, whole)])
    seen = 0
    while pending and seen < MOST_VALUES:
        value, pod = pending.popleft()
        seen += 1
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, inner in items:
            below = _below(pod, key, value, inner)
            if key == "containers" and isinstance(inner, list):
                for index, container in enumerate(inner):
                    if isinstance(container, dict):
                        around = value if isinstance(value, dict) else {}
                        yield container, replace(below, location=(*below.location, index), around=around)
            elif not isinstance(inner, str):
                pending.append((inner, below))


def _below(pod: Pod, key: str | int, value: Value, inner: Value) -> Pod:
    """A pod's surroundings one level further down."""
    pod = replace(pod, location=(*pod.location, key), names=(str(key), *_names(value), *pod.names))
    if key in ("leaderTemplate", "workerTemplate") and isinstance(value, dict):
        size = text_of(value.get("size"))
        number = int(size) if re.fullmatch("[0-9]{1,4}", size) else None
        return replace(pod, group=str(key), size=number, owner=pod.location[:-1])
    if pod.group:
        return pod
    named = next(filter(None, _names(inner)), "") if isinstance(key, int) else str(key)
    named = named or str(key)
    return pod if named in STRUCTURE else replace(pod, part=f"{pod.part} {named}".strip())


def _names(value: Value) -> Iterator[str]:
    """Its name and those in its metadata, labels among them."""
    if isinstance(value, dict):
        yield text_of(value.get("name"))
        metadata = value.get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        yield text_of(metadata.get("name")) if isinstance(metadata, dict) else ""
        yield from (text_of(v) for v in labels.values()) if isinstance(labels, dict) else ()


def _run(container: Mapping[str, Value], pod: Pod, document: Document, shell: Shell) -> None:
    scope = _environment(container, pod, document)
    words: list[Word] = []
    for key in ("command", "args"):
        location = (*pod.location, key)
        words += [_referring(w, scope) for w in words_of(container.get(key), location, document)]
    image = text_of(container.get("image"))
    if "command" not in container:
        words = with_entry(image, words)
    before = len(shell.starts)
    shell.command(words, scope, line=words[0].line if words else 1)
    said = of_pod(container, pod.around, image) if image else None
    shell.starts[before:] = [
        replace(s, image=s.image or image, container=s.container or said) for s in shell.starts[before:]
    ]


def _environment(container: Mapping[str, Value], pod: Pod, document: Document) -> Scope:
    # without an image it is a patch of another manifest, which may say more
    scope = Scope(more_variables="envFrom" in container or "image" not in container)
    known = {"LWS_GROUP_SIZE": str(pod.size)} if pod.size is not None else {}
    known |= {"LWS_WORKER_INDEX": "0"} if pod.group == "leaderTemplate" else {}
    for name in GROUP if pod.group else ():
        scope.assign(name, Word(known.get(name, unresolved(f"${name}")), document.line(pod.location)))
        scope.exported.add(name)
    listed = container.get("env")
    for index, item in enumerate(listed if isinstance(listed, list) else ()):
        name = text_of(item.get("name")) if isinstance(item, dict) else ""
        if isinstance(item, dict) and name:
            line = document.line((*pod.location, "env", index))
            value = text_of(item.get("value"))
            text = unresolved(f"$({name})") if "valueFrom" in item else value
            scope.assign(name, _referring(Word(text, line), scope))
            scope.exported.add(name)
    return scope


def _referring(word: Word, scope: Scope) -> Word:
    """`$(NAME)` of a manifest; one that the container does not set stays, for a shell perhaps to run."""

    def known(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        value = scope.variables.get(found[1])
        return value.text if value is not None else found[0]

    return Word(REFERENCE.sub(known, word.text), word.line)
