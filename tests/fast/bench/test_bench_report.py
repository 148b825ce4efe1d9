"""The report as a page: complete, self-contained, well-formed, and nothing in it taken for markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from bench_records import LOAD, METHOD, measurement, recorded, sla, target

from launcher.bench.measure import DEFINITIONS
from launcher.bench.plot import ticks
from launcher.bench.verdict import judge
from launcher.flows.report import reports, write
from launcher.load.data import Data, shipped
from launcher.model.bench import Point
from launcher.model.measurement import Measurement
from launcher.model.problem import InputError
from launcher.model.sla import Limit
from launcher.model.telemetry import Track

DATA = Data((shipped(),))
HOSTILE = "<script>alert(1)</script> | \"quoted\" & 'so'"
VOID = {"meta", "link", "line", "circle", "polyline"}


class Page(HTMLParser):
    """Tags that open and close, addresses that a browser would load, numbers of drawings."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.numbers: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action"):
                self.loads.append(value or "")
            if name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"):
                self.numbers.append(value or "")
            if name in ("points", "viewbox"):
                self.numbers += re.split(r"[ ,]+", value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def laddered(folder: Path) -> Measurement:
    """Two points, the higher one beyond the service level, with a GPU that was looked at."""
    made = replace(measurement(folder), why=HOSTILE)
    level = sla(ttft_ms=Limit(at_most=5000.0))
    track = Track("h01", "power", "0", "W", 100.0, 120.0, (100.0, 700.0, 120.0))
    untold = ("not measured: no host exporter answered on port 9100 of h01",)
    runs = [replace(recorded(mean_ttft_ms=2000.0 + n), tracks=(track,), untold=untold) for n in (0, 50)]
    low = judge(LOAD, level, METHOD, target=target(), point=Point(64, 4), results=runs)
    return replace(made, points=(low, *made.points))


def test_a_page_is_whole_and_asks_for_nothing(tmp_path: Path) -> None:
    html = reports([laddered(tmp_path)], DATA)["html"]
    page = Page()
    page.feed(html)
    page.close()
    assert page.open == []
    assert page.loads == ["data:,"], "the icon, or a browser asks for one"
    assert not re.search(r"url\(|@import|https?://[^\s<]*\.(js|css|woff)", html)
    assert all(re.fullmatch(r"-?\d+(\.\d+)?", number) for number in page.numbers)
    assert page.tags.count("svg") == 5
    assert "script" not in page.tags
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_both_forms_say_what_was_measured_on_what_and_what_was_not(tmp_path: Path) -> None:
    for text in reports([laddered(tmp_path)], DATA).values():
        plain = text.replace("\\", "")
        for told in (
            "ttft_ms mean 2000.00",
            "margin -3.2%",
            "rank 1",
            "engine vllm-0.32-cpu 0.32.0",
            "700",
            "no host exporter answered",
            "24431.36",
            "hardware h200",
            "the article, 4.2",
            "dsv32-launch bench load",
            "TPOT: (E2E",
            "Not measured: single requests",
        ):
            assert told in plain, told


def test_markdown_cells_mean_only_themselves(tmp_path: Path) -> None:
    text = reports([laddered(tmp_path)], DATA)["md"]
    assert "<script>" not in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in tables}
    assert len(widths) > 2
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.M):
        rows = block.splitlines()
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
        assert set(rows[1]) <= {"|", "-"}


def test_runs_stand_side_by_side(tmp_path: Path) -> None:
    first = laddered(tmp_path)
    second = replace(first, run="20261130T050000Z-bench")
    texts = reports([first, second], DATA)
    assert texts["md"].count("## Verdict · ") == 2
    assert "## Side by side" in texts["md"]
    assert texts["html"].count('class="line s1"') == 5, "a line for each run in each plot"


def test_a_report_of_nothing_is_refused_and_files_lie_where_they_are_wanted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing was measured"):
        reports([replace(measurement(tmp_path), points=())], DATA)
    paths = write({"html": "a", "md": "b"}, tmp_path / "new/folder")
    assert [p.read_text() for p in paths] == ["a", "b"]
    with pytest.raises(InputError, match="cannot be written"):
        write({"md": "b"}, paths[0])


def test_axes_reach_beyond_what_is_on_them() -> None:
    for most in (0.003, 1.0, 47.0, 99.9, 12_345.0):
        found = ticks(most)
        assert found[0] == 0
        assert found[-1] >= most
        assert 3 <= len(found) <= 7
    assert ticks(0.0) == (0.0, 1.0)


@pytest.mark.parametrize("word", ["TTFT", "TPOT", "cached", "MTP", "preempted", "queue", "done", "req/s"])
def test_each_head_is_defined(word: str) -> None:
    assert word in DEFINITIONS
