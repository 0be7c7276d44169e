"""The coding agents: how each is told its server, its model and its job, without a person at the keyboard."""

import json
from collections.abc import Callable
from pathlib import Path

import tomli_w
from msgspec import Struct

from tests.clients import pins
from tests.clients.pins import Pin
from tests.clients.sandbox import Invocation

MODEL = "qwen2.5-coder-1.5b"
"""A neutral name: some agents send other tools to models that are named like a vendor's newest."""
CONTEXT = 32_768
OUTPUT = 1_024
KEY = "dummy"


PROMPT = (
    "You are a coding agent in a terminal. Use the tools to do what the user asks. "
    "When it is done, say in one sentence what you did or what you found."
)


class Job(Struct, frozen=True):
    """The server's address, without `/v1`, and what is asked.

    `brief`: with few tools and PROMPT, where the agent has options for that: all of a small model's context would
    otherwise be the agent's own prompt.
    """

    url: str
    ask: str
    brief: bool = False


class Agent(Struct, frozen=True):
    pin: Pin
    invocation: Callable[[Job, Path], Invocation]
    """Of a job, and the folder of the agent's programs."""


def pi(job: Job, programs: Path, api: str = "openai-completions", root: str = "/v1") -> Invocation:
    """It speaks all three protocols: `api`, at the address with that `root`."""
    model = {"id": MODEL, "contextWindow": CONTEXT, "maxTokens": OUTPUT}
    provider = {"baseUrl": f"{job.url}{root}", "api": api, "apiKey": KEY, "models": [model]}
    return Invocation(
        (f"{programs}/pi", "--offline", "--provider", "local", "--model", MODEL, "--print", job.ask),
        home={".pi/agent/models.json": json.dumps({"providers": {"local": provider}})},
    )


