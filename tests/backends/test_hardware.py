"""Hardware and budgets: what tools print, real or broken, to tokens of context, and where the number comes from."""

import json

import pytest

from forge.backends.budget import BudgetMode, OllamaSays, ResolvedBudget, by_vram, ollama_budget
from forge.backends.ollama import read_ollama
from forge.backends.questions import ServerAnswer
from forge.backends.servers.hardware import (
    GIB,
    MIB,
    Gpu,
    HardwareProfile,
    parse_amd,
    parse_apple,
    parse_nvidia,
    profile,
)


def says(model: str, ps: bytes, show: bytes) -> OllamaSays:
    return read_ollama(model, ServerAnswer(status=200, body=ps), ServerAnswer(status=200, body=show))


def nvidia(*sizes: int) -> HardwareProfile:
    gpus = [Gpu(name=f"GPU {number}", memory_bytes=size * MIB) for number, size in enumerate(sizes)]
    return profile(gpus, 64 * GIB, "nvidia-smi")


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("NVIDIA GeForce RTX 4090, 24564\n", [("NVIDIA GeForce RTX 4090", 24564)]),
        ("NVIDIA A100-SXM4-80GB, 81920\nNVIDIA A100-SXM4-80GB, 81920\n", [("NVIDIA A100-SXM4-80GB", 81920)] * 2),
        ("Odd, with a comma, 8192\r\n", [("Odd, with a comma", 8192)]),
        ("NVIDIA GB10, [N/A]\n", [("NVIDIA GB10", None)]),
        ("RTX 3060, 12288\nGB10, [N/A]\n", [("RTX 3060", 12288), ("GB10", None)]),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", []),
        ("RTX, 24564 MiB\nRTX, -1\nRTX, [Unknown Error]\n, 5\n,\n\n", []),
        ("RTX, 99999999999999999999999", []),
        ("", []),
        ("\x00\xff\n" * 3, []),
    ],
)
def test_nvidia(printed: str, found: list[tuple[str, int | None]]) -> None:
    assert [(gpu.name, gpu.memory_bytes and gpu.memory_bytes // MIB) for gpu in parse_nvidia(printed)] == found


APPLE = "hw.memsize: {memory}\niogpu.wired_limit_mb: {limit}\nmachdep.cpu.brand_string: Apple M4 Max\n"


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        (APPLE.format(memory=16 * GIB, limit=0), 16 * GIB * 2 // 3),
        (APPLE.format(memory=64 * GIB, limit=0), 48 * GIB),
        (APPLE.format(memory=64 * GIB, limit=57344), 56 * GIB),
        (APPLE.format(memory=64 * GIB, limit=999_999), 64 * GIB),
        ("hw.memsize: much\n", None),
        ("sysctl: unknown oid 'hw.memsize'\n", None),
        ("", None),
    ],
)
def test_apple(printed: str, found: int | None) -> None:
    assert [gpu.memory_bytes for gpu in parse_apple(printed)] == ([] if found is None else [found])


CARD = {"vendor": b"0x1002\n", "mem_info_vram_total": b"25753026560\n", "mem_info_gtt_total": b"33554432000\n"}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (CARD, 25753026560),
        (CARD | {"gpu_metrics": b"\x78\x00\x01\x03", "product_name": b"Radeon PRO\n"}, 25753026560),
        # Issue 61 of the older forge: of a chip with unified memory only the part set aside was counted.
        (CARD | {"mem_info_vram_total": b"536870912", "gpu_metrics": b"\x08\x01\x03\x00"}, 536870912 + 33554432000),
        (CARD | {"vendor": b"0x8086\n"}, None),
        (CARD | {"mem_info_vram_total": b"?"}, None),
        ({}, None),
    ],
)
def test_amd(files: dict[str, bytes], found: int | None) -> None:
    gpu = parse_amd(files)
    assert (gpu and gpu.memory_bytes) == found


