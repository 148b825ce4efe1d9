"""Words of a command → the vLLM server that it starts, behind whatever wrappers; knows no shell syntax."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from launcher.load.foreign.container import of_run
from launcher.load.foreign.expand import Word
from launcher.load.foreign.marks import bare, told
from launcher.model.launch import Container

MODULE = "vllm.entrypoints.openai.api_server"
WRAPPER = re.compile(
    r"(?![\w.]*(?:bench|client|collect|eval|test)|vllm\.entrypoints\.cli)"
    r"(?:[A-Za-z_]\w*\.)*vllm(?:\.[A-Za-z_]\w*)*"
)
"""A module that starts an engine of vLLM where it is given `--model`: it has flags of its own beside."""
BEGINS = re.compile(
    r"\bvllm['\"]?\s+serve\b|vllm[./]entrypoints[./](openai[./]api_server|cli[./]main)"
    rf"|\s-m['\"]?\s+['\"]?{WRAPPER.pattern}(?=['\"\s])"
)
"""In any text: it may start vLLM."""
TALK = frozenset(
    {
        "echo",
        "printf",
        "cat",
        "tee",
        "grep",
        "egrep",
        "fgrep",
        "pgrep",
        "pkill",
        "ps",
        "kill",
        "killall",
        "which",
        "type",
        "awk",
        "sed",
        "logger",
        "alias",
    }
)
"""Commands that name vLLM and start none."""
SHELLS = frozenset(
    {
        "bash",
        "sh",
        "zsh",
        "dash",
        "ksh",
        "ssh",
        "su",
        "runuser",
        "eval",
        "tmux",
        "screen",
        "docker",
        "podman",
        "nerdctl",
        "kubectl",
    }
)
SHELLS |= frozenset(
    {
        "srun",
        "mpirun",
        "pdsh",
        "clush",
        "parallel",
        "nohup",
        "timeout",
        "setsid",
        "systemd-run",
        "xargs",
        "sudo",
    }
)
"""Programs that may take a whole command line as one argument."""
ELSEWHERE = frozenset({"ssh", "pdsh", "clush", "kubectl", "docker", "podman", "nerdctl"})
"""Of these, the ones that hand on no variables of the shell that calls them."""
CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
LONE = frozenset(
    {
        "d",
        "i",
        "t",
        "rm",
        "privileged",
        "init",
        "P",
        "publish-all",
        "read-only",
        "detach",
        "interactive",
        "tty",
        "q",
        "quiet",
    }
)
LONE |= frozenset({"no-healthcheck", "oom-kill-disable", "sig-proxy", "disable-content-trust", "help"})
"""Options of `docker run` that take no value."""
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
IMAGE = re.compile(r"(?:.*/)?vllm-openai(?:-[\w.-]+)?(?::[\w.-]+)?")
"""Its entry point is the server."""
RELEASE = re.compile(
    r"(?:(?:.*/)?vllm/)?vllm-openai(?:-[\w.-]+)?:v?(\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?)(?![\d.]).*"
)
"""The project's own image, whose tag is vLLM's release; others count their own."""


@dataclass(frozen=True, slots=True)
class Start:
    """A server's arguments, and what was said for its process."""

    args: tuple[Word, ...]
    line: int
    serve: bool = True
    """`vllm serve`, which takes the model as a word; else the module, which does not."""
    wrapper: str = ""
    """The module of another program that starts the engine; it may set flags and variables itself."""
    variables: Mapping[str, Word] = field(default_factory=dict)
    more_variables: bool = False
    image: str = ""
    hints: tuple[str, ...] = ()
    """Names around it, the nearest first."""
    contained: bool = False
    """In a container or on another host: it has no variables of the shell that starts it."""
    container: Container | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A whole script in one argument, as of `bash -c`, that some shell will read."""

    text: str
    start: Start
    """What was said outside; without arguments."""


def begun(words: Sequence[Word]) -> Start | Text | None:
    """What a command starts; None: no vLLM server."""
    names = [_base(w.text) for w in words]
    if not words or names[0] in TALK:
        return None
    container = next((i for i, n in enumerate(names) if n in CONTAINERS), None)
    if container is not None and "run" in names[container + 1 : container + 3]:
        return _contained(words[container + 1 + names[container + 1 :].index("run") :])
    return _plain(words, names)


def _plain(words: Sequence[Word], names: Sequence[str]) -> Start | Text | None:
    shells: set[str] = set()
    for index, (word, name) in enumerate(zip(words, names, strict=True)):
        length, serve = _door(words, names, index)
        wrapper = "" if length else _wrapper(words, index)
        if length or wrapper:
            rest = tuple(words[index + (length or 2) :])
            variables = _assigned(words[:index])
            return Start(rest, word.line, serve=serve, wrapper=wrapper, variables=variables)
        if shells and BEGINS.search(word.text):
            away = bool(ELSEWHERE & shells)
            outer = Start((), word.line, variables=_assigned(words[:index]), contained=away)
            return Text(word.text, outer)
        shells |= {name} & SHELLS
    return None


def _door(words: Sequence[Word], names: Sequence[str], at: int) -> tuple[int, bool]:
    """How many words from `at` on call the server (0: none), and whether as `vllm serve`."""
    following = [word.text for word in words[at + 1 : at + 3]]
    if names[at] == "vllm" and following[:1] == ["serve"]:
        return 2, True
    if names[at] == "-m" and following == ["vllm.entrypoints.cli.main", "serve"]:
        return 3, True
    if names[at] == "-m" and following[:1] == [MODULE]:
        return 2, False
    return (1, False) if words[at].text.endswith("vllm/entrypoints/openai/api_server.py") else (0, False)


def _wrapper(words: Sequence[Word], at: int) -> str:
    """The module that is called from `at` on, if it wraps vLLM."""
    module = words[at + 1].text if words[at].text == "-m" and at + 1 < len(words) else ""
    named = any(word.text == "--model" or word.text.startswith("--model=") for word in words[at + 2 :])
    return module if named and WRAPPER.fullmatch(module) else ""


def release(image: str) -> str:
    """vLLM's release by the tag of an image; empty if it does not say.

    >>> release("vllm/vllm-openai:v0.14.1-cu130"), release("lmcache/vllm-openai:v0.3.1")
    ('0.14.1', '')
    """
    found = RELEASE.fullmatch(image.partition("@")[0])
    return found[1] if found else ""


def serves(image: str) -> bool:
    """Does a container of this image start the server by itself?"""
    return IMAGE.fullmatch(image.partition("@")[0]) is not None


def with_entry(image: str, words: Sequence[Word]) -> list[Word]:
    """A container's arguments with the entry point of its image before them, if that is known.

    Both entry points that there have been take a model by `--model`; only the newer one takes it as a word.
    """
    if words and serves(image) and not _plain(words, [_base(w.text) for w in words]):
        line = words[0].line
        return [Word("vllm", line), Word("serve", line), *words]
    return list(words)


def _contained(words: Sequence[Word]) -> Start | Text | None:
    """`run OPTIONS IMAGE ARGUMENTS`: variables, name and image."""
    variables: dict[str, Word] = {}
    more, entry, hints, at = False, "", [], 1
    options: list[tuple[str, str]] = []
    while at < len(words) and words[at].text.startswith("-"):
        option, joined, value = words[at].text.lstrip("-").partition("=")
        lone = option in LONE or (not words[at].text.startswith("--") and set(option) <= set("ditPq"))
        if not joined and not lone and words[at].text not in ("-", "--"):
            at += 1
            value = words[at].text if at < len(words) else ""
        if option in ("e", "env"):
            more |= not _variable(Word(value, words[min(at, len(words) - 1)].line), variables)
        more |= option == "env-file"
        entry = _base(value) if option == "entrypoint" else entry
        hints += [value] if option in ("name", "hostname", "h") else []
        options.append((option, value))
        at += 1
    if at >= len(words):
        return None
    image, rest = words[at].text, list(words[at + 1 :])
    # of others than vLLM: a shell, then, and `-c` with its text
    program = Word("vllm" if entry == "vllm" else "bash", words[at].line)
    rest = [program, *rest] if entry else with_entry(image, rest)
    found = _plain(rest, [_base(w.text) for w in rest])
    outside = Start((), words[0].line, image=image if told(image) else "", hints=tuple(hints))
    outside = replace(outside, variables=variables, more_variables=more, contained=True)
    outside = replace(outside, container=of_run(options, outside.image))
    if isinstance(found, Start):
        return merge(outside, found)
    return None if found is None else Text(found.text, merge(outside, found.start))


def merge(outside: Start, inside: Start) -> Start:
    """What is said of a process in two places; the inner one counts."""
    return replace(
        inside,
        variables={**outside.variables, **inside.variables},
        more_variables=outside.more_variables or inside.more_variables,
        image=inside.image or outside.image,
        hints=(*inside.hints, *outside.hints),
        contained=outside.contained or inside.contained,
        container=inside.container or outside.container,
    )


def _variable(word: Word, into: dict[str, Word]) -> bool:
    """`A=b`; a name alone takes what the caller has, which cannot be told."""
    found = ASSIGNMENT.fullmatch(word.text)
    if found:
        into[found[1]] = Word(found[2], word.line)
    return found is not None


def _assigned(words: Sequence[Word]) -> dict[str, Word]:
    """`env A=b` and its like, before the program."""
    variables: dict[str, Word] = {}
    for word in words:
        _variable(word, variables)
    return variables


def _base(text: str) -> str:
    return bare(text).rsplit("/", 1)[-1]
