"""Launch: options to command lines; contradictions are refused, all at once. And why a server died, in words."""

from pathlib import Path

import pytest

from forge.backends.servers.launch import Launch, command, source
from forge.backends.servers.models import KNOWN
from forge.backends.servers.process import explain_exit
from forge.errors import ForgeError
from stages.options import OptionError

FILE = Path("/m/model.gguf")
LLAMA = ["llama-server", "-m", "/m/model.gguf", "--host", "127.0.0.1", "--port", "5000", "--jinja", "--alias", "model"]


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, ["--parallel", "1"]),
        ({"context_tokens": 4096}, ["--parallel", "1", "--ctx-size", "4096"]),
        ({"context_tokens": 4096, "slots": 4}, ["--parallel", "4", "--ctx-size", "16384"]),
        (
            {"context_tokens": 4096, "slots": 4, "kv_unified": True},
            ["--parallel", "4", "--ctx-size", "4096", "--kv-unified"],
        ),
        (
            {"cache_type_k": "q8_0", "cache_type_v": "q8_0", "flash_attention": "on"},
            ["--parallel", "1", "--cache-type-k", "q8_0", "--cache-type-v", "q8_0", "--flash-attn", "on"],
        ),
        ({"gpu_layers": 0}, ["--parallel", "1", "--n-gpu-layers", "0"]),
        ({"gpu_layers": "all"}, ["--parallel", "1", "--n-gpu-layers", "all"]),
        (
            {"rpc": ("10.0.0.2:50052", "gpu-box:50052")},
            ["--parallel", "1", "--rpc", "10.0.0.2:50052,gpu-box:50052"],
        ),
        (
            {"threads": 2, "chat_template_file": "t.jinja"},
            ["--parallel", "1", "--threads", "2", "--chat-template-file", "t.jinja"],
        ),
        ({"flags": ("--mlock", "--main-gpu", "1")}, ["--parallel", "1", "--mlock", "--main-gpu", "1"]),
    ],
)
def test_llama_server(options: dict[str, object], more: list[str]) -> None:
    launch = Launch(model="model.gguf", **options)  # type: ignore[arg-type]  # options of a table
    assert command(launch, "llama-server", FILE, 5000) == [*LLAMA, *more]


def test_a_model_of_the_hub_is_left_to_llama_server() -> None:
    launch = Launch(model="org/repo-GGUF:Q4_K_M")
    assert source(launch) == "org/repo-GGUF:Q4_K_M"
    words = command(launch, "llama-server", "org/repo-GGUF:Q4_K_M", 5000)
    assert words[1:3] == ["-hf", "org/repo-GGUF:Q4_K_M"]
    assert words[words.index("--alias") + 1] == "org/repo-GGUF:Q4_K_M"


def test_llamafile() -> None:
    launch = Launch(model="model.gguf", program="llamafile", context_tokens=512, gpu_layers=9)
    address = ["--host", "127.0.0.1", "--port", "5000", "--parallel", "1", "--ctx-size", "512", "--n-gpu-layers", "9"]
    assert command(launch, "/bin/llamafile", FILE, 5000) == [
        *("sh", "/bin/llamafile", "--server", "--nobrowser", "-m", "/m/model.gguf"),
        *address,
    ]
    itself = command(launch, "/m/a.llamafile", Path("/m/a.llamafile"), 5000)
    assert itself == ["sh", "/m/a.llamafile", "--server", "--nobrowser", *address]


def test_vllm() -> None:
    launch = Launch(model="org/model", program="vllm", context_tokens=8192, slots=8, flags=("--quantization", "awq"))
    assert source(launch) == "org/model"
    assert command(launch, "vllm", "org/model", 5000) == [
        *("vllm", "serve", "org/model", "--host", "127.0.0.1", "--port", "5000"),
        *("--max-model-len", "8192", "--max-num-seqs", "8", "--quantization", "awq"),
    ]


