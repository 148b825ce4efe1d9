"""Units, environment files, Compose, Kubernetes, Markdown, templates, and files that hold none of them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from foreign_reading import COMPOSE, GIVEN, KUBERNETES, UNIT, flags, one, read, variables

from launcher.load import foreign
from launcher.model.launch import Unknown


def test_a_unit(tmp_path: Path) -> None:
    (tmp_path / "vllm.env").write_text("PORT=8000\n# c\nexport TP='2'\n")
    launch = one(UNIT, "vllm-decode.service", beside=tmp_path)
    assert flags(launch) == {
        "model": "/m/DeepSeek-V3.2",
        "port": "8000",
        "tensor-parallel-size": "2",
        "eplb-config": {"window_size": 10},
        "served-model-name": "it's %H",
    }
    assert isinstance(launch.flags["served-model-name"].value, Unknown)
    assert variables(launch) == {"A": "1", "B": "2 3", "C": '{"x": 1}', "PORT": "8000", "TP": "2"}
    assert launch.unit is not None
    assert {name: launch.unit[name] for name in ("LimitMEMLOCK", "Restart", "Description")} == {
        "LimitMEMLOCK": "infinity",
        "Restart": "on-failure",
        "Description": "Decode",
    }
    assert (launch.name, launch.source) == ("vllm-decode.service", "vllm-decode.service:12")
    assert launch.variables["B"].source == "vllm-decode.service:8"


def test_a_unit_whose_environment_is_elsewhere() -> None:
    launch = one(UNIT, "vllm.service")
    assert launch.more_variables
    assert isinstance(launch.flags["port"].value, Unknown)


def test_a_unit_that_starts_a_shell() -> None:
    text = "[Service]\nEnvironment=P=7\nExecStart=/bin/bash -c 'exec vllm serve m --port $P'\n"
    assert flags(one(text))["port"] == "7"


def test_an_environment_file() -> None:
    launch = one('# c\nA=1\nexport B="2 $x" # d\nC=\n', "decode.env")
    assert variables(launch) == {"A": "1", "B": "2 $x", "C": ""}
    assert (launch.pool, launch.more_flags, launch.variables["B"].source) == ("decode", True, "decode.env:3")


def test_compose(tmp_path: Path) -> None:
    (tmp_path / "x.env").write_text("D=4\n")
    reading = read(COMPOSE, "compose.yaml", beside=tmp_path)
    assert reading.problems == ()
    prefill, decode = reading.launches
    assert (prefill.name, prefill.version, prefill.pool) == ("service prefill-a", "0.25.1", "prefill")
    assert flags(prefill) == {
        "model": "deepseek-ai/DeepSeek-V3.2",
        "port": "8000",
        "kv-transfer-config": {"kv_role": "kv_both"},
    }
    assert variables(prefill) == {"A": "1", "HOST": ""}
    assert flags(decode) == {"model": "m", "port": "$PORT", "max-num-seqs": "2"}
    assert isinstance(decode.flags["port"].value, Unknown)
    assert {"A": "2", "D": "4", "E": "${A}", "F": "2"}.items() <= variables(decode).items()
    assert decode.flags["max-num-seqs"].source == "compose.yaml:21"
    assert decode.variables["F"].source == "compose.yaml:19"


def test_kubernetes() -> None:
    reading = read(KUBERNETES, "k.yaml")
    assert reading.problems == ()
    leader, worker, part = reading.launches
    assert (leader.name, worker.name) == ("LeaderWorkerSet/big leader", "LeaderWorkerSet/big worker")
    assert leader.instance == worker.instance != ""
    assert (leader.hosts, leader.pool, leader.disaggregated, leader.version) == (2, "decode", True, "0.33.0")
    assert flags(leader) == {
        "model": "deepseek-ai/DeepSeek-V3.2",
        "data-parallel-size": "16",
        "data-parallel-size-local": "8",
        "port": "8200",
        "data-parallel-start-rank": "0",
        "kv-transfer-config": {"kv_role": "kv_both"},
    }
    assert leader.flags["port"].source == "k.yaml:22"
    assert isinstance(worker.flags["data-parallel-start-rank"].value, Unknown)
    assert isinstance(leader.variables["VLLM_NIXL_SIDE_CHANNEL_HOST"].value, Unknown)
    assert leader.variables["PORT"].source == "k.yaml:26"
    assert (part.name, part.pool, part.version) == ("Anything/any", "prefill", "0.14.1")
    assert (part.more_variables, part.instance, flags(part)["model"]) == (True, "", "m")


def test_yaml_of_a_program_of_its_own() -> None:
    text = "decode:\n  cmd: |\n    vllm serve m\n      --port 1\n      --kv-transfer-config.kv_role kv_both\n"
    launch = one(text, "v.yaml")
    assert flags(launch) == {"model": "m", "port": "1", "kv-transfer-config": {"kv_role": "kv_both"}}
    assert (launch.pool, launch.more_variables, launch.flags["port"].source) == ("decode", True, "v.yaml:4")


def test_a_script_in_a_config_map() -> None:
    text = "kind: ConfigMap\napiVersion: v1\ndata:\n  run.sh: |\n    export A=1\n    vllm serve m -ep\n"
    launch = one(text, "c.yaml")
    assert (flags(launch), variables(launch)) == ({"model": "m", "enable-expert-parallel": True}, {"A": "1"})
    assert (launch.source, launch.more_variables) == ("c.yaml:6", True)


def test_a_command_in_a_list_of_any_shape() -> None:
    text = "x:\n  - cmd: [python3, -m, vllm.entrypoints.openai.api_server, --model, m]\n"
    text += '  - ["sh", "-c", "vllm serve n"]\n'
    reading = read(text, "x.yaml")
    assert [flags(launch)["model"] for launch in reading.launches] == ["m", "n"]


def test_a_template_is_read_with_what_it_fills_in_unknown() -> None:
    text = "kind: Pod\napiVersion: v1\n{{- if .x }}\nspec:\n  containers:\n  - image: {{ .image }}\n"
    text += '    command: ["vllm", "serve", "m", "--port", "{{ .Values.port }}"]\n{{- end }}\n'
    reading = read(text, "t.yaml")
    assert [p.what.split(":")[0] for p in reading.problems] == ["this is a template"]
    (launch,) = reading.launches
    assert launch.flags["port"].value == "{{ .Values.port }}"
    assert isinstance(launch.flags["port"].value, Unknown)


def test_markdown_gives_its_blocks_with_their_lines() -> None:
    text = (
        "# It's a guide\n\n```bash\n$ vllm serve a\n```\ntext: vllm serve b\n```python\nvllm serve c\n```\n"
    )
    launch = one(text, "README.md")
    assert (flags(launch), launch.source) == ({"model": "a"}, "README.md:4")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "no `vllm serve` in"),
        (b"kind: Pod\napiVersion: v1\n", "no `vllm serve` in"),
        (b"\x7fELF\x00\x01vllm serve m", "this is no text file"),
        (b"vllm serve m\n\xff\xfe", "byte 0xff is not UTF-8"),
        (b"#" * (1 << 20) + b"\n", "the file is larger than 1 MiB"),
        (b"kind: Pod\napiVersion: v1\nx: [vllm serve\n", "what `[` opens here is not closed"),
    ],
)
def test_files_that_cannot_be_read_are_one_problem(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(content)
    reading = foreign.read_file(path, given=GIVEN)
    assert reading.launches == ()
    (problem,) = reading.problems
    assert problem.what.startswith(what)
    assert problem.where.startswith(str(path))


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    (problem,) = foreign.read_file(tmp_path / "none", given=GIVEN).problems
    assert problem.what == "cannot be read: no such file or directory"


def test_what_the_caller_knows_counts_before_the_file() -> None:
    given = foreign.Given(models=GIVEN.models, version="0.20.0", pool="decode", model=GIVEN.models[0])
    text = "docker run vllm/vllm-openai:v0.14.1 --model other"
    (launch,) = foreign.read_text(text, "x", given=given).launches
    assert (launch.version, launch.pool, launch.model) == ("0.20.0", "decode", GIVEN.models[0])


def test_a_file_without_end_is_read_no_further_than_a_script_is_long() -> None:
    (problem,) = foreign.read_file(Path("/dev/zero"), given=GIVEN).problems
    assert "larger than" in problem.what


POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - image: nvcr.io/dynamo:1
      command: [python3, -m, dynamo.vllm]
      args: [--model, m, -tp, "2", --is-prefill-worker]
"""


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("python3 -m dynamo.vllm --model m -tp 2 --is-prefill-worker", "dynamo.vllm"),
        ("srun bash -c 'python3 -m dynamo.vllm --model=m \\\n -tp 2 --connector nixl'", "dynamo.vllm"),
        ("exec python -m vllm.entrypoints.api_server --model m -tp 2", "vllm.entrypoints.api_server"),
        ("w=$(cat <<E\ntorchrun -m a.vllm.main --own x --model m -tp 2\nE\n)\nssh h \"$w\"", "a.vllm.main"),
        (POD, "dynamo.vllm"),
    ],
)  # fmt: skip
def test_a_module_that_wraps_the_engine_has_its_flags_and_may_set_others(text: str, module: str) -> None:
    launch = one(text, "pod.yaml" if text is POD else "f.sh")
    assert flags(launch) == {"model": "m", "tensor-parallel-size": "2"}
    assert launch.more_flags
    assert launch.more_variables
    assert launch.unread[-1].startswith(f"`-m {module}` of ")


