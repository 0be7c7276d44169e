"""A server of runs in a process of its own, for `test_restart.py`: it prints its address, and ends by SIGTERM.

While there is a file `hold` in its folder, what writes does not come back.
"""

import asyncio
import json
import signal
import sys
from pathlib import Path

from forge import Calls, Workflow, call, tool
from forge.durable import Rhythm
from forge.serve import RunServer, ServeOptions
from stages.effect import Reply, Send
from tests.durable.till import Answering

FOLDER = Path(sys.argv[1])


@tool(effect="read")
def look(page: int) -> str:
    """Read a page."""
    return f"page {page}"


@tool
async def write(text: str) -> str:
    """Write."""
    with (FOLDER / "written").open("a") as file:
        file.write(text + "\n")
    if (FOLDER / "hold").exists():
        await asyncio.Event().wait()
    return "written"


@tool(idempotent=True)
def finish(note: str) -> str:
    """Finish."""
    return note


flow = Workflow(
    "flow",
    tools=[look, write, finish],
    required_steps=["look", "write"],
    terminal_tool="finish",
    calls=Calls(in_doubt="ask"),
)
SCRIPT = [call("look", page=1), call("write", text="a line"), call("finish", note="all done")]


async def answer(effect: Send) -> Reply:
    """Goes by the results that it is shown."""
    messages = json.loads(effect.request.body)["messages"]
    results = [one for one in messages if one["role"] == "tool" and not one["content"].startswith("[")]
    return SCRIPT[len(results)]


async def main() -> None:
    options = ServeOptions(port=0, grace=0.1)
    rhythm = Rhythm(heartbeat=0.2, dead_after=1.0)
    model = Answering(answer)
    async with RunServer(flow, database=FOLDER / "runs.db", backend=model, options=options, rhythm=rhythm) as server:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stop)
        print(server.url, flush=True)
        await server.stopped()


if __name__ == "__main__":
    asyncio.run(main())
