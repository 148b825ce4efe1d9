"""A healthy H200 host as its programs and files tell of it: what a real host with two H200 answered (driver
580.159.04), for eight GPUs and eight NICs; the rest in the programs' own forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import Any

GPUS = range(8)
DRIVER = "580.159.04"
KERNEL = "6.8.0-87-generic"
ROW = (
    "{gpu}, NVIDIA H200, 143771, 0, {driver}, Enabled, Enabled, Disabled, 700.00, 31, 96.00.A5.00.1A,"
    " G520.0282.02.02, 5, 16, 0, 0, 0, 0, 0, Completed, Success, Not Active, Not Active, Not Active,"
    " Not Active\n"
)
LINKS = "".join(f"\t Link {n}: 26.562 GB/s\n" for n in range(18))
ERRORS = "".join(
    f"\t Link {n}: {word} Errors: 0\n" for n in range(18) for word in ("Replay", "Recovery", "CRC")
)
SMART = "critical_warning\t\t\t: 0\npercentage_used\t\t\t\t: 1%\nmedia_errors\t\t\t\t: 0\n"
PARAMS = 'EnablePCIeGen3: 0\nEnableStreamMemOPs: 1\nRegistryDwords: "PeerMappingOverride=1;"\n'
IB = "/sys/class/infiniband/mlx5_{n}/"


def nvidia_smi(words: Sequence[str], *, driver: str = DRIVER) -> str:
    """What nvidia-smi prints."""
    told = " ".join(words)
    if told.startswith("--query-gpu"):
        return "".join(ROW.format(gpu=n, driver=driver) for n in GPUS)
    if told.startswith("--query-remapped-rows"):
        return "".join(f"00000000:0{n}:00.0, No, No, 0\n" for n in GPUS)
    if told.startswith("--query-compute-apps"):
        return ""
    head = [f"GPU {n}: NVIDIA H200 (UUID: GPU-{n})\n" for n in GPUS]
    cells = [
        "\t".join([f"GPU{n}", *(" X " if m == n else "NV18" for m in GPUS), "PIX", "0-47"]) for n in GPUS
    ]
    return {
        "-L": "".join(head),
        "nvlink -s": "".join(line + LINKS for line in head),
        "nvlink -e": "".join(line + ERRORS for line in head),
        "topo -m": "".join(cell + "\n" for cell in cells),
        "conf-compute -f": "CC status: OFF\n",
    }[told]


def commands(words: Sequence[str], address: str) -> str | None:
    """What a program prints; None where the host does not have it."""
    program, told = words[0].rpartition("/")[2], " ".join(words[1:])
    if program == "nvidia-smi":
        return nvidia_smi(words[1:])
    if program == "ip" and "link" in told:
        return "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP\n"
    if program == "systemctl" and "LimitMEMLOCK" in told:
        return "LoadState=loaded\nLimitMEMLOCK=infinity\nLimitNOFILE=1048576\n"
    if program == "systemctl" and "Environment" in told:
        return f"Environment=GLOO_SOCKET_IFNAME=eth0 VLLM_NIXL_SIDE_CHANNEL_HOST={address}\n"
    return {
        "journalctl": "",
        "systemctl": "",
        "systemd-analyze": "",
        "ps": "S 54321 systemd\nR     0 ps\n",
        "dkms": f"nvidia/{DRIVER}, {KERNEL}, x86_64: installed\n",
        "mokutil": "SecureBoot disabled\n",
        "timedatectl": "NTPSynchronized=yes\n",
        "chronyc": "A9FEA97B,10.0.0.1,4,1764460800.1,0.000012,-0.000001,0.0,-7.1,0,0.02,0,0,64.3,Normal\n",
        "ofed_info": "OFED-internal-26.01-0.8.8:\n",
        "ibv_devinfo": "".join(f"hca_id:\tmlx5_{n}\n\t\tactive_mtu:\t4096 (5)\n" for n in GPUS),
        "sminfo": "sminfo: sm lid 1 sm guid 0x1, activity count 506 priority 14 state 3 SMINFO_MASTER\n",
        "ip": f"2: eth0    inet {address}/24 brd 10.0.0.255 scope global eth0\n",
        "mmgetstate": "mmgetstate::0:1:::gpu:1:active:2:3:88:quorum node:(undefined):\n",
        "mmhealth": "mmhealth:State:0:1:::gpu:GPFS:gpu:NODE:HEALTHY:x:\n",
        "mmdiag": "mmdiag:config:0:1:::pagepool:17179869184::\nmmdiag:config:0:1:::maxMBpS:24000:static:\n",
        "modinfo": f"{KERNEL} SMP preempt mod_unload modversions \n",
        "stat": "gpfs\n",
    }.get(program)


def packages(patterns: Sequence[str]) -> list[list[str]]:
    """Wanted state, name and version of packages, as the agent answers."""
    installed = [
        ["hold", "linux-image-generic", "6.8.0-87.88"],
        ["hold", f"nvidia-driver-{DRIVER[:3]}-server-open", f"{DRIVER}-0ubuntu0.24.04.1"],
        ["hold", f"nvidia-fabricmanager-{DRIVER[:3]}", f"{DRIVER}-0ubuntu0.24.04.1"],
    ]
    return [one for one in installed if any(fnmatch(one[1], pattern) for pattern in patterns)]


def files(pattern: str, host: int) -> Mapping[str, str]:
    """Files by path, of a pattern that checks ask for."""
    nics: Mapping[str, str] = {
        "ports/1/rate": "400 Gb/sec (4X NDR)\n",
        "ports/1/state": "4: ACTIVE\n",
        "ports/1/phys_state": "5: LinkUp\n",
        "ports/1/link_layer": "InfiniBand\n",
        "fw_ver": "28.43.2026\n",
        "board_id": "MT_0000000838\n",
        "ports/1/counters/link_downed": "1\n",
        "device/current_link_width": "16\n",
        "device/current_link_speed": "32.0 GT/s PCIe\n",
    }
    name = pattern.removeprefix("/sys/class/infiniband/*/")
    if name in nics:
        return {IB.format(n=n) + name: nics[name] for n in GPUS}
    if name == "node_guid":
        return {IB.format(n=n) + name: f"a088:c203:{host:04x}:{n:04x}\n" for n in GPUS}
    if pattern in ("/sys/class/infiniband/*", "/dev/infiniband/uverbs*"):
        return {pattern.replace("uverbs*", f"uverbs{n}").replace("*", f"mlx5_{n}"): "" for n in GPUS}
    known = {
        "/lib/modules/{kernel}/build/Makefile": "",
        "/proc/meminfo": "SwapTotal:             0 kB\n",
        "/proc/cmdline": f"root=UUID={host} ro iommu=pt\n",
        "/proc/modules": "nvidia_peermem 16384 0 - Live 0x0000000000000000 (O)\n",
        "/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX Open Kernel Module  {DRIVER}\n",
        "/proc/driver/nvidia/params": PARAMS,
        "/proc/sys/kernel/numa_balancing": "0\n",
        "/proc/sys/vm/max_map_count": "1048576\n",
        "/proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
        "/sys/devices/system/cpu/smt/active": "1\n",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
        "/sys/class/dmi/id/bios_version": "5.27\n",
        "/etc/hosts": "127.0.0.1 localhost\n",
        "/etc/machine-id": f"{host:032x}\n",
        "/boot/config-{kernel}": "CONFIG_PCI_P2PDMA=y\nCONFIG_DMABUF_MOVE_NOTIFY=y\n",
        "/usr/local/cuda-13.0/bin/nvcc": "",
    }
    if pattern.startswith("/sys/devices/system/node/"):
        return {
            f"/sys/devices/system/node/node{n}/meminfo": f"Node {n} MemTotal:       954704558 kB\n"
            for n in (0, 1)
        }
    if pattern.endswith(("/vllm/_flashmla_C*", "/deep_gemm/*.so")):
        return {pattern.replace("python*", "python3.12").replace("*", ".abi3"): ""}
    return {pattern: known[pattern]} if pattern in known else {}


def command_answer(text: str | None) -> dict[str, Any]:
    """As the agent answers."""
    if text is None:
        return {"exit": 127, "stdout": "", "stderr": "no such file or directory", "seconds": 0.0}
    return {"exit": 0, "stdout": text, "stderr": "", "seconds": 0.01}


def unit_answer(name: str, active: str) -> dict[str, Any]:
    """As the agent answers."""
    enabled = "enabled" if name.startswith("nvidia-") else "disabled"
    told = {"sub": "running", "enabled": enabled, "result": "success", "needs_reload": False}
    return {"load": "loaded", "active": active, **told}
