"""What a process is started with: styles, precedence, spelling by release, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from resolve_wish import wish

from launcher.model.deployment import Deployment, Process
from launcher.model.problem import InputError
from launcher.model.profile import Setting
from launcher.model.wish import Wish
from launcher.resolve.deploy import deploy

TWO_HOSTS = """
prefill: {}
decode: {hosts_per_instance: 2, data_parallel: 8, tensor_parallel: 2, style: %s}
router: {}
"""
ONE_HOST = "prefill: {}\ndecode: %s\nrouter: {}\n"


def parallelism(process: Process) -> str:
    """The part of a command line that says where a process sits."""
    words = (" ".join(a.words()) for a in process.arguments)
    prefixes = ("--data", "--tensor", "--headless", "--nnodes", "--node", "--master", "--port")
    return " ".join(w for w in words if w.startswith(prefixes))


def decode(deployment: Deployment) -> list[str]:
    return [parallelism(p) for p in deployment.instance("decode-0").processes]


def value(process: Process, flag: str) -> str | None:
    found = [a for a in process.arguments if a.flag == flag]
    assert len(found) <= 1
    return found[0].value if found else None


COMMON = (
    "--tensor-parallel-size 2 --data-parallel-size 8 --data-parallel-size-local 4 "
    "--data-parallel-address 10.0.0.13 --data-parallel-rpc-port 13345"
)


@pytest.mark.parametrize(
    ("style", "leader", "follower"),
    [
        (
            "internal",  # the leader has no start rank: vLLM would read it as hybrid
            f"--port 8000 {COMMON}",
            f"{COMMON} --data-parallel-start-rank 4 --headless",
        ),
        (
            "hybrid",
            f"--port 8000 {COMMON} --data-parallel-hybrid-lb --data-parallel-start-rank 0",
            f"--port 8000 {COMMON} --data-parallel-hybrid-lb --data-parallel-start-rank 4",
        ),
        (
            "external",
            f"--port 8000 {COMMON} --data-parallel-multi-port-external-lb "
            "--data-parallel-supervisor-port 9256 --data-parallel-start-rank 0",
            f"--port 8000 {COMMON} --data-parallel-multi-port-external-lb "
            "--data-parallel-supervisor-port 9256 --data-parallel-start-rank 4",
        ),
    ],
)
def test_styles_over_two_hosts(tmp_path: Path, style: str, leader: str, follower: str) -> None:
    assert decode(deploy(wish(tmp_path, TWO_HOSTS % style))) == [leader, follower]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("{}", "--port 8000 --tensor-parallel-size 1"),
        (
            "{data_parallel: 4, tensor_parallel: 2}",
            "--port 8000 --tensor-parallel-size 2 --data-parallel-size 4",
        ),
        (
            "{data_parallel: 4, style: hybrid, api_port: 9000}",
            "--port 9000 --tensor-parallel-size 1 --data-parallel-size 4",
        ),
        (
            "{data_parallel: 2, style: external}",
            "--port 8000 --tensor-parallel-size 1 --data-parallel-size 2 --data-parallel-size-local 2 "
            "--data-parallel-multi-port-external-lb --data-parallel-supervisor-port 9256 "
            "--data-parallel-start-rank 0",
        ),
    ],
)
def test_one_host_needs_no_addresses(tmp_path: Path, layout: str, expected: str) -> None:
    assert decode(deploy(wish(tmp_path, ONE_HOST % layout))) == [expected]


def test_one_rank_over_two_hosts(tmp_path: Path) -> None:
    deployment = deploy(wish(tmp_path, ONE_HOST % "{hosts_per_instance: 2, tensor_parallel: 16}"))
    common = "--tensor-parallel-size 16 --nnodes 2"
    meet = "--master-addr 10.0.0.13 --master-port 13345"
    assert decode(deployment) == [
        f"--port 8000 {common} --node-rank 0 {meet}",
        f"{common} --node-rank 1 {meet} --headless",
    ]


def test_the_router_gets_every_api_endpoint(tmp_path: Path) -> None:
    router, other = deploy(wish(tmp_path, TWO_HOSTS % "external")).routers
    assert (router.unit, other.unit) == ("dsv32-router-a.service", "dsv32-router-b.service")
    assert [e.port for r in (router, other) for e in r.endpoints] == [30000, 29000, 30001, 29001]
    assert [a.value for a in router.arguments if a.flag == "--prefill"] == [
        "http://10.0.0.11:8000",
        "http://10.0.0.12:8000",
    ]
    assert [a.value for a in router.arguments if a.flag == "--decode"] == [
        f"http://10.0.0.{host}:{port}" for host in (13, 14) for port in range(8000, 8004)
    ]


def test_later_layers_win_and_null_removes(tmp_path: Path) -> None:
    layout = """
