"""The real router takes each of our command lines: its parser, its checks, the constructor of its core."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from releases import BASE_ENGINE, deployments, python
from samples import ROOT

WRONG = {
    "a flag that is not there": (["--no-such-flag"], "--no-such-flag"),
    "a policy that is not there": (["--policy", "fair"], "fair"),
    "one side alone": (["--vllm-pd-disaggregation", "--prefill", "http://10.0.0.1:8000"], "--decode"),
}


def test_it_accepts_every_line_and_refuses_what_is_wrong(tmp_path: Path) -> None:
    lines = {
        f"{name}: router on {router.host}": list(router.argv()[len(router.command) :])
        for name, wanted in deployments(tmp_path)
        if wanted.deployment
        for router in wanted.deployment.routers
    }
    assert lines
    asked = {**lines, **{name: words for name, (words, _) in WRONG.items()}}
    program = [python(BASE_ENGINE), ROOT / "tests/contract/router_lines.py"]
    ran = subprocess.run(program, input=json.dumps(asked), capture_output=True, text=True, check=True)
    refused = json.loads(ran.stdout)
    assert {name: refused[name] for name in lines} == dict.fromkeys(lines)
    for name, (_, word) in WRONG.items():
        assert word in str(refused[name]), name
