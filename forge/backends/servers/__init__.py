"""Servers that forge starts, the models that it downloads for them, and llama.cpp in this process."""

from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from forge.backends.servers.download import Kept, Progress, cache_folder, ensure_model, kept, remove
    from forge.backends.servers.hardware import Gpu, HardwareProfile, detect_hardware
    from forge.backends.servers.llama_cpp import LlamaCpp, Settings
    from forge.backends.servers.models import DEFAULT, KNOWN, KnownModel, ModelUnavailable, trained_context
    from forge.backends.servers.process import Died, Loading

__all__ = [
    "DEFAULT",
    "KNOWN",
    "Died",
    "Gpu",
    "HardwareProfile",
    "Kept",
    "KnownModel",
    "LlamaCpp",
    "Loading",
    "ModelUnavailable",
    "Progress",
    "Settings",
    "cache_folder",
    "detect_hardware",
    "ensure_model",
    "kept",
    "remove",
    "trained_context",
]

if not TYPE_CHECKING:
    __getattr__ = later(
        __name__,
        {
            "forge.backends.servers.download": ("Kept", "Progress", "cache_folder", "ensure_model", "kept", "remove"),
            "forge.backends.servers.hardware": ("Gpu", "HardwareProfile", "detect_hardware"),
            "forge.backends.servers.llama_cpp": ("LlamaCpp", "Settings"),
            "forge.backends.servers.models": (
                "DEFAULT",
                "KNOWN",
                "KnownModel",
                "ModelUnavailable",
                "trained_context",
            ),
            "forge.backends.servers.process": ("Died", "Loading"),
        },
    )
