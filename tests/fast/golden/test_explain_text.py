"""What `explain` says of a few subjects: values first, then what they mean, then the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from samples import sample

from launcher.cli.explaintext import explain_text
from launcher.explain.known import Known
from launcher.flows.explain import known_of, tell
from launcher.model.knowledge import Knowledge
from launcher.resolve import resolve

SUBJECTS = ("max-num-seqs", "eplb-config.use_async", "5602", "LimitMEMLOCK", "tp-pads-heads")
RULES = ("batch-below-requests", "eplb-async-may-stop", "memlock-limited", "ports-meet", "tp-pads-heads")
"""Those that the text is made of; others that come must not change it."""


def with_few_rules(known: Known) -> Known:
    def read() -> Knowledge:
        whole = known.read()
        return replace(whole, rules=tuple(r for r in whole.rules if r.id in RULES))

    return replace(known, read=read)


@pytest.mark.parametrize("name", ["prod-2p1d", "prod-2p1d-current"])
def test_five_subjects(name: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    known = with_few_rules(known_of(resolve(sample(name, tmp_path))))
    golden(f"{name}/explain.txt", "\n\n".join(explain_text(tell(known, s)) for s in SUBJECTS) + "\n")
