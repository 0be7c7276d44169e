"""How much memory this machine has for models, according to the system's own tools."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

_SECONDS = 10.0
MIB = 1 << 20
GIB = 1 << 30


class Gpu(Struct, frozen=True, kw_only=True):
    """`memory_bytes` is what a model may use; None if unknown, then it shares the machine's memory.

    `integrated`: it is part of the processor.
    """

    name: str
    memory_bytes: int | None
    integrated: bool = False


class HardwareProfile(Struct, frozen=True, kw_only=True):
    """The memory of this machine that models can use."""

    gpus: tuple[Gpu, ...] = ()
    vram_bytes: int = 0
    source: str = "no GPU was found"

    @property
    def vram_gib(self) -> float:
        """The memory of all GPUs together."""
        return self.vram_bytes / GIB


_NVIDIA = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
_APPLE = ("sysctl", "hw.memsize", "iogpu.wired_limit_mb", "machdep.cpu.brand_string")


def parse_nvidia(printed: str) -> tuple[Gpu, ...]:
    """The GPUs in nvidia-smi's output, one per line: name and MiB, such as `NVIDIA GeForce RTX 4090, 24564`.

    GPUs without memory of their own report [N/A]. Other lines are ignored. https://docs.nvidia.com/deploy/nvidia-smi/
    """
    gpus = []
    for line in printed.splitlines():
        name, comma, size = line.rpartition(",")
        size = size.strip()
        if not comma or not name.strip():
            continue
        if re.fullmatch(r"\d{1,9}", size):
            gpus.append(Gpu(name=name.strip(), memory_bytes=int(size) * MIB))
        elif re.fullmatch(r"\[?(N/A|Not Supported)\]?", size):
            gpus.append(Gpu(name=name.strip(), memory_bytes=None))
    return tuple(gpus)


def parse_apple(printed: str) -> tuple[Gpu, ...]:
    """The GPU of Apple silicon; it may use most of the memory, or the user's limit (`iogpu.wired_limit_mb`).

    Metal's default limit is about two thirds of the memory up to 36 GiB, and three quarters above.
    """
    values = dict(re.findall(r"^([\w.]+): (.+)$", printed, re.MULTILINE))
    memory, limit = values.get("hw.memsize", ""), values.get("iogpu.wired_limit_mb", "0")
    if not re.fullmatch(r"\d{1,16}", memory) or not re.fullmatch(r"\d{1,9}", limit):
        return ()
    total = int(memory)
    usable = int(limit) * MIB or (total * 2 // 3 if total <= 36 * GIB else total * 3 // 4)
    name = values.get("machdep.cpu.brand_string", "Apple silicon")
    return (Gpu(name=name, memory_bytes=min(usable, total), integrated=True),)


def parse_amd(files: Mapping[str, bytes]) -> Gpu | None:
    """The GPU in /sys/class/drm/card*/device; None if it is not AMD's or its driver reports nothing.

    https://docs.kernel.org/gpu/amdgpu/driver-misc.html. An integrated GPU has a small part of the memory as its own and
    takes the rest from the GTT: its `gpu_metrics` have format 2 or 3, those of a card format 1 (the third byte of the
    file).
    """
    if files.get("vendor", b"").strip() != b"0x1002":
        return None
    own, shared = _number(files.get("mem_info_vram_total", b"")), _number(files.get("mem_info_gtt_total", b""))
    if own is None:
        return None
    name = files.get("product_name", b"").decode(errors="replace").strip() or "AMD GPU"
    if files.get("gpu_metrics", b"")[2:3] in {b"\2", b"\3"}:
        return Gpu(name=name, memory_bytes=own + (shared or 0), integrated=True)
    return Gpu(name=name, memory_bytes=own)


def _number(text: bytes) -> int | None:
    return int(text) if re.fullmatch(rb"\s*\d{1,16}\s*", text) else None


def profile(gpus: Iterable[Gpu], ram_bytes: int, source: str) -> HardwareProfile:
    """The GPUs together. One without memory of its own counts three quarters of the machine's."""
    found = tuple(gpus)
    if not found:
        return HardwareProfile()
    silent = any(gpu.memory_bytes is None for gpu in found)
    vram = sum(gpu.memory_bytes or 0 for gpu in found) + (ram_bytes * 3 // 4 if silent else 0)
    return HardwareProfile(gpus=found, vram_bytes=vram, source=source)


def detect_hardware() -> HardwareProfile:
    """The machine's hardware, detected anew each time: nvidia-smi, then amdgpu's files, then Apple's sysctl."""
    # 0 if the system does not report it.
    knows = "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {})
    ram = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if knows else 0
    if gpus := parse_nvidia(_printed(_NVIDIA)):
        return profile(gpus, ram, "nvidia-smi")
    cards = [gpu for folder in sorted(Path("/sys/class/drm").glob("card[0-9]*/device")) if (gpu := _amd(folder))]
    # An integrated GPU only counts if there is no card.
    if gpus := tuple([gpu for gpu in cards if not gpu.integrated] or cards):
        return profile(gpus, ram, "the amdgpu driver (/sys/class/drm)")
    if platform.system() == "Darwin" and platform.machine() == "arm64" and (gpus := parse_apple(_printed(_APPLE))):
        return profile(gpus, ram, "sysctl")
    return profile((), ram, "")


def _printed(command: tuple[str, ...]) -> str:
    """The command's output, whatever its exit code: sysctl reports unknown names and prints the rest."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603
            [program, *command[1:]], capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (subprocess.TimeoutExpired, OSError):  # a hanging driver or a program that cannot run: no usable GPU
        return ""
    return done.stdout.decode(errors="replace")


def _amd(folder: Path) -> Gpu | None:
    found = {}
    for name in ("vendor", "mem_info_vram_total", "mem_info_gtt_total", "gpu_metrics", "product_name"):
        with suppress(OSError):  # not every driver has every file
            found[name] = (folder / name).read_bytes()
    return parse_amd(found)
