"""Shipped tunes and records: each path can be walked, and the article's figures lead to what it chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.flows.alone import Names, wanted_of_layout
from launcher.flows.launches import launches_of
from launcher.flows.lint import judged, read
from launcher.flows.tune import Way, filled, instance_of, passed_over, text_of
from launcher.flows.tune_records import Tuned, overlay, replayed
from launcher.lint.evaluate import evaluate
from launcher.load.choice import Choice, names
from launcher.load.data import Data, shipped
from launcher.load.document import parse
from launcher.load.layered import layout_text, overlaid
from launcher.load.tunes import read_records, read_tune
from launcher.model.problem import InputError
from launcher.model.tune import Tune
from launcher.model.wish import Wanted

DATA = Data((shipped(),))
KNOWLEDGE = read(DATA)


@pytest.fixture(scope="module", params=["article-prefill", "article-decode"])
def article(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    records, tune = read_records(request.param, DATA)
    return replayed(records, tune, data_dir=None, folder=tmp_path_factory.mktemp("way"))


def flags(wanted: Wanted, tune: Tune) -> set[str]:
    """Of the first process of an instance, but for what is of one inventory alone."""
    arguments = instance_of(wanted, tune).processes[0].arguments
    return {" ".join(a.words()) for a in arguments if "address" not in a.flag}


def test_the_articles_figures_lead_to_what_it_serves_with(article: Tuned) -> None:
    """Two hosts of TP2 × DP8, and all that the layout of its last measurement has, as far as it gives figures
    or words; what it gives neither for is not decided."""
    outcomes = {d.step: d.outcome for d in article.decisions}
    pool = article.tune.pool
    layout = article.way.wanted.wish.profile.layout
    assert layout
    shape = layout.engines[pool]
    assert (shape.hosts_per_instance, shape.tensor_parallel, shape.data_parallel) == (2, 2, 8)
    theirs = wanted_of_layout(Names(f"article-{pool}-2host", "article-0.14", "h200", "deepseek-v3.2"), DATA)
    own = flags(article.way.wanted, article.tune)
    if pool == "prefill":
        assert article.way.taken == ("tp2-dp", "dp-sync", "two-hosts")
        assert flags(theirs, article.tune) - own == {"--max-num-batched-tokens 8192"}, "no figure in its text"
        assert own <= flags(theirs, article.tune)
        assert outcomes["batch-16384"] == "undecided"
    else:
        assert article.way.taken == ("low-latency", "mtp", "two-hosts")
        assert {outcomes["graphs"], outcomes["eplb"]} == {"undecided"}
        assert "--all2all-backend deepep_low_latency" in own


def test_every_decision_of_the_article_says_where_it_is_known_from(article: Tuned) -> None:
    for decision in article.decisions:
        assert decision.outcome == "skipped" or (decision.before and decision.after)
        if decision.outcome in ("kept", "reverted"):
            assert decision.after
            assert "the article" in decision.after.known_from
            assert decision.after.figures or "by its word alone" in decision.reason


def test_the_layout_it_ends_in_is_one(article: Tuned, tmp_path: Path) -> None:
    text = text_of(article.way, article.tune, begun_with=article.begun_with)
    path = tmp_path / "configs/layouts/tuned.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    found = wanted_of_layout(
        Names("tuned", "article-0.14", "h200", "deepseek-v3.2"), Data((tmp_path, shipped()))
    )
    judged(found)
    assert flags(found, article.tune) == flags(article.way.wanted, article.tune)
    assert "# tune: two-hosts" in text


@pytest.mark.parametrize("stack", ["article-0.14", "current"])
@pytest.mark.parametrize("name", ["prefill", "decode"])
def test_each_step_of_a_tune_is_for_some_release_and_can_serve(name: str, stack: str, tmp_path: Path) -> None:
    """Alone over the layout that the article ended in: its flags are the release's, no rule refuses it."""
    tune = read_tune(Choice(name, ""), DATA)
    base = f"{'article' if stack.startswith('article') else 'current'}-{name}-2host"
    where = Names(base, stack, "h200", "deepseek-v3.2")
    wanted = wanted_of_layout(where, DATA)
    values = parse((shipped() / f"configs/layouts/{base}.yaml").read_text(), base).values
    assert isinstance(values, dict)
    for step in tune.steps:
        if passed_over(tune, step, Way(values, wanted)):
            continue
        overlay(tmp_path, base, filled(overlaid(values, step.change), tune, wanted))
        found = wanted_of_layout(where, Data((tmp_path, shipped())))
        errors = [f for f in evaluate(KNOWLEDGE, launches_of(found)) if f.counts and f.severity == "error"]
        assert not errors, step.id


@pytest.mark.parametrize("name", sorted(p.stem for p in (shipped() / "configs/layouts").glob("*.yaml")))
def test_a_layout_that_is_written_reads_as_the_one_that_was_read(name: str) -> None:
    values = parse((shipped() / f"configs/layouts/{name}.yaml").read_text(), name).values
    assert isinstance(values, dict)
    assert parse(layout_text(values, head=("x",), notes={}), name).values == values


def test_records_are_held_against_their_tune(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    text = (shipped() / "configs/records/article-prefill.yaml").read_text()
    figures = "figures: {ttft_ms: [2639.27]}\n    known_from: me"
    path.write_text(text.replace("tp2-dp:", "tp2-pd:").replace("point: article-tp2-dp4", figures))
    with pytest.raises(InputError) as error:
        read_records(str(path), DATA)
    assert [p.what for p in error.value.problems] == [
        "unknown step `tp2-pd` of tune prefill",
        "figures without the load that they were measured under",
    ]


def test_every_shipped_tune_is_read() -> None:
    assert {read_tune(Choice(n, ""), DATA).pool for n in names(Tune, DATA)} == {"prefill", "decode"}
