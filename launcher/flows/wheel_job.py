"""The program of a build host: a package's source → its wheel, in an environment of the stack, offline.

    wheel_job.py SPEC

Runs as a job beside build_env.py; standard library only, Python 3.8 or newer. SPEC is a JSON file. The wheel
comes into its folder by a rename: as a whole, or not at all. Run again, only the environment is kept.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EPOCH_S = "315532800"
"""1980, the first day of a zip file: members of a wheel have no time of their own."""


def main(argv: list[str]) -> int:
    """Exit status; the last line of stderr says what is wrong."""
    spec = json.loads(Path(argv[0]).read_text())
    try:
        build(spec, Path(argv[0]).parent)
    except Exception as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def build(spec: dict[str, Any], work: Path) -> None:
    """Make `spec["wheel"]` out of `spec["source"]`."""
    import build_env  # type: ignore[import-not-found]  # of role python-env, put beside this program

    environment, lock = work / "environment", work / "build.lock"
    digest, wheels = spec["digest"], Path(spec["wheels"])
    complete = environment / ".complete"
    if not complete.exists() or complete.read_text().strip() != digest:
        build_env.build(environment, spec["python"], lock=lock, wheels=wheels, digest=digest)
    build_env.say("building " + spec["name"], 0, 1)
    source, made = work / "source", work / "made"
    for folder in (source, made):
        shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(spec["source"]) as archive:
        archive.extractall(source)
    shutil.rmtree(work / "uv", ignore_errors=True)
    uv = build_env.installer(wheels, lock.read_bytes(), work / "uv")
    words = [uv, "build", "--wheel", "--no-build-isolation", "--out-dir", made]
    words += ["--python", environment / "bin/python", source]
    told = {
        name: value.replace("{environment}", str(environment)) for name, value in spec["environment"].items()
    }
    path = os.pathsep.join([str(environment / "bin"), os.environ.get("PATH", os.defpath)])
    own = {
        "UV_CACHE_DIR": str(work / "uv"),
        "UV_OFFLINE": "1",
        "UV_NO_CONFIG": "1",
        "SOURCE_DATE_EPOCH": EPOCH_S,
    }
    subprocess.run([str(word) for word in words], check=True, env={**os.environ, "PATH": path, **own, **told})
    publish(made, spec)
    build_env.say("built " + spec["name"], 1, 1)


def publish(made: Path, spec: dict[str, Any]) -> None:
    """Give the wheel its place, if it is of the version that is wanted."""
    wheel = next(made.glob("*.whl"))
    begins = "{}-{}-".format(spec["name"].replace("-", "_"), spec["version"])
    if not wheel.name.startswith(begins):
        raise ValueError(f"built was {wheel.name}, wanted is {begins}…: correct `version` of the build")
    out = Path(spec["out"])
    out.mkdir(parents=True, exist_ok=True)
    part = out / f".{wheel.name}.part"
    shutil.copyfile(wheel, part)
    with part.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(part, out / wheel.name)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main(sys.argv[1:]))
