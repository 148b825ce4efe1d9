"""All-reduce over all ranks that torchrun has started; the first one prints the bus bandwidth.

Bus bandwidth is 2 (n - 1) / n of the bytes a rank has, by the time of one call, as nccl-tests define it.
"""

import os
import time

import torch
import torch.distributed as dist

SIZE = 4 << 30
WARM_UP, TIMES = 5, 20


def main():
    """Measure, and leave the group."""
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    values = torch.ones(SIZE // 2, dtype=torch.bfloat16, device="cuda")
    for _ in range(WARM_UP):
        dist.all_reduce(values)
    torch.cuda.synchronize()
    dist.barrier()
    begun = time.monotonic()
    for _ in range(TIMES):
        dist.all_reduce(values)
    torch.cuda.synchronize()
    seconds = (time.monotonic() - begun) / TIMES
    ranks = dist.get_world_size()
    if dist.get_rank() == 0:
        rate = 2 * (ranks - 1) / ranks * SIZE / seconds / 1e9
        print(f"all_reduce {SIZE} bytes, {ranks} ranks: {rate:.2f} GB/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
