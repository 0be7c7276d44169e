"""The environment of a child process: what it needs to run, without the secrets of this process."""

import os
from collections.abc import Mapping

_NAMES = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE"),
        *("APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE"),
    }
)
"""Where programs, libraries and files are, and the language."""

_PREFIXES = (
    *("LC_", "XDG_"),
    *("LLAMA_", "GGML_", "VLLM_", "TORCH_", "PYTORCH_", "TRITON_"),
    *("CUDA_", "NVIDIA_", "NCCL_", "HIP_", "ROCM_", "ROCR_", "HSA_", "GPU_", "AMD_", "SYCL_", "ONEAPI_", "ZE_"),
    *("VK_", "VULKAN_", "MESA_", "METAL_", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_"),
)
"""What model servers, drivers of GPUs and libraries of threads are set up with."""

_HUB = ("HF_", "HUGGING_FACE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
"""What a server needs to fetch a model itself: the hub's own settings, its token and the proxy included."""

_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")


def needed(environment: Mapping[str, str] | None = None, *, fetches: bool = False) -> dict[str, str]:
    """As much of this process's environment as a child needs; `fetches`: it downloads its model from the hub."""
    given = os.environ if environment is None else environment
    return {name: value for name, value in given.items() if _is_needed(name.upper(), fetches=fetches)}


def _is_needed(name: str, *, fetches: bool) -> bool:
    if fetches and name.startswith(_HUB):
        return True
    return (name in _NAMES or name.startswith(_PREFIXES)) and not is_secret(name)


def is_secret(name: str) -> bool:
    """Whether a variable of that name holds what nobody else should know."""
    return any(word in name.upper() for word in _SECRET)
