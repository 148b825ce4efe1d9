"""What Docker, Compose and Kubernetes say of a container → Container; knows no command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from launcher.load.document import Value
from launcher.load.foreign.words import text_of
from launcher.model.launch import DEFAULT_SHM_GIB, Container

SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
GIB = {"": 2**-30, "k": 2**-20, "m": 2**-10, "g": 1.0, "t": 2**10}
UNLIMITED = re.compile(r"(-1|unlimited)(:(-1|unlimited))?")
YES = ("true", "True")


def of_run(options: Iterable[tuple[str, str]], image: str) -> Container:
    """By the options of `docker run`, each with its value."""
    given = list(options)
    of = dict(given)
    locks = any(name == "cap-add" and value.upper() in ("IPC_LOCK", "ALL") for name, value in given)
    locks |= any(name == "ulimit" and _unlimited(value) for name, value in given)
    return Container(
        image=image,
        shm_gib=None if of.get("ipc") == "host" or _mounts_shm(given) else _size(of.get("shm-size", "")),
        locks_memory=locks or of.get("privileged", "false") != "false",
        asked_ready=True,
    )


def of_service(service: Mapping[str, Value], image: str) -> Container:
    """By a service of Compose."""
    added = {text_of(v).upper() for v in _list(service.get("cap_add"))}
    limits = service.get("ulimits")
    memlock = limits.get("memlock") if isinstance(limits, dict) else None
    limit = text_of(memlock.get("soft")) if isinstance(memlock, dict) else text_of(memlock)
    mounts = [("volume", text_of(v)) for v in _list(service.get("volumes"))]
    shared = text_of(service.get("ipc")) == "host" or _mounts_shm(mounts)
    return Container(
        image=image,
        shm_gib=None if shared else _size(text_of(service.get("shm_size"))),
        locks_memory=bool(added & {"IPC_LOCK", "ALL"})
        or text_of(service.get("privileged")) in YES
        or UNLIMITED.fullmatch(limit) is not None,
        asked_ready=True,
    )


def of_pod(container: Mapping[str, Value], pod: Mapping[str, Value], image: str) -> Container:
    """By a container of a pod and the pod's own specification."""
    security = _dict(container.get("securityContext"))
    added = {text_of(v).upper() for v in _list(_dict(security.get("capabilities")).get("add"))}
    probe = _dict(container.get("startupProbe")) or _dict(container.get("livenessProbe"))
    return Container(
        pod=True,
        image=image,
        shm_gib=None if text_of(pod.get("hostIPC")) in YES else _pod_shm(container, pod),
        locks_memory=bool(added & {"IPC_LOCK", "ALL"}) or text_of(security.get("privileged")) in YES,
        asked_ready="readinessProbe" in container,
        killed_after_s=_patience_s(probe) if probe else None,
    )


def _pod_shm(container: Mapping[str, Value], pod: Mapping[str, Value]) -> float | None:
    """GiB of what is mounted at /dev/shm; None: bounded by memory alone."""
    mounted = {
        text_of(mount.get("name"))
        for mount in map(_dict, _list(container.get("volumeMounts")))
        if text_of(mount.get("mountPath")).rstrip("/") == "/dev/shm"
    }
    if not mounted:
        return DEFAULT_SHM_GIB
    for volume in map(_dict, _list(pod.get("volumes"))):
        folder = _dict(volume.get("emptyDir"))
        if text_of(volume.get("name")) in mounted and folder.get("sizeLimit"):
            return _size(text_of(folder.get("sizeLimit")))
    return None


def _patience_s(probe: Mapping[str, Value]) -> int:
    """Seconds that a probe that never succeeds takes to end its container; defaults are Kubernetes' own."""
    first, period, failures = (
        _whole(probe.get(key), default)
        for key, default in (("initialDelaySeconds", 0), ("periodSeconds", 10), ("failureThreshold", 3))
    )
    return first + period * failures


def _unlimited(ulimit: str) -> bool:
    name, _, value = ulimit.partition("=")
    return name == "memlock" and UNLIMITED.fullmatch(value) is not None


def _mounts_shm(options: Iterable[tuple[str, str]]) -> bool:
    volumes = (value for name, value in options if name in ("v", "volume", "mount", "tmpfs"))
    return any("/dev/shm" in value for value in volumes)


def _size(text: str) -> float | None:
    """GiB of `16g`, `64Gi` or a number of bytes; Docker's own for nothing; None for what cannot be told."""
    if not text:
        return DEFAULT_SHM_GIB
    found = SIZE.fullmatch(text.strip())
    return float(found[1]) * GIB[found[2].lower()] if found else None


def _whole(value: Value | None, default: int) -> int:
    text = text_of(value)
    return int(text) if re.fullmatch("[0-9]{1,6}", text) else default


def _dict(value: Value | None) -> Mapping[str, Value]:
    return value if isinstance(value, dict) else {}


def _list(value: Value | None) -> Iterator[Value]:
    yield from value if isinstance(value, list) else ()
