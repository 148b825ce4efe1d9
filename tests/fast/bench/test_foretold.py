"""What `predict` says beside what was measured: the same as of the layout, and nothing where it has none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench_records import METHOD, RECORD, measurement, recorded

from launcher.bench.keep import document, measurement_of
from launcher.bench.target import target_of
from launcher.bench.verdict import judge
from launcher.bench.workload import points_of
from launcher.flows.alone import Names, wanted_of_layout
from launcher.flows.fit import read_engines
from launcher.flows.foretold import foretold
from launcher.flows.predict import forecast, loads_of, workload_for
from launcher.flows.report import reports
from launcher.load.choice import Choice
from launcher.load.data import Data, shipped
from launcher.load.measurement import read_measurement
from launcher.load.sla import read_workload
from launcher.model.measurement import Measurement
from launcher.model.sla import Workload
from launcher.model.wish import Wanted

DATA = Data((shipped(),))
KNOWN = read_engines(DATA)


def laid_out(layout: str, stack: str = "article-0.14") -> Wanted:
    return wanted_of_layout(Names(layout, stack, "h200", "deepseek-v3.2"), DATA)


def measured(wanted: Wanted, workload: Workload, folder: Path, *, at: str) -> Measurement:
    """The recorded run at each point of a load, as if this layout had answered it; kept, and read back."""
    assert wanted.deployment
    target = target_of(wanted.deployment, at)
    points = [
        judge(workload, None, METHOD, target=target, point=point, results=[recorded()])
        for point in points_of(workload, METHOD)
    ]
    made = measurement_of(
        wanted, RECORD, target=target, workload=workload, sla=None, method=METHOD, points=points
    )
    (folder / "bench.json").write_text(document(made))
    return read_measurement(folder / "bench.json")


@pytest.mark.parametrize(
    ("layout", "at", "stack"),
    [
        ("article-prefill-1host", "prefill", "article-0.14"),
        ("article-tp8", "prefill", "article-0.14"),
        ("article-decode-2host", "decode", "article-0.14"),
        ("article-2p1d", "service", "article-0.14"),
        ("current-2p1d", "service", "current"),
    ],
)
def test_command_lines_that_were_kept_say_what_their_layout_says(
    layout: str, at: str, stack: str, tmp_path: Path
) -> None:
    wanted = laid_out(layout, stack)
    name = workload_for(wanted)
    workload, _ = read_workload(Choice(name, ""), DATA)
    made = foretold(measured(wanted, workload, tmp_path, at=at), DATA)
    assert made.nothing == ""
    expected = forecast(wanted, KNOWN, DATA, name=name, loads=loads_of(workload), sla=None)
    assert len(made.figures) == len(expected.rows)
    for figures, row in zip(made.figures.values(), expected.rows, strict=True):
        told = row.prediction
        assert figures["tokens_per_s mean"] == pytest.approx(told.tokens_per_s)
        assert figures.get("tpot_ms mean", 0.0) == pytest.approx(told.tpot_ms)
        assert figures.get("ttft_ms mean", 0.0) == pytest.approx(told.ttft_ms)


def test_where_the_model_has_nothing_to_say_that_is_told(tmp_path: Path) -> None:
    assert foretold(measurement(tmp_path), DATA).nothing == "no speed is known of hardware cpu"

    load, _ = read_workload(Choice("article-decode", ""), DATA)
    itself = measured(laid_out("min-1p1d", "current"), load, tmp_path, at="decode-0")
    assert "compute their prompts themselves" in foretold(itself, DATA).nothing
    prefill = measured(laid_out("article-prefill-1host"), load, tmp_path, at="prefill")
    assert f"no answers of {load.output_tokens} tokens" in foretold(prefill, DATA).nothing
    assert foretold(replace(prefill, model="tiny"), DATA).nothing.startswith("model tiny")


def test_a_page_has_the_model_beside_ours_and_names_what_it_was_not_made_for(tmp_path: Path) -> None:
    workload, _ = read_workload(Choice("article-prefill", ""), DATA)
    made = measured(laid_out("article-prefill-1host"), workload, tmp_path, at="prefill")
    for text in reports([made], DATA).values():
        plain = text.partition("Beside a model")[2].replace("\\", "")
        assert f"{recorded().figures['total_token_throughput']:.2f}" in plain
        assert "engine vLLM 0.13, SGLang 0.5.12" in plain, "the release that ours ran is another one"
        assert "no yardstick" in plain
    nothing = reports([measurement(tmp_path)], DATA)["md"].replace("\\", "")
    assert "says nothing of this: no speed is known of hardware cpu." in nothing
