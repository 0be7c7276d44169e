"""The command line that launches a server."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from forge.backends.servers import models
from forge.errors import ForgeError
from stages.options import AtLeastOne, Count, Options, Tokens

# Launch: how to start a model server, as data.

Program = Literal["llama-server", "llamafile", "vllm", "local"]
CacheType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]
HOST = "127.0.0.1"
"""Servers started by forge are only reachable from this machine."""

_LLAMA = ("context_tokens", "slots", "kv_unified", "cache_type_k", "cache_type_v", "flash_attention", "gpu_layers")
_BEARS: dict[Program, tuple[str, ...]] = {
    "llama-server": (*_LLAMA, "threads", "rpc", "chat_template_file", "flags", "executable"),
    "llamafile": ("context_tokens", "slots", "gpu_layers", "threads", "flags", "executable"),
    "vllm": ("context_tokens", "slots", "chat_template_file", "flags", "executable"),
    "local": (*_LLAMA, "threads"),
}
"""The options that each program supports; other options of the program go into `flags`."""

_SECRET = ("--api-key", "-hft", "--hf-token")
_HUB = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?")
_RPC = re.compile(r"[\w.\-\[\]:]+:\d{1,5}")


class Launch(Options, frozen=True, kw_only=True):
    """What to start, and how. OptionError, with every mistake at once, for contradictions.

    `model` is a known model's name, a GGUF file, or a model on the Hugging Face hub (`org/repo:quant`), which
    llama-server downloads itself; for vLLM, the argument of `vllm serve`. `executable` is the program's path, if it is
    not on the PATH. `port` 0 is any free one.

    `context_tokens` is the context of one conversation; unset, the server decides. `slots` is the number of concurrent
    conversations, by default one; with `kv_unified` they share a cache of one context. `cache_type_k` and
    `cache_type_v` quantise the cache: q8_0 halves its memory. `gpu_layers`, `rpc` (`host:port` of each rpc-server of
    llama.cpp) and `flags` are passed on. Never put secrets into flags: every user of the machine can read them.
    """

    model: str
    program: Program = "llama-server"
    executable: str = ""
    port: Annotated[int, Meta(ge=0, lt=1 << 16)] = 0
    context_tokens: Tokens | None = None
    slots: AtLeastOne | None = None
    kv_unified: bool = False
    cache_type_k: CacheType | None = None
    cache_type_v: CacheType | None = None
    flash_attention: Literal["on", "off", "auto"] | None = None
    gpu_layers: Count | Literal["auto", "all"] | None = None
    threads: AtLeastOne | None = None
    rpc: tuple[str, ...] = ()
    chat_template_file: str = ""
    flags: tuple[str, ...] = ()

    def contradictions(self, wrong: Collection[str]) -> Iterator[str]:
        """Options that the program lacks, and values that do not fit."""
        every = {name for names in _BEARS.values() for name in names}
        has = every if "program" in wrong else _BEARS[self.program]
        for name in sorted(every.difference(has)):
            if getattr(self, name) not in (None, "", (), False):
                other = "; pass its own flag in flags" if "flags" in has else ""
                yield f"{self.program} has no {name}{other}"
        if not self.model:
            yield "model is empty; give a GGUF file, a known model's name, or org/repo:quant"
        if self.flash_attention == "off" and self.cache_type_v not in (None, "f32", "f16", "bf16"):
            yield f"cache_type_v={self.cache_type_v!r} needs flash attention, and flash_attention is 'off'"
        for place in () if "rpc" in wrong else self.rpc:
            if not _RPC.fullmatch(place):
                yield f"rpc: {place!r} is not an address; write host:port"
        for flag in (word.partition("=")[0] for word in (() if "flags" in wrong else self.flags)):
            if flag in _SECRET:
                yield f"flags: {flag} would show a secret to every user of this machine; pass api_key= or environment="
            elif flag in {"--host", "--port"}:
                yield f"flags: {flag}: servers that forge starts are reached at {HOST}, at the port=… of the Launch"


Source = models.KnownModel | Path | str
"""Where a model comes from: forge's list, a file, or a name that the server downloads by itself."""


def source(launch: Launch) -> Source:
    """The meaning of the launch's `model`. ForgeError if its program cannot load it."""
    path = Path(launch.model).expanduser()
    if launch.program == "vllm":
        return path.absolute() if path.exists() else launch.model
    if launch.program == "llamafile" and path.suffix in {".llamafile", ".exe"}:
        if not path.is_file():
            raise ForgeError(f"there is no file {path}")
        return path.absolute()
    if launch.program == "llama-server" and _on_the_hub(launch.model) and not path.exists():
        return launch.model
    found = models.resolve(launch.model)
    return found.absolute() if isinstance(found, Path) else found


def served_name(model: str) -> str:
    """The model's name in requests: a GGUF file's without folder and extension, any other unchanged."""
    return Path(model).name.removesuffix(".gguf") if model.endswith(".gguf") else model


def startable(spec: str) -> bool:
    """Whether forge can start `PROGRAM:MODEL` by itself: a file, a known model, or one on the hub."""
    program, _, model = spec.partition(":")
    file = model.endswith((".gguf", ".llamafile"))
    return (program == "llama-server" and (file or model in models.KNOWN or _on_the_hub(model))) or (
        program == "llamafile" and (file or model in models.KNOWN)
    )


def launch_of(
    spec: str,
    model: str = "",
    *,
    context_tokens: int | None = None,
    slots: int | None = None,
    chat_template_file: str = "",
) -> Launch | None:
    """What forge starts for `local` or `PROGRAM:MODEL`; None for any other backend. ForgeError for two models."""
    program, _, file = spec.partition(":")
    if spec != "local" and not startable(spec):
        return None
    if file and model:
        raise ForgeError(f"two models are given, {file} and {model}; the one to start goes after the colon")
    return Launch(
        program="local" if spec == "local" else "llamafile" if program == "llamafile" else "llama-server",
        model=file or model or models.DEFAULT,
        context_tokens=context_tokens,
        slots=slots,
        chat_template_file=chat_template_file,
    )


def _on_the_hub(name: str) -> bool:
    return _HUB.fullmatch(name) is not None and not name.endswith(".gguf") and not name.startswith(".")


# The command line that starts the server of a Launch.


def command(launch: Launch, executable: str, model: Path | str, port: int) -> list[str]:
    """The command line of a program; `model` is a file, or a name that the server downloads."""
    slots = launch.slots or 1
    options: dict[str, object]
    if launch.program == "vllm":
        begin = [executable, "serve", str(model)]
        options = {
            "--max-model-len": launch.context_tokens,
            "--max-num-seqs": launch.slots,
            "--chat-template": launch.chat_template_file or None,
        }
    else:
        # llama.cpp's context is the total of all slots, unless they share it.
        context = launch.context_tokens and launch.context_tokens * (1 if launch.kv_unified else slots)
        options = {
            "--alias": served_name(launch.model) if launch.program == "llama-server" else None,
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
        if launch.program == "llama-server":
            begin = [executable, *(["-m", str(model)] if isinstance(model, Path) else ["-hf", model])]
        else:
            # A llamafile is also a shell script: sh starts it if the kernel does not support its format.
            own = [] if str(model) == executable else ["-m", str(model)]
            begin = ["sh", executable, "--server", "--nobrowser", *own]
    begin += ["--host", HOST, "--port", str(port)]
    if launch.program == "llama-server":
        begin.append("--jinja")
    written = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    return [*begin, *written, *(["--kv-unified"] if launch.kv_unified else []), *launch.flags]
