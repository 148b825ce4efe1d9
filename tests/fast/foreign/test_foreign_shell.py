"""Scripts are followed as far as they tell; what they leave open is unknown, never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_reading import flags, one, read, variables

from launcher.model.launch import Unknown


def port(text: str) -> object:
    """The port of the only launch; `?` if it cannot be told."""
    value = one(text).flags["port"].value
    return "?" if isinstance(value, Unknown) else value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A=1\nvllm serve m --port $A", "1"),
        ("A=1; B=${A}00; vllm serve m --port ${B}", "100"),
        ("export A='1'\nvllm serve m --port \"$A\"", "1"),
        ("A=${A:-1}\nvllm serve m --port $A", "1"),
        (': "${A:=1}"\nvllm serve m --port $A', "1"),
        ("vllm serve m --port ${1:-1}", "1"),
        ("A=8000\nvllm serve m --port $((A + 2 * 3))", "8006"),
        ("vllm serve m --port $A", "?"),
        ("A=$(cat p)\nvllm serve m --port $A", "?"),
        ("A=`cat p`\nvllm serve m --port 1$A", "?"),
        ("A=$B\nvllm serve m --port ${A:-1}", "?"),
        ("A=10\nvllm serve m --port ${A%0}", "?"),
        ("A=1\nif x; then A=2; fi\nvllm serve m --port $A", "?"),
        ("if x; then A=2; else A=2; fi\nvllm serve m --port $A", "2"),
        ("case $x in a) A=1;; *) A=2;; esac\nvllm serve m --port $A", "?"),
        ("for A in 1 2; do vllm serve m --port $A; done", "?"),
        ("for A in 7; do vllm serve m --port $A & done", "7"),
        ("read A\nvllm serve m --port $A", "?"),
        ("A=1\n(A=2)\nvllm serve m --port $A", "1"),
        ("go() { vllm serve m --port $1; }\ngo 5", "5"),
        ("function go {\n  local p=$1; shift\n  vllm serve m --port $p\n}", "?"),
        ("set -- 4\nvllm serve m --port $1", "4"),
        ("eval 'A=6'\nvllm serve m --port $A", "6"),
        ("CMD='vllm serve m --port 3'\n$CMD", "3"),
        ("while true; do vllm serve m --port 1 || sleep 1; done", "1"),
        ("if [[ $a =~ ^(x|y)$ ]] && ((n > 1)); then vllm serve m --port 1; fi", "1"),
    ],
)
def test_variables(text: str, wanted: str) -> None:
    assert port(text) == wanted


def test_a_continued_command_with_its_lines() -> None:
    text = "#!/bin/bash\nA=1 nohup vllm serve m \\\n  --port 1 \\\n  -tp 2 > /tmp/x.log 2>&1 &\n"
    launch = one(text)
    assert flags(launch) == {"model": "m", "port": "1", "tensor-parallel-size": "2"}
    assert launch.source == "f.sh:2"
    assert launch.flags["tensor-parallel-size"].source == "f.sh:4"
    assert launch.variables["A"].source == "f.sh:2"


def test_flags_after_a_comment_are_lost_and_said_so() -> None:
    reading = read("vllm serve m \\\n  # fewer\n  --port 1 \\\n  -ep\n")
    assert flags(reading.launches[0]) == {"model": "m"}
    (problem,) = reading.problems
    assert problem.where == "f.sh:3"
    assert "`--port` begins a command of its own" in problem.what


def test_arrays_with_comments_and_what_a_branch_adds() -> None:
    text = 'A=(\n  --port 1 # it\'s\n  -tp 2\n)\nA+=(-ep)\nvllm serve m "${A[@]}"\n'
    launch = one(text)
    assert flags(launch)["tensor-parallel-size"] == "2"
    assert launch.flags["enable-expert-parallel"].source == "f.sh:5"
    assert not launch.more_flags
    branched = one('A=(--port 1)\nif x; then A+=(-ep); fi\nvllm serve m "${A[@]}"\n')
    assert (flags(branched), branched.more_flags) == ({"model": "m", "port": "1"}, False)
    assert branched.sometimes == {"enable-expert-parallel": "`${A[@]}` of f.sh:2"}


@pytest.mark.parametrize(
    ("script", "sometimes"),
    [
        ('A="--port 1"\nif x; then A+=" --headless"; fi\nvllm serve m $A', {"headless"}),
        ('A="--port 1"\nif x; then A="$A -ep"; else A="$A --headless"; fi\nvllm serve m $A',
         {"enable-expert-parallel", "headless"}),
        ('A="--port 1"\nwhile x; do A+=" --max-num-seqs $N"; done\nvllm serve m $A', {"max-num-seqs"}),
        ('A="--port 1"\nif x; then A+=" -ep"; fi\nif y; then A+=" --headless"; fi\nvllm serve m $A',
         {"enable-expert-parallel", "headless"}),
        ('A=(--port 1)\ncase $x in a) A+=(-dp $N);; b) A+=(-tp 2 -ep);; esac\nvllm serve m "${A[@]}"',
         {"data-parallel-size", "tensor-parallel-size", "enable-expert-parallel"}),
        ("vllm serve m --port 1 ${X:+--headless}", {"headless"}),
    ],
)  # fmt: skip
def test_what_all_branches_begin_with_is_known(script: str, sometimes: set[str]) -> None:
    launch = one(script)
    assert (flags(launch), launch.more_flags) == ({"model": "m", "port": "1"}, False)
    assert launch.sometimes.keys() == sometimes


@pytest.mark.parametrize(
    ("script", "written"),
    [
        ('A="--port 1"\nif x; then A+=" $B"; fi\nvllm serve m $A', "${A…}"),
        ('if x; then A="--headless"; fi\nvllm serve m --port 1 $A', "${A}"),
        ("vllm serve m --port 1 $A", "$A"),
    ],
)
def test_what_may_be_any_flag_is_named(script: str, written: str) -> None:
    launch = one(script)
    assert flags(launch) == {"model": "m", "port": "1"}
    assert launch.more_flags
    assert [word.partition(" of ")[0] for word in launch.unread] == [f"`{written}`"]


def test_a_flag_that_a_branch_gives_anew_cannot_be_told() -> None:
    assert port('A="--port 1"\nif x; then A+=" --port 2"; fi\nvllm serve m $A') == "?"


def test_json_keeps_no_half_where_branches_differ() -> None:
    branches = """if x; then A='{"a": 1, "b": 1}'; else A='{"a": 1, "b": 2}'; fi\n"""
    script = f'{branches}vllm serve m --eplb-config "$A" --port 1'
    assert flags(one(script)) == {"model": "m", "eplb-config": "${A}", "port": "1"}


@pytest.mark.parametrize(
    "script",
    [
        'A=""\nif x; then A="--headless"; fi\nvllm serve $A m --port 1',
        'if x; then A="--headless --max-num-seqs 1"; fi\nvllm serve $A m --port 1',
        'A=()\nif x; then A=(--headless); fi\nvllm serve "${A[@]}" m --port 1',
        "vllm serve ${X:+--headless} m --port 1",
        "vllm serve $X m --port 1",
        'case $x in a) A="-ep";; b) A="";; *) A="--headless";; esac\nvllm serve $A \\\n m --port 1',
    ],
)
def test_a_word_that_may_be_flags_is_not_the_model_before_another_word(script: str) -> None:
    launch = one(script)
    assert (flags(launch)["model"], flags(launch)["port"], launch.left_over) == ("m", "1", ())
    assert launch.sometimes or launch.more_flags


@pytest.mark.parametrize(
    "script",
    [
        "vllm serve $M --port 1",
        "vllm serve $M $A --port 1",
        'if x; then M=a; else M=b; fi\nvllm serve "$M" --port 1',
        'if [ -z "$M" ]; then M=a; fi\nvllm serve $M --port 1',
    ],
)
def test_a_word_that_no_other_follows_is_the_model(script: str) -> None:
    assert isinstance(one(script).flags["model"].value, Unknown)


@pytest.mark.parametrize("words", ["$X -ep", "-ep $X", '"${X[@]}"', '"$@"', "--$X 1", "-ep ${X:+$Y}"])
def test_words_that_may_be_flags_leave_others_open(words: str) -> None:
    launch = one(f"vllm serve m {words}")
    assert launch.more_flags
    assert set(flags(launch)) <= {"model", "enable-expert-parallel"}


def test_variables_reach_the_process_that_they_were_exported_to() -> None:
    text = "export A=1 B=$x\nC=2\nexport C\nD=3\nunset B\nE=4 env F=5 numactl -N 0 vllm serve m\n"
    assert variables(one(text)) == {"A": "1", "C": "2", "E": "4", "F": "5"}
    assert variables(one("set -a\nA=1\nvllm serve m")) == {"A": "1"}


def test_a_variable_of_one_branch_leaves_variables_open() -> None:
    launch = one("if x; then export A=1; fi\nvllm serve m")
    assert (variables(launch), launch.more_variables) == ({}, True)


def test_a_sourced_file_is_read_if_it_lies_beside(tmp_path: Path) -> None:
    (tmp_path / "env.sh").write_text("export A=1\n")
    launch = one("source ./env.sh\nvllm serve m", beside=tmp_path)
    assert (variables(launch), launch.more_variables) == ({"A": "1"}, False)
    assert one("source ./other.sh\nvllm serve m", beside=tmp_path).more_variables
    assert not one("source venv/bin/activate\nvllm serve m").more_variables


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A=1\nexport A\nbash -c 'vllm serve m --port 1'", {"A": "1"}),
        ('A=1\nexport A\nssh gpu01 "B=2 vllm serve m --port 1"', {"B": "2"}),
        ('tmux new -d "vllm serve m --port 1"', {}),
        ('srun bash -c "cd /x && exec vllm serve m --port 1"', {}),
        ("ssh gpu01 <<'EOF'\nexport A=1\nvllm serve m --port 1\nEOF", {"A": "1"}),
        ("P=1\ncat > run.sh <<EOF\nvllm serve m --port $P\nEOF", {}),
        (
            "export A=1\ndocker run -e B=2 --env C=3 -it --ulimit memlock=-1 me/x:1 vllm serve m --port 1",
            {
                "B": "2",
                "C": "3",
            },
        ),
        ("docker run --entrypoint bash me/x -c 'A=1 vllm serve m --port 1'", {"A": "1"}),
        ('docker run -e A=1 --entrypoint vllm "$IMAGE" serve m --port 1', {"A": "1"}),
        (
            "docker run --entrypoint=/usr/bin/vllm -e A=1 vllm/vllm-openai:v0.19.1 serve m --port 1",
            {"A": "1"},
        ),
    ],
)
def test_commands_within_commands(text: str, wanted: dict[str, str]) -> None:
    launch = one(text)
    assert flags(launch) == {"model": "m", "port": "1"}
    assert variables(launch) == wanted


def test_what_a_reader_fills_in_is_no_redirection() -> None:
    launch = one("vllm serve <model> --port <API port> \\\n  --host 10.0.0.1 -tp 2 >log 2>&1")
    assert flags(launch) == {
        "model": "<model>",
        "port": "<API port>",
        "host": "10.0.0.1",
        "tensor-parallel-size": "2",
    }
    assert isinstance(launch.flags["model"].value, Unknown)


def test_the_release_by_an_image_or_a_pin() -> None:
    assert one("docker run docker.io/vllm/vllm-openai:v0.14.1-x86_64 --model m").version == "0.14.1"
    assert one("docker run lmcache/vllm-openai:v0.3.1 m").version == ""
    assert one("pip install vllm==0.18.1\nvllm serve m").version == "0.18.1"
    assert one("docker run -e A --env-file e vllm/vllm-openai m").more_variables


def test_several_launches_and_none() -> None:
    reading = read("vllm serve a &\n# vllm serve b\necho vllm serve c\npkill -f 'vllm serve'\nvllm serve d\n")
    assert [flags(launch)["model"] for launch in reading.launches] == ["a", "d"]
    assert [launch.source for launch in reading.launches] == ["f.sh:1", "f.sh:5"]
    nothing = read("echo hello\n", "x.sh")
    assert nothing.launches == ()
    assert [p.what for p in nothing.problems] == ["no `vllm serve` in x.sh"]


def test_a_written_config_is_read() -> None:
    text = "cat > /tmp/c.yaml <<EOF\nport: 5\nEOF\nvllm serve m --config /tmp/c.yaml\n"
    assert flags(one(text))["port"] == "5"


def test_an_open_quote_is_said() -> None:
    reading = read("vllm serve m --port '1\n-ep\n")
    assert [p.where for p in reading.problems] == ["f.sh:1"]


def test_scripts_that_name_each_other_are_left_after_a_while(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text("source b.sh\n" * 4 + "vllm serve m\n")
    (tmp_path / "b.sh").write_text(". ./a.sh\n" * 4)
    (problem,) = read((tmp_path / "a.sh").read_text(), "a.sh", beside=tmp_path).problems
    assert "not followed to its end" in problem.what


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ('w=$(cat <<EOF\nexport A=1\nvllm serve m --port $P\nEOF\n)\nsrun -N2 bash -lc "$w"', 3),
        ("srun bash -c \"$(cat <<'EOF'\n# it's :)\nvllm serve m \\\n  --port 1\nEOF\n)\"", 3),
        ('w=`cat <<EOF\nexport A=1\nvllm serve m --port $P\nEOF\n`\nssh gpu02 "$w"', 3),
        ("bash <(cat <<-EOF\n\t: x\n\tvllm serve m --port $P\n\tEOF\n)", 3),
        ('go() { srun bash -c "$1"; }\ngo "$(cat <<EOF\n: x\nvllm serve m --port $P\nEOF\n)"', 4),
        (
            "w=$(cat <<EOF\n: x\nbash -c \"\\$(cat <<'IN'\n: y\nvllm serve m --port $P\nIN\n)\"\nEOF\n)\n"
            'srun bash -c "$w"',
            5,
        ),
        ('w="$(echo vllm serve m --port $P)"\nssh gpu02 "$w"', 2),
    ],
)
def test_a_script_in_a_substitution_is_read(script: str, line: int) -> None:
    launch = one(f"P=1\n{script}\n")
    assert (flags(launch), launch.source) == ({"model": "m", "port": "1"}, f"f.sh:{line + 1}")


@pytest.mark.parametrize(
    "inner", ["cat <<EOF | sed s/m/n/\nvllm serve m\nEOF\n", "cat other.sh", "echo -e vllm"]
)
def test_what_a_command_prints_is_not_guessed(inner: str) -> None:
    assert flags(one(f'vllm serve m --port "$({inner})"'))["port"] == f"$({inner})"
