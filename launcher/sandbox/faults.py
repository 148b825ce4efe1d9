"""Faults inside a host: signals, words of kernel and units, hardware that is not there; knows no engine."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence

from launcher.model.problem import LauncherError, Problem
from launcher.sandbox.host import SandboxHost

FOLDER = "/usr/local/lib/dsv32-stand-ins"
"""On the host's disk, so that stand-ins outlive a reboot as programs do."""
PROGRAMS = "/usr/local/bin"
# looked up before what is really there, and asked about what it has been told alone
SAID = f"{FOLDER}/.said"
"""There: the journal holds lines of faults that were none."""
DROP_INS = "/run/systemd/system/dsv32-*.service.d"
"""What a script may put beside a unit; a reboot takes it away."""
STAND_IN = f"""#!/bin/sh
# Stands in for a program whose hardware is not there.
file={FOLDER}/${{0##*/}}/$(printf %s "$*" | sha256sum | cut -c 1-16)
[ -f "$file" ] && exec cat "$file"
echo "${{0##*/}} stands in for hardware that is not there, and was not told what to say to: $*" >&2
exit 2
"""
# a container has no kernel's log of its own: journald gets a pipe for it, and keeps it when its name is gone
KERNEL = f"""
set -e
mkdir -p {FOLDER} && touch {SAID}
rm -f /dev/kmsg
mkfifo /dev/kmsg
exec 3<>/dev/kmsg
systemctl restart systemd-journald
number=$(cut -d ' ' -f 1 /proc/uptime | tr -d .)0000
while IFS= read -r line; do
    printf '3,%s,%s,-;%s\\n' "$number" "$number" "$line" >&3
    number=$((number + 1))
    sleep 0.05
done
sleep 0.3
rm /dev/kmsg
"""
# journald knows the unit of a line by the cgroup of who wrote it
UNIT = f"""
set -e
mkdir -p {FOLDER} && touch {SAID}
echo $$ >"/sys/fs/cgroup/system.slice/$1/cgroup.procs"
exec systemd-cat -t "$1"
"""
SIGNAL = """
if [ -z "$3" ]; then  # not by systemctl, which would write down that somebody asked for it
    pid=$(systemctl show -P MainPID "$1")
    [ "$pid" -gt 0 ] && exec kill -s "$2" "$pid"
    exit 1
fi
found=1
for pid in $(find "/sys/fs/cgroup/system.slice/$1" -name cgroup.procs -exec cat {} + 2>/dev/null); do
    tr '\\0' ' ' <"/proc/$pid/cmdline" | cat - "/proc/$pid/comm" | grep -Eq -- "$3" || continue
    kill -s "$2" "$pid" && found=0
done
exit $found
"""
# /sys and /proc take no files: a layer over the folder that would hold them
LAYERS = "/run/dsv32-stand-ins"
LAYERED = ("/sys/class", "/proc/driver")
LAYER = f"""
set -e
grep -q " $1 " /proc/mounts && exit
mountpoint -q {LAYERS} || {{ mkdir -p {LAYERS}; mount -t tmpfs stand-ins {LAYERS}; }}
mkdir -p "{LAYERS}$1/upper" "{LAYERS}$1/work"
options="lowerdir=$1,upperdir={LAYERS}$1/upper,workdir={LAYERS}$1/work"
mount -t overlay stand-ins -o "$options" "$1" 2>/dev/null || mount -t tmpfs stand-ins "$1"
"""
MEND = f"""
[ -e {SAID} ] && journalctl -q --rotate && journalctl -q --vacuum-time=1s
umount {" ".join(LAYERED)} {LAYERS} /proc/meminfo 2>/dev/null
for program in $(ls {FOLDER} 2>/dev/null); do rm -f {PROGRAMS}/"$program"; done
rm -rf {LAYERS} {FOLDER} /dev/kmsg
for unit in /sys/fs/cgroup/system.slice/dsv32-*.service; do
    [ -d "$unit" ] && systemctl kill -s CONT "${{unit##*/}}"
done
rm -rf {DROP_INS}
systemctl daemon-reload
systemctl start $(systemctl list-unit-files --no-legend --state=enabled 'dsv32-*' | cut -d ' ' -f 1)
"""


def signal(host: SandboxHost, unit: str, how: str, *, process: str = "") -> None:
    """Signal a unit's main process, or those of its processes whose command line or name matches."""
    _must(host, ("sh", "-c", SIGNAL, "sh", unit, how, process))


def kernel_says(host: SandboxHost, lines: Sequence[str]) -> None:
    """Lines in the journal that come from the kernel, as far as journald can tell."""
    _must(host, ("bash", "-c", KERNEL), stdin="".join(f"{line}\n" for line in lines))


def unit_says(host: SandboxHost, unit: str, lines: Sequence[str]) -> None:
    """Lines in the journal that come from a process of the unit, which runs."""
    _must(host, ("sh", "-c", UNIT, "sh", unit), stdin="".join(f"{line}\n" for line in lines))


def run_script(host: SandboxHost, script: str) -> None:
    """A shell script, as root."""
    _must(host, ("sh", "-c", script))


def stand_in(host: SandboxHost, programs: Mapping[str, Mapping[str, str]], files: Mapping[str, str]) -> None:
    """Have programs answer, to these arguments, and files hold what is given; what was said before stays."""
    script = ["set -e"]
    for program, answers in programs.items():
        script += [f"mkdir -p {FOLDER}/{program}", _write(f"{PROGRAMS}/{program}", STAND_IN)]
        script += [f"chmod 755 {PROGRAMS}/{program}"]
        script += [_write(f"{FOLDER}/{program}/{_digest(words)}", text) for words, text in answers.items()]
    for top in LAYERED if files else ():
        _must(host, ("sh", "-c", LAYER, "sh", top))
    for path, text in files.items():
        script += [f"mkdir -p $(dirname {shlex.quote(path)})", _write(path, text)]
    _must(host, ("sh",), stdin="\n".join(script))


def mend_inside(host: SandboxHost) -> None:
    """Take away all of the above, let processes that were stopped go on, and start what a boot would."""
    host.exec("sh", "-c", MEND)


def _write(path: str, text: str) -> str:
    return f"printf %s {shlex.quote(text)} >{shlex.quote(path)}"


def _digest(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def _must(host: SandboxHost, words: Sequence[str], *, stdin: str = "") -> None:
    done = host.exec(*words, stdin=stdin)
    if done.returncode:
        what = f"a fault could not be planted: status {done.returncode}"
        raise LauncherError(Problem(what, host.name, done.stderr.strip()[-800:]))
