"""Runs on a host, in a job: a warm-up, then the run that counts; knows what its folder's spec.json says.

It asks the engines for their counters before and after that run, and measures the client's CPU during it.
Standard library, Python 3.8.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PAGE_WITHIN_S = 10


def main(folder: str) -> int:
    """Measure, and leave told.json beside the client's own result.json; the client's exit status."""
    with open(os.path.join(folder, "spec.json"), encoding="utf-8") as file:
        spec = json.load(file)
    for name in ("result.json", "told.json"):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    say("warm-up")
    status = subprocess.call(spec["warm_up"])
    if status:
        return status
    say("the client starts")
    told = measure(spec)
    part = os.path.join(folder, "told.json.part")
    with open(part, "w", encoding="utf-8") as file:
        json.dump(told, file)
    os.rename(part, os.path.join(folder, "told.json"))
    return int(told["status"])


def measure(spec: dict[str, Any]) -> dict[str, Any]:
    """The run that counts. Lines of the client say when it begins and ends."""
    before: dict[str, str] = {}
    marks = []
    looks = Looks(spec)
    process = subprocess.Popen(spec["words"], stdout=subprocess.PIPE, universal_newlines=True)
    assert process.stdout
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        if spec["begins"] in line:
            marks.append(cpu(process.pid))
            before = pages(spec["pages"], spec["counters"])
            looks.begin()
            say("measuring")
        elif spec["ends"] in line:
            marks.append(cpu(process.pid))
            looks.end()
    status = process.wait()
    looks.end()
    time.sleep(spec["settle_s"])
    after = pages(spec["pages"], spec["counters"])
    return {
        "status": status,
        "cpu_percent": percent(marks),
        "before": before,
        "after": after,
        "looks": looks.taken,
    }


class Looks:
    """What exporters tell while the client measures: at its begin, every few seconds, and at its end."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.taken: list[tuple[float, dict[str, str]]] = []
        self._pages, self._names = spec["exporters"], spec["series"]
        self._every_s, self._most = spec["every_s"], spec["most_looks"]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def begin(self) -> None:
        """From now on."""
        if self._pages:
            self._thread.start()

    def end(self) -> None:
        """Until now, the last look included."""
        self._ended.set()
        if self._thread.ident:
            self._thread.join()

    def _look(self) -> None:
        more = True
        while more:
            more = not self._ended.is_set()
            self.taken.append((time.time(), pages(self._pages, self._names)))
            if len(self.taken) > self._most:
                self.taken = self.taken[::2]
                self._every_s *= 2
            if more:
                self._ended.wait(self._every_s)


def percent(marks: list[tuple[float, float]]) -> float:
    """Of one core, between the first mark and the last; 0 where there are not two."""
    if len(marks) < 2:
        return 0.0
    (begun, first), (ended, last) = marks[0], marks[-1]
    return 100 * (last - first) / max(ended - begun, 1e-9)


def cpu(pid: int) -> tuple[float, float]:
    """Now, and the CPU seconds that the process and all its threads have had."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return time.monotonic(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pages(urls: list[str], names: list[str]) -> dict[str, str]:
    """Each address's metrics, the lines that are wanted; an address that does not answer is left out."""
    found, wanted = {}, tuple(names)
    for url in urls:
        try:
            with urllib.request.urlopen(url, timeout=PAGE_WITHIN_S) as answer:
                lines = answer.read().decode("utf-8", "replace").splitlines()
        except OSError:
            continue
        found[url] = "".join(line + "\n" for line in lines if line.startswith(wanted))
    return found


def say(text: str, done: int = 0, total: int = 0, **more: Any) -> None:
    """Tell whoever follows the job how far it is."""
    place = os.environ.get("DSV32_PROGRESS")
    if place:
        with open(place + ".part", "w", encoding="utf-8") as file:
            json.dump({"text": text, "done": done, "total": total, **more}, file)
        os.replace(place + ".part", place)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
