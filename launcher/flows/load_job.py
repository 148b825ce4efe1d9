"""Runs on a host, in a job: the legs of a meeting, one by one; knows what its folder's spec.json says.

Each leg has the same time on all hosts of the meeting, so that one that is lost does not put the next ones
out of step. Standard library, Python 3.8.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

AGAIN_S = 0.3
"""Until a peer that is not heard yet is tried again."""
MOST_BYTES = 16000
"""The last of what a leg printed: figures come at the end."""


def main(folder: str) -> int:
    """Measure, and leave told.json: of each leg its exit status (None: stopped), output and seconds."""
    with open(os.path.join(folder, "spec.json"), encoding="utf-8") as file:
        spec = json.load(file)
    path = os.path.join(folder, "told.json")
    if os.path.exists(path):
        os.remove(path)
    told = []
    for number, leg in enumerate(spec["legs"]):
        say(leg["name"], number, len(spec["legs"]))
        told.append(measure(leg, spec["within_s"]))
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(told, file)
    os.rename(path + ".part", path)
    return 0


def measure(leg: dict[str, Any], within_s: float) -> dict[str, Any]:
    """One leg. Who turns to a listener tries until it is heard, or the time is over."""
    begun = time.monotonic()
    while True:
        left_s = within_s - (time.monotonic() - begun)
        status, text = run(leg["words"], left_s)
        ended = status in (None, 0) or not leg["again"]
        if ended or time.monotonic() - begun + AGAIN_S > within_s:
            return {"exit": status, "text": text, "seconds": time.monotonic() - begun}
        time.sleep(AGAIN_S)


def run(words: list[str], within_s: float) -> tuple[int | None, str]:
    """Exit status and the end of its output, both kinds. When its time is over its session is killed."""
    with tempfile.TemporaryFile() as said:  # of a pipe, a child in another session would keep the other end
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            return 127, str(error)
        status: int | None = None
        try:
            status = process.wait(timeout=max(within_s, 0.1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(max(0, said.seek(0, os.SEEK_END) - MOST_BYTES))
        return status, said.read().decode("utf-8", "replace")


def say(text: str, done: int = 0, total: int = 0, **more: Any) -> None:
    """Tell whoever follows the job how far it is."""
    place = os.environ.get("DSV32_PROGRESS")
    if place:
        with open(place + ".part", "w", encoding="utf-8") as file:
            json.dump({"text": text, "done": done, "total": total, **more}, file)
        os.replace(place + ".part", place)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
