"""Profile = Hardware, Model, Engine, Layout, Stack, Platform; Setting(value, source); knows no hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, TypeAlias

from annotated_types import Ge, Le, MinLen

from launcher.model.architecture import Architecture
from launcher.model.history import History
from launcher.model.overheads import Overheads
from launcher.model.snapshot import Snapshot
from launcher.model.source_build import SourceBuild
from launcher.model.values import Json

Port: TypeAlias = Annotated[int, Ge(1), Le(65535)]
Style: TypeAlias = Literal["internal", "hybrid", "external"]
EnginePool: TypeAlias = Literal["prefill", "decode"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and the file line that set it.

    A scalar is the text of the YAML scalar (`0.10` stays `0.10`); `true`/`false` written plainly are
    bools (a flag, or its `--no-` form); a mapping or list is JSON for flags that take JSON; None removes
    a setting that a lower layer made.
    """

    value: Json
    source: str
    inside: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Key of a mapping, dotted → the file line that set it, where that is known."""


Settings: TypeAlias = Mapping[str, Setting]
SettingsByPool: TypeAlias = Mapping[str, Settings]
"""Pool name, or `all`, → settings by vLLM's current long flag name without dashes in front."""


class Placed(Protocol):
    """What was read from a mapping of a file."""

    @property
    def source(self) -> str:
        """`file:line` of the mapping."""

    @property
    def places(self) -> Mapping[str, str]:
        """`file:line` of each field that is written in it."""


def place_of(thing: Placed, name: str) -> str:
    """The line of a field; that of the mapping around it where the field is not written."""
    return thing.places.get(name, thing.source)


@dataclass(frozen=True, slots=True)
class Hardware:
    """A host type."""

    name: str
    about: str
    gpus_per_host: Annotated[int, Ge(0)]
    """0: no GPU; ranks have no device (the sandbox)."""
    gpu: str = ""
    gpu_memory_gib: Annotated[float, Ge(0)] = 0.0
    capability: str = ""
    """CUDA compute capability, `9.0`: which attention kernels it has, and how many heads they want."""
    busy: tuple[str, ...] = ()
    """A command that names what is at work on the GPUs, and says nothing while they are free."""
    overheads: Overheads | None = None
    """What `fit` cannot work out; None: nothing was measured on it."""
    settings: SettingsByPool = field(default_factory=dict)
    environment: SettingsByPool = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    """What checks expect of it, as `{{ hardware.variables.x }}`."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """A model and where its weights lie on the shared file system."""

    name: str
    about: str
    served_name: str
    folder: str
    """Folder under `paths.shared`/models and, staged, under `paths.local`/models; holds manifest.json."""
    architecture: Architecture | None = None
    known_as: tuple[str, ...] = ()
    """Other last parts of paths and repositories' names whose weights have these dimensions."""
    settings: SettingsByPool = field(default_factory=dict)
    environment: SettingsByPool = field(default_factory=dict)
    source: str = ""
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Phase:
    """A visible step of an engine's start: `pattern` in its log begins it, `within_s` is its budget."""

    name: str
    pattern: str
    within_s: Annotated[int, Ge(1)]


RankPort: TypeAlias = Literal[
    "base + dp_rank * tp_size", "base + data_parallel_rank", "base + data_parallel_index"
]
"""Which port of the NIXL side channel a rank takes. Up to 0.11.0 each GPU had one of its own; the last two
differ for models without experts only, whose ranks all call themselves data-parallel rank 0."""
Repair: TypeAlias = Literal["none", "handshake-retry", "restart-peer"]
"""What the other side of a P/D pair needs when one side was restarted. none: no request fails;
handshake-retry: it pairs again with the next request, those under way fail; restart-peer: a restart too."""
Companion: TypeAlias = Literal[
    "nixl", "deepep", "nvshmem", "nvshmem_build", "nccl", "deepgemm", "torch", "cuda", "driver"
]


@dataclass(frozen=True, slots=True)
class Client:
    """The load generator that comes with an engine."""

    command: Annotated[tuple[str, ...], MinLen(1)]
    """Words before its options, the first relative to the environment's bin folder."""
    begins: str
    """Part of the line that it prints when warm-ups are over, and requests count from now on."""
    ends: str
    """Part of the line that it prints when the last of these was answered."""


