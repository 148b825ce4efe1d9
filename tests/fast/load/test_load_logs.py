"""Log files of every form that people have: who wrote a line, and when."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.load.logs import instance_of, lines_of, read_logs
from launcher.model.problem import InputError

AT_S = datetime(2026, 11, 29, 18, 41, 10, tzinfo=timezone.utc).timestamp()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2026-11-29T18:41:10Z CUDA error: bad", ("h", "u", AT_S, "CUDA error: bad")),
        ("2026-11-29T18:41:10.250000000Z text", ("h", "u", AT_S + 0.25, "text")),
        (
            "2026-11-29T19:41:10+0100 gpu05 python[12]: CUDA error: bad",
            ("gpu05", "u", AT_S, "CUDA error: bad"),
        ),
        (
            "2026-11-29T18:41:10.500000+00:00 gpu05 kernel: NVRM: x",
            ("gpu05", "kernel", AT_S + 0.5, "NVRM: x"),
        ),
        ("Nov 29 18:41:10 gpu05 kernel: NVRM: x", ("gpu05", "kernel", AT_S, "NVRM: x")),
        ("Nov 29 18:41:10.250000 gpu05 python[1]: text", ("gpu05", "u", AT_S + 0.25, "text")),
        ("[Sun Nov 29 18:41:10 2026] NVRM: x", ("h", "kernel", AT_S, "NVRM: x")),
        ("(Worker pid=1) ERROR 11-29 18:41:10 [a.py:1] x", ("h", "u", AT_S, None)),
        ("2026-11-29 18:41:10 ERROR vllm_router_rs::server: x", ("h", "u", AT_S, None)),
        ("\x1b[2m2026-11-29 18:41:10\x1b[0m  INFO x", ("h", "u", AT_S, "2026-11-29 18:41:10  INFO x")),
        (
            '{"__REALTIME_TIMESTAMP":"1795977670000000","MESSAGE":"x","_HOSTNAME":"g","_TRANSPORT":"kernel"}',
            ("g", "kernel", AT_S, "x"),
        ),
        (
            '{"__REALTIME_TIMESTAMP":"1795977670000000","MESSAGE":[104,105],"_SYSTEMD_UNIT":"a.service"}',
            ("h", "a.service", AT_S, "hi"),
        ),
        ("Feb 31 18:41:10 gpu05 kernel: x", ("gpu05", "kernel", 0.0, "x")),
        ("plain words", ("h", "u", 0.0, "plain words")),
    ],
)
def test_a_line_in_each_form(line: str, expected: tuple[str, str, float, str | None]) -> None:
    (told,) = lines_of(line, host="h", unit="u", year=2026)
    host, unit, time_s, text = expected
    assert (told.host, told.unit, told.time_s) == (host, unit, pytest.approx(time_s))
    assert told.text == (line if text is None else text)


def test_a_line_of_torch_beside_lines_of_vllm_has_its_own_time() -> None:
    text = "INFO 11-29 18:41:08 [a.py:1] up\n[rank2]:[W1129 18:41:10.250000000 TCPStore.cpp:125] gone\n"
    told = list(lines_of(text, host="h", unit="u", year=2026))
    assert [line.time_s for line in told] == [AT_S - 2, AT_S + 0.25]


def test_a_line_without_a_time_has_that_of_the_line_before() -> None:
    told = list(lines_of("2026-11-29T18:41:10Z a\n  File b\n", host="h", unit="u", year=2026))
    assert [line.time_s for line in told] == [AT_S, AT_S]


@pytest.mark.parametrize(
    ("unit", "instance"),
    [
        ("dsv32-decode-0.service", "decode-0"),
        ("prefill-12", "prefill-12"),
        ("dsv32-router", "router"),
        ("dsv32-front.service", "front"),
        ("kernel", ""),
        ("vllm", ""),
    ],
)
def test_the_instance_of_a_unit(unit: str, instance: str) -> None:
    assert instance_of(unit) == instance


def test_folders_tell_host_and_unit(tmp_path: Path) -> None:
    for name in ("gpu05/dsv32-decode-0.log", "gpu05/dmesg.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n")
    (tmp_path / "gpu05/core").write_bytes(b"\x7fELF\0\0")
    found = {(line.host, line.unit, line.instance) for line in read_logs([tmp_path], year=2026)}
    assert found == {("gpu05", "dsv32-decode-0", "decode-0"), ("gpu05", "kernel", "")}


def test_of_a_run_or_a_bundle_the_logs_of_hosts_alone_are_read(tmp_path: Path) -> None:
    for name in ("hosts/gpu05/dsv32-decode-0.log", "hosts/gpu05/nvidia-smi.txt", "report.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n")
    assert {(line.host, line.unit) for line in read_logs([tmp_path], year=2026)} == {
        ("gpu05", "dsv32-decode-0")
    }


def test_nothing_to_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        read_logs([tmp_path / "nothing"], year=2026)
    with pytest.raises(InputError, match="no log lines there"):
        read_logs([tmp_path], year=2026)


@given(st.text())
def test_any_text_is_a_log(text: str) -> None:
    for line in lines_of(text, host="h", unit="u", year=2026):
        assert line.host
        assert line.unit
