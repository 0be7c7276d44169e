"""The command line that starts the server of a Launch."""

from pathlib import Path

from forge.backends.servers.launch import HOST, Launch, served_name
from forge.errors import ForgeError


def command(launch: Launch, executable: str, model: Path | str, port: int) -> list[str]:
    """The command line; `model` is a file, or a name that the server fetches by. ForgeError for `local`."""
    match launch.program:
        case "llama-server":
            return [executable, *_llama_model(model), *_address(port), "--jinja", *_llama_options(launch)]
        case "llamafile":
            itself = str(model) == executable
            own = [] if itself else ["-m", str(model)]
            # A llamafile is a shell script as well as a program: sh starts it where the kernel does not know its form.
            return ["sh", executable, "--server", "--nobrowser", *own, *_address(port), *_llama_options(launch)]
        case "vllm":
            return [executable, "serve", str(model), *_address(port), *_vllm_options(launch)]
        case "local":
            raise ForgeError("local has no command line: llama.cpp runs inside this process")


def _address(port: int) -> list[str]:
    return ["--host", HOST, "--port", str(port)]


def _llama_model(model: Path | str) -> list[str]:
    return ["-m", str(model)] if isinstance(model, Path) else ["-hf", model]


def _llama_options(launch: Launch) -> list[str]:
    slots = launch.slots or 1
    # llama.cpp's context is that of all slots together, unless they share it.
    context = launch.context_tokens and launch.context_tokens * (1 if launch.kv_unified else slots)
    options: dict[str, object] = {
        "--alias": served_name(launch) if launch.program == "llama-server" else None,
        "--parallel": slots,
        "--ctx-size": context,
        "--cache-type-k": launch.cache_type_k,
        "--cache-type-v": launch.cache_type_v,
        "--flash-attn": launch.flash_attention,
        "--n-gpu-layers": launch.gpu_layers,
        "--threads": launch.threads,
        "--rpc": ",".join(launch.rpc) or None,
        "--chat-template-file": launch.chat_template_file or None,
    }
    return [*_written(options), *(["--kv-unified"] if launch.kv_unified else []), *launch.flags]


def _vllm_options(launch: Launch) -> list[str]:
    options: dict[str, object] = {
        "--max-model-len": launch.context_tokens,
        "--max-num-seqs": launch.slots,
        "--chat-template": launch.chat_template_file or None,
    }
    return [*_written(options), *launch.flags]


def _written(options: dict[str, object]) -> list[str]:
    return [word for name, value in options.items() if value is not None for word in (name, str(value))]
