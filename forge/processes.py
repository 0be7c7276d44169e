"""Child processes that lead a process group: wait for them, and end them with all that they started."""

import asyncio
import asyncio.subprocess
import os
import signal
import subprocess
import sys
from contextlib import suppress

# forge/backends/servers/supervisor.py has the same: it runs without forge and cannot import it.

GRACE = 2.0
"""Seconds to exit after being asked to."""

_POLL = 0.02
"""Seconds between two checks whether a process has exited."""

ChildProcess = subprocess.Popen[bytes] | asyncio.subprocess.Process
"""A process started with `start_new_session=True`, so that it leads a group."""


def _code(process: ChildProcess) -> int | None:
    return process.poll() if isinstance(process, subprocess.Popen) else process.returncode


async def exit_code(process: ChildProcess, seconds: float | None = None) -> int | None:
    """The exit code, once the process has exited; None after that many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            # Not asyncio's `wait()`, which also waits for whoever has inherited the pipes.
            while (code := _code(process)) is None:  # noqa: ASYNC110
                await asyncio.sleep(_POLL)
            return code
    return None


async def end_group(process: ChildProcess) -> None:
    """Terminate the whole process group, and kill what is left after `GRACE` seconds, or at once if cancelled.

    The group may still have processes after its leader has exited.
    """
    try:
        _signal(process, kill=False)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while _is_left(process):  # noqa: ASYNC110 - nothing tells when a group is empty
                    await asyncio.sleep(_POLL)
    finally:
        _signal(process, kill=True)
    await exit_code(process, GRACE)


def _is_left(process: ChildProcess) -> bool:
    """Whether any process of the group is still running."""
    exited = _code(process) is not None  # which also reaps the leader
    if sys.platform == "win32":
        return not exited
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):  # the group is empty; macOS raises the latter
        return False
    return True


def _signal(process: ChildProcess, *, kill: bool) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill() if kill else process.terminate()
        else:
            os.killpg(process.pid, signal.SIGKILL if kill else signal.SIGTERM)


# The environment of a child process: what it needs to run, without the secrets of this process.

_NAMES = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE"),
        *("APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE"),
        *("PYENV_ROOT", "NVM_DIR", "GOPATH", "GOROOT", "JAVA_HOME", "CARGO_HOME", "RUSTUP_HOME"),
    }
)
"""Locations of programs, libraries and files, and the language."""

_PREFIXES = (
    *("LC_", "XDG_"),
    *("LLAMA_", "GGML_", "VLLM_", "TORCH_", "PYTORCH_", "TRITON_"),
    *("CUDA_", "NVIDIA_", "NCCL_", "HIP_", "ROCM_", "ROCR_", "HSA_", "GPU_", "AMD_", "SYCL_", "ONEAPI_", "ZE_"),
    *("VK_", "VULKAN_", "MESA_", "METAL_", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_"),
)
"""Settings of model servers, GPU drivers and threading libraries."""

_HUB_VARIABLES = ("HF_", "HUGGING_FACE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
"""What a server needs to download a model itself: the hub's settings, its token and the proxy."""

_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")


def needed(*, fetches: bool = False) -> dict[str, str]:
    """The part of this process's environment that a child needs; `fetches`: it downloads its model from the hub."""
    return {
        name: value
        for name, value in os.environ.items()
        if (fetches and name.upper().startswith(_HUB_VARIABLES))
        or ((name.upper() in _NAMES or name.upper().startswith(_PREFIXES)) and not is_secret(name))
    }


def is_secret(name: str) -> bool:
    """Whether a variable with that name holds a secret."""
    return any(word in name.upper() for word in _SECRET_WORDS)
