"""The agent of a chat, connected: one of the user's own, or the default one."""

import argparse
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from msgspec import Struct

from forge.agent import Agent, file_tools
from forge.backends.servers import Progress
from forge.cli.chat.agents_md import project_notes, room
from forge.cli.load import load_agent
from forge.cli.options import backend_of
from forge.errors import ForgeError
from forge.runtime.reaching import Held


class Opened(Struct, frozen=True):
    """An agent whose backend is connected; `told` are sentences about what it was given to read."""

    agent: Agent
    told: tuple[str, ...] = ()


Watch = Callable[[Progress], None]
"""Watches a download."""

OpenAgent = Callable[[str, Watch], AbstractAsyncContextManager[Opened]]
"""Connects an agent to the model of that name; empty: the one of the command line."""

_INSTRUCTIONS = """\
You are a helpful assistant in the terminal of a software developer. Answer briefly, in Markdown."""


def own_agent(options: argparse.Namespace) -> OpenAgent:
    """The agent of the user's file. ForgeError for what is wrong with the file, or options for the default agent."""
    if Path(options.agent).is_dir():
        raise ForgeError(
            f"{options.agent} is a folder; forge chat works in the one you are in: go there and leave the name out. An "
            "agent is written FILE.py:NAME"
        )
    agent = load_agent(options.agent)
    given = {"--backend": options.backend, "--model": options.model, "--profile": options.profile}
    if taken := [name for name, value in given.items() if value]:
        raise ForgeError(f"{taken[0]} is for the default agent; the one in {options.agent} says itself what it runs on")

    @asynccontextmanager
    async def opening(model: str, _: Watch) -> AsyncIterator[Opened]:
        if model:
            raise ForgeError(f"the agent in {options.agent} says itself what it runs on")
        async with agent:
            yield Opened(agent)

    return opening


def default_agent(options: argparse.Namespace) -> OpenAgent:
    """An agent for the working folder, on the backend of the command line."""

    @asynccontextmanager
    async def opening(model: str, watch: Watch) -> AsyncIterator[Opened]:
        asked = argparse.Namespace(**{**vars(options), "backend": options.backend or "local"})
        asked.model = model or options.model
        async with backend_of(asked, watch).connect() as connection:
            folder, size = Path.cwd(), room(connection.setup.context_tokens)
            notes = project_notes(folder, size) if options.agents_md else None
            agent = Agent(
                "chat",
                backend=Held(connection),
                tools=file_tools(folder, shown_chars=size) if options.tools else (),
                instructions=_INSTRUCTIONS,
                # A small model chooses well between tools, and badly between a tool and words (docs/agent.md).
                on_text="respond" if options.tools and connection.setup.mode == "constrained" else "accept",
                background=notes.text if notes else "",
            )
            async with agent:
                yield Opened(agent, (notes.told,) if notes else ())

    return opening
