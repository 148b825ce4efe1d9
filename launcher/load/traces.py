"""Traces of torch's profiler, and configs/profile.yaml → TraceEvents, Capture; read piece by piece."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from launcher.load.data import Data
from launcher.load.schema import filled
from launcher.model.problem import InputError, Problem
from launcher.model.trace import Capture, TraceEvent

FILE = "configs/profile.yaml"
PIECE = 1 << 20
"""Characters; a trace is never in memory as a whole."""
BEGINS = re.compile(r'"traceEvents"\s*:\s*\[')


def read_capture(data: Data) -> Capture:
    """How it is captured, and what names mean. InputError where the file is not as it should be."""
    path = data.find(FILE)
    if path is None:
        raise InputError(Problem("no such file", where=FILE, do="restore it: it comes with this program"))
    document = data.document(path)
    return filled(Capture, document)


def read_trace(path: Path) -> Iterator[TraceEvent]:
    """What took time in a Chrome trace, compressed or not. InputError for another file, and for one that ends
    in the middle."""
    try:
        with _opened(path) as file:
            yield from (event for told in _objects(file, path) if (event := _event(told)))
    except (OSError, EOFError) as error:
        raise InputError(_none(path, str(error).lower())) from None


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace")


def _objects(file: TextIO, path: Path) -> Iterator[Any]:
    """Each element of `traceEvents`."""
    decoder = json.JSONDecoder()
    text = ""
    while not (begins := BEGINS.search(text)):
        piece = file.read(PIECE)
        if not piece:
            raise InputError(_none(path, "it has no list of events"))
        text += piece
    at = begins.end()
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if text[at : at + 1] == "]":
            return
        try:
            told, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            piece = file.read(PIECE)
            if not piece:
                raise InputError(_none(path, "it ends in the middle")) from None
            text, at = text[at:] + piece, 0
            continue
        yield told


def _event(told: Any) -> TraceEvent | None:
    """A complete event (`X`); all else has no time of its own."""
    if not isinstance(told, dict) or told.get("ph") != "X" or "dur" not in told:
        return None
    lane = (str(told.get("pid")), str(told.get("tid")))
    return TraceEvent(
        lane, str(told.get("cat", "")), str(told.get("name", "")), float(told["ts"]), float(told["dur"])
    )


def _none(path: Path, why: str) -> Problem:
    return Problem(f"this is no whole trace: {why}", str(path), do="capture again, or fetch it again")
