"""Run by the stack's own Python: what the real router makes of command lines; it does not serve.

stdin: {name: words after `vllm-router`}. stdout: {name: why it is refused, or null}. Each goes through the
router's own parser, its checks, and the constructor of its Rust core.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys

from vllm_router.launch_router import Router, parse_router_args


def refusal(words: list[str]) -> str | None:
    """Why the router would not start with these words."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            arguments = parse_router_args(words)
            arguments._validate_router_args()
            Router.from_args(arguments)
    except SystemExit:
        return said.getvalue()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    json.dump({name: refusal(words) for name, words in json.load(sys.stdin).items()}, sys.stdout)
