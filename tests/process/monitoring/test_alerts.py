"""configs/alerts.yaml: each alert fires on what it is for and not on what looks alike, by promtool itself."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_debs import extracted
from samples import SAMPLES, sample

from launcher.load import load
from launcher.load.choice import Choice
from launcher.load.data import Data, shipped
from launcher.load.monitoring import read_monitoring
from launcher.load.runbooks import read_runbooks
from launcher.model.inventory import MonitoringSettings
from launcher.model.monitoring import Alert, Series
from launcher.model.wish import Wanted
from launcher.resolve import resolve
from launcher.resolve.monitoring import Rule, rules

DATA = Data((shipped(),))
WATCHED = read_monitoring(DATA, Choice("article", "here"))
BOOKS = read_runbooks(DATA)
WHOLE = replace(WATCHED, sla={**WATCHED.sla, "tpot_ms": 50.0})
HOUR = 60


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """promtool and amtool, as they are in the sandbox."""
    return extracted(tmp_path_factory.mktemp("debs"))


@pytest.mark.parametrize(("name", "alert"), WATCHED.alerts.items(), ids=WATCHED.alerts)
def test_it_leads_to_a_runbook(name: str, alert: Alert) -> None:
    assert alert.runbook in BOOKS
    assert BOOKS[alert.runbook].target == alert.of
    assert re.fullmatch(r"[a-z][a-z-]+", name)


def test_a_level_without_a_limit_has_no_alert_for_it() -> None:
    assert "tpot_ms" not in WATCHED.sla, "the article's is in a picture"
    settings = MonitoringSettings("h", limits={"waiting": 5}, for_s={"engine-down": 7})
    found = {rule.id: rule for rule in rules(WATCHED, settings)}
    assert WATCHED.alerts.keys() - found.keys() == {"tpot-over-sla"}
    assert found["ttft-over-sla"].expr.endswith("> 3")
    assert "> 5 and" in found["queue-grows"].expr
    assert found["engine-down"].for_s == 7


def test_each_fires_and_does_not(programs: Path, tmp_path: Path) -> None:
    """A file of promtool's unit tests for each of them, made of what the data says."""
    told = list(rules(WHOLE, MonitoringSettings("h")))
    assert [rule.id for rule in told] == list(WATCHED.alerts)
    for rule in told:
        write_tests(tmp_path, rule, list(cases_of(rule.id, WATCHED.alerts[rule.id])))
    files = sorted(str(path) for path in tmp_path.glob("*.tests.yml"))
    done = run(programs / "promtool", "test", "rules", *files)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("SUCCESS") == len(WATCHED.alerts)


def write_tests(folder: Path, rule: Rule, tests: list[dict[str, Any]]) -> None:
    """A rule alone, and its tests beside it."""
    groups = {"groups": [{"name": "dsv32", "rules": [rule_of(rule)]}]}
    (folder / f"{rule.id}.rules.yml").write_text(json.dumps(groups))
    whole = {"rule_files": [f"{rule.id}.rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (folder / f"{rule.id}.tests.yml").write_text(json.dumps(whole))


def rule_of(rule: Rule) -> dict[str, Any]:
    """A rule as Prometheus reads it."""
    notes = {"summary": rule.summary, "runbook": rule.runbook, "do": rule.do}
    head = {"alert": rule.id, "expr": rule.expr, "for": f"{rule.for_s}s"}
    return {**head, "labels": {"severity": rule.severity}, "annotations": notes}


def cases_of(name: str, alert: Alert) -> Iterator[dict[str, Any]]:
    """Within the hour it fires, with the label that its runbook is run for; or it never does."""
    label = "" if alert.of == "fleet" else f', {alert.of}!=""'
    for series, expected in ((alert.fires, 1), (alert.quiet, 0)):
        fired = (
            f'max_over_time(ALERTS{{alertname="{name}", alertstate="firing"{label if expected else ""}}}[1h])'
        )
        yield {
            "interval": "1m",
            "name": f"{name} {'fires' if expected else 'is quiet'}",
            "input_series": inputs(series),
            "promql_expr_test": [
                {
                    "expr": f"(count({fired}) > bool 0) or vector(0)",
                    "eval_time": f"{HOUR}m",
                    "exp_samples": [{"labels": "{}", "value": expected}],
                }
            ],
        }


def inputs(series: Series) -> list[dict[str, str]]:
    """Series in promtool's own form."""
    return [{"series": name, "values": values} for name, values in series.items()]


def test_what_is_told_names_the_command(programs: Path, tmp_path: Path) -> None:
    """An alert's labels and texts whole, as Alertmanager gets them."""
    (rule,) = (r for r in rules(WHOLE, MonitoringSettings("h")) if r.id == "engine-down")
    notes = {
        "summary": "decode-0 does not answer on h02",
        "runbook": "engine-crash",
        "do": "dsv32-launch runbook run engine-crash decode-0",
    }
    labels = {"job": "engine", "severity": "page", "instance": "decode-0", "pool": "decode", "host": "h02"}
    told = {"exp_labels": labels, "exp_annotations": notes}
    test = {
        "interval": "1m",
        "input_series": inputs(WATCHED.alerts["engine-down"].fires),
        "alert_rule_test": [{"eval_time": "12m", "alertname": "engine-down", "exp_alerts": [told]}],
    }
    write_tests(tmp_path, rule, [test])
    done = run(programs / "promtool", "test", "rules", str(tmp_path / "engine-down.tests.yml"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", SAMPLES)
def test_what_hosts_get_is_taken(programs: Path, tmp_path: Path, name: str) -> None:
    """Every shipped inventory with one line more: Prometheus and Alertmanager take their files."""
    files = monitoring_files(with_monitoring(tmp_path, name))
    for path, text in files.items():
        (tmp_path / Path(path).name).write_text(text)
    for words in (
        ("promtool", "check", "config", "prometheus.yml"),
        ("promtool", "check", "rules", "rules.yml"),
        ("amtool", "check-config", "alertmanager.yml"),
    ):
        done = run(programs / words[0], *words[1:-1], str(tmp_path / words[-1]))
        assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout


def with_monitoring(folder: Path, name: str) -> Wanted:
    """A shipped inventory, and one line."""
    path = folder / sample(name, folder).inventory.path
    text = path.read_text()
    host = "gpu01" if "gpu" in text else "h01"
    return resolve(load(path, text=f"{text}monitoring: {{host: {host}, tell: 'http://10.0.0.9/hook'}}\n"))


def monitoring_files(wanted: Wanted) -> Mapping[str, str]:
    """Path → text of what the roles of the monitoring host write."""
    host = wanted.wish.inventory.monitoring.host
    steps = [s for s in wanted.steps[host] if s.role in ("prometheus", "alertmanager") and s.kind == "file"]
    return {step.want.path: step.want.content for step in steps}


def run(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), *words], capture_output=True, text=True, timeout=60, check=False)