@pytest.mark.parametrize(
    "text",
    [
        "python -m vllm.collect_env",
        "python -m vllm.benchmarks.serve --model m",
        "python -m tools.vllm_client --model m",
        "python -m vllm.model_executor.x --port 1",
    ],
)
def test_a_module_that_starts_no_engine_is_none(text: str) -> None:
    assert read(text).launches == ()


def test_what_could_not_be_followed_is_named() -> None:
    (problem,) = read("x\n  python3 -m sglang.launch_server --model m").problems
    assert (problem.what, problem.where) == ("no `vllm serve` in f.sh", "f.sh:2")
    assert "`-m sglang.launch_server`" in problem.why
    (problem,) = read('C=$(sed s/x/y/ <<EOF\nvllm serve m --port 3\nEOF\n)\nbash -c "$C"\n').problems
    assert (problem.what, problem.where) == ("how `vllm serve` is run was not understood", "f.sh:2")


GROUP = """
leaderWorkerTemplate:
  size: 2
  leaderTemplate: &template
    spec:
      containers:
        - {image: "vllm/vllm-openai:v0.33.0", args: ["--model", m, "-tp", "%d"]}
  workerTemplate: *template
"""


def grouped(form: str) -> list[set[str]]:
    """For each instance that a manifest of two groups starts, the TP of its processes."""
    whole = form
    for number in (1, 2):
        (line,) = [line for line in form.splitlines() if f"GROUP{number}" in line]
        indent = " " * (len(line) - len(line.lstrip()))
        group = (GROUP % number).strip()
        whole = whole.replace(line, textwrap.indent(group, indent))
    found: dict[str, set[str]] = {}
    for launch in read(whole, "pd.yaml").launches:
        found.setdefault(launch.instance, set()).add(str(launch.flags["tensor-parallel-size"].value))
    assert "" not in found
    return list(found.values())


