"""One host: its life, its faults, and commands in it without SSH; knows nothing of the other hosts."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from launcher.model.problem import InputError, LauncherError, Problem
from launcher.sandbox import boot, cgroups, delay, mounts, network, processes, programs, state
from launcher.sandbox.places import HostPlace
from launcher.sandbox.processes import ProcessId

Power: TypeAlias = Literal["up", "frozen", "down"]
FILL_FILE = ".sandbox-fill"
# systemd's signal for an orderly power-off
POWER_OFF = signal.SIGRTMIN + 4


class HostEndedError(LauncherError):
    """A host that should come up has no process any more."""


@dataclass(frozen=True, slots=True)
class HostStatus:
    """What a host is now."""

    name: str
    address: str
    power: Power
    link: Literal["ok", "cut"]
    delay: str
    """In words; empty for none."""
    init_pid: int | None
    """Pid of its PID 1 on this machine."""
    cpu_s: float
    """Processor time of all its processes since it was made."""


class SandboxHost:
    """A host of a sandbox; an object may be kept, it reads what is so each time."""

    def __init__(self, place: HostPlace) -> None:
        self.place = place

    @property
    def name(self) -> str:
        """`h01`."""
        return self.place.name

    @property
    def address(self) -> str:
        """Its address on the bridge."""
        return self.place.address

    @property
    def exists(self) -> bool:
        """Whether it was made and not dropped, running or not."""
        return self.place.folder.is_dir()

    @property
    def init(self) -> ProcessId | None:
        """Its PID 1, as this machine sees it; None when it does not run."""
        keeper = state.load_host(self.place.folder).keeper
        if keeper is None or not processes.is_alive(keeper):
            return None
        for nspawn in processes.children(keeper.pid):
            for pid in processes.children(nspawn):
                if programs.read(Path(f"/proc/{pid}/comm")).strip() in ("systemd", "init"):
                    return processes.identify(pid)
        return None

    def status(self) -> HostStatus:
        """What it is now."""
        init = self.init
        frozen = cgroups.is_frozen(self.place.cgroup)
        return HostStatus(
            name=self.name,
            address=self.address,
            power="down" if init is None else "frozen" if frozen else "up",
            link="cut" if network.is_cut(self.place) else "ok",
            delay=state.load_host(self.place.folder).delay,
            init_pid=init.pid if init else None,
            cpu_s=round(cgroups.cpu_seconds(self.place.cgroup), 3),
        )

    def make(self, disks: boot.Disks) -> None:
        """Have its disks and its cable, without faults; it is not booted."""
        boot.make_disks(self.place, disks)
        network.connect(self.place)
        self.mend()

    def drop(self) -> None:
        """Remove it and everything that it wrote; LauncherError if something stays."""
        self.kill()
        delay.clear(self.place)
        network.disconnect(self.place)
        cgroups.remove(self.place.cgroup)
        mounts.unmount_under(self.place.folder)
        shutil.rmtree(self.place.folder, ignore_errors=True)

    def start(self, *, within_s: float = 120) -> None:
        """Boot it if it is down, and wait until sshd answers and systemd has started everything."""
        with contextlib.suppress(HostEndedError):  # its power may just have been taken
            if self.init is not None:
                self.await_ready(within_s=within_s)
                return
        self.kill()  # what an interrupted boot left
        boot.start(self.place)
        self.await_ready(within_s=within_s)

    def kill(self) -> None:
        """Power loss; its disks stay."""
        boot.power_off(self.place, init=self.init)

    def stop(self, *, within_s: float = 60) -> None:
        """Orderly shutdown, and power loss if that takes longer."""
        self.freeze(False)
        if init := self.init:
            os.kill(init.pid, POWER_OFF)
            processes.await_end(init, within_s=within_s)
        self.kill()

    def await_ready(self, *, within_s: float) -> None:
        """Wait until sshd answers and systemd has started everything; not for a host that is cut."""
        until = time.monotonic() + within_s
        while not (network.is_cut(self.place) or (self._sshd_answers() and self._systemd_is_done())):
            said = programs.read(self.place.console)[-800:]
            if not processes.is_alive(state.load_host(self.place.folder).keeper):
                raise HostEndedError(
                    Problem(f"{self.name} ended while it booted", where=str(self.place.console), why=said)
                )
            if time.monotonic() > until:
                what = f"{self.name} is not up after {within_s:.0f} s"
                raise LauncherError(Problem(what, where=str(self.place.console), why=said))
            time.sleep(0.1)

    def exec(self, *words: str, stdin: str = "", within_s: float = 60) -> programs.Done:
        """Run a command as root in it, without SSH: what a witness uses. Its exit status is not looked at."""
        return programs.attempt(*self.enter(words), stdin=stdin, within_s=within_s)

    def enter(self, words: Sequence[str]) -> tuple[str, ...]:
        """The command line that runs `words` in it; LauncherError when it is down."""
        init = self.init
        if init is None:
            raise LauncherError(Problem(f"{self.name} is down", do=f"dsv32-launch sandbox start {self.name}"))
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        clean = ("env", "-i", f"PATH={path}", "HOME=/root", "LANG=C.UTF-8")
        return ("nsenter", "-t", str(init.pid), "-m", "-u", "-i", "-n", "-p", "-C", "--", *clean, *words)

    def cut(self, *, silent: bool = False) -> None:
        """Take its cable out: connects end in `no route to host`; silent: they wait for their time-out."""
        network.cut(self.place, silent=silent)

    def heal(self) -> None:
        """Put its cable back in."""
        network.heal(self.place)

    def freeze(self, on: bool = True) -> None:
        """Stop all its processes, or let them go on: TCP still connects, nothing answers."""
        if on and self.init is None:
            raise LauncherError(Problem(f"{self.name} is down", do=f"dsv32-launch sandbox start {self.name}"))
        cgroups.freeze(self.place.cgroup, on)

    def fill(self, path: str = "/nvme") -> None:
        """Fill `/nvme` or `/` until nothing more fits; InputError where it has no limit of its own."""
        if path not in ("/nvme", "/"):
            raise InputError(Problem(f"`{path}` is no file system of a host", do="fill `/nvme` or `/`"))
        limited = self.place.nvme if path == "/nvme" else self.place.writable
        if not mounts.is_mount(limited):
            option, other = ("--nvme-size", "/") if path == "/nvme" else ("--root-size", "/nvme")
            raise InputError(
                Problem(
                    f"`{path}` of {self.name} has no limit: filling it would fill this machine's disk",
                    where=str(limited),
                    do=f"`sandbox down`, then `sandbox up N {option} 1g`; or fill `{other}`",
                )
            )
        file = f"{path.rstrip('/')}/{FILL_FILE}"
        # large blocks first, then the rest in blocks of a page
        blocks = f"dd if=/dev/zero of={file} bs=1M; dd if=/dev/zero of={file} bs=4k oflag=append conv=notrunc"
        self.exec("sh", "-c", blocks)

    def free(self) -> None:
        """Take away what `fill` wrote."""
        for folder in (self.place.root, self.place.nvme):
            (folder / FILL_FILE).unlink(missing_ok=True)

    def delay(self, *words: str) -> None:
        """Make its network slow or lossy, as netem's words say: `20ms 5ms loss 1% rate 50mbit`."""
        delay.apply(self.place, words)

    def undelay(self) -> None:
        """Take the delay away."""
        delay.clear(self.place)

    def mend(self) -> None:
        """Undo cut, freeze, fill and delay."""
        if network.is_cut(self.place):
            self.heal()
        self.freeze(False)
        self.free()
        self.undelay()

    def _sshd_answers(self) -> bool:
        try:
            with socket.create_connection((self.address, 22), timeout=1) as connection:
                return connection.recv(64).startswith(b"SSH-")
        except OSError:
            return False

    def _systemd_is_done(self) -> bool:
        try:
            done = self.exec("systemctl", "is-system-running", within_s=10)
        except LauncherError:  # its init is not there yet, or does not answer
            return False
        return done.stdout.strip() in ("running", "degraded")
