"""llama.cpp in this process: a loaded model, served on a loopback port."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

from forge.backends.profile import DEFAULT_CONTEXT
from forge.backends.servers.launch import Launch, served_name
from forge.errors import BackendError, ForgeError, to_install
from forge.processes import needed

# The server object: started, and stopped by releasing it.

_ATTENTION = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"}
_LAYERS: dict[str | int | None, int] = {None: -1, "auto": -1, "all": 999}  # more than any model has


class LlamaCpp:
    """A running llama.cpp server at `url` with the model at `path`; `stop` frees its memory and port.

    `chat_template` replaces the model's own. Every request but `/health` needs the `api_key`, if there is one.
    """

    def __init__(self, launch: Launch, path: Path, api_key: str = "", chat_template: str = "") -> None:
        try:
            self._server: object | None = start(launch, path, api_key, chat_template)
        except RuntimeError:
            # To get llama.cpp's own message, try again in a process whose log can be read.
            again = (
                "from pathlib import *; from forge.backends.servers.llama_cpp import *; "
                f"start({launch!r}, {path!r}, chat_template={chat_template!r}, verbosity=1)"
            )
            done = subprocess.run(  # noqa: S603 - this very Python
                [sys.executable, "-c", again],
                capture_output=True,
                text=True,
                check=False,
                errors="replace",
                env=needed(),
            )
            errors = [line.partition(" E ")[2].strip() for line in done.stderr.splitlines() if " E " in line]
            said = "; ".join(dict.fromkeys(errors[:3])) or "nothing"
            raise BackendError(
                f"llama.cpp could not load {path}; the file may be damaged, or too new for it. It said: {said}"
            ) from None
        self.url = str(getattr(self._server, "listening_address", ""))

    def stop(self) -> None:
        """Stop serving; may be called twice."""
        self._server = None


def random_key() -> str:
    """A random, unguessable key."""
    return secrets.token_urlsafe(32)


def start(launch: Launch, path: Path, api_key: str = "", chat_template: str = "", verbosity: int = -1) -> object:
    """llama.cpp's own server, running until it is released. RuntimeError if it cannot be started."""
    # Busy-waiting threads would block everything else on a small machine; the user's own setting takes precedence.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp  # noqa: PLC0415 - an extra: a 34 MB library that most users don't need
    except ImportError:
        raise ForgeError(f"llama.cpp is not installed here; {to_install('local')}") from None
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    # Otherwise the model is named after its path, and requests would name another model.
    params.model_alias = {served_name(launch.model)}
    params.n_parallel = launch.slots or 1
    params.n_ctx = (launch.context_tokens or DEFAULT_CONTEXT) * (1 if launch.kv_unified else params.n_parallel)
    params.kv_unified = launch.kv_unified
    params.cache_type_k, params.cache_type_v = (
        xllamacpp.ggml_type[f"GGML_TYPE_{(kind or 'f16').upper()}"]
        for kind in (launch.cache_type_k, launch.cache_type_v)
    )
    params.flash_attn_type = xllamacpp.llama_flash_attn_type[
        f"LLAMA_FLASH_ATTN_TYPE_{_ATTENTION[launch.flash_attention or 'auto']}"
    ]
    params.n_gpu_layers = _LAYERS.get(launch.gpu_layers, launch.gpu_layers)
    params.hostnames = ["127.0.0.1"]
    params.port = launch.port
    params.api_keys = [api_key] if api_key else []
    # It cannot reject foreign Host headers, which web pages use to circumvent the browser's rules by DNS rebinding: the
    # key protects against that. For other web origins, CORS tells the browser to withhold the answer.
    params.cors_origins = "http://nobody.invalid"
    params.cors_origins_explicit = True
    params.use_jinja = True
    params.chat_template = chat_template
    # A container or `taskset` on Linux may allow fewer processors than the machine has; more threads would only wait.
    # Half of many processors is about the number of cores.
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    threads = launch.threads or (processors if processors <= 4 else processors // 2)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity = verbosity
    params.ui = False
    server: object = xllamacpp.Server(params)
    return server
