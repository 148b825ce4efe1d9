"""Files as people write them, each a kind that was once answered wrongly, in several forms: what is found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from launcher.flows import trial
from launcher.lint.evaluate import evaluate
from launcher.load.data import Data, shipped
from launcher.load.foreign import Given, read_text
from launcher.model.finding import RuleFinding

DATA = Data((shipped(),))
KNOWN = trial.known_in(DATA)
QUIET = "VLLM_ENGINE_READY_TIMEOUT_S=3000"
"""Keeps a rule that these tests are not about silent."""
AUTOTUNE = "--kernel-config.enable_flashinfer_autotune=False"


def findings(text: str, *, release: str = "0.33.0", hardware: str = "h200") -> tuple[RuleFinding, ...]:
    """What the rules say of a file that is read without a Problem, beside notes."""
    given = Given(
        snapshots=KNOWN.knowledge.snapshots,
        models=tuple(KNOWN.models.values()),
        hardware=KNOWN.hardware[hardware],
        version=release,
    )
    reading = read_text(text, "serve.sh", given=given)
    assert reading.problems == ()
    assert reading.launches
    return evaluate(KNOWN.knowledge, reading.launches)


def fired(found: Sequence[RuleFinding]) -> set[str]:
    """Rules that claim something, notes left out."""
    return {f.rule for f in found if f.state == "fires" and f.severity != "note"}


@pytest.mark.parametrize(
    "script",
    [
        'O="-tp 1 -dp 16 -dpl 8 -ep"\nif [ "$1" ]; then O+=" --data-parallel-start-rank $1"; fi\n'
        "vllm serve {m} $O",
        "O=(-tp 1 -dp 16 -dpl 8 -ep)\nif (( $1 )); then O+=(--data-parallel-start-rank $1); fi\n"
        'vllm serve {m} "${{O[@]}}"',
        'O="-tp 1 -dp 16 -dpl 8"\ncase $R in 0) O="$O -ep";; *) O="$O -ep --data-parallel-start-rank $R";;\n'
        "esac\nvllm serve {m} $O",
    ],
)
def test_what_stands_before_a_branch_is_judged(script: str) -> None:
    whole = f"export {QUIET}\n" + script.format(m="deepseek-ai/DeepSeek-V3.2")
    assert "dp-address-missing" in fired(findings(whole))


def test_what_a_branch_adds_is_open_and_named() -> None:
    script = 'O="-tp 1 -dp 16 -dpl 8 -ep"\nif x; then O+=" --data-parallel-address $A"; fi\nvllm serve /m $O'
    found = next(f for f in findings(script) if f.rule == "dp-address-missing")
    assert found.state != "fires"
    assert "data-parallel-address" in found.because
    assert "`${O…}` of serve.sh:1" in found.because


@pytest.mark.parametrize(
    "words",
    [
        "-tp 8",
        "-tp 2 -dp 4 -ep --api-server-count 1",
        "-tp 1 -dp 8 -dpr 3 -dpa 10.0.0.1 -ep --data-parallel-external-lb",
    ],
)
def test_one_api_process_has_no_limit(words: str) -> None:
    text = f"vllm serve deepseek-ai/DeepSeek-V3.2 {words} {AUTOTUNE}"
    assert "ready-timeout-short" not in fired(findings(text))


@pytest.mark.parametrize("words", ["-tp 2 -dp 4 -ep", "-tp 1 -dp 16 -dpl 8 -ep -dpa 10.0.0.1 -dph"])
def test_several_api_processes_have_one(words: str) -> None:
    assert "ready-timeout-short" in fired(findings(f"vllm serve deepseek-ai/DeepSeek-V3.2 {words}"))


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("--enforce-eager false", "write --no-enforce-eager, or nothing, as it is the default"),
        ("-ep True", "write --enable-expert-parallel"),
        ("--no-enable-prefix-caching yes", "write --no-enable-prefix-caching"),
        ("--trust-remote-code=0", "write --no-trust-remote-code, or nothing, as it is the default"),
    ],
)
def test_a_word_after_a_switch_is_an_error_that_says_what_was_meant(words: str, meant: str) -> None:
    text = f"{QUIET} vllm serve deepseek-ai/DeepSeek-V3.2 -tp 2 -dp 4 -ep {words}"
    (found,) = (f for f in findings(text) if f.rule == "word-left-over")
    assert (found.severity, found.state) == ("error", "fires")
    assert meant in found.what


@pytest.mark.parametrize(
    ("text", "release", "hardware", "do"),
    [
        ("-tp 8 --max-model-len 24576", "0.14.1", "h100", "TP 8 × DP 2 on 2 hosts"),
        ("-dp 8 -ep --max-num-batched-tokens 8192", "0.33.0", "h200", "--max-num-batched-tokens 4096 ("),
        ("-tp 8 --gpu-memory-utilization 0.6", "0.33.0", "h200", "--gpu-memory-utilization 0.92 ("),
        ("-tp 8 --gpu-memory-utilization 0.999", "0.33.0", "h200", "--gpu-memory-utilization 0.92 ("),
    ],
)
def test_a_launch_that_does_not_fit_is_told_what_helps_it(
    text: str, release: str, hardware: str, do: str
) -> None:
    whole = f"vllm serve deepseek-ai/DeepSeek-V3.2 {text}"
    (found,) = (f for f in findings(whole, release=release, hardware=hardware) if f.rule == "does-not-fit")
    assert found.fix.startswith(do)
    assert "GiB then" in found.fix


def test_larger_gpus_are_named_only_where_settings_do_not_help() -> None:
    more = findings("vllm serve /m/DeepSeek-V3.2 -tp 8 --max-model-len 24576", hardware="h100")
    (found,) = (f for f in more if f.rule == "does-not-fit")
    assert "or the same on GPUs of " in found.fix
    less = findings("vllm serve /m/DeepSeek-V3.2 -dp 8 -ep --max-num-batched-tokens 8192")
    (found,) = (f for f in less if f.rule == "does-not-fit")
    assert "on GPUs of" not in found.fix


def test_no_rule_sends_the_reader_of_a_file_to_a_command_that_wants_an_inventory() -> None:
    assert [rule.id for rule in KNOWN.knowledge.rules if "dsv32-launch fit" in rule.fix] == []


@pytest.mark.parametrize(
    "text",
    [
        'w=$(cat <<EOF\nvllm serve /m/DeepSeek-V3.2 -tp 3\n: x\nEOF\n)\nsrun bash -lc "$w"',
        "python3 -m dynamo.vllm --model /m/DeepSeek-V3.2 -tp 3 --is-decode-worker",
        "vllm serve $DRAFT deepseek-ai/DeepSeek-V3.2 -tp 3",
    ],
)
def test_what_is_read_is_judged(text: str) -> None:
    assert "tp-cuts-heads" in fired(findings(text))


ROLES = """
apiVersion: disaggregatedset.x-k8s.io/v1
kind: DisaggregatedSet
metadata: {name: chat}
spec:
  roles:
"""
ROLE = """
  - name: %(role)s
    spec:
      leaderWorkerTemplate:
        size: 2
        workerTemplate:
          spec:
            containers:
            - image: vllm/vllm-openai:v0.33.0
              args: [--model, m, -dp, "16", -dpl, "8", -ep, --all2all-backend, %(back)s,
                --kv-transfer-config.kv_connector, NixlConnector, --kv-transfer-config.kv_role, kv_both,
                --kv-transfer-config.kv_load_failure_policy, %(fail)s]
"""


def test_roles_may_differ_and_are_compared_as_a_pair() -> None:
    roles = [
        {"role": "prefill", "back": "deepep_high_throughput", "fail": "fail"},
        {"role": "decode", "back": "deepep_low_latency", "fail": "recompute"},
    ]
    found = findings(ROLES + "".join(ROLE.lstrip("\n") % role for role in roles))
    assert not {"ranks-disagree", "steps-disagree"} & {f.rule for f in found}
    both = {"DisaggregatedSet/chat prefill worker", "DisaggregatedSet/chat decode worker"}
    pairs = {rule.id for rule in KNOWN.knowledge.rules if rule.scope == "pair"}
    assert any(set(f.launches) == both for f in found if f.rule in pairs)
