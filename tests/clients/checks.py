"""The eleven checks: five families of clients, each told to run a command, then to say the model's last word."""

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import tomli_w
from msgspec import Struct

from tests.clients import pins, rows
from tests.clients.backend import MODEL
from tests.clients.layers import ASK
from tests.clients.pins import Pin
from tests.clients.sandbox import Invocation
from tests.clients.script import LAST_WORD

HERE = Path(__file__).parent
KEY = "dummy"


class Check(Struct, frozen=True):
    """`expect`: what stands in the output of a client that came to its end."""

    name: str
    client: str
    version: str
    invocation: Callable[[str], Invocation]
    """Of the server's address."""
    expect: str = LAST_WORD


def _library(name: str) -> Check:
    """The layers of an official client for Python, as `make test` has it."""

    def invocation(url: str) -> Invocation:
        module = f"tests.clients.{name}_layers"
        return Invocation((sys.executable, "-m", module, url), {"PYTHONPATH": str(rows.ROOT)})

    return Check("all layers", f"{name} (Python)", version(name), invocation)


def _pi(api: str, root: str) -> Check:
    """It speaks all three protocols: `api`, at the address with that `root`."""

    def invocation(url: str) -> Invocation:
        provider = {"baseUrl": f"{url}{root}", "api": api, "apiKey": KEY, "models": [{"id": MODEL}]}
        return Invocation(
            (f"{pins.PI.programs}/pi", "--offline", "--provider", "local", "--model", MODEL, "--print", ASK),
            home={".pi/agent/models.json": json.dumps({"providers": {"local": provider}})},
        )

    return Check(api, pins.PI.name, pins.PI.version, invocation)


def _codex(pin: Pin) -> Check:
    def invocation(url: str) -> Invocation:
        provider = {"name": "local", "base_url": f"{url}/v1", "env_key": "LOCAL_KEY", "wire_api": "responses"}
        config: dict[str, object] = {
            "model": MODEL,
            "model_provider": "local",
            "check_for_update_on_startup": False,
            "analytics": {"enabled": False},
            "model_providers": {"local": provider},
        }
        free = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        return Invocation(
            (f"{pin.programs}/codex", "exec", *free, ASK),
            {"LOCAL_KEY": KEY},
            home={".codex/config.toml": tomli_w.dumps(config)},
        )

    return Check("one command", pin.name, pin.version, invocation)


def _claude_code(pin: Pin) -> Check:
    def invocation(url: str) -> Invocation:
        return Invocation(
            (f"{pin.programs}/claude", "--print", ASK, "--model", MODEL, "--dangerously-skip-permissions"),
            {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_AUTH_TOKEN": KEY,
                "IS_SANDBOX": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_TELEMETRY": "1",
            },
        )

    return Check("one command", pin.name, pin.version, invocation)


def _ai_sdk(provider: str) -> Check:
    pin = pins.AI_SDK

    def invocation(url: str) -> Invocation:
        # It must stand beside its packages.
        command = f'cp "$0" . && ln -s {pin.folder}/node_modules . && exec node ai_sdk.mjs "$@"'
        return Invocation(("sh", "-c", command, str(HERE / "ai_sdk.mjs"), url, provider))

    return Check(provider, "AI SDK", pin.version, invocation)


def _compatcanary(pin: Pin) -> Check:
    """Seven probes of an OpenAI server, without a tool that answers."""

    def invocation(url: str) -> Invocation:
        scan = (f"{pin.programs}/compatcanary", "scan", "--base-url", f"{url}/v1", "--model", "scripted")
        return Invocation(scan, {"OPENAI_API_KEY": KEY})

    return Check("seven probes", pin.name, pin.version, invocation, "Required compatibility: PASS")


CHECKS = (
    _library("openai"),
    _library("anthropic"),
    _codex(pins.CODEX),
    _claude_code(pins.CLAUDE_CODE),
    _pi("openai-completions", "/v1"),
    _pi("openai-responses", "/v1"),
    _pi("anthropic-messages", ""),
    _ai_sdk("compatible"),
    _ai_sdk("anthropic"),
    _ai_sdk("responses"),
    _compatcanary(pins.COMPATCANARY),
)