@pytest.mark.parametrize(
    ("options", "problems"),
    [
        ({"model": ""}, ["model is empty; give a GGUF file, a known model's name, or org/repo:quant"]),
        ({"program": "word"}, ["program is 'word'; it must be one of llama-server, llamafile, vllm, local"]),
        ({"port": 65536}, ["port is 65536; it must be a whole number, at least 0 and under 65536"]),
        (
            {"context_tokens": 0, "slots": -1},
            ["context_tokens is 0; it must be a whole number, at least 1", "slots is -1; it must"],
        ),
        ({"gpu_layers": -1}, ["gpu_layers is -1; it must be one of auto, all, a whole number, at least 0 or None"]),
        (
            {"flash_attention": "off", "cache_type_v": "q8_0"},
            ["cache_type_v='q8_0' needs flash attention, and flash_attention is 'off'"],
        ),
        ({"rpc": ("box",)}, ["rpc: 'box' is not an address; write host:port"]),
        ({"rpc": ("a:1,b:2",)}, ["rpc: 'a:1,b:2' is not an address"]),
        ({"flags": ("--port=1",)}, ["flags: --port: servers that forge starts are reached at 127.0.0.1"]),
        (
            {"flags": ("--host", "example.org")},
            ["flags: --host: servers that forge starts are reached at 127.0.0.1"],
        ),
        ({"flags": ("--api-key", "sk-1")}, ["flags: --api-key would show a secret to every user of this machine"]),
        (
            {"program": "vllm", "cache_type_k": "q8_0", "kv_unified": True},
            ["vllm has no cache_type_k; pass its own flag in flags", "vllm has no kv_unified"],
        ),
        ({"program": "local", "rpc": ("a:1",), "flags": ("-x",)}, ["local has no flags", "local has no rpc"]),
    ],
)
def test_what_contradicts_itself_is_refused_with_every_reason(options: dict[str, object], problems: list[str]) -> None:
    with pytest.raises(OptionError) as caught:
        Launch(**{"model": "m.gguf", **options})  # type: ignore[arg-type]  # options of a table
    assert len(caught.value.problems) == len(problems)
    for said, expected in zip(caught.value.problems, problems, strict=True):
        assert said.startswith(f"Launch: {expected}")


def test_what_a_model_may_be(tmp_path: Path) -> None:
    assert source(Launch(model="smollm2-135m")) == KNOWN["smollm2-135m"]
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    assert source(Launch(model=str(file))) == file
    assert source(Launch(model=str(tmp_path), program="vllm")) == tmp_path
    (tmp_path / "m.llamafile").write_bytes(b"MZ")
    assert source(Launch(model=str(tmp_path / "m.llamafile"), program="llamafile")) == tmp_path / "m.llamafile"


@pytest.mark.parametrize(
    ("program", "model"), [("llama-server", "models/gone.gguf"), ("local", "gone"), ("llamafile", "gone.llamafile")]
)
def test_a_model_that_is_not_there_is_refused_before_anything_starts(program: str, model: str) -> None:
    with pytest.raises(ForgeError, match="there is no"):
        source(Launch(model=model, program=program))  # type: ignore[arg-type]  # of a table


@pytest.mark.parametrize(
    ("code", "line", "hint"),
    [
        (1, "gguf_init_from_file: failed to open GGUF file '/x.gguf' (No such file or directory)", "model file exist"),
        (1, "gguf_init_from_reader: invalid magic characters: 'root', expected 'GGUF'", "not a GGUF file"),
        (1, "error loading model: unknown model architecture: 'new'", "update the server"),
        (1, "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 2304", "Memory"),
        (1, "CUDA error: out of memory", "Memory"),
        (1, "error: invalid argument: --frobnicate", "does not know an option"),
        (1, "start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 18702", "taken the port"),
        (1, "llama_init_from_model: quantized V cache requires flash_attn to be enabled", "flash_attention='on'"),
        (127, "error while loading shared libraries: libcuda.so.1: No such file or directory", "library"),
        (137, "", "memory ran out"),
        (
            132,
            "",
            "newer processor than this. Take a build for this machine, or run the model inside forge: --backend local",
        ),
        (132, "404 does not exist", "newer processor"),
        (0xC000001D, "", "--backend local"),
        (9, "something new", ""),
    ],
)
def test_a_death_is_explained(code: int, line: str, hint: str) -> None:
    said = explain_exit("llama-server", code, [line] if line else [], "/the.log")
    signal = {132: " (SIGILL)", 137: " (SIGKILL)"}.get(code, "")
    assert said.startswith(f"llama-server ended with exit code {code}{signal} before it was ready. ")
    assert hint in said
    assert f"  | {line or '(nothing)'}" in said
    assert "\nIts log: /the.log\n" in said
