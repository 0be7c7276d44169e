"""Why a server ended: its exit code and last lines, and what usually helps."""

import re
import signal
from collections.abc import Sequence

_MEMORY = (
    "Memory does not suffice: take a smaller context_tokens, cache_type_k='q8_0' and cache_type_v='q8_0', fewer "
    "slots or gpu_layers, or a smaller model."
)
_NO_MEMORY = r"out of memory|failed to allocate|OutOf(Device)?Memory|cudaMalloc|No available memory|KV cache is needed"
_HINTS = (
    (r"error while loading shared libraries|Library not loaded", "A library that the server needs is not installed."),
    (r"GLIBC(XX)?_[\d.]+' not found", "The server was built for a newer system than this."),
    (r"Exec format error|Permission denied", "Is it a program for this machine, and executable (chmod +x)?"),
    (r"requires flash_attn", "A quantised cache_type_v needs flash_attention='on'."),
    (_NO_MEMORY, _MEMORY),
    (r"failed to open GGUF|No such file or directory|does not exist", "Does the model file exist?"),
    (r"invalid magic|magic characters|failed to read magic", "The model is no GGUF file, or it is damaged."),
    (r"unknown model architecture|unknown (pre-)?tokenizer", "The model is newer than this server: update the server."),
    (
        r"invalid argument|unrecognized arguments?|unknown argument|unknown option|ambiguous option",
        "The server does not know an option: it may be older or newer than the option is.",
    ),
    (r"couldn't bind|[Aa]ddress already in use|failed to bind", "Somebody else has taken the port meanwhile."),
    (r"\b(401|403)\b|gated|Unauthorized", "The hub asks for a token: environment={'HF_TOKEN': …}."),
    (r"Could not resolve host|Name or service not known|failed to download", "The model hub cannot be reached."),
)
"""What the last lines say, and what that usually means; the first that fits counts."""

_PROCESSOR = (
    "The server was built for a newer processor than this. Take a build for this machine, or run the model inside "
    "forge: --backend local, in Python forge.backends.Local(…)."
)
_BY_CODE = {
    127: "The program, or a library of it, was not found.",
    132: _PROCESSOR,
    0xC000001D: _PROCESSOR,  # the same on Windows
    137: "Something killed it: often the system, because memory ran out.",
}


def explain_exit(program: str, code: int, tail: Sequence[str], log: object, when: str = "before it was ready") -> str:
    """What happened, what usually helps, where the log is, and its last lines; `code` as `Process.code` has it."""
    said = "\n".join(tail)
    # A processor that lacks an instruction is certain, whatever words the last lines happen to have.
    likely = (
        "" if _BY_CODE.get(code) is _PROCESSOR else next((hint for words, hint in _HINTS if re.search(words, said)), "")
    )
    hint = likely or _BY_CODE.get(code, "")
    printed = "\n".join(f"  | {line}" for line in tail) or "  | (nothing)"
    return f"{program} ended with exit code {code}{_signal(code)} {when}. {hint}\nIts log: {log}\nIt said:\n{printed}"


def _signal(code: int) -> str:
    """The signal that an exit code stands for: ` (SIGILL)`."""
    try:
        return f" ({signal.Signals(code - 128).name})"
    except ValueError:
        return ""