@dataclass(frozen=True, slots=True)
class Profiler:
    """How an engine records what its processes do, and where it leaves that."""

    start: str
    stop: str
    """Paths of its API, for POST; the second answers when all is written."""
    setting: str
    """The flag that turns it on, a mapping."""
    wants: Mapping[str, str]
    """Keys that it must have."""
    folder: str
    """Its key for the folder, on each host."""
    traces: str
    """Glob of what is left there, one file for each GPU's process."""
    advice: Mapping[str, str]
    """Keys, and variables of the engine in capitals, without which a trace tells less."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One release line of vLLM: spelling of settings, ports, phases, metrics.

    A file may be `based_on` another: it says what differs, mappings merge by key, lists replace.
    """

    name: str
    """`vllm-0.32`: the file is configs/engines/<name>.yaml."""
    about: str
    versions: str
    """PEP 440 specifier of the releases it describes, e.g. `>=0.32,<0.33`."""
    command: Annotated[tuple[str, ...], MinLen(1)]
    """Words before the model path, the first relative to the environment's bin folder: [vllm, serve]."""
    styles: Annotated[tuple[Style, ...], MinLen(1)]
    ready_path: str
    phases: tuple[Phase, ...]
    fatal: tuple[str, ...]
    """Patterns of log lines that name a failure; the first that matches is reported, not the last."""
    ignore: tuple[str, ...]
    """Patterns of log lines that look like failures and are none."""
    metrics: Mapping[str, str]
    """Our word → Prometheus name: kv_transfers, kv_bytes, prompt_tokens, generation_tokens, running,
    waiting, kv_usage, and what `bench` counts."""
    rank_port: RankPort
    repair: Repair
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Current flag → how this release spells it: {flag: its-name} or {env: VARIABLE}."""
    computed: tuple[str, ...] = ()
    """Flags and variables that resolve computes; setting one is a Problem."""
    kv_transfer: SettingsByPool = field(default_factory=dict)
    """Pool → keys of kv-transfer-config that are ours; a setting `kv-transfer-config` may only add others."""
    variables: Mapping[str, Setting] = field(default_factory=dict)
    """Variable of each process → the word it holds: address, interface, or, for processes that move KV to
    others, kv_address or kv_port."""
    api_only: tuple[str, ...] = ()
    """Settings that a headless process refuses: left out of its command line."""
    kv_hash: tuple[str, ...] = ()
    """Settings that prefill and decode must agree on, or NIXL refuses the first request (beside the release
    and the connector itself); a name stands for all keys below it."""
    client: Client | None = None
    """Its load generator; None: there is none, and nothing can be benchmarked."""
    profiler: Profiler | None = None
    """Its profiler; None: nothing can be captured."""
    companions: Mapping[Companion, str] = field(default_factory=dict)
    """What the release runs with: a range of versions (`>=0.7.1`), or a commit."""
    snapshot: Snapshot | None = None
    """What the release itself accepts, from <name>.json; None: there is none, and nothing is refused."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """When the guards of an instance end an epoch, and how they try again."""

    silent_s: Annotated[int, Ge(3)] = 10
    """A host of which nothing was heard for so long is lost. What runs without it hangs anyhow."""
    unanswered_s: Annotated[int, Ge(1)] = 90
    """No good answer of an endpoint that was ready (llm-d's liveness probe: 3 failures, 30 s apart)."""
    stalled_s: Annotated[int, Ge(1)] = 300
    """Requests run and no token comes (vLLM gives a step so long: VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS)."""
    settled_s: Annotated[int, Ge(1)] = 600
    """Ready for so long, an epoch is no try any more."""
    most_tries: Annotated[int, Ge(1)] = 5
    """So many epochs in a row that did not settle: they give up, until there is a new order."""
    pauses_s: Annotated[tuple[int, ...], MinLen(1)] = (5, 20, 60, 180)
    """Before the second try, the third, and so on; the last of them before all further ones."""


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """How one pool's instances are laid out."""

    hosts_per_instance: Annotated[int, Ge(1)] = 1
    tensor_parallel: Annotated[int, Ge(1)] = 1
    data_parallel: Annotated[int, Ge(1)] = 1
    """Ranks of the whole instance, over all its hosts."""
    style: Style = "internal"
    """internal: leader + headless; hybrid: an API endpoint on each host, which balances over its local
    ranks; external: an API endpoint for each rank (multi-port under a supervisor)."""
    api_port: Port = 8000
    rpc_port: Port = 13345
    kv_port: Port = 5600
    """First port of the NIXL side channel; each data-parallel rank takes one (by engine version)."""
    supervisor_port: Port = 9256
    guard_port: Port = 5750
    """UDP, between the guards of an instance's hosts."""
    guard: GuardLimits = field(default_factory=GuardLimits)
    settings: Settings = field(default_factory=dict)
    environment: Settings = field(default_factory=dict)
    source: str = ""
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RouterLayout:
    """The router and the front before it."""

    port: Port = 30000
    """vllm-router's own port, and the next one for the second router of the host; only fronts use them."""
    metrics_port: Port = 29000
    """The same for their metrics: this port and the next one."""
    front_port: Port = 8080
    """HAProxy's port: the address users get."""
    front_metrics_port: Port = 8405
    """HAProxy's own metrics."""
    settings: Settings = field(default_factory=dict)
    environment: Settings = field(default_factory=dict)
    source: str = ""
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """Pools, parallelism, ports and per-pool settings: prefill and decode behind a router, or one of the two
    alone, which users then ask at its own API."""

    name: str
    about: str
    prefill: PoolLayout | None = None
    decode: PoolLayout | None = None
    router: RouterLayout | None = None
    settings: SettingsByPool = field(default_factory=dict)
    environment: SettingsByPool = field(default_factory=dict)
    accept: Mapping[str, Setting] = field(default_factory=dict)
    """Rule id → why what it finds is meant here, as in an inventory."""
    source: str = ""

    @property
    def engines(self) -> Mapping[EnginePool, PoolLayout]:
        """The engine pools there are."""
        both: tuple[tuple[EnginePool, PoolLayout | None], ...]
        both = (("prefill", self.prefill), ("decode", self.decode))
        return {name: pool for name, pool in both if pool is not None}

    @property
    def disaggregated(self) -> bool:
        """Does one pool prefill for the other?"""
        return len(self.engines) > 1


@dataclass(frozen=True, slots=True)
class Stack:
    """Pinned versions of all software, and the roles that install it, in any order (`needs` sorts)."""

    name: str
    about: str
    roles: tuple[str, ...]
    engine: str = ""
    """configs/engines/<engine>.yaml."""
    engine_version: str = ""
    router: str = ""
    """configs/routers/<router>.yaml."""
    python: str = ""
    """`3.11`: the hosts' Python that the wheels are for."""
    lock: str = ""
    """File in configs/stacks/ with pinned, hashed Python requirements."""
    lock_digest: str = ""
    """sha256 of that file; names the environment folder on the hosts. Filled by load."""
    requirements: tuple[str, ...] = ()
    """What the lock was resolved from, `name==version`: what these need comes with them. For `stack lock`."""
    until: str = ""
    """`2026-02-01`: of what `requirements` do not pin, nothing newer was taken."""
    leaves_out: tuple[str, ...] = ()
    """Packages that something asks for and that are not installed."""
    locked_as: Mapping[str, str] = field(default_factory=dict)
    """Variable → the package of the lock that it is the version of, or the first parts of it."""
    builds: Mapping[str, SourceBuild] = field(default_factory=dict)
    """Package of the lock → how it is built from source."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Debian/Ubuntu package → version, or empty for whatever the mirror folder holds."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Anything roles substitute as `{{ stack.variables.x }}`: versions of drivers and the like."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Platform:
    """What is below a stack on the hosts: the distribution's release with its packages, and the roles that
    make a bare host of it ready."""

    name: str
    about: str
    os: str
    """`ubuntu 24.04`, as the hosts say it of themselves."""
    roles: tuple[str, ...]
    """Beside those of the stack, in any order."""
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What a role asks for by a word of its own (`driver`) → `package=version`, or `package` for any. Hosts
    install from `platforms/<name>/debs` below `paths.shared`, and ask nobody else."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Anything roles and checks substitute as `{{ platform.variables.x }}`."""
    lock: str = ""
    """File in configs/platforms/: a line `SHA256 FILE` for each package with all that it needs."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class RouterKind:
    """How one router program is started and asked."""

    name: str
    about: str
    command: Annotated[tuple[str, ...], MinLen(1)]
    prefill_flag: str
    decode_flag: str
    ready_path: str
    finish_within_s: Annotated[int, Ge(1), Le(900)] = 300
    """Seconds that running requests get when a router is replaced; it is killed then."""
    settings: Settings = field(default_factory=dict)
    does: Settings = field(default_factory=dict)
    """Flag → one sentence, in our words: what the router does with it. For `explain`."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything configs/ says for one inventory."""

    stack: Stack
    hardware: Hardware | None = None
    model: Model | None = None
    engine: Engine | None = None
    layout: Layout | None = None
    router: RouterKind | None = None
    platform: Platform | None = None
    """None: hosts come with driver, RDMA and all that is below the stack."""
    history: History = field(default_factory=lambda: History({}, {}))
    """What is known of the engine's releases."""