@pytest.mark.parametrize(
    "form",
    [
        """
apiVersion: disaggregatedset.x-k8s.io/v1
kind: DisaggregatedSet
metadata: {name: chat}
spec:
  roles:
  - name: prefill
    spec:
      GROUP1
  - name: decode
    spec:
      GROUP2
""",
        """
apiVersion: example.org/v1
kind: Served
metadata: {name: chat}
spec:
  prefill:
    GROUP1
  decode:
    GROUP2
""",
        """
apiVersion: v1
kind: List
items:
- kind: LeaderWorkerSet
  metadata: {name: one}
  spec:
    GROUP1
- kind: LeaderWorkerSet
  metadata: {name: two}
  spec:
    GROUP2
""",
        """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: chat, namespace: blue}
spec:
  GROUP1
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: chat, namespace: green}
spec:
  GROUP2
""",
    ],
    ids=["roles in a list", "roles by name", "a list of objects", "one name in two namespaces"],
)
def test_each_group_is_an_instance_of_its_own(form: str) -> None:
    assert grouped(form) == [{"1"}, {"2"}]


def test_a_message_names_the_role() -> None:
    text = (
        "apiVersion: disaggregatedset.x-k8s.io/v1\nkind: DisaggregatedSet\nmetadata: {name: chat}\nspec:\n"
        "  roles:\n  - name: prefill\n    spec:\n" + textwrap.indent((GROUP % 1).strip(), " " * 6)
    )
    names = [launch.name for launch in read(text, "pd.yaml").launches]
    assert names == ["DisaggregatedSet/chat prefill leader", "DisaggregatedSet/chat prefill worker"]
