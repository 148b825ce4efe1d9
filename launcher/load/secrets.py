"""Where each secret's value comes from → Secret; knows not who uses it, and never prints one."""

from __future__ import annotations

import re
import shlex
import stat
import subprocess
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from launcher.load.collect import Collector
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Setting
from launcher.model.secret import Secret

SOURCE = re.compile(r"(env:[A-Za-z_][A-Za-z0-9_]*|file:\S.*|command:\s*\S.*)")
NAME = re.compile(r"[a-z][a-z0-9_]*")
WITHIN_S = 30
"""For a command that prints a secret; a password manager that asks a question would hang a run."""


def source_problems(secrets: Mapping[str, Setting]) -> Iterator[Problem]:
    """Secrets whose name or source has not the right form."""
    for name, setting in secrets.items():
        if not NAME.fullmatch(name):
            what = f"secret name `{name}` is not lower-case letters, digits and `_`"
            yield Problem(what, where=setting.source, do=f"rename it, for instance `{_as_name(name)}`")
        if not isinstance(setting.value, str) or not SOURCE.fullmatch(setting.value):
            # What stands there may be the secret itself: it is not repeated.
            what = f"secret `{name}` has no source, expected env:NAME, file:PATH or command:WORDS"
            why = "the inventory names where a secret comes from, never its value"
            yield Problem(what, where=setting.source, why=why, do=f'write `{name}: "env:{name.upper()}"`')
        elif (words := setting.value.partition("command:")[2]) and _words(words) is None:
            what = f"secret `{name}`: a quote in the command is not closed"
            yield Problem(what, where=setting.source, do="close it")


def open_secrets(
    secrets: Mapping[str, Setting], *, environment: Mapping[str, str], beside: Path
) -> Mapping[str, Secret]:
    """The values. Files are relative to `beside`, the inventory's folder. InputError names all that fail."""
    problems = Collector()
    opened = {
        name: problems.attempt(partial(_open, name, setting, environment, beside))
        for name, setting in secrets.items()
    }
    problems.raise_any()
    return {name: secret for name, secret in opened.items() if secret is not None}


def _open(name: str, setting: Setting, environment: Mapping[str, str], beside: Path) -> Secret:
    kind, _, rest = str(setting.value).partition(":")
    if kind == "env":
        value = environment.get(rest, "")
        do = f"export {rest}=..."
    elif kind == "file":
        value = _from_file(
            name, beside / (Path(rest).expanduser() if rest.startswith("~/") else rest), setting.source
        )
        do = f"write it into {rest}"
    else:
        value = _from_command(name, rest, setting.source)
        do = "run the command by hand and see what it prints"
    value = value[:-1] if value.endswith("\n") else value
    if not value:
        what = f"secret `{name}` is empty, from {kind}:{rest if kind != 'command' else '...'}"
        raise InputError(Problem(what, where=setting.source, do=do))
    return Secret(name, value)


def _from_file(name: str, path: Path, where: str) -> str:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            what = f"secret `{name}`: {path} has mode {mode:04o}, expected 0600"
            why = "others on this machine can read it"
            raise InputError(Problem(what, where=where, why=why, do=f"chmod 600 {shlex.quote(str(path))}"))
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", None) or "not UTF-8 text").lower()
        raise InputError(
            Problem(f"secret `{name}`: {path}: {reason}", where=where, do="write the secret into that file")
        ) from None


def _from_command(name: str, command: str, where: str) -> str:
    words = _words(command) or []
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN_S, text=True
        )
    except subprocess.TimeoutExpired:
        raise InputError(_failed(name, words, f"gave no answer within {WITHIN_S} s", where)) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", None) or "printed no UTF-8 text").lower()
        raise InputError(_failed(name, words, reason, where)) from None
    if done.returncode:
        raise InputError(_failed(name, words, f"exit {done.returncode}", where))
    return done.stdout


def _failed(name: str, words: list[str], reason: str, where: str) -> Problem:
    what = f"secret `{name}`: `{words[0]}`: {reason}"
    return Problem(what, where=where, do=f"run it by hand: {shlex.join(words)}")


def _words(command: str) -> list[str] | None:
    try:
        return shlex.split(command)
    except ValueError:
        return None


def _as_name(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", text.lower()).strip("_0123456789") or "api_key"
