"""Secrets of an inventory: from the environment, files and commands, only where they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from load_input import GOOD, copied, loaded, wrong


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a copy of the data, the user's home and the place of the inventory at once."""
    return copied(tmp_path, monkeypatch)


def test_secrets_are_opened_only_where_asked(folder: Path) -> None:
    (folder / "token").write_text("from-file\n")
    (folder / "token").chmod(0o600)
    text = GOOD + '  token: "file:token"\n  shown: "command:printf \'%s %s\' a b"\n'
    assert loaded(folder, text).secrets == {}
    secrets = loaded(folder, text, {"DSV32_API_KEY": "from-env"}).secrets
    assert {name: secret.reveal() for name, secret in secrets.items()} == {
        "api_key": "from-env",
        "token": "from-file",
        "shown": "a b",
    }
    assert "from-" not in repr(secrets)


def test_secrets_that_cannot_be_had(folder: Path) -> None:
    (folder / "open").write_text("hunter2")
    (folder / "open").chmod(0o644)
    text = GOOD + "  a: file:open\n  b: file:none\n  c: command:false\n  d: command:no-such-program x\n"
    assert wrong(folder, text, {}) == [
        "x.yaml:30 secret `api_key` is empty, from env:DSV32_API_KEY",
        f"x.yaml:31 secret `a`: {folder}/open has mode 0644, expected 0600",
        f"x.yaml:32 secret `b`: {folder}/none: no such file or directory",
        "x.yaml:33 secret `c`: `false`: exit 1",
        "x.yaml:34 secret `d`: `no-such-program`: no such file or directory",
    ]
