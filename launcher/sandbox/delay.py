"""A slow or lossy network for one host, by the kernel's netem or by a relay; knows how both are said."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from launcher.model.problem import InputError, LauncherError, Problem
from launcher.sandbox import network, processes, programs, relay, state
from launcher.sandbox.places import HostPlace

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
BITS_PER_SECOND = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
SHARE = {"%": 0.01}
EXAMPLE = "`20ms`, `20ms 5ms loss 1%`, `loss 0.5%`, `rate 50mbit`, or `off`"


@dataclass(frozen=True, slots=True)
class Quality:
    """How good a host's network is, in each direction: a delay of 20 ms is 40 ms of round trip."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    rate_bps: float = 0.0
    """0: no limit."""


def parse(words: Sequence[str]) -> Quality:
    """Words as netem takes them (`delay` may be left out) → Quality.

    >>> parse(["20ms", "5ms", "loss", "1%"])
    Quality(delay_s=0.02, jitter_s=0.005, loss=0.01, rate_bps=0.0)
    """
    quality, left = Quality(), [word.lower() for word in words if word != "delay"]
    while left:
        match left:
            case ["loss", value, *rest]:
                quality = replace(quality, loss=_quantity(value, SHARE))
            case ["rate", value, *rest]:
                quality = replace(quality, rate_bps=_quantity(value, BITS_PER_SECOND))
            case [value, jitter, *rest] if jitter[:1].isdigit():
                delay_s, jitter_s = _quantity(value, SECONDS), _quantity(jitter, SECONDS)
                quality = replace(quality, delay_s=delay_s, jitter_s=jitter_s)
            case [value, *rest]:
                quality = replace(quality, delay_s=_quantity(value, SECONDS))
        left = rest
    if quality == Quality():
        raise InputError(Problem("no delay, loss or rate is given", do=f"say {EXAMPLE}"))
    return quality


def apply(host: HostPlace, words: Sequence[str]) -> None:
    """Make a host's network this bad, in both directions, instead of what it was before."""
    quality = parse(words)
    clear(host)
    state.save_host(host.folder, replace(state.load_host(host.folder), delay=" ".join(words)))
    if not _kernel(host, quality):
        _relay(host, quality)


def clear(host: HostPlace) -> None:
    """Make a host's network as good as it can be."""
    known = state.load_host(host.folder)
    processes.end(known.relay)
    for suffix in ("a", "b", "m"):
        if suffix == "m" and (network.DEVICES / f"{host.port}m").exists():
            programs.run("ip", "link", "set", host.port, "master", host.sandbox.bridge)
        network.remove_device(f"{host.port}{suffix}")
    if known.delay:
        for prefix, device in _ends(host):
            programs.attempt(*prefix, "tc", "qdisc", "del", "dev", device, "root")
        state.save_host(host.folder, replace(known, relay=None, delay=""))


def _kernel(host: HostPlace, quality: Quality) -> bool:
    """Whether the kernel could do it."""
    options = ["delay", f"{quality.delay_s * 1e6:.0f}us", f"{quality.jitter_s * 1e6:.0f}us"]
    options += ["loss", f"{quality.loss:.4%}"] if quality.loss else []
    options += ["rate", f"{quality.rate_bps:.0f}bit"] if quality.rate_bps else []
    for prefix, device in _ends(host):
        if programs.attempt(
            *prefix, "tc", "qdisc", "add", "dev", device, "root", "netem", *options
        ).returncode:
            return False
    return True


def _ends(host: HostPlace) -> tuple[tuple[tuple[str, ...], str], ...]:
    return ((), host.port), (("ip", "netns", "exec", host.machine), "eth0")


def _relay(host: HostPlace, quality: Quality) -> None:
    """Put a bridge of its own and two tap devices between the host and the bridge of all."""
    outer, inner, bridge = f"{host.port}a", f"{host.port}b", f"{host.port}m"
    programs.run("ip", "link", "add", bridge, "type", "bridge", "mcast_snooping", "0")
    for tap in (outer, inner):
        programs.run("ip", "tuntap", "add", tap, "mode", "tap")
    for device in (outer, inner, bridge):
        network.disable_ipv6(device)
    log = host.folder / "relay.log"
    words = (sys.executable, "-IS", relay.__file__, outer, inner, json.dumps(asdict(quality)))
    started = processes.spawn(words, log=log, environment={})
    state.save_host(host.folder, replace(state.load_host(host.folder), relay=started))
    for tap, joined in ((outer, host.sandbox.bridge), (inner, bridge)):
        programs.run("ip", "link", "set", tap, "master", joined, "up")
    programs.run("ip", "link", "set", host.port, "master", bridge)
    programs.run("ip", "link", "set", bridge, "up")
    _await_carrier(host, (outer, inner))


def _await_carrier(host: HostPlace, taps: Sequence[str]) -> None:
    """A tap device has a carrier once the relay has opened it."""
    until = time.monotonic() + 5
    while not all(programs.read(network.DEVICES / tap / "carrier").strip() == "1" for tap in taps):
        if time.monotonic() > until:
            clear(host)
            said = programs.read(host.folder / "relay.log")[-500:]
            raise LauncherError(
                Problem("the relay for delay and loss does not start", where=host.name, why=said)
            )
        time.sleep(0.02)


def _quantity(word: str, units: Mapping[str, float]) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z%]+)", word)
    if not found or found[2] not in units:
        raise InputError(
            Problem(f"`{word}` is not a number with one of {', '.join(units)}", do=f"say {EXAMPLE}")
        )
    return float(found[1]) * units[found[2]]