def test_gpus_are_summed_and_one_without_memory_of_its_own_has_the_machine_s() -> None:
    assert nvidia(24564, 24564).vram_gib == pytest.approx(47.98, abs=0.01)
    shared = profile(parse_nvidia("NVIDIA GB10, [N/A]"), 120 * GIB, "nvidia-smi")
    assert shared.vram_bytes == 90 * GIB
    assert profile((), 8 * GIB, "nvidia-smi").source == "no GPU was found"


@pytest.mark.parametrize(
    ("hardware", "tokens", "says"),
    [
        (nvidia(8192), 4096, "8 GiB for models (GPU 0; nvidia-smi)"),
        (nvidia(24564), 32_768, "24 GiB"),  # sold as 24 GB, and a little less
        (nvidia(24564, 24564), 262_144, "48 GiB for models (GPU 0, GPU 1; nvidia-smi)"),
        (profile((), 64 * GIB, ""), 4096, "no GPU was found"),
        (None, 4096, "on another machine"),
    ],
)
def test_tiers_of_vram(hardware: HardwareProfile | None, tokens: int, says: str) -> None:
    found = by_vram(hardware)
    assert found.tokens == tokens
    assert says in found.source


PS = {"models": [{"name": "other:1b", "context_length": 1}, {"name": "qwen3:8b", "context_length": 16384}]}
SHOW = {
    "parameters": 'stop "<|im_end|>"\nnum_ctx                        8192\n',
    "model_info": {"qwen3.context_length": 40960},
}


@pytest.mark.parametrize(
    ("model", "ps", "show", "found"),
    [
        ("qwen3:8b", PS, SHOW, OllamaSays(loaded=16384, modelfile=8192, most=40960)),
        ("qwen3:4b", PS, SHOW, OllamaSays(modelfile=8192, most=40960)),
        ("qwen3", {"models": [{"name": "qwen3:latest", "context_length": 5}]}, {}, OllamaSays(loaded=5)),
        ("qwen3", {"models": None}, {"model_info": {"x.context_length": "many"}}, OllamaSays()),
        ("qwen3", {"models": [{"name": "qwen3"}]}, {"error": "model not found"}, OllamaSays()),
    ],
)
def test_what_ollama_says(model: str, ps: object, show: object, found: OllamaSays) -> None:
    assert says(model, json.dumps(ps).encode(), json.dumps(show).encode()) == found


@pytest.mark.parametrize("text", [b"", b"<html>", b"[]", b'{"models":[{"name":3}]}', b"[" * 100_000, b"\xff"])
def test_what_ollama_does_not_say(text: bytes) -> None:
    assert says("m", text, text) == OllamaSays()


@pytest.mark.parametrize(
    ("mode", "tokens", "said", "found"),
    [
        ("backend", None, OllamaSays(loaded=16384, modelfile=8192), (16384, "/api/ps")),
        ("backend", None, OllamaSays(modelfile=8192), (8192, "Modelfile")),
        ("backend", None, OllamaSays(), (32768, "24 GiB")),
        ("backend", None, OllamaSays(most=2048), (2048, "the most that the model can have")),
        ("manual", 6000, OllamaSays(loaded=16384), (6000, "as given")),
        ("manual", 6000, OllamaSays(most=2048), (2048, "the most that the model can have; else as given")),
        ("forge-full", None, OllamaSays(loaded=1024, most=40960), (32768, "24 GiB")),
        ("forge-fast", None, OllamaSays(loaded=1024), (16384, "half of 32768: 24 GiB")),
    ],
)
def test_the_budget_on_ollama(mode: str, tokens: int | None, said: OllamaSays, found: tuple[int, str]) -> None:
    budget = ollama_budget(BudgetMode(mode), tokens, said, nvidia(24576))
    assert isinstance(budget, ResolvedBudget)
    assert budget.tokens == found[0]
    assert found[1] in budget.source
