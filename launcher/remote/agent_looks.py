"""What only checks ask of a host: files, ways to peers, weights, driver; a part of the agent of its own."""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time

from launcher.remote.agent import QUERY_WITHIN_S, dpkg_status, spoken, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from launcher.remote.agent import Probes

MOST_FILES = 4096
SHARD_HEADER_UP_TO = 100 << 20
"""The format's own limit."""
SIOCGIFMTU = 0x8921
CLOSED_PORT = 33434
"""Where traceroute knocks: nobody listens there, so a kernel says that a datagram has come."""
COUNTER_BYTES = 32
IMPORTS = """\
import importlib, os, sys, tempfile
with tempfile.TemporaryDirectory() as home:  # some make folders there when they are imported
    os.environ.update(HOME=home, XDG_CACHE_HOME=home, XDG_CONFIG_HOME=home)
    for name in sys.argv[1:]:
        print(name, end=" ", flush=True)  # first: an import may end the process
        try:
            importlib.import_module(name)
            print("whole")
        except BaseException as error:
            print(f"{type(error).__name__}: {error}".splitlines()[0])
"""
ROUNDS = 3
"""A kernel answers a limited number of datagrams a second; what was lost to that comes in another round."""


def look(probes: Probes, kind: str, *args: Any) -> Any:
    """The answer to one of these probes."""
    if kind not in LOOKS:
        raise LookupError(f"no probe is called {kind}")
    return LOOKS[kind](probes, *args)


def files(probes: Probes, pattern: str, max_bytes: int) -> dict[str, str]:
    """Path → text of the files that a pattern names; of none for no bytes."""
    import glob

    found = {}
    pattern = pattern.replace("{kernel}", os.uname().release)
    for path in sorted(glob.glob(probes.root + pattern))[:MOST_FILES]:
        if not max_bytes:
            found[path[len(probes.root) :]] = ""
            continue
        # of a device that is going away, some files of the kernel's cannot be read
        with contextlib.suppress(OSError), open(path, "rb") as file:
            found[path[len(probes.root) :]] = file.read(max_bytes).decode("utf-8", "replace")
    return found


def packages(probes: Probes, patterns: list[str]) -> list[list[str]]:
    """[what is wanted of it (install, hold), name, version] of each installed package that a pattern names.

    Read from dpkg's file: apt-mark takes half a second of CPU for its cache, and each dpkg-query ten ms.
    """
    import fnmatch
    import re

    meant = re.compile("|".join(map(fnmatch.translate, patterns)))
    status, found = dpkg_status(probes), []
    for head in re.finditer(rb"\nPackage: (\S+)\nStatus: (\S+) ok installed\n", status):
        name = head[1].decode()
        if meant.match(name):
            at = status.index(b"\nVersion: ", head.start()) + len(b"\nVersion: ")
            found.append([head[2].decode(), name, status[at : status.index(b"\n", at)].decode()])
    return found


def over(probes: Probes, words: list[str], pattern: str, within_s: float) -> dict[str, Any]:
    """Path → what a command answers of it, for each that a pattern names."""
    import glob

    return {
        path: probes.runner.run([*words, path], within_s=within_s)
        for path in sorted(glob.glob(probes.root + pattern))
    }


def imports(probes: Probes, environment: str, names: list[str], within_s: float) -> dict[str, Any]:
    """What a command answers that imports these modules by the Python of an environment."""
    words = [f"{environment}/bin/python", "-IB", "-c", IMPORTS, *names]
    return probes.runner.run(words, within_s=within_s)


def grown(probes: Probes, pattern: str, during_s: float) -> dict[str, int]:
    """Path → by how much the number in it grew in this time, of the files that a pattern names."""
    first = files(probes, pattern, COUNTER_BYTES)
    time.sleep(during_s)
    second = files(probes, pattern, COUNTER_BYTES)
    return {path: int(second[path]) - int(first[path]) for path in first if path in second}


def reach(probes: Probes, interface: str, peers: list[Any], within_s: float) -> dict[str, dict[str, str]]:
    """What comes of a connection to each port of each peer, and of a packet of full size to each."""
    ends = [(f"{name}:{port}", address, port) for name, address, ports in peers for port in ports]
    names = [(name, address) for name, address, _ in peers]
    return {"ports": reached(ends, within_s), "size": sized(names, mtu_of(interface), within_s)}


