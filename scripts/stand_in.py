"""Stand-ins for what a small machine lacks: eight H200, their driver, kernels compiled for them, memory.

Nothing that vLLM itself decides or checks is replaced: its own CUDA platform finds these devices and goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType, SimpleNamespace

import psutil

GPUS = 8
NAME, CAPABILITY = "NVIDIA H200", (9, 0)
MEMORY_BYTES = 143771 << 20
"""As nvidia-smi of an H200 shows it."""
PROCESSORS = 132
HOST_MEMORY_BYTES = 2 << 40
"""A usual host for eight; up to 0.14 swap space of 4 GiB a GPU must fit in it."""
CUDA = "12.9"
"""That of the NIXL at hand, nixl-cu12."""


class Compiled(MetaPathFinder, Loader):
    """vLLM's extension modules (`vllm._C`, `vllm._moe_C_stable_libtorch`): empty."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        last = name.rpartition(".")[2]
        ours = name.startswith("vllm.") and last.startswith("_") and "_C" in last
        return ModuleSpec(name, self) if ours else None

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is in it."""


class Driver(MetaPathFinder):
    """vLLM's copy of pynvml: as it is, then with the answers of `nvml`."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == "vllm.third_party.pynvml" else None
        if spec:
            real = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                real(module)
                nvml(module)

            spec.loader.exec_module = exec_module
        return spec


def install() -> None:
    """Before anything of vLLM is imported."""
    sys.meta_path[:0] = [Compiled(), Driver()]
    sys.modules["nixl_ep"] = None  # it loads libcuda when it is imported
    cuda()
    psutil.virtual_memory = always(SimpleNamespace(total=HOST_MEMORY_BYTES, available=HOST_MEMORY_BYTES))
    questions_to_kernels()
    triton()


def always(answer: object) -> Callable[..., object]:
    """A function that gives this answer whatever it is asked."""
    return lambda *_, **__: answer


def nvml(library: ModuleType) -> None:
    """vLLM's copy of pynvml, whose every call needs the driver's library."""
    answers = {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlDeviceGetCount": GPUS,
        "nvmlDeviceGetHandleByIndex": 0,
        "nvmlDeviceGetCudaComputeCapability": CAPABILITY,
        "nvmlDeviceGetName": NAME,
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=MEMORY_BYTES, free=MEMORY_BYTES, used=0),
        "nvmlDeviceGetP2PStatus": library.NVML_P2P_STATUS_OK,
    }
    for function, answer in answers.items():
        setattr(library, function, always(answer))


def cuda() -> None:
    """What torch.cuda knows of devices; the build at hand knows none."""
    import torch
    import torch._inductor  # before: it asks for what only a CUDA build of torch has

    properties = SimpleNamespace(
        name=NAME,
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        total_memory=MEMORY_BYTES,
        multi_processor_count=PROCESSORS,
    )
    answers = {
        "is_available": True,
        "_is_compiled": True,
        "device_count": GPUS,
        "_device_count_nvml": GPUS,
        "current_device": 0,
        "get_device_name": NAME,
        "get_device_capability": CAPABILITY,
        "get_device_properties": properties,
    }
    for function, answer in answers.items():
        setattr(torch.cuda, function, always(answer))
    torch.version.cuda = CUDA


def questions_to_kernels() -> None:
    """`torch.ops._C.cutlass_scaled_mm_supports_fp8(90)` and its like: an H200 can do what is asked there."""
    import torch._ops

    namespace = torch._ops._OpNamespace
    real = namespace.__getattr__

    def get(self: object, name: str) -> object:
        return (lambda *_: True) if "_supports_" in name else real(self, name)

    namespace.__getattr__ = get


def triton() -> None:
    """A large compiler for GPUs: vLLM's own placeholder counts as it, or 0.33 would resolve for the old model
    runner; one of its modules reads the fields of a Config."""
    import vllm.triton_utils

    class Config:
        def __init__(self, kwargs: object, num_warps: int = 4, num_stages: int = 3, **_: object) -> None:
            self.kwargs, self.num_warps, self.num_stages = kwargs, num_warps, num_stages

    vllm.triton_utils.triton.Config = Config
    vllm.triton_utils.HAS_TRITON = True
