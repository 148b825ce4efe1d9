"""Products of two matrices on all GPUs at once, for some seconds; the slowest second of each is printed.

All products of a GPU are the same one: one that differs is an error of that GPU.
"""

import sys
import threading
import time

import torch

SIDE = 8192
ROUND_S = 1.0
WARM_UP = 2
"""Rounds before clocks and kernels are what they stay."""


def main(kind, seconds):
    """Measure; exit 1 where a product differs."""
    told = {}
    gpus = range(torch.cuda.device_count())
    threads = [threading.Thread(target=burn, args=(gpu, kind, seconds, told)) for gpu in gpus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for gpu in gpus:
        print(told.get(gpu, f"GPU {gpu}: ended early"), flush=True)
    return 0 if all(" TFLOP/s" in told.get(gpu, "") for gpu in gpus) else 1


def burn(gpu, kind, seconds, told):
    """The rate of one GPU's slowest round, into `told`."""
    product = product_of(kind, f"cuda:{gpu}")
    first, slowest, times, begun = product(), float("inf"), 10, time.monotonic()
    number = 0
    while time.monotonic() - begun < seconds or number <= WARM_UP:
        torch.cuda.synchronize(gpu)
        start = time.monotonic()
        for _ in range(times):
            last = product()
        torch.cuda.synchronize(gpu)
        took = time.monotonic() - start
        if not torch.equal(last, first):
            told[gpu] = f"GPU {gpu}: a product is not the first one again"
            return
        if number >= WARM_UP:
            slowest = min(slowest, times / took)
        times, number = max(1, round(times * ROUND_S / took)), number + 1
    told[gpu] = f"GPU {gpu} {kind}: {slowest * 2 * SIDE**3 / 1e12:.2f} TFLOP/s"


def product_of(kind, device):
    """What makes one product of two random matrices."""
    torch.manual_seed(0)
    one, other = (torch.randn(SIDE, SIDE, device=device, dtype=torch.bfloat16) for _ in range(2))
    if kind == "bf16":
        return lambda: one @ other
    scale = torch.ones((), device=device)
    one, other = (matrix.to(torch.float8_e4m3fn) for matrix in (one, other))
    # the second one by columns, as the kernel takes it
    return lambda: torch._scaled_mm(
        one, other.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=True
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
