"""Pins: the clients, each with the exact version that is installed, and where it stands then."""

import os
from pathlib import Path
from typing import Literal

from msgspec import Struct


class Pin(Struct, frozen=True):
    """A client: the folder that it is installed into, and its packages; the first is the client itself."""

    name: str
    registry: Literal["npm", "pypi"]
    packages: tuple[str, ...]

    @property
    def version(self) -> str:
        return self.packages[0].rpartition("@" if self.registry == "npm" else "==")[2]

    @property
    def folder(self) -> Path:
        return cache() / self.registry / self.name

    @property
    def programs(self) -> Path:
        """The folder with its programs."""
        return self.folder / ("node_modules/.bin" if self.registry == "npm" else "bin")


def cache() -> Path:
    """The folder of all of them, about 4 GB: FORGE_CLIENTS, else one in the user's cache."""
    return Path(os.environ.get("FORGE_CLIENTS") or Path.home() / ".cache/forge-clients")


AI_SDK = Pin(
    "ai-sdk",
    "npm",
    (
        "ai@6.0.326",
        "@ai-sdk/openai-compatible@2.0.87",
        "@ai-sdk/anthropic@3.0.138",
        "@ai-sdk/openai@3.0.141",
        "zod@4.6.7",
    ),
)
COMPATCANARY = Pin("compatcanary", "npm", ("compatcanary@0.2.2",))
CODEX = Pin("codex", "npm", ("@openai/codex@0.169.0",))
CLAUDE_CODE = Pin("claude-code", "npm", ("@anthropic-ai/claude-code@2.1.330",))
PI = Pin("pi", "npm", ("@mariozechner/pi-coding-agent@0.73.1",))
OPENCODE = Pin("opencode", "npm", ("opencode-ai@1.18.33",))
QWEN_CODE = Pin("qwen-code", "npm", ("@qwen-code/qwen-code@0.24.4",))
COPILOT = Pin("copilot", "npm", ("@github/copilot@1.0.102",))
CLINE = Pin("cline", "npm", ("cline@3.0.65",))
CONTINUE = Pin("continue", "npm", ("@continuedev/cli@1.5.47",))
MINI = Pin("mini-swe-agent", "pypi", ("mini-swe-agent==2.4.6", "mcp==2.3.0"))
AIDER = Pin("aider", "pypi", ("aider-chat==0.86.2",))
GPTME = Pin("gptme", "pypi", ("gptme==0.35.1",))

OF_CHECKS = (CODEX, CLAUDE_CODE, PI, AI_SDK, COMPATCANARY)
