"""Every layout of configs/ can be laid out: on as many hosts as it takes, with the releases it is for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from launcher.flows import lint
from launcher.load import load
from launcher.load.choice import Choice, names, read
from launcher.load.data import Data, shipped
from launcher.model.deployment import Deployment
from launcher.model.profile import Hardware, Layout, Model
from launcher.resolve import resolve

DATA = Data((shipped(),))
LAYOUTS = names(Layout, DATA)
STACKS = {"article": "article-0.14", "current": "current", "min": "current", "sandbox": "sandbox-cpu"}
"""Era of a layout, the first part of its name → the stack that it is for."""
INVENTORY = """
cluster: test
stack: {stack}
hardware: {hardware}
model: {model}
layout: {layout}
paths: {{shared: /gpfs, local: /nvme}}
interface: eth0
hosts:
  "h[01-09]": {{address: "10.0.0.[11-19]"}}
pools:
"""


def known(name: str) -> Layout:
    return read(Layout, Choice(name, "here"), DATA)


def inventory(layout: Layout, *, model: str = "", hardware: str = "") -> str:
    """An inventory with one decode and, as in the article, two prefill instances if it has both."""
    stack = STACKS[layout.name.partition("-")[0]]
    usual = ("tiny", "cpu") if stack == "sandbox-cpu" else ("deepseek-v3.2", "h200")
    text = INVENTORY.format(
        stack=stack, layout=layout.name, model=model or usual[0], hardware=hardware or usual[1]
    )
    free = iter(range(1, 10))
    for pool, part in layout.engines.items():
        count = 2 if pool == "prefill" and layout.disaggregated else 1
        hosts = [f"h{next(free):02}" for _ in range(count * part.hosts_per_instance)]
        text += f"  {pool}: {{hosts: {json.dumps(hosts)}}}\n"
    return text + ("  router: {hosts: [h01]}\n" if layout.router else "")


def laid_out(text: str, folder: Path) -> Deployment:
    path = folder / "test.yaml"
    path.write_text(text)
    made = resolve(load(path)).deployment
    assert made is not None
    return made


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_takes_whole_hosts_and_answers_somewhere(name: str, tmp_path: Path) -> None:
    layout = known(name)
    made = laid_out(inventory(layout), tmp_path)
    assert layout.about.endswith(".")
    assert {i.pool for i in made.instances} == layout.engines.keys()
    assert bool(made.routers) == layout.disaggregated
    assert all(instance.api for instance in made.instances)
    for process in (p for i in made.instances for p in i.processes):
        gpus = [gpu for rank in process.ranks for gpu in rank.gpus]
        assert gpus == ([] if name.startswith("sandbox") else list(range(8)))


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_for_benchmarks_alone_stays_in_their_layouts(name: str, tmp_path: Path) -> None:
    made = laid_out(inventory(known(name)), tmp_path)
    for process in (p for i in made.instances for p in i.processes):
        words = " ".join([*process.argv(), *process.environment])
        bench = {w for w in ("DecodeBench", "RANDOMIZE", "SIMULATION", "no-enable-prefix") if w in words}
        assert not bench or not made.routers


@pytest.mark.parametrize("name", LAYOUTS)
def test_rules_find_nothing_that_the_layout_does_not_say_is_meant(name: str, tmp_path: Path) -> None:
    path = tmp_path / "test.yaml"
    path.write_text(inventory(known(name)))
    found = lint.judged(resolve(load(path)))
    assert [(f.rule, f.what) for f in found if f.counts] == []
    accepted = {f.rule for f in found if f.state == "accepted"}
    assert accepted == known(name).accept.keys(), "what is accepted is there"


@pytest.mark.parametrize("hardware", names(Hardware, DATA))
def test_every_gpu_type_runs_a_layout(hardware: str, tmp_path: Path) -> None:
    gpus = read(Hardware, Choice(hardware, "here"), DATA)
    layout = known("current-prefill-2host" if gpus.gpus_per_host else "sandbox-single")
    laid_out(inventory(layout, hardware=hardware), tmp_path)
    assert bool(gpus.gpus_per_host) == bool(gpus.capability) == (gpus.gpu_memory_gib > 0)


@pytest.mark.parametrize("model", names(Model, DATA))
def test_every_model_is_served_and_known_by_its_dimensions(model: str, tmp_path: Path) -> None:
    made = laid_out(inventory(known("article-tp8"), model=model), tmp_path)
    dimensions = read(Model, Choice(model, "here"), DATA).architecture
    assert made.served_name == model
    assert dimensions is not None
    assert dimensions.sparse == (model == "deepseek-v3.2")
