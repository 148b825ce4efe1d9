"""What a bundle must never hold, and how large it may become."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from launcher.flows import bundle
from launcher.load.data import Data, shipped
from launcher.load.signatures import read_log_knowledge
from launcher.model.problem import InputError
from launcher.model.secret import Secret
from launcher.record.redact import Redaction

PATTERNS = read_log_knowledge(Data((shipped(),))).forms.secrets


@pytest.mark.parametrize(
    "text",
    [
        "HF_TOKEN=s3cr3tvalue",
        "login with hf_s3cr3tvalueABCDEF0123",
        "Authorization: Bearer s3cr3tvalue.x",
        "vllm serve --api-key s3cr3tvalue --port 8000",
        "Environment=VLLM_API_KEY=s3cr3tvalue",
        '{"api_key": "s3cr3tvalue"}',
        "password: s3cr3tvalue",
        "http://user:s3cr3tvalue@mirror/simple",
        "-----BEGIN OPENSSH PRIVATE KEY-----\ns3cr3tvalue\n-----END OPENSSH PRIVATE KEY-----",
        'the value is pa"ss and as JSON pa\\"ss',
    ],
)
def test_a_secret_is_taken_out(text: str) -> None:
    redact = Redaction([Secret("own", 'pa"ss')], PATTERNS)
    told = redact(text)
    assert "s3cr3tvalue" not in told
    assert 'pa"ss' not in told
    assert 'pa\\"ss' not in told
    assert redact.count


@pytest.mark.parametrize(
    "text",
    [
        "max_num_batched_tokens=8192, prompt_tokens: 4096, tokenizer='tiny'",
        "secrets: {hf_token: env:HF_TOKEN}",
        "api_key=None",
        "http://10.0.0.11:8000/v1/completions",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    redact = Redaction([], PATTERNS)
    assert redact(text) == text
    assert redact.count == 0


def test_an_address_has_one_name_everywhere() -> None:
    redact = Redaction([], (), hide_addresses=True)
    assert redact("10.0.0.11:80 to 10.0.0.12") == "<address 1>:80 to <address 2>"
    assert redact("10.0.0.12, 127.0.0.1, vLLM 0.14.1") == "<address 2>, 127.0.0.1, vLLM 0.14.1"


def test_what_is_too_large_is_cut_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "FILE_AT_MOST", 1000)
    monkeypatch.setattr(bundle, "ALL_AT_MOST", 1500)
    files = {"a.log": "x" * 999 + "the end", "b.log": "y" * 900, "c.log": "z"}
    made = bundle.write(tmp_path / "t.tar.gz", files, str)
    assert [line.partition(":")[0] for line in made.left_out] == ["a.log", "b.log"]
    assert (tmp_path / "t.tar.gz").stat().st_mode & 0o777 == 0o600
    with tarfile.open(tmp_path / "t.tar.gz") as archive:
        assert archive.getnames() == ["t/CONTENTS.txt", "t/a.log", "t/c.log"]
        found = archive.extractfile("t/a.log")
        assert found is not None
        assert found.read().endswith(b"the end")


def test_a_bundle_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write the bundle"):
        bundle.write(tmp_path / "no/such/folder.tar.gz", {}, str)
