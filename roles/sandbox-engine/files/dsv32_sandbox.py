"""Sandbox only: a vLLM plugin that lets the CPU build serve as prefill/decode instances over several hosts.

Both changes can go when the releases named at them are left behind and their reasons are gone.
"""

import torch
import torch.distributed as dist

PROGRESS_DELAY_US = 1000


def register():
    """Called by vLLM in each of its processes."""
    from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator

    CpuCommunicator.all_gatherv = all_gatherv
    CpuCommunicator.reduce_scatterv = reduce_scatterv
    let_nixl_sleep()


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


def let_nixl_sleep():
    """NIXL 1.5.1 polls without a pause, a whole core for each idle rank; a sandbox has two in all."""
    from nixl_cu12._api import nixlBind

    make_agent = nixlBind.nixlAgent

    def patient_agent(name, config):
        config.pthrDelay = PROGRESS_DELAY_US
        return make_agent(name, config)

    nixlBind.nixlAgent = patient_agent
