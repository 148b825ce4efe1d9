"""report: benchmarks as one page, HTML that needs nothing beside itself, and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from launcher.bench.page import Section
from launcher.bench.report import page_of
from launcher.flows.foretold import foretold
from launcher.load.data import Data
from launcher.load.references import read_references
from launcher.model.measurement import Measurement
from launcher.model.problem import InputError, Problem
from launcher.resolve.templates import compiled

FOLDER = "configs/report"


def reports(
    measurements: Sequence[Measurement], data: Data, *, lead: tuple[Section, ...] = ()
) -> Mapping[str, str]:
    """Ending of a file → its text; `lead` stands before all else.

    InputError where a run has no point, or a template is wrong.
    """
    for one in measurements:
        if not one.points:
            what = "nothing was measured, so there is nothing to report"
            raise InputError(Problem(what, one.run, do=f"dsv32-launch bench {one.workload.name}"))
    page = page_of(measurements, read_references(data), [foretold(one, data) for one in measurements])
    page = replace(page, sections=(*lead, *page.sections))
    return {ending: _rendered(ending, {"page": page}, data) for ending in ("html", "md")}


def write(texts: Mapping[str, str], folder: Path) -> tuple[Path, ...]:
    """`bench.html` and `bench.md` in the folder. InputError where they cannot be written."""
    paths = {folder / f"bench.{ending}": text for ending, text in texts.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in paths.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        what = f"the report cannot be written: {(error.strerror or 'not writable').lower()}"
        raise InputError(Problem(what, str(folder), do="name another folder: --to FOLDER")) from None
    return tuple(paths)


def _rendered(ending: str, values: Mapping[str, object], data: Data) -> str:
    name = f"{FOLDER}/report.{ending}.j2"
    path = data.find(name)
    if path is None:
        raise InputError(Problem("no such file", where=name, do="restore it: it comes with this program"))
    text = data.content(path).decode("utf-8")
    return compiled(text, data.shown(path), html=ending == "html").render(values)
