"""Conditions that know what they cannot tell, settings by any spelling, findings, mistakes in rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from launcher.lint.conditions import holds
from launcher.lint.evaluate import evaluate, filled
from launcher.lint.quantities import QUANTITIES
from launcher.lint.reading import Reading
from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.knowledge import names_of, read_rules
from launcher.load.schema import fill
from launcher.model.history import Behaviour, Entry, History
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch, Unknown
from launcher.model.problem import InputError
from launcher.model.profile import Setting
from launcher.model.rule import Condition, Reference, Rule
from launcher.model.snapshot import Option, Snapshot
from launcher.model.values import Json

HISTORY = History(
    settings={
        "old-copies": Entry(until="0.12.0", instead="eplb-config.copies"),
        "eplb-config.copies": Entry(),
        "back-end": Entry(gone={"worn": "0.17.0"}),
    },
    variables={
        "VLLM_BACK_END": Entry(until="0.16.0", instead="back-end"),
        "VLLM_WAIT": Entry(defaults={"0": "5", "0.20.0": "50"}),
    },
    behaviours={"api-servers": Behaviour("", {"0": "one", "0.15.0": "ranks"}, "")},
)
OLD = Snapshot("0.14.0", {"speed": Option(default=1), "steps": Option(default=8)}, variables=("VLLM_A",))
NEW = Snapshot(
    "0.18.0", {"speed": Option(default=2), "steps": Option(default=8), "late": Option(default="x")}
)
KNOWLEDGE = Knowledge(HISTORY, snapshots={"0.14.0": OLD, "0.18.0": NEW})
SPARSE = Condition(value="sparse", equals="true")
STEPS = Condition(setting="steps", equals="8")


def launch(version: str = "", variables: dict[str, Json] | None = None, **flags: Json) -> Launch:
    """`eplb_config={...}` is --eplb-config; each flag stands on a line of its own."""
    given = {n.replace("_", "-"): Setting(v, f"run.sh:{i}") for i, (n, v) in enumerate(flags.items(), 2)}
    environment = {n: Setting(v, "run.sh:1") for n, v in (variables or {}).items()}
    return Launch("it", given, environment, "run.sh:1", version=version)


def reading(one: Launch) -> Reading:
    return Reading(one, KNOWLEDGE, QUANTITIES)


def truth(condition: Condition, *launches: Launch) -> bool | None:
    """None: cannot be told."""
    found = holds(condition, [reading(one) for one in launches])
    return found if isinstance(found, bool) else None


@pytest.mark.parametrize(
    ("condition", "one", "expected"),
    [
        # a number is a number, however written; true is true
        (Condition(setting="speed", equals="16000"), launch(speed="16k"), True),
        (Condition(setting="speed", equals="true"), launch(speed="True"), True),
        (Condition(setting="speed", equals="1"), launch(speed=True), False),
        (Condition(setting="speed", above="8", below="16"), launch(speed="9.5"), True),
        (Condition(setting="speed", no_multiple_of="16"), launch(speed="24"), True),
        (Condition(setting="speed", multiple_of="0"), launch(speed="24"), False),
        # what is absent is unlike everything and passes nothing else
        (Condition(setting="none", unlike=("a", "b")), launch(), True),
        (Condition(setting="none", below="8"), launch(), False),
        (Condition(setting="none", given=False), launch(), True),
        # a default is a value, and was not given
        (Condition(setting="speed", equals="2"), launch("0.18.0"), True),
        (Condition(setting="speed", given=True), launch("0.18.0"), False),
        (Condition(setting="late", equals="x"), launch("0.18.0"), True),
        # between two snapshots: only what both say; without a release: only what all say
        (Condition(setting="steps", equals="8"), launch("0.16.0"), True),
        (Condition(setting="speed", equals="2"), launch("0.16.0"), None),
        (Condition(setting="steps", equals="8"), launch(), True),
        (Condition(setting="speed", equals="2"), launch(), None),
        (Condition(variable="VLLM_WAIT", above="10"), launch("0.20.1"), True),
        (Condition(variable="VLLM_WAIT", above="10"), launch(), None),
        # other spellings: JSON, dotted, an old name, a variable that the release still reads
        (Condition(setting="eplb-config.copies", equals="16"), launch(eplb_config={"copies": 16}), True),
        (Condition(setting="eplb-config.a.b", equals="1"), launch(eplb_config={"a": {"b": 1}}), True),
        (Condition(setting="eplb-config.copies", equals="4"), launch("0.11.0", old_copies="4"), True),
        (Condition(setting="back-end", given=True), launch("0.15.0", {"VLLM_BACK_END": "x"}), True),
        (Condition(setting="back-end", given=True), launch("0.16.0", {"VLLM_BACK_END": "x"}), False),
        # what a file does not tell
        (Condition(setting="speed", given=True), launch(speed=Unknown("$SPEED")), True),
        (Condition(setting="speed", above="1"), launch(speed=Unknown("$SPEED")), None),
        (SPARSE, launch(), None),
        (Condition(unit="Restart", unlike="no"), launch(), False),
        (Condition(unit="Restart", unlike="no"), replace(launch(), unit={"Restart": "always"}), True),
        # an unknown part does not hide a known one
        (Condition(any=(SPARSE, STEPS)), launch(), True),
        (Condition(none=(SPARSE, STEPS)), launch(), False),
        (Condition(none=(SPARSE,)), launch(), None),
        # an operand that is a subject
        (Condition(setting="steps", equals=Reference(setting="speed")), launch(speed="8"), True),
        (Condition(setting="steps", equals=Reference(setting="speed")), launch(), None),
    ],
)  # fmt: skip
def test_a_condition_is_true_false_or_cannot_be_told(
    condition: Condition, one: Launch, expected: bool | None
) -> None:
    assert truth(condition, one) is expected


def test_launches_disagree_also_where_one_of_them_says_nothing() -> None:
    apart = Condition(setting="speed", apart=True)
    assert truth(apart, launch("0.18.0", speed="2"), launch("0.18.0")) is False
    assert truth(apart, launch("0.18.0", speed="1"), launch("0.18.0")) is True
    assert truth(apart, launch("0.18.0", speed="1"), launch("0.16.0")) is None


@pytest.mark.parametrize(
    ("one", "processes"),
    [
        (launch("0.14.0", data_parallel_size="8"), 1),
        (launch("0.18.0", data_parallel_size="8"), 8),
        (launch("0.18.0", data_parallel_size="8", data_parallel_start_rank="4", nnodes="2"), 4),
        (launch("0.18.0", data_parallel_size="8", api_server_count="3"), 3),
        (launch("0.18.0", data_parallel_size="8", headless=True), 0),
    ],
)  # fmt: skip
def test_what_is_not_given_is_as_the_release_decides(one: Launch, processes: int) -> None:
    assert reading(one).value("api_servers") == processes


def rule(name: str = "slow", **words: object) -> Rule:
    base: dict[str, object] = {
        "severity": "warning",
        "when": [{"setting": "speed", "below": "5"}],
        "what": "speed is {speed}",
        "why": "it crawls",
        "fix": "raise it",
        "known_from": "a run",
        "fires": [{"engine": "unknown", "text": "vllm serve /m"}],
        "passes": [{"engine": "unknown", "text": "vllm serve /m"}],
    }
    return fill(Rule, base | words, place=lambda _: "rules.yaml:1", given={"id": name})


@pytest.mark.parametrize("written", [float("nan"), float("inf"), "1e999", "9" * 400, 10**400, [], {"a": 1}])
def test_what_is_no_number_or_beyond_all_counts_is_not_counted_with(written: Json) -> None:
    one = launch("0.18.0", speed=written, data_parallel_size=written)
    assert evaluate(replace(KNOWLEDGE, rules=(rule(),)), (one,)) == ()
    assert reading(one).value("data_parallel") == 1
    assert filled("{speed}", (reading(one),)) != "?"


def test_equal_findings_are_one_with_all_launches_and_lines() -> None:
    asked = replace(KNOWLEDGE, rules=(rule(),))
    here = launch("0.18.0", speed="3")
    there = replace(here, name="that", flags={"speed": Setting("3", "other.sh:7")})
    faster = replace(here, name="third", flags={"speed": Setting("4", "third.sh:7")})
    first, second = evaluate(asked, (here, there, faster))
    assert (first.what, first.launches, first.places) == (
        "speed is 3",
        ("it", "that"),
        ("run.sh:2", "other.sh:7"),
    )
    assert (second.what, second.launches) == ("speed is 4", ("third",))


def test_a_key_of_json_stands_on_a_line_of_its_own() -> None:
    copies = Setting({"copies": 3}, "layout.yaml:5", {"copies": "layout.yaml:8"})
    asked = replace(KNOWLEDGE, rules=(rule(when=[{"setting": "eplb-config.copies", "equals": "3"}]),))
    (found,) = evaluate(asked, (replace(launch("0.18.0"), flags={"eplb-config": copies}),))
    assert found.places == ("layout.yaml:8",)


def test_a_finding_is_a_claim_depends_on_something_or_is_accepted() -> None:
    asked = replace(KNOWLEDGE, rules=(rule(since="0.16.0", until="0.20.0"),))
    slow = launch("0.18.0", speed="3")
    states = {
        version: [(f.state, f.counts) for f in evaluate(asked, (replace(slow, version=version),))]
        for version in ("0.15.9", "0.16.0", "0.20.0", "")
    }
    assert states == {"0.15.9": [], "0.16.0": [("fires", True)], "0.20.0": [], "": [("depends", False)]}
    (unknown,) = evaluate(asked, (replace(slow, version=""),))
    assert unknown.because == "the release of vLLM: 0.16.0 or newer and older than 0.20.0"
    (accepted,) = evaluate(asked, (replace(slow, accepted={"slow": "a baseline"}),))
    assert (accepted.state, accepted.because, accepted.counts) == ("accepted", "a baseline", False)


def test_what_a_file_may_give_where_it_cannot_be_read_makes_no_claim() -> None:
    unset = [{"setting": "none", "given": False}]
    about = [*unset, {"setting": "speed", "below": "5"}]
    for when, state in ((unset, "open"), (about, "depends")):
        asked = replace(KNOWLEDGE, rules=(rule(when=when),))
        slow = launch("0.18.0", speed="3")
        assert [f.state for f in evaluate(asked, (slow,))] == ["fires"]
        (found,) = evaluate(asked, (replace(slow, more_flags=True),))
        assert (found.state, found.because) == (state, "whether the file gives none where it cannot be read")


def test_what_is_said_of_a_name_in_particular_is_not_said_again_in_general() -> None:
    general = rule("gone-value", when=[{"value": "gone_values", "given": True}], what="{gone_values}")
    special = rule("worn", when=[{"setting": "back-end", "equals": "worn"}], what="worn out")
    one = launch("0.18.0", back_end="worn")
    both = evaluate(replace(KNOWLEDGE, rules=(general, special)), (one,))
    assert [f.rule for f in both] == ["worn"]
    assert [f.what for f in evaluate(replace(KNOWLEDGE, rules=(general,)), (one,))] == ["--back-end worn"]


@pytest.mark.parametrize(
    ("version", "flags", "expected"),
    [
        ("0.18.0", {"sped": "1"}, {"unknown_flags": "--sped (did you mean speed?)"}),
        ("0.14.0", {"late": "x"}, {"gone_flags": "--late (of 0.18.0)"}),
        ("0.18.0", {"old_copies": "4"}, {"gone_flags": "--old-copies (instead: eplb-config.copies)"}),
        ("0.16.0", {"late": "x"}, {}),  # between two snapshots
        ("0.19.0", {"soon": "x"}, {}),  # newer than all
        ("", {"late": "x"}, {}),
        ("", {"sped": "1"}, {"unknown_flags": "--sped (did you mean speed?)"}),
    ],
)
def test_a_flag_is_unknown_gone_or_of_another_release(
    version: str, flags: dict[str, Any], expected: dict[str, str]
) -> None:
    told = {name: reading(launch(version, **flags)).value(name) for name in ("unknown_flags", "gone_flags")}
    assert {name: text for name, text in told.items() if text} == expected


def test_a_pair_is_a_prefill_and_a_decode_and_each_condition_may_mean_one_of_them() -> None:
    slower = rule(
        scope="pair",
        when=[{"setting": "speed", "of": "decode", "below": {"setting": "speed", "of": "prefill"}}],
        what="{decode.speed} after {prefill.speed}",
    )
    sides = {"fast": ("prefill", "8"), "slow": ("decode", "3"), "even": ("decode", "8")}
    launches = [replace(launch("0.18.0", speed=s), name=n, pool=p) for n, (p, s) in sides.items()]
    (found,) = evaluate(replace(KNOWLEDGE, rules=(slower,)), launches)
    assert (found.what, found.launches) == ("3 after 8", ("fast", "slow"))


@pytest.mark.parametrize(
    ("instances", "pairs"),
    [
        (False, {("p0", "d0"), ("p1", "d1")}),  # a text that shows two services, one after the other
        (True, {("p0", "d0"), ("p0", "d1"), ("p1", "d0"), ("p1", "d1")}),
    ],
)
def test_launches_of_a_text_are_paired_as_they_stand(instances: bool, pairs: set[tuple[str, str]]) -> None:
    asked = replace(KNOWLEDGE, rules=(rule(scope="pair", what="{prefill.speed} {decode.speed}"),))
    launches = [
        replace(
            launch("0.18.0", speed=f"0.{n}"),
            name=name,
            pool="prefill" if name[0] == "p" else "decode",
            instance=name if instances else "",
        )
        for n, name in enumerate(("p0", "d0", "p1", "d1"))
    ]
    assert {tuple(f.launches) for f in evaluate(asked, launches)} == pairs


def test_a_rule_of_one_side_does_not_speak_of_a_launch_that_may_be_the_other() -> None:
    asked = replace(KNOWLEDGE, rules=(rule(pools=["decode"]),))
    unsaid = launch("0.18.0", speed="3", kv_transfer_config={"kv_connector": "Nixl", "kv_role": "kv_both"})
    assert [f.state for f in evaluate(asked, (unsaid, replace(unsaid, pool="decode")))] == ["fires"]


RULES = """\
slow:
  severity: warning
  since: "0.20.0"
  until: "0.18.0"
  when:
    - {value: heads_a_rank, above: 1}
    - {setting: sped, above: 1, of: prefill}
    - {variable: VLLM_B, matches: "("}
    - {setting: speed, apart: true}
    - {setting: speed}
    - {setting: speed, value: sparse, given: true}
    - any: [{value: hosts, above: {value: hostz}}]
    - {setting: speed, above: [1, 2], below: fast, equals: []}
    - {setting: speed, unlike: {}, multiple_of: {setting: steps, of: decode}}
  what: "{speed} and {sped} of {LimitMEMLOCK}"
  why: w
  fix: f
  known_from: k
  fires: [{engine: unknown, text: t}]
  passes: [{engine: unknown, text: t}]
