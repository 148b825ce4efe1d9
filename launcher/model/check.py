"""Check, Question, Expectation, CheckFinding: what must hold and is no step of ours; knows no host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, MinLen

from launcher.model.inventory import PoolName
from launcher.model.rule import Severity

Owner: TypeAlias = Literal[
    "host image", "driver package", "firmware", "hardware", "network team", "storage team", "us"
]
"""Who puts it right: whoever makes the hosts' image, or installs the driver; BIOS, GPU and NIC firmware;
whoever exchanges parts; the people of network and file system. `us`: a command of this program does it."""
Peers: TypeAlias = Literal["ports", "size"]
"""ports: does every other host answer where it serves; size: does a packet of its MTU get there."""
Verdict: TypeAlias = Literal["wrong", "open"]
"""open: it cannot be told, because of what the finding says."""

PROGRAMS = frozenset(
    {
        *("apt-mark", "chronyc", "dcgmi", "dkms", "dpkg-query", "ibv_devinfo", "ip", "ipmitool"),
        *("journalctl", "lspci", "mlnx_qos", "mmdiag", "mmgetstate", "mmhealth", "modinfo", "mokutil"),
        *("nvidia-smi", "ofed_info", "ps", "show_gids", "sminfo", "stat", "systemctl", "systemd-analyze"),
        *("nvme", "timedatectl"),
    }
)
"""What checks may start, by the last part of its path: programs that look, called so that they only look."""


@dataclass(frozen=True, slots=True)
class Question:
    """One read-only question to a host, and the text that its answer is read as. One of the first ones."""

    command: tuple[str, ...] = ()
    """Words of a program of PROGRAMS; the text is its output, and its errors where it failed."""
    file: str = ""
    """A path: the file's text. With `*` in it, each line of each file there is, after `PATH: `. `{kernel}` is
    the running one."""
    names: str = ""
    """A path with `*` in it: the paths there are, a line each."""
    over: str = ""
    """Of a command, a path with `*` in it: the command once for each path there is, which comes last of its
    words; the text is each line of each output, after `PATH: `."""
    imports: tuple[str, ...] = ()
    """Modules that the Python of `environment` imports, all in one process: `NAME whole`, or `NAME` and its
    error, a line each."""
    environment: str = ""
    grows: str = ""
    """A path with `*` in it: `PATH: N` of each file, N what the number in it grew by in two seconds."""
    package: str = ""
    """A Debian package: its installed version."""
    packages: tuple[str, ...] = ()
    """Patterns of names of Debian packages: `install NAME VERSION`, or `hold …`, of each installed one."""
    unit: str = ""
    """A systemd unit: `active=`, `sub=`, `enabled=`, `result=` and `reload=`, a line each."""
    page: str = ""
    """A URL: `status=` or `error=`, then the text of the page."""
    disk: str = ""
    """A path: `type=`, `free_gib=` and `free_percent=` of the file system it is on."""
    shards: str = ""
    """A folder of safetensors: `NAME whole`, `NAME cut` or `NAME missing`, by headers and the index."""
    host: bool = False
    """`hostname=`, `os=`, `kernel=`, `cpus=`, `memory_gib=`."""
    clock: bool = False
    """`ahead_s=`, seconds before the controller's clock, as far as that is certain."""
    cuda: bool = False
    """`cuInit=` and its result, from a process of its own: the driver may look well and still refuse."""
    listen: bool = False
    """`PORT ADDRESS UNIT` of each TCP port that is listened on."""
    peers: Peers | None = None
    """`HOST:PORT open`, `refused` or why not; or `HOST whole`, `cut` or `silent`."""
    columns: tuple[str, ...] = ()
    """Names of the columns, where the text is lines of comma-separated values; the first says of what."""
    within_s: Annotated[int, Ge(1), Le(60)] = 20


@dataclass(frozen=True, slots=True)
class Expectation:
    """What every value that was read must be: one of these. Texts may hold names, as in roles."""

    equals: str | None = None
    one_of: tuple[str, ...] = ()
    at_least: str | None = None
    """A number."""
    at_most: str | None = None
    release_at_least: str | None = None
    """A dotted version, compared part by part: 6.10 comes after 6.9."""
    matches: str | None = None
    """A regular expression that is found in it."""
    lacks: str | None = None
    """One that is not."""
    none: bool = False
    """Nothing is read at all."""
    like: str | None = None
    """The id of another check: what that one reads on the same host."""
    count: str | None = None
    """So many values are read."""
    count_at_least: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold. In configs/checks/<topic>.yaml, by id."""

    id: str
    topic: str
    title: str
    """What holds, in a few words."""
    severity: Severity
    """error: does not start, hangs, answers wrongly; warning: slow or fragile; note: good to know."""
    ask: Question | str
    """A question, or the name of one in the file's `questions`."""
    owner: Owner
    remedy: str
    """One command or edit, for the owner; may hold names."""
    why: str
    known_from: str
    passes: Annotated[tuple[str | tuple[str, ...], ...], MinLen(1)]
    """Texts of answers that are right; of `across`, lists of those of several hosts."""
    fails: Annotated[tuple[str | tuple[str, ...], ...], MinLen(1)]
    read: str = ""
    """A regular expression with a group `value`, and `of` where it says of what; each match is a value.
    Empty: the whole text is one."""
    column: str = ""
    """The column that is the value, of a question with `columns`."""
    expect: Expectation | None = None
    across: Literal["same", "unique", "near"] | None = None
    """same: all hosts answer alike; unique: no two do; near: no number is more than `by` above the median of
    all hosts."""
    by: Annotated[float, Gt(0)] | None = None
    missing: Literal["wrong", "fine"] = "wrong"
    """What it is where the program, file or value is not there."""
    needs: tuple[str, ...] = ()
    """Checks without which this one cannot be told: of one fault only the first is said."""
    each: Literal["host", "process"] = "host"
    """process: once for each engine process of the host, which texts may name then."""
    where: str | None = None
    """A text with names; where nothing comes out, the check is not asked."""
    idle: bool = False
    """Only where no engine process of the host runs."""
    slow: bool = False
    """It takes seconds: asked only where it, or its topic, is named."""
    refuses_up: bool = False
    """An error that `up` begins nothing with; not for what `up` itself would put right."""
    made_by: tuple[str, ...] = ()
    """Roles that make it so: where the inventory has one of them, `up` is the remedy, and begins although it
    is red."""
    hardware: tuple[str, ...] = ()
    """Names of configs/hardware, or `gpu`: any with GPUs. Empty: any."""
    pools: tuple[PoolName, ...] = ()
    roles: tuple[str, ...] = ()
    """Only where the stack has one of them."""
    source: str = ""
    """`file:line` of the check."""


@dataclass(frozen=True, slots=True)
class TopicFile:
    """configs/checks/<topic>.yaml: what its checks share, and the checks."""

    about: str
    hardware: tuple[str, ...] = ()
    """Of all its checks that do not say otherwise; so `pools` and `needs`."""
    pools: tuple[PoolName, ...] = ()
    needs: tuple[str, ...] = ()
    questions: Mapping[str, Question] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """What one check found, in the same words on all these hosts."""

    check: Check
    verdict: Verdict
    hosts: tuple[str, ...]
    """Of `across` those that differ from most, or all where none is in the majority."""
    what: str
    """wrong: found and expected; open: why it cannot be told."""
    remedy: str
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Of `across`: each answer and whose it is, the most frequent first."""
    majority: bool = False
    """The first of `groups` is that of more than half of all hosts."""

    @property
    def counts(self) -> bool:
        """Is it something to act on?"""
        return self.verdict == "wrong" and self.check.severity != "note"
