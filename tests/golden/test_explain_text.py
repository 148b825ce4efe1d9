"""What `explain` says of a few subjects: values first, then what they mean, then the rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from samples import sample

from launcher.cli.explaintext import explain_text
from launcher.flows.explain import known_of, tell
from launcher.resolve import resolve

SUBJECTS = ("max-num-seqs", "eplb-config.use_async", "5602", "LimitMEMLOCK", "tp-pads-heads")


@pytest.mark.parametrize("name", ["prod-2p1d", "prod-2p1d-current"])
def test_five_subjects(name: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    known = known_of(resolve(sample(name, tmp_path)))
    golden(f"{name}/explain.txt", "\n\n".join(explain_text(tell(known, s)) for s in SUBJECTS) + "\n")
