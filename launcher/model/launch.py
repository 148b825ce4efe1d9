"""Launch: one `vllm serve` as lint and fit see it, resolved by us or read from a foreign file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher.model.profile import Hardware, Model, Settings

DEFAULT_SHM_GIB = 64 / 1024
"""What Docker and containerd give a container where nothing is said."""


class Unknown(str):
    """Text that the file does not tell, as it is written there: `$(hostname -i)`, or `--port` of `$PORT`.

    A setting whose value is one, or anything within a setting's JSON, is given; what it is cannot be told.

    >>> isinstance(Unknown("$PORT"), str), isinstance("$PORT", Unknown)
    (True, False)
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Container:
    """What is said of the container that a launch runs in, by Docker, Compose or Kubernetes."""

    pod: bool = False
    """Of Kubernetes: its host's name is its own address."""
    image: str = ""
    shm_gib: float | None = DEFAULT_SHM_GIB
    """Size of /dev/shm; None: the host's, or bounded by memory alone."""
    locks_memory: bool = False
    """May it lock memory without a limit: by ulimit, by IPC_LOCK, or as it is privileged?"""
    asked_ready: bool = False
    """Does anything ask whether it serves before requests are sent to it?"""
    killed_after_s: int | None = None
    """Probes end it when it has not answered for so long since its start; None: they do not."""


@dataclass(frozen=True, slots=True)
class LeftOver:
    """A word of a command line that belongs to no flag: the parser of vLLM ends the program at it."""

    word: str
    source: str
    """`file:line`."""
    after: str = ""
    """The flag that it stands behind, by its long name; empty: behind the model."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One process's command line and environment, with the file line that set each of them.

    Unknown is not the same as absent: an empty `version`, or a `model` or `hardware` of None, is unknown, and
    what depends on it cannot be told. A setting's value may be `Unknown`.
    """

    name: str
    """`decode-0 on gpu05`, or what the foreign file calls it."""
    flags: Settings
    """By vLLM's long flag name without dashes, as written: short forms made long, `--no-x` is x: false,
    a bare flag true, `--a.b 1` and JSON one mapping {b: 1}. Not translated between releases. The model's
    path or name is `model`, wherever it stood."""
    variables: Settings
    source: str
    """`file:line` where it begins."""
    version: str = ""
    """vLLM release, `0.14.1`; empty: unknown."""
    model: Model | None = None
    hardware: Hardware | None = None
    instance: str = ""
    """Launches of the same instance make one engine; empty: it stands alone."""
    pool: str = ""
    """prefill, decode, or empty: not disaggregated or not known."""
    disaggregated: bool | None = None
    """Is it one side of a P/D deployment? None: cannot be told."""
    hosts: int | None = None
    """Hosts of its instance; None: cannot be told."""
    unit: Mapping[str, str] | None = None
    """Directives of its systemd unit (LimitMEMLOCK, Restart, …); None: it is not started by a unit we see."""
    container: Container | None = None
    """None: it is not started in a container that we see."""
    more_flags: bool = False
    """The command line holds words that cannot be told: a flag that is not in `flags` may be given."""
    sometimes: Mapping[str, str] = field(default_factory=dict)
    """Flags that a branch of the script gives and another does not → what gives them, and where. One that is
    in `flags` too has an Unknown value."""
    unread: tuple[str, ...] = ()
    """The words behind `more_flags`, and where each stands."""
    left_over: tuple[LeftOver, ...] = ()
    more_variables: bool = False
    """Variables come from where we cannot look: one that is not in `variables` may be given."""
    accepted: Mapping[str, str] = field(default_factory=dict)
    """Rule id → why its finding is accepted here."""
