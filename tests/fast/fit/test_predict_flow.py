"""predict, from a layout by itself to what people read: bounds, terms, and errors beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from launcher.cli.app import app

KNOWN = Path(__file__).with_name("known")


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["predict", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def told(*words: str) -> dict[str, object]:
    return json.loads(run(*words, "--json").splitlines()[-1])


def rows(document: dict[str, object]) -> list[dict[str, object]]:
    found = document["rows"]
    assert isinstance(found, list)
    return found


def test_more_tensor_parallelism_is_slower_on_hopper() -> None:
    words = ("--stack", "article-0.14", "--concurrency", "32")
    per_gpu = [
        rows(told("--layout", layout, *words))[0]["prediction"]["prefill_per_gpu"]  # type: ignore[index]
        for layout in ("article-prefill-2host", "article-tp8", "article-tp16")
    ]
    assert per_gpu == sorted(per_gpu, reverse=True)
    assert per_gpu[0] > 2000 > per_gpu[1]


def test_an_open_load_is_bound_by_what_is_offered_then_by_prefill() -> None:
    layout = ("--layout", "current-2p1d", "--isl", "4096", "--osl", "2", "--concurrency", "100000")
    (calm,) = rows(told(*layout, "--rate", "5"))
    (full,) = rows(told(*layout, "--rate", "500"))
    assert calm["prediction"]["limit"] == "5 requests a second offered"  # type: ignore[index]
    assert full["prediction"]["limit"] == "prefill, 100000 at once"  # type: ignore[index]
    assert full["prediction"]["ttft_ms"] > calm["prediction"]["ttft_ms"]  # type: ignore[index]


def test_every_number_is_called_a_model_and_stands_beside_its_errors() -> None:
    text = run("--layout", "article-2p1d", "--stack", "article-0.14", "--explain")
    assert text.startswith("article-2p1d, article-2p1d: a model, not a measurement\n")
    assert "all-to-all" in text
    assert "fitted on it" in text
    assert "article-tp16 " in text


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--layout", "current-2p1d", "--hardware", "b200"), "no speed is known of hardware b200"),
        (("--layout", "current-2p1d", "--isl", "100000000"), "decode holds no request"),
    ],
)
def test_what_cannot_be_told_is_refused(
    words: tuple[str, ...], what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from launcher.model.problem import InputError

    with pytest.raises(InputError, match=what):
        CliRunner().invoke(app, ["predict", *words], catch_exceptions=False)


def test_a_model_of_another_shape_is_refused() -> None:
    from launcher.model.problem import InputError

    with pytest.raises(InputError, match="the constants are of 61 of 7168"):
        CliRunner().invoke(
            app,
            ["predict", "--layout", "current-2p1d", "--model", "wide4", "--data-dir", str(KNOWN)],
            catch_exceptions=False,
        )