def _mini(job: Job, programs: Path) -> Invocation:
    told = ("--yolo", "--exit-immediately", "--output", "/tmp/trajectory.json")  # noqa: S108 - of the sandbox
    environment = {
        "OPENAI_API_KEY": KEY,
        "OPENAI_API_BASE": f"{job.url}/v1",
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    return Invocation((f"{programs}/mini", "--model", f"openai/{MODEL}", "--task", job.ask, *told), environment)


def _continue(job: Job, programs: Path) -> Invocation:
    model = {"name": "local", "provider": "openai", "model": MODEL, "apiBase": f"{job.url}/v1", "apiKey": KEY}
    told = {"contextLength": CONTEXT, "maxTokens": OUTPUT}
    config = {
        "name": "local",
        "version": "1.0.0",
        "schema": "v1",
        "models": [{**model, "roles": ["chat", "edit", "apply"], "defaultCompletionOptions": told}],
    }
    return Invocation(
        ("sh", "-c", f'exec {programs}/cn --config "$HOME/config.yaml" --auto -p "$0"', job.ask),
        {"CONTINUE_TELEMETRY_ENABLED": "0"},
        home={"config.yaml": json.dumps(config)},  # JSON is YAML
    )


def _gptme(job: Job, programs: Path) -> Invocation:
    brief = ("--system", PROMPT, "--tools", "shell,read,save,patch", "--no-workspace") if job.brief else ()
    told = ("--model", f"local/{MODEL}", "--tool-format", "tool", "--non-interactive")
    return Invocation(
        (f"{programs}/gptme", *told, *brief, job.ask),
        {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{job.url}/v1"},
    )


def _cline(job: Job, programs: Path) -> Invocation:
    cline = f"{programs}/cline"
    sign_in = f"{cline} auth -p openai -k {KEY} -m {MODEL} -b {job.url}/v1 >/dev/null 2>&1"
    brief = ("--system", PROMPT) if job.brief else ()
    return Invocation(
        ("sh", "-c", f'{sign_in}; exec {cline} -P openai -m {MODEL} -k {KEY} "$@"', "sh", *brief, job.ask)
    )


def _opencode(job: Job, programs: Path) -> Invocation:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "local",
        "options": {"baseURL": f"{job.url}/v1", "apiKey": KEY},
        "models": {MODEL: {"name": MODEL, "limit": {"context": CONTEXT, "output": OUTPUT}}},
    }
    config: dict[str, object] = {"provider": {"local": provider}, "model": f"local/{MODEL}"}
    config["permission"] = {"bash": "allow"}
    if job.brief:
        others = ("glob", "grep", "skill", "task", "todowrite", "webfetch")
        config["agent"] = {"build": {"prompt": PROMPT, "tools": dict.fromkeys(others, False)}}
    offline = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return Invocation(
        (f"{programs}/opencode", "run", job.ask),
        {f"OPENCODE_DISABLE_{what}": "1" for what in offline},
        home={".config/opencode/opencode.json": json.dumps(config)},
    )


def _codex(job: Job, programs: Path) -> Invocation:
    provider = {"name": "local", "base_url": f"{job.url}/v1", "env_key": "LOCAL_KEY", "wire_api": "responses"}
    config: dict[str, object] = {
        "model": MODEL,
        "model_provider": "local",
        "model_context_window": CONTEXT,
        "check_for_update_on_startup": False,
        "analytics": {"enabled": False},
        "model_providers": {"local": provider},
    }
    home = {".codex/brief.md": PROMPT}
    if job.brief:
        config["model_instructions_file"] = "brief.md"
        config["features"] = dict.fromkeys(("multi_agent", "goals", "apps", "plugins"), False)
    free = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    return Invocation(
        (f"{programs}/codex", "exec", *free, job.ask),
        {"LOCAL_KEY": KEY},
        home=home | {".codex/config.toml": tomli_w.dumps(config)},
    )


def _claude_code(job: Job, programs: Path) -> Invocation:
    brief = ("--system-prompt", PROMPT, "--tools=Bash,Read,Edit") if job.brief else ()
    return Invocation(
        (f"{programs}/claude", "--print", job.ask, "--model", MODEL, "--dangerously-skip-permissions", *brief),
        {
            "ANTHROPIC_BASE_URL": job.url,
            "ANTHROPIC_AUTH_TOKEN": KEY,
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(OUTPUT),
            "DISABLE_TELEMETRY": "1",
        },
    )


def _qwen_code(job: Job, programs: Path) -> Invocation:
    settings = {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}
    few = ("--core-tools=run_shell_command", "--core-tools=read_file", "--core-tools=edit")
    brief = ("--system-prompt", PROMPT, *few) if job.brief else ()
    return Invocation(
        (f"{programs}/qwen", "--auth-type", "openai", "--yolo", *brief, "--prompt", job.ask),
        {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{job.url}/v1", "OPENAI_MODEL": MODEL},
        home={".qwen/settings.json": json.dumps(settings)},
    )


def _copilot(job: Job, programs: Path) -> Invocation:
    brief = ("--available-tools=bash,view,edit", "--no-custom-instructions") if job.brief else ()
    return Invocation(
        (f"{programs}/copilot", "--prompt", job.ask, "--allow-all-tools", *brief),
        {
            "COPILOT_PROVIDER_BASE_URL": f"{job.url}/v1",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_MODEL": MODEL,
            "COPILOT_OFFLINE": "true",
        },
    )


AGENTS = {
    agent.pin.name: agent
    for agent in (
        Agent(pins.PI, pi),
        Agent(pins.CONTINUE, _continue),
        Agent(pins.CODEX, _codex),
        Agent(pins.CLAUDE_CODE, _claude_code),
        Agent(pins.OPENCODE, _opencode),
        Agent(pins.MINI, _mini),
        Agent(pins.GPTME, _gptme),
        Agent(pins.COPILOT, _copilot),
        Agent(pins.QWEN_CODE, _qwen_code),
        Agent(pins.CLINE, _cline),
    )
}
