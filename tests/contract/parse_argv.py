"""Run by an engine environment's own Python: what the real parser makes of command lines, all in one process.

stdin: a JSON list of command lines. stdout: {"version", "options", "variables", "errors": one text or
null a line}.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def refusal(parser, validate, make_arguments, words) -> str | None:
    """Why the engine would not start with these words, if it would not."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            arguments = parser.parse_args(words)
            validate(arguments)
            make_arguments(arguments)
    except SystemExit:
        return said.getvalue().strip().splitlines()[-1]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def main() -> None:
    with contextlib.redirect_stdout(sys.stderr):
        snapshot = runpy.run_path(str(ROOT / "scripts/snapshot-flags"))
        parser = snapshot["serve_parser"]()
        import vllm
        import vllm.envs
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.entrypoints.cli.serve import validate_parsed_serve_args

        lines = json.load(sys.stdin)
        make = AsyncEngineArgs.from_cli_args
        errors = [refusal(parser, validate_parsed_serve_args, make, words) for words in lines]
    answer = {
        "version": vllm.__version__,
        "options": snapshot["options"](parser),
        "variables": sorted(vllm.envs.environment_variables),
        "errors": errors,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
