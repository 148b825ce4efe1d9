"""Every command line of ours, and what the real release that it is for makes of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from samples import ROOT, SAMPLES, sample

from launcher.bench import workload as bench
from launcher.load import load
from launcher.load.bench import read_method
from launcher.load.choice import Choice, names
from launcher.load.data import Data, shipped
from launcher.load.engines import read_engines
from launcher.load.sla import read_workload
from launcher.load.snapshot import parse_snapshot
from launcher.model.architecture import Architecture
from launcher.model.deployment import Deployment, Process
from launcher.model.problem import InputError
from launcher.model.profile import Model
from launcher.model.sla import Workload
from launcher.model.snapshot import Snapshot
from launcher.model.wish import Wanted
from launcher.resolve import resolve
from launcher.sandbox import tiny_model

DATA = Data((shipped(),))
ENGINES = DATA.names("configs/engines", holding=".yaml")
LAYOUTS = DATA.names("configs/layouts", holding=".yaml")
STACKS = DATA.names("configs/stacks", holding=".yaml")
BASE_ENGINE = "vllm-0.32-cpu"
"""The engine of the stack that is below all environments; its router is there too."""
WITHIN_S = 1200

INVENTORY = """
cluster: contract
stack: {stack}
hardware: {hardware}
model: {model}
layout: {layout}
paths: {{shared: /gpfs, local: /nvme}}
interface: eth0
hosts:
  "h[01-32]": {{address: "10.0.0.[1-32]"}}
pools:
"""


@dataclass(frozen=True)
class Line:
    """One process, and where it comes from."""

    name: str
    engine: str
    process: Process
    deployment: Deployment
    model: Model


@dataclass(frozen=True)
class Said:
    """A release's own account of itself and of our lines."""

    snapshot: str
    refused: Mapping[str, str | None]
    engines: Mapping[str, list[dict[str, Any]]]


def inventory(layout: str, stack: str) -> str:
    """The smallest inventory that serves with a layout on a stack."""
    text = (ROOT / f"configs/layouts/{layout}.yaml").read_text()
    gpus = not stack.startswith("sandbox")
    hardware, model = ("h200", "deepseek-v3.2") if gpus else ("cpu", "tiny")
    said = INVENTORY.format(stack=stack, hardware=hardware, model=model, layout=layout)
    hosts = {"prefill": "h[01-04]", "decode": "h[05-08]", "router": "h09"}
    pools = [p for p in hosts if f"\n{p}:" in text]
    return said + "".join(f'  {p}: {{hosts: "{hosts[p]}"}}\n' for p in pools)


def deployments(folder: Path) -> Iterator[tuple[str, Wanted]]:
    """Every sample inventory, and every layout on every stack of its kind that does not refuse it.

    A release that no stack names gets one here: `current` with that release.
    """
    for name in SAMPLES:
        yield name, resolve(sample(name, folder))
    made = folder / "data/configs/stacks"
    made.mkdir(parents=True)
    texts = {name: (ROOT / f"configs/stacks/{name}.yaml").read_text() for name in STACKS}
    for engine in ENGINES:
        if not any(re.search(f"^engine: {engine}$", text, re.MULTILINE) for text in texts.values()):
            text = re.sub("(?m)^engine: .*$", f"engine: {engine}", texts["current"])
            text = re.sub("(?m)^engine_version: .*$", f'engine_version: "{snapshot(engine).version}"', text)
            (made / f"{engine}.yaml").write_text(text)
    for layout in LAYOUTS:
        for stack in (*STACKS, *(path.stem for path in sorted(made.iterdir()))):
            if layout.startswith("sandbox") != stack.startswith("sandbox"):
                continue
            path = folder / f"{layout}.{stack}.yaml"
            path.write_text(inventory(layout, stack))
            try:
                yield f"{layout} on {stack}", resolve(load(path, data_dir=folder / "data"))
            except InputError:
                continue


def snapshot(engine: str) -> Snapshot:
    """What configs/engines/<engine>.json says."""
    return parse_snapshot((ROOT / f"configs/engines/{engine}.json").read_text(), engine)


def lines(folder: Path) -> Iterator[Line]:
    """Every engine process of them."""
    for name, wanted in deployments(folder):
        profile = wanted.wish.profile
        assert wanted.deployment
        assert profile.engine
        assert profile.model
        for process in (p for i in wanted.deployment.instances for p in i.processes):
            shown = f"{name}: {process.instance} on {process.host}"
            yield Line(shown, profile.engine.name, process, wanted.deployment, profile.model)