def shards(probes: Probes, folder: str) -> dict[str, str]:
    """File → whole, cut, missing, or why it cannot be read, of a model in safetensors."""
    try:
        names = sorted(n for n in os.listdir(folder) if n.endswith(".safetensors"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    try:
        index = json.loads(text_of(f"{folder}/model.safetensors.index.json") or "{}")
    except ValueError:
        return {"model.safetensors.index.json": "no JSON"}
    found = dict.fromkeys(sorted(set(index.get("weight_map", {}).values()) - set(names)), "missing")
    found.update((name, shard_state(f"{folder}/{name}")) for name in names)
    return found


def cuda(probes: Probes) -> dict[str, Any]:
    """{result of cuInit; null where there is no driver}."""
    # in a process of its own: what a driver does to the one that calls it cannot be taken back
    code = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
    said = probes.runner.run([sys.executable, "-IS", "-c", code], within_s=QUERY_WITHIN_S)
    return {"result": int(said["stdout"]) if said["exit"] == 0 else None}


def shard_state(path: str) -> str:
    """whole, cut, or why it cannot be read: its header says how long a safetensors file is."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length <= min(SHARD_HEADER_UP_TO, size - 8):
                return "cut"
            header = json.loads(file.read(length))
        end = max((t["data_offsets"][1] for n, t in header.items() if n != "__metadata__"), default=0)
    except OSError as problem:
        return spoken(problem)
    except (ValueError, KeyError, TypeError, AttributeError):
        return "garbled"
    return "whole" if size == 8 + length + end else "cut"


def mtu_of(interface: str) -> int:
    """The largest packet of an interface; Ethernet's where there is no such interface."""
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket, contextlib.suppress(OSError):
        asked = struct.pack("16si", interface.encode(), 0)
        return int(struct.unpack("16xi", fcntl.ioctl(any_socket, SIOCGIFMTU, asked))[0])
    return 1500


def reached(ends: list[Any], within_s: float) -> dict[str, str]:
    """Name → open, refused, or why not, of TCP connections that are all begun at once."""
    import errno
    import socket

    def word(number: int) -> str:
        known = {0: "open", errno.ECONNREFUSED: "refused"}
        return known.get(number) or os.strerror(number).lower()

    said: dict[str, str] = {}
    waiting: dict[int, Any] = {}
    poll = select.poll()
    for name, address, port in ends:
        link = socket.socket()
        link.setblocking(False)
        number = link.connect_ex((address, port))
        if number == errno.EINPROGRESS:
            waiting[link.fileno()] = (name, link)
            poll.register(link, select.POLLOUT)
        else:
            said[name] = word(number)
            link.close()
    until = time.monotonic() + within_s
    while waiting and time.monotonic() < until:
        for number, _ in poll.poll(max(1.0, 1000 * (until - time.monotonic()))):
            name, link = waiting.pop(number)
            poll.unregister(number)
            said[name] = word(link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
            link.close()
    for name, link in waiting.values():
        said[name] = "no answer"
        link.close()
    return {name: said[name] for name, _, _ in ends}


def sized(peers: list[Any], mtu: int, within_s: float) -> dict[str, str]:
    """Peer → whole, cut or silent: does a packet as large as the interface allows get there unbroken?

    A datagram to a port where nobody listens is answered by the kernel there. The large one goes first: who
    answers only the small one after it, and more than once, has not got the other.
    """
    large, small = dict.fromkeys((p[0] for p in peers), 0), dict.fromkeys((p[0] for p in peers), 0)
    for _ in range(ROUNDS):
        left = [p for p in peers if not large[p[0]]]
        if not left:
            break
        for counts, heard in zip((large, small), came(left, (min(mtu, 65535) - 28, 8), within_s / ROUNDS)):  # noqa: B905
            for name in heard:
                counts[name] += 1
    return {n: "whole" if large[n] else "cut" if small[n] > 1 else "silent" for n in large}


def came(peers: list[Any], sizes: tuple[int, ...], within_s: float) -> list[list[str]]:
    """For each size, the peers whose kernel says that a datagram of it has come."""
    import errno
    import socket

    heard: list[list[str]] = [[] for _ in sizes]
    waiting: dict[int, Any] = {}
    poll = select.poll()
    for name, address in peers:
        for which, size in enumerate(sizes):
            link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            link.setblocking(False)
            link.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: never in pieces
            waiting[link.fileno()] = (name, which, link)
            poll.register(link, select.POLLIN)
            with contextlib.suppress(OSError):  # too large for a hop that is known already
                link.connect((address, CLOSED_PORT))
                link.send(bytes(size))
    until = time.monotonic() + within_s
    while waiting and time.monotonic() < until:
        for number, _ in poll.poll(max(1.0, 1000 * (until - time.monotonic()))):
            name, which, link = waiting.pop(number)
            poll.unregister(number)
            if link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED:
                heard[which].append(name)
            link.close()
    for _, _, link in waiting.values():
        link.close()
    return heard


LOOKS: dict[str, Any] = {
    "files": files,
    "packages": packages,
    "over": over,
    "imports": imports,
    "grown": grown,
    "reach": reach,
    "shards": shards,
    "cuda": cuda,
}