settings: {all: {max-num-seqs: 1, seed: 1, block-size: 1}, decode: {max-num-seqs: 2}}
prefill: {}
decode: {settings: {max-num-seqs: 3}}
router: {}
"""
    more = "settings: {all: {max-num-seqs: 4, seed: 4}, decode: {seed: 5, enforce-eager: null}}\n"
    deployment = deploy(wish(tmp_path, layout, more=more))
    prefill, own = (deployment.instance(f"{p}-0").processes[0] for p in ("prefill", "decode"))
    flags = ("--max-num-seqs", "--seed", "--block-size")
    assert [value(prefill, f) for f in flags] == ["4", "4", "1"]
    assert [value(own, f) for f in flags] == ["4", "5", "1"]
    assert "--enforce-eager" in prefill.argv()
    assert "--enforce-eager" not in own.argv()
    sources = {a.flag: a.source.rpartition("/")[2] for a in own.arguments}
    assert sources["--block-size"] == "test.yaml:3"
    assert sources["--seed"] == "test.yaml:15"


def test_values_become_words(tmp_path: Path) -> None:
    layout = ONE_HOST % (
        "{settings: {gpu-memory-utilization: 0.90, async-scheduling: false, "
        "compilation-config: {cudagraph_mode: FULL_DECODE_ONLY}, eplb-config.window_size: 10}}"
    )
    words = deploy(wish(tmp_path, layout)).instance("decode-0").processes[0].argv()
    assert words[words.index("--gpu-memory-utilization") + 1] == "0.90"
    assert "--no-async-scheduling" in words
    assert words[words.index("--compilation-config") + 1] == '{"cudagraph_mode":"FULL_DECODE_ONLY"}'
    assert words[words.index("--eplb-config.window_size") + 1] == "10"


def test_roles_of_the_connector_follow_the_release(tmp_path: Path) -> None:
    layout = (
        "settings: {all: {kv-transfer-config: {kv_connector_extra_config: {num_threads: 2}}}}\n"
        + ONE_HOST % "{}"
    )
    for stack, producer in (("current", "kv_producer"), ("article-0.14", "kv_both")):
        process = deploy(wish(tmp_path, layout, stack=stack)).instance("prefill-0").processes[0]
        assert value(process, "--kv-transfer-config") == (
            f'{{"kv_connector":"NixlConnector","kv_role":"{producer}",'
            '"kv_connector_extra_config":{"num_threads":2}}'
        )


BENCH = "{kv_connector: DecodeBenchConnector, kv_role: kv_both}"
NIXL = "{kv_connector: NixlConnector, kv_role: kv_consumer}"


@pytest.mark.parametrize(
    ("settings", "connector", "ports"),
    [
        ("{}", None, ["api"]),
        ("{kv-transfer-config: {kv_load_failure_policy: fail}}", None, ["api"]),
        (f"{{kv-transfer-config: {BENCH}}}", "DecodeBenchConnector", ["api"]),
        (f"{{kv-transfer-config: {NIXL}}}", "NixlConnector", ["api", "kv"]),
    ],
)
def test_a_pool_alone_has_the_connector_that_its_settings_name(
    tmp_path: Path, settings: str, connector: str | None, ports: list[str]
) -> None:
    layout = f"decode: {{tensor_parallel: 8, settings: {settings}}}\n"
    made = deploy(wish(tmp_path, layout, stack="current", decode="h03"))
    assert [i.name for i in made.instances] == ["decode-0"]
    assert made.routers == ()
    (process,) = made.instances[0].processes
    told = value(process, "--kv-transfer-config")
    assert (json.loads(told)["kv_connector"] if told else None) == connector
    assert [e.name for e in process.endpoints] == [*ports, "guard"]
    side_channel = {n for n in process.environment if "SIDE_CHANNEL" in n}
    assert len(side_channel) == (2 if "kv" in ports else 0)


def test_headless_processes_get_no_count_of_api_processes(tmp_path: Path) -> None:
    layout = "settings: {decode: {api-server-count: 4}}\n" + TWO_HOSTS % "internal"
    leader, follower = deploy(wish(tmp_path, layout)).instance("decode-0").processes
    assert value(leader, "--api-server-count") == "4"
    assert "--api-server-count" not in follower.argv()


def test_an_older_release_spells_it_otherwise(tmp_path: Path) -> None:
    made = wish(tmp_path, ONE_HOST % "{settings: {all2all-backend: pplx, max-num-seqs: 8}}")
    assert made.profile.engine is not None
    renamed = {"all2all-backend": {"env": "VLLM_ALL2ALL_BACKEND"}, "max-num-seqs": {"flag": "max-seqs"}}
    engine = replace(made.profile.engine, renamed=renamed, snapshot=None)
    old = replace(made, profile=replace(made.profile, engine=engine))
    process = deploy(old).instance("decode-0").processes[0]
    assert value(process, "--max-seqs") == "8"
    assert "--all2all-backend" not in process.argv()
    variable = process.environment["VLLM_ALL2ALL_BACKEND"]
    assert (variable.value, variable.source.rpartition("/")[2]) == ("pplx", "test.yaml:3")


def test_each_process_names_its_own_host(tmp_path: Path) -> None:
    processes = deploy(wish(tmp_path, TWO_HOSTS % "internal")).instance("decode-0").processes
    for process, address in zip(processes, ("10.0.0.13", "10.0.0.14"), strict=True):
        said = {n: s.value for n, s in process.environment.items()}
        assert said["VLLM_HOST_IP"] == said["VLLM_NIXL_SIDE_CHANNEL_HOST"] == address
        # the base on every host: vLLM adds the global rank itself
        assert said["VLLM_NIXL_SIDE_CHANNEL_PORT"] == "5600"
        assert said["GLOO_SOCKET_IFNAME"] == "eth0"


def refused(made: Wish) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as raised:
        deploy(made)
    assert all(p.do for p in raised.value.problems)
    return [(p.what, p.where.rpartition("/")[2]) for p in raised.value.problems]


def test_every_bad_setting_is_told_at_once(tmp_path: Path) -> None:
    layout = """