half:
  severity: awful
"""


def test_every_mistake_in_a_rule_is_told_with_its_line(tmp_path: Path) -> None:
    for name in ("a", "b"):
        path = tmp_path / f"configs/rules/{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(RULES if name == "a" else RULES.partition("half")[0].replace("slow", "Slow"))
    problems = Collector()
    names = names_of(HISTORY, KNOWLEDGE.snapshots, QUANTITIES)
    assert read_rules(Data((tmp_path,)), names, problems) == ()
    with pytest.raises(InputError) as raised:
        problems.raise_any()
    told = {(p.where.rpartition("/")[2], p.what) for p in raised.value.problems}
    assert told >= {
        ("a.yaml:1", "rule slow holds since 0.20.0 until 0.18.0: for no release"),
        ("a.yaml:6", "rule slow looks at an unknown quantity `heads_a_rank`"),
        ("a.yaml:7", "rule slow looks at an unknown setting `sped`"),
        ("a.yaml:7", "a condition of rule slow is `of` a side, but its scope is launch"),
        ("a.yaml:8", "rule slow looks at an unknown variable `VLLM_B`"),
        ("a.yaml:9", "a condition of rule slow compares launches, but its scope is one launch"),
        ("a.yaml:10", "a condition of rule slow tests nothing"),
        ("a.yaml:11", "a condition of rule slow has 2 subjects"),
        ("a.yaml:12", "rule slow looks at an unknown quantity `hostz`"),
        ("a.yaml:13", "`above` in a condition of rule slow is no number"),
        ("a.yaml:13", "`below` in a condition of rule slow is no number"),
        ("a.yaml:13", "`equals` in a condition of rule slow is an empty list"),
        ("a.yaml:14", "`unlike` in a condition of rule slow names 0 subjects, expected one"),
        ("a.yaml:14", "`multiple_of` in a condition of rule slow is `of` a side, but its scope is launch"),
        ("a.yaml:1", "`what` of rule slow has a placeholder `{sped}`, which names nothing"),
        ("a.yaml:1", "`what` of rule slow has a placeholder `{LimitMEMLOCK}`, which names nothing"),
        ("a.yaml:22", "`severity` is `awful`, expected one of error, warning, note"),
        ("b.yaml:1", "rule `Slow` is not lower-case letters, digits and `-`"),
    }
    assert any("is no regular expression" in what and where == "a.yaml:8" for where, what in told)
