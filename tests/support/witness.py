"""What a host says of itself to somebody who uses neither SSH nor our probes."""

from __future__ import annotations

import hashlib

from launcher.sandbox import SandboxHost

# what guards and hosts remember, epochs and runs and their ends, differs from life to life
REMEMBERED = "-path /var/lib/dsv32/guard/\\* -prune -o -path /var/lib/dsv32/revisions -prune -o"
LOOKED_AT = "/etc /usr/lib/systemd /usr/local /nvme /var/lib/dsv32 /var/lib/marker-builds"
OURS = "/etc /usr/local /nvme /var/lib/dsv32"


def said(host: SandboxHost, script: str) -> str:
    """What a shell script prints there."""
    return host.exec("sh", "-c", script).stdout


def active(host: SandboxHost, name: str) -> str:
    """systemd's word for a unit."""
    return said(host, f"systemctl is-active {name}").strip()


def every_byte(host: SandboxHost) -> str:
    """Digest over names, types, modes, owners, times and contents, and over what systemd runs."""
    tree = said(host, f"find {LOOKED_AT} -printf '%p %y %m %u %g %T@ %l\\n' 2>/dev/null | sort")
    contents = said(host, f"find {LOOKED_AT} -type f -exec sha256sum {{}} + 2>/dev/null | sort")
    units = said(host, "systemctl show 'dsv32-*' -p Id,ActiveState,UnitFileState,InvocationID,MainPID")
    assert tree
    assert contents
    return hashlib.sha256((tree + contents + units).encode()).hexdigest()


def served_state(host: SandboxHost) -> str:
    """What serves there, as text that can be compared between hosts' lives: no times, no process ids."""
    tree = said(host, f"find {OURS} {REMEMBERED} -printf '%p %y %m %u %g %l\\n' 2>/dev/null | sort")
    contents = said(host, f"find {OURS} {REMEMBERED} -type f -exec sha256sum {{}} + 2>/dev/null | sort")
    units = said(host, "systemctl show 'dsv32-*.service' -p Id,ActiveState,UnitFileState,NeedDaemonReload")
    # systemd forgets a unit that has no file and has ended, sooner or later
    forgotten = "ActiveState=inactive\nUnitFileState=\n"
    shown = (u for u in units.strip().split("\n\n") if "dsv32-job-" not in u and forgotten not in u)
    units = "\n\n".join(sorted(shown))
    releases = said(host, "grep . /run/dsv32/*.service")
    assert tree
    assert contents
    return "\n".join((tree, contents, units, releases))


def leftovers(host: SandboxHost) -> str:
    """Halves of files, jobs that run or failed, and locks; nothing where no run is at work."""
    halves = said(host, f"find {OURS} /run/dsv32 -name '*.part' -o -name '*.tmp' -o -name '*.new'")
    jobs = said(host, "systemctl list-units --all --plain --no-legend 'dsv32-job-*' | grep -v ' exited '")
    locks = said(host, "test ! -e /run/dsv32.lock || flock -n /run/dsv32.lock true || echo locked")
    return halves + jobs + locks