prefill:
  settings:
    max-num-seq: 8
    port: 1
    kv-transfer-config: {kv_role: kv_both}
    model-impl: false
  environment:
    VLLM_HOST_IP: 1.2.3.4
    VLLM_MOE_DP_CHUNK_SIZE: "512"
    OMP_NUM_THREADS: true
decode: {settings: {kv-transfer-config: 7}}
router: {settings: {prometheus-port: 1}}
"""
    assert refused(wish(tmp_path, layout)) == [
        ("router setting prometheus-port is set, but resolve computes it", "test.yaml:14"),
        ("kv-transfer-config sets kv_role, which resolve computes", "test.yaml:7"),
        ("vllm-0.32-cpu has no flag --max-num-seq", "test.yaml:5"),
        ("port is set, but resolve computes it", "test.yaml:6"),
        ("--model-impl is false, expected a value", "test.yaml:8"),
        ("variable OMP_NUM_THREADS is True, expected text", "test.yaml:12"),
        ("VLLM_HOST_IP is set, but resolve computes it", "test.yaml:10"),
        ("vllm-0.32-cpu does not know VLLM_MOE_DP_CHUNK_SIZE: it is gone since 0.20.0", "test.yaml:11"),
        ("kv-transfer-config is '7', expected a mapping of extra keys", "test.yaml:13"),
    ]


def test_a_style_that_the_release_lacks(tmp_path: Path) -> None:
    layout = ONE_HOST % "{data_parallel: 2, style: external}"
    assert refused(wish(tmp_path, layout, stack="article-0.14")) == [
        ("decode: engine vllm-0.14 has no style external", "test.yaml:3")
    ]


def test_the_external_style_counts_its_own_api_processes(tmp_path: Path) -> None:
    layout = "settings: {decode: {api-server-count: 4}}\n" + TWO_HOSTS % "external"
    assert refused(wish(tmp_path, layout)) == [
        ("decode: api-server-count is 4 in style external", "test.yaml:2")
    ]


def test_an_engine_file_of_another_release(tmp_path: Path) -> None:
    made = wish(tmp_path, ONE_HOST % "{}")
    stack = replace(made.profile.stack, engine_version="0.14.1")
    ((what, _),) = refused(replace(made, profile=replace(made.profile, stack=stack)))
    assert what == "stack sandbox-cpu has engine version 0.14.1, vllm-0.32-cpu describes >=0.32,<0.33"


def test_front_and_engine_want_the_same_port(tmp_path: Path) -> None:
    layout = "prefill: {}\ndecode: {}\nrouter: {front_port: 8000}\n"
    assert refused(wish(tmp_path, layout, decode="h08")) == [
        ("port 8000 of h08 is wanted by decode-0 api and router front", "test.yaml:4")
    ]


def test_unknown_word_for_a_variable(tmp_path: Path) -> None:
    made = wish(tmp_path, ONE_HOST % "{}")
    assert made.profile.engine is not None
    engine = replace(made.profile.engine, variables={"X": Setting("adress", "engine.yaml:1")})
    assert refused(replace(made, profile=replace(made.profile, engine=engine))) == [
        ("variable X holds 'adress'", "engine.yaml:1")
    ]