@cache
def python(engine: str) -> Path:
    """The Python of an engine's environment."""
    program = ROOT / "scripts/release-env"
    ran = subprocess.run([sys.executable, program, engine], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return Path(ran.stdout.strip())


def ask(
    engine: str,
    asked: Mapping[str, tuple[list[str], Mapping[str, str]]],
    clients: Mapping[str, list[str]],
) -> Said:
    """What a release says to lines: name → words after `vllm serve`, and variables; and to `clients`: name →
    words after `vllm bench serve`."""
    program = python(engine)
    # the cache keeps what vLLM finds out about model classes, which takes it seconds
    around = {**os.environ, "VLLM_CACHE_ROOT": str(program.parents[1] / "cache"), "VLLM_NO_USAGE_STATS": "1"}
    ran = subprocess.run(
        [program, ROOT / "tests/contract/serve_lines.py"],
        input=json.dumps(
            {n: {"words": w, "environment": {**e}, "client": False} for n, (w, e) in asked.items()}
            | {n: {"words": w, "environment": {}, "client": True} for n, w in clients.items()}
        ),
        env=around,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    said = json.loads(ran.stdout)
    return Said(
        said["snapshot"],
        {name: told["refused"] for name, told in said["lines"].items()},
        {name: told["engines"] for name, told in said["lines"].items()},
    )


def client_lines(engine: str) -> Mapping[str, list[str]]:
    """Workload → the words after `vllm bench serve` of its first point."""
    client, method = read_engines(DATA)[engine].client, read_method(DATA)
    assert client
    found = {}
    for name in names(Workload, DATA):
        workload, level = read_workload(Choice(name, "here"), DATA)
        line = bench.words(
            client,
            bench.Service("/env", "http://10.0.0.1:8080", "m", "/models/m", "deepseek_v32"),
            workload,
            point=bench.points_of(workload, method)[0],
            once=bench.Once(1, "salt", "/out"),
            method=method,
            limits=level.limits if level else {},
        )
        found[f"client: {name}"] = list(line[len(client.command) :])
    return found


def words(line: Line, models: Path) -> list[str]:
    """A line's words after `vllm serve`, with the model's configuration in place of its weights."""
    path, *rest = line.process.argv()[len(line.process.command) :]
    assert path == line.deployment.model_path
    return [str(model_folder(models, line.model)), *rest]


def model_folder(models: Path, model: Model) -> Path:
    """A model's folder without weights: its dimensions as config.json, and a small tokenizer."""
    folder = models / model.folder
    if not folder.exists():
        assert model.architecture
        tiny_model.make(folder)
        for weights in folder.glob("*.safetensors*"):
            weights.unlink()
        config = {**tiny_model.CONFIG, **dimensions(model.architecture)}
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def dimensions(a: Architecture) -> dict[str, Any]:
    """An architecture by the names of Hugging Face's config.json."""
    blocks = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic"}
    sparse = {
        "architectures": ["DeepseekV32ForCausalLM"],
        "model_type": "deepseek_v32",
        "index_n_heads": a.index_heads,
        "index_head_dim": a.index_dim,
        "index_topk": a.index_topk,
    }
    return {
        "num_hidden_layers": a.layers,
        "first_k_dense_replace": a.dense_layers,
        "num_nextn_predict_layers": a.mtp_layers,
        "hidden_size": a.hidden,
        "vocab_size": a.vocabulary,
        "num_attention_heads": a.heads,
        "num_key_value_heads": a.heads,
        "q_lora_rank": a.q_lora,
        "kv_lora_rank": a.kv_lora,
        "qk_nope_head_dim": a.nope_head,
        "qk_rope_head_dim": a.rope_head,
        "v_head_dim": a.value_head,
        "intermediate_size": a.dense_ffn,
        "moe_intermediate_size": a.expert_ffn,
        "n_routed_experts": a.experts,
        "n_shared_experts": a.shared_experts,
        "num_experts_per_tok": a.experts_per_token,
        "n_group": a.expert_groups,
        "max_position_embeddings": a.max_context,
        **(sparse if a.sparse else {}),
        **({"quantization_config": {**blocks, "weight_block_size": [128, 128]}} if a.fp8 else {}),
    }
