"""Published rows: the article's to the digit, and what keeps one from being held against ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_records import measurement, recorded

from launcher.bench.beside import beside
from launcher.load.data import Data, shipped
from launcher.load.references import read_references
from launcher.model.bench import Point
from launcher.model.measurement import Measurement, Seat, Served
from launcher.model.problem import InputError

ROWS = read_references(Data((shipped(),)))


def told(name: str, figure: str) -> float:
    return ROWS[name].figures[figure]


def test_the_article_is_here_to_the_digit() -> None:
    """What its text gives, and what it says follows from it: so a digit that is wrong here is found."""
    total, ttft, tpot = "tokens_per_s mean", "ttft_ms mean", "tpot_ms mean"
    one, one_base = "article-tp2-dp4", "article-tp8"
    assert (told(one_base, total), told(one, total)) == (11743.95, 24431.36)
    assert (told(one_base, ttft), told(one, ttft)) == (4962.10, 2639.27)
    assert int(100 * (told(one, total) / told(one_base, total) - 1)) == 108
    assert round(100 * (1 - told(one, ttft) / told(one_base, ttft)), 2) == 46.81
    assert round(told(one, total) / ROWS[one].gpus, 2) == 3053.92
    two, two_base = "article-tp2-dp8", "article-tp16"
    assert (told(two_base, total), told(two, total)) == (13706.71, 49095.32)
    assert (told(two_base, ttft), told(two, ttft)) == (9002.99, 2662.01)
    assert round(100 * (told(two, total) / told(two_base, total) - 1), 2) == 258.18
    assert round(100 * (1 - told(two, ttft) / told(two_base, ttft)), 2) == 70.43
    assert round(told(two, total) / ROWS[two].gpus, 2) == 3068.46
    service = ROWS["article-2p1d"]
    assert (service.figures[total], service.figures["ttft_ms p90"]) == (85_000, 2840)
    assert (service.rate, service.concurrency, service.gpus) == (24, 170, 48)
    assert (told("article-v3.1-step", tpot), told("article-v3.2-step", tpot)) == (11.9371, 18.4465)
    mla, dsa = (told(f"article-attention-{kind}", "attention us of a layer") for kind in ("mla", "dsa"))
    assert (mla, dsa) == (67, 183)
    assert 61 * (dsa - mla) / 1000 == 7.076
    for kind, at_1, slope, at_160k in (("mla", 37, 1304, 160), ("dsa", 44, 7946, 64)):
        name = f"article-context-{kind}"
        assert (told(name, tpot), told(name, "context tokens for 1 ms more")) == (at_1, slope)
        assert told(name, "tpot_ms at 160k of context") == at_160k == round(at_1 + 160_000 / slope, -0)
    gpus = ROWS["article-prefill-gpus"].figures
    assert gpus == {"GPU SM activity percent": 50, "NVLink GB/s each way": 30}


def like_the_article(folder: Path) -> Measurement:
    """Our recorded figures, as if measured as the article measured its prefill on one host."""
    made = measurement(folder, recorded(), point=Point(64, 16))
    ranks = {str(i): (2 * i, 2 * i + 1) for i in range(4)}
    served = Served("prefill-0", "prefill", "internal", 2, 4, (Seat("gpu01", "u", ranks, ("vllm",), {}),))
    load = replace(made.workload, input_tokens=4096, output_tokens=1)
    versions = {"engine": "vllm 0.13"}
    on: dict[str, Any] = {"hardware": "h200", "model": "deepseek-v3.2", "routers": ()}
    return replace(made, instances=(served,), workload=load, versions=versions, **on)


def test_a_row_of_the_same_conditions_stands_first_with_both_figures(tmp_path: Path) -> None:
    first, second, *_ = beside(like_the_article(tmp_path), ROWS)
    assert (first.name, first.other) == ("article-tp2-dp4", ())
    ours = {pair.figure: pair.ours for pair in first.pairs}
    assert round(ours["tokens_per_s mean"] or 0, 2) == 10864.78
    assert round(first.pairs[0].difference or 0, 3) == -0.555
    assert second.other == ("prefill 1 × (1 host, TP8 × DP1, 8 GPUs)",)


@pytest.mark.parametrize(
    ("point", "change", "other"),
    [
        (Point(64, 17), {}, ()),
        (Point(64, 20), {}, ("concurrency 16",)),
        (Point(64, 16, 8.0), {}, ("requests/s unbounded",)),
        (Point(64, 16), {"hardware": "h100"}, ("hardware h200",)),
        (Point(64, 16), {"versions": {"engine": "vllm-0.33 0.33.0"}}, ("engine vLLM 0.13",)),
    ],
)
def test_what_differs_is_named(
    point: Point, change: dict[str, str], other: tuple[str, ...], tmp_path: Path
) -> None:
    made = like_the_article(tmp_path)
    made = replace(made, points=(replace(made.points[0], point=point),), **change)  # type: ignore[arg-type]
    (row,) = beside(made, {"article-tp2-dp4": ROWS["article-tp2-dp4"]})
    assert row.other == other


def test_what_a_source_does_not_tell_is_another_condition(tmp_path: Path) -> None:
    (row,) = beside(like_the_article(tmp_path), {"r": ROWS["vllm-wide-ep"]})
    assert row.other == (
        "model deepseek-r1",
        "pools not told",
        "engine vLLM",
        "prompt tokens not told",
        "answer tokens not told",
        "concurrency not told",
    )
    assert row.pairs[0].ours is None


def test_two_rows_of_one_name_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "configs/references"
    folder.mkdir(parents=True)
    row = "article-tp8:\n  about: again\n  known_from: here\n  figures: {ttft_ms mean: 1}\n"
    (folder / "mine.yaml").write_text(row)
    with pytest.raises(InputError, match=r"row `article-tp8` is also at configs/points/h200\.yaml:3"):
        read_references(Data((tmp_path, shipped())))
