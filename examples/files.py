"""An agent for the files of one folder: it lists, searches and reads; it writes only what you approve.

Run it:  python examples/files.py FOLDER "Which file has the word total in it?"
         python examples/files.py FOLDER "Write a README." http://127.0.0.1:8080
"""

import asyncio
import sys
from pathlib import Path

from forge import Agent, Approved, Ask, Rejected
from forge.agent import file_tools
from forge.connection import AnyBackend
from stages.events import CallsAccepted, Stamped


def show(stamped: Stamped) -> None:
    """Print each call as it is made."""
    if isinstance(stamped.event, CallsAccepted):
        for call in stamped.event.calls:
            print(f"  {call.name} {call.arguments}")


async def ask(question: Ask) -> Approved | Rejected:
    """Show the call to the person at the terminal."""
    said = await asyncio.to_thread(input, f"  {question.call.name} {question.call.arguments}\n  run it? [y/N] ")
    return Approved(digest=question.digest) if said == "y" else Rejected(digest=question.digest, reason="not now")


async def main(folder: Path, request: str, backend: AnyBackend) -> object:
    """Have the agent work on the request; nothing outside the folder can be reached."""
    agent = Agent(
        "files",
        backend=backend,
        tools=file_tools(folder, commands=False),
        on_text="respond",
        instructions="You work on the files of a folder. Look before you answer.",
    )
    return (await agent.process(request, ask=ask, on_event=show)).unwrap().value


if __name__ == "__main__":
    where, said, *address = sys.argv[1:] or [".", "Which files are here?"]
    print(asyncio.run(main(Path(where), said, *(address or ["local"]))))
