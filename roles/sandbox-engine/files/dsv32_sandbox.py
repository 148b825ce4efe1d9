"""Sandbox only: a vLLM plugin that lets the CPU build serve as prefill/decode instances over several hosts.

Each change can go when the release named at it is left behind and its reason is gone.
"""

import functools

import torch
import torch.distributed as dist

PROGRESS_DELAY_US = 1000
SPIN_S = 0.002


def register():
    """Called by vLLM in each of its processes."""
    from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator
    from vllm.model_executor.layers.fused_moe.experts.cpu_moe import CPUUnquantizedExperts

    CpuCommunicator.all_gatherv = all_gatherv
    CpuCommunicator.reduce_scatterv = reduce_scatterv
    CPUUnquantizedExperts.apply = with_local_experts(CPUUnquantizedExperts.apply)
    let_nixl_sleep()
    let_readers_sleep()


# vLLM 0.32.0: experts over several data-parallel ranks need these two, and the CPU communicator has neither;
# the engine then starts, and dies with its first batch.


def all_gatherv(self, input_, dim=0, sizes=None):
    """Rows of all ranks, `sizes[r]` of rank r, in rank order."""
    if self.world_size == 1:
        return input_
    if isinstance(input_, (list, tuple)):
        return [self.all_gatherv(tensor, dim, sizes) for tensor in input_]
    assert dim == 0
    rows = sizes or [input_.shape[0]] * self.world_size
    # gloo gathers equal shapes alone: each rank pads to the longest.
    padded = input_.new_zeros((max(rows), *input_.shape[1:]))
    padded[: input_.shape[0]] = input_
    gathered = [torch.empty_like(padded) for _ in rows]
    dist.all_gather(gathered, padded, group=self.device_group)
    return torch.cat([tensor[:count] for tensor, count in zip(gathered, rows, strict=True)])


def reduce_scatterv(self, input_, dim=-1, sizes=None):
    """The sum over all ranks, of which each keeps its own `sizes[rank]` rows."""
    if self.world_size == 1:
        return input_
    assert dim == 0
    rows = sizes or [input_.shape[0] // self.world_size] * self.world_size
    total = input_.clone().contiguous()
    dist.all_reduce(total, group=self.device_group)
    first = sum(rows[: self.rank_in_group])
    return total[first : first + rows[self.rank_in_group]].clone()


# vLLM 0.32.0: the CPU kernel takes a global expert's number for a place in the weights of this rank, which
# has but some: it reads beyond them, and answers with whatever lies there.


def with_local_experts(apply):
    """`apply` for the experts of this rank; those of others add nothing here, and all in their own."""

    @functools.wraps(apply)
    def apply_local(self, *, topk_weights, topk_ids, expert_map, **others):
        if expert_map is not None:
            places = expert_map[topk_ids.long()]
            topk_weights = topk_weights.masked_fill(places < 0, 0)
            topk_ids = places.clamp(min=0).to(topk_ids.dtype)
        return apply(self, topk_weights=topk_weights, topk_ids=topk_ids, expert_map=expert_map, **others)

    return apply_local


def let_nixl_sleep():
    """NIXL 1.5.1 polls without a pause, a whole core for each idle rank; a sandbox has two in all."""
    from nixl_cu12._api import nixlBind

    make_agent = nixlBind.nixlAgent

    def patient_agent(name, config):
        config.pthrDelay = PROGRESS_DELAY_US
        return make_agent(name, config)

    nixlBind.nixlAgent = patient_agent


def let_readers_sleep():
    """vLLM 0.32.0 polls for a second after each message between its processes: on a machine of two cores, six
    processes that wait for each other keep each other from running, and a token takes a second."""
    from vllm.distributed.device_communicators.shm_broadcast import SpinCondition

    SpinCondition.__init__ = functools.partialmethod(SpinCondition.__init__, busy_loop_s=SPIN_S)
