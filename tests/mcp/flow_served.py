"""A workflow that `forge mcp` serves in tests; it prints where only the protocol may be."""

import asyncio
import subprocess
from pathlib import Path

from forge import Agent, Workflow, tool
from stages.effect import NeedsInput

print("this file prints while it is imported")


@tool(effect="read")
def look(what: str) -> str:
    """Look something up."""
    print(f"looking up {what}")
    subprocess.run(["echo", "a program prints too"], check=True)  # noqa: S607
    return f"{what}: 42"


@tool(effect="read")
async def wait(where: str) -> None:
    """Wait, and write that file when that is cancelled."""
    try:
        await asyncio.sleep(3600)
    finally:
        Path(where).touch()


@tool
def ask(question: str) -> NeedsInput:
    """Ask the user."""
    return NeedsInput(question=question, suggestions=("red", "blue"))


@tool
def report(text: str) -> dict[str, str]:
    """Report to the user."""
    return {"reported": text}


agent = Agent("helper", backend="http://127.0.0.1:9")
workflow = Workflow("the desk!", tools=[look, wait, ask, report], terminal_tool=["ask", "report"])
