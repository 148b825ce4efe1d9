"""Command lines are read as vLLM's own parser reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_reading import flags, one, read

from launcher.model.launch import LeftOver, Unknown

EPLB = {"eplb-config": {"window_size": 10, "use_async": True}}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("-tp 8", {"tensor-parallel-size": "8"}),
        ("-tp=8 -ep", {"tensor-parallel-size": "8", "enable-expert-parallel": True}),
        ("--max_num_seqs=64", {"max-num-seqs": "64"}),
        ("--max-num-seq 64", {"max-num-seqs": "64"}),
        ("--no-enable-prefix-caching", {"enable-prefix-caching": False}),
        ("-O3", {"optimization-level": "3"}),
        ("--port 1 --port 1", {"port": "1"}),
        ("--max-num-seqs -1 -ep", {"max-num-seqs": "-1", "enable-expert-parallel": True}),
        ("--served-model-name a b --headless", {"served-model-name": ["a", "b"], "headless": True}),
        ("--eplb_config.window_size 10 --eplb-config.use_async true", EPLB),
        ("-cc.cudagraph_mode FULL", {"compilation-config": {"cudagraph_mode": "FULL"}}),
        ("""--eplb-config '{"window_size": 10, "use_async": true}'""", EPLB),
        ("""--eplb-config "{\\"window_size\\": 10, \\"use_async\\": true}\"""", EPLB),
        ("--new-thing 5 --other", {"new-thing": "5", "other": True}),
    ],
)
def test_spellings(words: str, wanted: dict[str, object]) -> None:
    assert flags(one(f"vllm serve /m/DeepSeek-V3.2 {words}")) == {"model": "/m/DeepSeek-V3.2", **wanted}


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve deepseek-ai/DeepSeek-V3.2 -ep",
        "vllm serve -ep deepseek-ai/DeepSeek-V3.2",
        "/opt/bin/vllm serve --model deepseek-ai/DeepSeek-V3.2 -ep",
        "python3 -m vllm.entrypoints.openai.api_server --model=deepseek-ai/DeepSeek-V3.2 -ep",
        "docker run --gpus all -p 1:1 vllm/vllm-openai:v0.33.0 --model deepseek-ai/DeepSeek-V3.2 -ep",
    ],
)
def test_the_model_is_found_wherever_it_stands(text: str) -> None:
    launch = one(text)
    assert flags(launch) == {"model": "deepseek-ai/DeepSeek-V3.2", "enable-expert-parallel": True}
    assert launch.model is not None
    assert launch.model.name == "deepseek-v3.2"


def test_another_model_is_none_of_ours() -> None:
    assert one("vllm serve nvidia/DeepSeek-V3.2-NVFP4").model is None


def test_what_cannot_be_told_within_json_leaves_the_rest_known() -> None:
    text = """vllm serve m --kv-transfer-config '{"kv_role":"kv_both","kv_ip":"'$IP'","kv_port":'$PORT'}'"""
    config = flags(one(text))["kv-transfer-config"]
    assert config == {"kv_role": "kv_both", "kv_ip": "$IP", "kv_port": "$PORT"}
    unknown = {key for key, value in config.items() if isinstance(value, Unknown)}
    assert unknown == {"kv_ip", "kv_port"}


@pytest.mark.parametrize(
    ("words", "what", "left"),
    [
        ("--port 1 --port 2", "--port is given twice, first as `1`, and the last one counts", "2"),
        ("--port {a:b}", "the value of --port is not JSON: `{a:b}`", "{a:b}"),
    ],
)
def test_surprises_are_said(words: str, what: str, left: str) -> None:
    reading = read(f"vllm serve m {words}")
    assert [(p.what, p.where) for p in reading.problems] == [(what, "f.sh:1")]
    assert flags(reading.launches[0])["port"] == left


def test_dotted_keys_replace_json_as_in_the_parser() -> None:
    reading = read("""vllm serve m --eplb-config '{"a": 1}' --eplb-config.b 2""")
    assert flags(reading.launches[0])["eplb-config"] == {"b": 2}
    assert "the JSON is lost" in reading.problems[0].what


def test_a_config_file_lies_under_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "port: 1\nmax_num_seqs: 4\neplb-config: {window_size: 10}\nheadless: true\n"
    )
    launch = one("vllm serve m --config /etc/c.yaml --port 2", beside=tmp_path)
    assert flags(launch) | {"config": ""} == {
        "model": "m",
        "config": "",
        "port": "2",
        "max-num-seqs": "4",
        "eplb-config": {"window_size": 10},
        "headless": True,
    }
    assert launch.flags["max-num-seqs"].source == "/etc/c.yaml:2"
    assert not launch.more_flags
    assert one("vllm serve m --config /etc/d.yaml", beside=tmp_path).more_flags


