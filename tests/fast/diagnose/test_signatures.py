"""configs/signatures: each sample is what it says, each near line is not, each `do` can be done."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from launcher.cli.runbookrun import command_table
from launcher.health.diagnose import diagnose, filled
from launcher.health.matches import Match, holds_in, read_matches
from launcher.load.choice import Choice
from launcher.load.data import Data, shipped
from launcher.load.engines import read_engine
from launcher.load.signatures import read_log_knowledge
from launcher.model.signature import LogLine, Signature

DATA = Data((shipped(),))
KNOWN = read_log_knowledge(DATA)
ENGINE = read_engine(Choice("vllm-0.33", ""), DATA)
EDIT = re.compile(r"in the (inventory|layout|stack): \S.*")
HOST_COMMAND = re.compile(r"on h1: (\S+)( .*)?")
HOLE = re.compile(r"\{\w+\}")


def lines_of(text: str, *, times: int = 1) -> list[LogLine]:
    """A log of an instance that said something harmless a minute before."""
    before = LogLine(
        "h1", "dsv32-decode-0", 40.0, "(APIServer pid=1) INFO 11-29 18:00:00 [a.py:1] hello", "decode-0"
    )
    texts = text.splitlines() * times
    return [before, *(LogLine("h1", "dsv32-decode-0", 100.0 + n, t, "decode-0") for n, t in enumerate(texts))]


def matches(text: str, *, times: int = 1) -> tuple[Match, ...]:
    return read_matches(lines_of(text, times=times), KNOWN, ENGINE, version="")


def matched(text: str, *, times: int = 1) -> list[str]:
    return [m.signature.id for m in matches(text, times=times) if m.signature]


@pytest.mark.parametrize("signature", KNOWN.signatures, ids=lambda s: s.id)
def test_a_sample_is_what_it_says_and_a_near_line_is_not(signature: Signature) -> None:
    for sample in signature.samples:
        first = next(iter(matched(sample, times=signature.times)), "nothing")
        assert first == signature.id, f"{signature.source}: {sample!r} is taken for {first}"
    for near in signature.near:
        assert signature.id not in matched(near, times=signature.times), f"{signature.source}: {near!r}"


@pytest.mark.parametrize("signature", KNOWN.signatures, ids=lambda s: s.id)
def test_what_is_said_of_a_sample_has_no_holes_and_can_be_done(signature: Signature) -> None:
    for sample in signature.samples:
        match = next(m for m in matches(sample, times=signature.times) if m.signature is signature)
        do = filled(signature.do, match)
        assert not HOLE.search(filled(signature.likely, match))
        confirm = signature.confirm.run if signature.confirm else ()
        assert not any(HOLE.search(filled(word, match)) for word in confirm)
        if host := HOST_COMMAND.fullmatch(do):
            assert host[1] in HOST_PROGRAMS
        elif not EDIT.fullmatch(do):
            for command in do.split(" && "):
                parse(shlex.split(command))


HOST_PROGRAMS = {
    *(
        "apt-cache",
        "apt-get",
        "cat",
        "df",
        "dkms",
        "dmesg",
        "free",
        "getent",
        "grep",
        "journalctl",
        "modprobe",
        "nvidia-smi",
    ),
    *("ps", "rm", "show_gids", "ss", "sysctl", "systemctl", "timedatectl", "uname"),
}


def parse(words: list[str]) -> None:
    """As the command line would; an unknown command or option is an exception."""
    assert words[0] == "dsv32-launch", words
    command_table()[words[1]].make_context(words[1], [*words[2:]], resilient_parsing=False)


def test_what_the_facts_hold_is_there() -> None:
    assert len(KNOWN.signatures) >= 120
    assert sum(bool(s.near) for s in KNOWN.signatures) >= 90


@pytest.mark.parametrize("signature", [s for s in KNOWN.signatures if s.until or s.since], ids=lambda s: s.id)
def test_a_signature_of_other_releases_says_nothing(signature: Signature) -> None:
    outside = signature.until or "0.1.0"
    assert not holds_in(signature, outside)
    inside = signature.since or "0.1.0"
    told = diagnose(lines_of(signature.samples[0], times=signature.times), KNOWN, ENGINE, version=inside)
    assert signature.id in [c.signature.id for c in told.causes if c.signature]
    told = diagnose(lines_of(signature.samples[0], times=signature.times), KNOWN, ENGINE, version=outside)
    assert signature.id not in [c.signature.id for c in told.causes if c.signature]
    told = diagnose(lines_of(signature.samples[0], times=signature.times), KNOWN, ENGINE)
    assert [c.sure for c in told.causes if c.signature is signature] == ["depends"]


def chains() -> Iterator[tuple[Signature, str]]:
    for signature in KNOWN.signatures:
        for name in signature.of:
            yield signature, name


def test_no_signature_explains_itself() -> None:
    assert [s.id for s, name in chains() if name == s.id] == []
