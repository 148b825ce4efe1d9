"""Run by a release's own Python: `vllm serve` of many lines in one process, up to where engines start.

stdin: {name: {"words", "environment"}}. stdout: {"snapshot": text, "lines": {name: {"refused": text or null,
"engines": [...]}}}, an engine being what the release has resolved. With "client": true the words are for
`vllm bench serve`, and only its parser is asked.

Each line goes through the real parser, its validation, the subcommand's own code and `create_engine_config`.
The stand-ins are for what this machine is not: scripts/stand_in.py, the hosts' addresses, and the processes
that the line would start. So nothing is covered that happens in an engine: choice of kernels, loading,
memory, NCCL; nor whether DeepEP, DeepGEMM and the other compiled companions are there.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import runpy
import socket
import sys
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest import mock

SNAPSHOT = Path(__file__).parents[2] / "scripts/snapshot-flags"
STARTERS = (
    "vllm.entrypoints.cli.serve.CoreEngineProcManager",
    "vllm.entrypoints.cli.serve.MultiprocExecutor",
    "vllm.entrypoints.cli.serve.launch_core_engines",
    "vllm.v1.engine.core_client.launch_core_engines",
)
"""What starts engine processes; it is given all that was resolved."""


class EngineStarts(BaseException):
    """Everything is resolved: here the release would start processes."""


def starts(*given: object, **named: object) -> None:
    """In place of STARTERS."""
    raise EngineStarts(next(x for x in (*given, *named.values()) if type(x).__name__ == "VllmConfig"))


def bind(listener: socket.socket, address: Any) -> None:
    """In place of `socket.bind`: a free port of this machine, whatever address of the host is asked for."""
    free = ("127.0.0.1", 0) if listener.family == socket.AF_INET else address
    super(socket.socket, listener).bind(free)


def replace(names: tuple[str, ...], stand_in: object) -> None:
    """Those of `names` that this release has."""
    for name in names:
        module, _, attribute = name.rpartition(".")
        with contextlib.suppress(ModuleNotFoundError):
            if hasattr(importlib.import_module(module), attribute):
                setattr(importlib.import_module(module), attribute, stand_in)


@contextlib.contextmanager
def no_process_starts() -> Iterator[list[Callable[[], None]]]:
    """What processes would have run, in their order; each is dead at once.

    Since 0.22 a supervisor has an API server process for each rank.
    """
    would_run: list[Callable[[], None]] = []

    def start(process: BaseProcess) -> None:
        would_run.append(process.run)

    with (
        mock.patch.object(BaseProcess, "start", start),
        mock.patch.object(BaseProcess, "join"),
    ):
        yield would_run


def serve(parser: Any, words: list[str]) -> Iterator[dict]:
    """Each engine that `vllm serve` with these words would start."""
    program = importlib.import_module("vllm.entrypoints.cli.serve").ServeSubcommand()
    arguments = parser.parse_args(words)
    program.validate(arguments)
    with no_process_starts() as would_run:
        runs = [lambda: program.cmd(arguments)]
        while runs:
            try:
                runs.pop(0)()
            except EngineStarts as started:
                yield resolved(started.args[0])
            except (Exception, SystemExit):
                if not would_run:  # a supervisor ends with an error: all its processes are dead
                    raise
            runs += would_run
            would_run.clear()


def resolved(config: Any) -> dict:
    """What the release made of a line."""
    parallel = config.parallel_config
    return {
        "rank": parallel.data_parallel_rank,
        "local_ranks": parallel.data_parallel_size_local,
        "ranks": parallel.data_parallel_size,
        "tensor_parallel": parallel.tensor_parallel_size,
        "meets_at": parallel.master_addr if parallel.nnodes > 1 else parallel.data_parallel_master_ip,
        "hosts": parallel.nnodes,
        "host_rank": parallel.node_rank,
        "kv_connector": config.kv_transfer_config and config.kv_transfer_config.kv_connector,
    }


def answer(parser: object, line: dict) -> dict:
    """Why a line is refused, or the engines that it would start."""
    before, streams, said = dict(os.environ), (sys.stdout, sys.stderr), io.StringIO()
    os.environ.update(line["environment"])
    try:
        with contextlib.redirect_stderr(said):
            engines = list(serve(parser, line["words"]))
        return {"refused": None if engines else "it starts nothing", "engines": engines}
    except SystemExit:
        return {"refused": said.getvalue().partition("error: ")[2].strip(), "engines": []}
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}", "engines": []}
    finally:
        os.environ.clear()
        os.environ.update(before)
        sys.stdout, sys.stderr = streams  # which vLLM wraps with each process's name


def client_answer(parser: Any, words: list[str]) -> dict:
    """Why the load generator refuses a line; without a word about what it would measure."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parser.parse_args(words)
        return {"refused": None, "engines": []}
    except SystemExit:
        return {"refused": said.getvalue().partition("error: ")[2].strip(), "engines": []}


def main() -> None:
    """Answer what stdin asks. Logs of the release go to stderr."""
    asked, out = json.load(sys.stdin), os.dup(1)
    os.dup2(2, 1)
    sys.path.insert(0, str(SNAPSHOT.parent))
    snapshot = runpy.run_path(str(SNAPSHOT))
    parser = snapshot["serve_parser"]()
    text = snapshot["text"](snapshot["snapshot"](parser))
    importlib.import_module("vllm.entrypoints.cli.serve")
    replace(STARTERS, starts)
    socket.socket.bind = bind  # type: ignore[assignment, method-assign]
    client = type(parser)()
    importlib.import_module("vllm.benchmarks.serve").add_cli_args(client)
    lines = {
        name: client_answer(client, line["words"]) if line["client"] else answer(parser, line)
        for name, line in asked.items()
    }
    with os.fdopen(out, "w") as stdout:
        json.dump({"snapshot": text, "lines": lines}, stdout)


if __name__ == "__main__":
    main()
