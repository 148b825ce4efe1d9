"""Page: a report as sections of words, tables, plots and pictures; knows neither HTML nor Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.bench.plot import Plot
from launcher.model.measurement import Served


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Word:
    """A line with a verdict in front of it; empty: a line like any other."""

    text: str
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Who serves where: hosts that route before instances, each with its hosts, ranks and GPUs."""

    front: str
    routers: tuple[str, ...]
    instances: tuple[Served, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    title: str
    words: tuple[Word, ...] = ()
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    picture: Picture | None = None
    code: str = ""
    """As it is, line by line."""


@dataclass(frozen=True, slots=True)
class Page:
    """The whole report."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]