@pytest.mark.parametrize(
    ("words", "hosts"),
    [
        ("", 1),
        ("-dp 8", 1),
        ("-dp 16 -dpl 8", 2),
        ("-dp 16 -dpl $N", None),
        ("--nnodes 2", 2),
        ("-dp 16 --data-parallel-rank 3", None),
        ('"$@"', None),
        ("--distributed-executor-backend ray", None),
    ],
)
def test_hosts_of_an_instance(words: str, hosts: int | None) -> None:
    assert one(f"vllm serve m {words}").hosts == hosts


KV = """--kv-transfer-config '{"kv_connector": "NixlConnector", "kv_role": "%s"}'"""


@pytest.mark.parametrize(
    ("text", "pool", "disaggregated"),
    [
        ("vllm serve m", "", False),
        (f"vllm serve m {KV % 'kv_producer'}", "prefill", True),
        (f"vllm serve m {KV % 'kv_consumer'}", "decode", True),
        (f"vllm serve m {KV % 'kv_both'}", "", None),
        (f"# the decode side\nvllm serve m {KV % 'kv_both'}", "decode", True),
        (f"# prefill or decode\nvllm serve m {KV % 'kv_both'} > prefill.log", "prefill", True),
        (f"start_prefill() {{\nvllm serve m {KV % 'kv_both'}\n}}\nstart_prefill", "prefill", True),
        (f"case $1 in\ndecode) vllm serve m {KV % 'kv_both'};;\nesac", "decode", True),
        ("""vllm serve m --kv-transfer-config.kv_connector OffloadingConnector""", "", False),
        ("vllm serve m --kv-transfer-config $KV", "", None),
        ("vllm serve m $MORE $MORE", "", None),
    ],
)
def test_sides(text: str, pool: str, disaggregated: bool | None) -> None:
    launch = one(text)
    assert (launch.pool, launch.disaggregated) == (pool, disaggregated)


def test_processes_that_share_a_leader_are_one_instance() -> None:
    shared = "vllm serve m -dp 4 -dpl 2 --data-parallel-address 10.0.0.1"
    first, second = read(f"{shared}\n{shared} --headless --data-parallel-start-rank 2").launches
    assert first.instance == second.instance != ""
    assert {launch.instance for launch in read(f"{shared}\n{shared}").launches} == {""}


def test_a_role_that_is_no_text_is_no_side() -> None:
    launch = one(
        """vllm serve m --kv-transfer-config '{"kv_connector": ["a"], "kv_role": ["kv_producer"]}'"""
    )
    assert (launch.pool, launch.disaggregated) == ("", None)


def test_a_second_value_belongs_to_no_flag() -> None:
    reading = read("vllm serve m --port 1 2 --tags a b")
    assert flags(reading.launches[0]) == {"model": "m", "port": "1", "tags": ["a", "b"]}
    assert reading.launches[0].left_over == (LeftOver("2", "f.sh:1", "port"),)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("-ep true --port 1", LeftOver("true", "f.sh:1", "enable-expert-parallel")),
        ("--port 1 \\\n --headless 0", LeftOver("0", "f.sh:2", "headless")),
        ("--no-enable-prefix-caching True", LeftOver("True", "f.sh:1", "no-enable-prefix-caching")),
        ("--trust-remote-code=false", LeftOver("false", "f.sh:1", "trust-remote-code")),
        ("other --port 1", LeftOver("other", "f.sh:1")),
    ],
)
def test_a_word_that_the_parser_refuses_is_left_over(words: str, wanted: LeftOver) -> None:
    launch = one(f"vllm serve m {words}")
    assert (launch.left_over, launch.flags["model"].value) == ((wanted,), "m")


@pytest.mark.parametrize("words", ["-ep $X true", "-ep $X", "--port 1 ...", "-ep '$X'$X", "$X other -ep"])
def test_a_word_that_may_be_the_value_of_a_flag_that_is_not_seen_is_not_refused(words: str) -> None:
    launch = one(f"vllm serve m {words}")
    assert (launch.left_over, launch.more_flags) == ((), True)


def test_prose_is_no_command_line_that_ends_the_program() -> None:
    assert read("vllm serve m and wait").launches[0].left_over == ()


def test_the_first_of_words_that_cannot_be_told_is_the_value_of_the_flag_before_them() -> None:
    (launch,) = read('if x; then A=(--port 1); else A=(--port 2); fi\nvllm serve m "${A[@]}"').launches
    assert isinstance(launch.flags["port"].value, Unknown)
