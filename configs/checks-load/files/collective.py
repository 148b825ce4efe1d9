"""A collective over all ranks that torchrun has started; the first one prints the bus bandwidth.

Of a rank's bytes, an all-reduce moves 2 (n - 1) / n and an all-to-all (n - 1) / n: as nccl-tests define it.
"""

import os
import sys
import time

import torch
import torch.distributed as dist

SIZE = 4 << 30
WARM_UP, TIMES = 5, 20


def main(name):
    """Measure, and leave the group."""
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    ranks = dist.get_world_size()
    values = torch.ones(SIZE // 2 // ranks * ranks, dtype=torch.bfloat16, device="cuda")
    received = torch.empty_like(values)
    share, call, operands = {
        "all_reduce": (2, dist.all_reduce, (values,)),
        "all_to_all": (1, dist.all_to_all_single, (received, values)),
    }[name]
    for _ in range(WARM_UP):
        call(*operands)
    torch.cuda.synchronize()
    dist.barrier()
    begun = time.monotonic()
    for _ in range(TIMES):
        call(*operands)
    torch.cuda.synchronize()
    seconds = (time.monotonic() - begun) / TIMES
    if dist.get_rank() == 0:
        rate = share * (ranks - 1) / ranks * SIZE / seconds / 1e9
        print(f"{name} {SIZE} bytes, {ranks} ranks: {rate:.2f} GB/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
