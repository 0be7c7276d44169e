"""A program with an agent that hangs in the middle of its second message, to be killed; started again, it goes on."""

import asyncio
import sys
from pathlib import Path

from forge import tool
from forge.agent import Agent
from forge.agent.memory import Session, SQLiteStore
from forge.interpreters.scripted import Scripted, call


def agent(folder: Path, model: Scripted) -> Agent:
    """The agent of every start of the program."""

    @tool
    def pay(amount: float) -> str:
        """Pay, say so, and wait for ever."""
        with (folder / "paid").open("a") as file:
            file.write(f"{amount}\n")
        print("paid", flush=True)
        sys.stdin.read()
        return "paid"

    memory = Session(SQLiteStore(folder / "memory.db"), "killed")
    return Agent("killed", backend=model, tools=[pay], memory=memory)


async def first(folder: Path) -> None:
    """Two messages, the second of which never ends."""
    working = agent(folder, Scripted(["I am Ann.", call("pay", amount=7)]))
    await working.process("Who are you?")
    await working.process("Pay 7.")


if __name__ == "__main__":
    asyncio.run(first(Path(sys.argv[1])))
