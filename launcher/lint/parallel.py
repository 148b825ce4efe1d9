"""Quantities of parallelism: sizes, hosts, GPUs, who leads, who balances the load."""

from __future__ import annotations

from launcher.lint.reading import Quantity, Reading
from launcher.lint.values import Value, number, untold


def tensor_parallel(r: Reading) -> Value:
    """GPUs that share one rank's layers."""
    return r.size("tensor-parallel-size") or 1


def pipeline_parallel(r: Reading) -> Value:
    """Stages that a rank's layers are divided into."""
    return r.size("pipeline-parallel-size") or 1


def data_parallel(r: Reading) -> Value:
    """Ranks of the whole instance."""
    return r.size("data-parallel-size") or 1


def data_parallel_local(r: Reading) -> Value:
    """Ranks of this launch: as written, or 1 for an explicit rank, or the instance's over its `nnodes`.

    One launch with `data-parallel-multi-port-external-lb` has several; each rank has its own API process.
    """
    written = r.size("data-parallel-size-local")
    if written is not None:
        return written
    if r.given("data-parallel-rank"):
        return 1
    return max(1, r.whole("data_parallel") // (r.size("nnodes") or 1))


def hosts(r: Reading) -> Value:
    """Hosts of the instance: as the deployment has them, else as its sizes tell."""
    if r.launch.hosts is not None:
        return r.launch.hosts
    together = r.size("nnodes") or 1
    if together > 1:
        return together
    ranks, local = r.whole("data_parallel"), r.whole("data_parallel_local")
    if r.given("data-parallel-rank") and ranks > 1:
        raise untold("how many hosts there are")  # several ranks of their own may share a host
    return -(-ranks // local) if local else 1


def spans_hosts(r: Reading) -> Value:
    """Is the instance on more than one host?"""
    return r.whole("hosts") > 1


def gpus(r: Reading) -> Value:
    """GPUs of the whole instance."""
    return r.whole("tensor_parallel") * r.whole("pipeline_parallel") * r.whole("data_parallel")


def gpus_taken(r: Reading) -> Value:
    """GPUs that this process takes on its host."""
    each = r.whole("tensor_parallel") * r.whole("pipeline_parallel")
    if r.whole("data_parallel") == 1:
        return -(-each // (r.size("nnodes") or 1))
    return each * r.whole("data_parallel_local")


def gpus_per_host(r: Reading) -> Value:
    """GPUs that a host has; absent where it has none."""
    return r.hardware().gpus_per_host or None


def headless(r: Reading) -> Value:
    """Runs engines only: another process answers for it."""
    return r.on("headless")


def leads(r: Reading) -> Value:
    """Holds rank 0: the other processes of the instance connect to it."""
    for name in ("node-rank", "data-parallel-start-rank", "data-parallel-rank"):
        written = r.size(name)
        if written:
            return False
    return not r.value("headless")


def load_balancing(r: Reading) -> Value:
    """internal: one endpoint for all ranks; hybrid: one a host; external: one a rank. Absent with one rank.

    A start rank on a process that is not headless means hybrid; whether 0 counts as one is the release's.
    """
    if r.whole("data_parallel") == 1:
        return None
    alone = r.given("data-parallel-rank") is not None
    if alone or r.on("data-parallel-external-lb") or r.on("data-parallel-multi-port-external-lb"):
        return "external"
    if not (r.on("data-parallel-hybrid-lb") or _start_rank_balances(r)) or r.value("headless"):
        return "internal"
    local = r.whole("data_parallel_local")
    if local == r.whole("data_parallel"):
        return "internal"
    return "external" if local == 1 else "hybrid"


def _start_rank_balances(r: Reading) -> bool:
    start = number(r.setting("data-parallel-start-rank"))
    if start is None or r.value("headless"):
        return False
    return start > 0 or r.behaviour("start-rank-0") == "hybrid"


def api_processes(r: Reading) -> Value:
    """API processes of this launch: as written, else by the release; 0 when headless, 1 for each rank of an
    external balancer."""
    if r.value("headless"):
        return 0
    written = r.size_given("api-server-count")
    if written is not None:
        return written
    balancing = r.value("load_balancing")
    if balancing in (None, "external") or r.behaviour("api-servers") != "ranks":
        return 1
    return r.value("data_parallel_local" if balancing == "hybrid" else "data_parallel")


QUANTITIES: dict[str, Quantity] = {
    "tensor_parallel": tensor_parallel,
    "pipeline_parallel": pipeline_parallel,
    "data_parallel": data_parallel,
    "data_parallel_local": data_parallel_local,
    "hosts": hosts,
    "spans_hosts": spans_hosts,
    "gpus": gpus,
    "gpus_taken": gpus_taken,
    "gpus_per_host": gpus_per_host,
    "headless": headless,
    "leads": leads,
    "load_balancing": load_balancing,
    "api_servers": api_processes,
}
