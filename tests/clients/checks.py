"""The eleven checks: five families of clients, each told to run a command, then to say the model's last word."""

import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from msgspec import Struct

from tests.clients import agents, pins, rows
from tests.clients.agents import Agent, Job
from tests.clients.layers import ASK
from tests.clients.pins import Pin
from tests.clients.sandbox import Invocation
from tests.clients.script import LAST_WORD

HERE = Path(__file__).parent


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


def _agent(agent: Agent, name: str = "") -> Check:
    """A coding agent with a job of one command."""

    def invocation(url: str) -> Invocation:
        return agent.invocation(Job(url, ASK), agent.pin.programs)

    return Check(name or "one command", agent.pin.name, agent.pin.version, invocation)


def _pi(api: str, root: str) -> Check:
    return _agent(Agent(pins.PI, lambda job, programs: agents.pi(job, programs, api, root)), api)


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
        return Invocation(scan, {"OPENAI_API_KEY": agents.KEY})

    return Check("seven probes", pin.name, pin.version, invocation, "Required compatibility: PASS")


CHECKS = (
    _library("openai"),
    _library("anthropic"),
    _agent(agents.AGENTS["codex"]),
    _agent(agents.AGENTS["claude-code"]),
    _pi("openai-completions", "/v1"),
    _pi("openai-responses", "/v1"),
    _pi("anthropic-messages", ""),
    _ai_sdk("compatible"),
    _ai_sdk("anthropic"),
    _ai_sdk("responses"),
    _compatcanary(pins.COMPATCANARY),
)
