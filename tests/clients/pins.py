"""Pins: the clients, each with the exact version that is installed, and where it stands then."""

import os
from pathlib import Path

from msgspec import Struct


class Pin(Struct, frozen=True):
    """A client of npm's: the folder that it is installed into, and its packages; the first is the client itself."""

    name: str
    packages: tuple[str, ...]

    @property
    def version(self) -> str:
        return self.packages[0].rpartition("@")[2]

    @property
    def folder(self) -> Path:
        return cache() / "npm" / self.name

    @property
    def programs(self) -> Path:
        """The folder with its programs."""
        return self.folder / "node_modules/.bin"


def cache() -> Path:
    """The folder of all of them, about 2 GB: FORGE_CLIENTS, else one in the user's cache."""
    return Path(os.environ.get("FORGE_CLIENTS") or Path.home() / ".cache/forge-clients")


AI_SDK = Pin(
    "ai-sdk",
    (
        "ai@6.0.326",
        "@ai-sdk/openai-compatible@2.0.87",
        "@ai-sdk/anthropic@3.0.138",
        "@ai-sdk/openai@3.0.141",
        "zod@4.6.7",
    ),
)
COMPATCANARY = Pin("compatcanary", ("compatcanary@0.2.2",))
CODEX = Pin("codex", ("@openai/codex@0.169.0",))
CLAUDE_CODE = Pin("claude-code", ("@anthropic-ai/claude-code@2.1.330",))
PI = Pin("pi", ("@mariozechner/pi-coding-agent@0.73.1",))

OF_CHECKS = (CODEX, CLAUDE_CODE, PI, AI_SDK, COMPATCANARY)
