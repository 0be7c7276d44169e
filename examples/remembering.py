"""An agent with a memory: what was said is in a SQLite file, and so are facts that outlive the conversation.

Run it twice, and it knows you:  python examples/remembering.py "My name is Ada, and I drink tea."
                                 python examples/remembering.py "What do I drink?"
A second argument is a server's address, in place of the small model in this process.
"""

import asyncio
import sys

from forge import Agent
from forge.agent.memory import Facts, Session, SQLiteStore
from forge.connection import AnyBackend


async def main(store: SQLiteStore, message: str, backend: AnyBackend = "local") -> object:
    """The agent's answer; a killed program goes on with the same conversation."""
    facts = Facts(store, "ada")
    if message.startswith("Remember: "):
        await facts.remember(message.removeprefix("Remember: "))
    agent = Agent(
        "helper",
        backend=backend,
        instructions="You answer in one short sentence.",
        memory=Session(store, "monday"),  # another name is another conversation
        facts=facts,  # those that share words with a message are shown with it
    )
    return (await agent.process(message)).unwrap().value


if __name__ == "__main__":
    said, *address = sys.argv[1:] or ["My name is Ada, and I drink tea."]
    print(asyncio.run(main(SQLiteStore("memory.db"), said, *address)))
