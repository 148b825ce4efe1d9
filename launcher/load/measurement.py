"""A kept `bench.json` → Measurement; knows the format, and no run's folder."""

from __future__ import annotations

import json
from pathlib import Path

from launcher.load.document import Location
from launcher.load.schema import fill
from launcher.model.measurement import DERIVED, FORMAT, Measurement
from launcher.model.problem import InputError, Problem


def read_measurement(path: Path) -> Measurement:
    """What was kept there. InputError for anything else, and for another format."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        what = f"this is no kept benchmark: {str(error).lower()}"
        raise InputError(Problem(what, str(path), do="name a run: dsv32-launch runs")) from None
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        what = f"format {found} of a kept benchmark, expected {FORMAT}"
        raise InputError(
            Problem(what, str(path), do="read it with the release that wrote it, or measure anew")
        )

    def place(location: Location) -> str:
        return f"{path}, {'.'.join(map(str, location))}" if location else str(path)

    for point in document.get("points", ()):
        point.pop(DERIVED, None)
    return fill(Measurement, document, place=place)
