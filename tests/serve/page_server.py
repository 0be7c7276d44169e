"""A server of runs for the tests of the page, on a port of its own, with a model that does what the message says.

It looks an order up and has a refund approved. With `early` in the message it tries to finish first and is corrected;
with `hang` it writes half of its first reply and waits; with `away` it gives no answer the first time; with `ask` it
ends with a question; with `stuck` its refund never comes back. `python -m tests.serve.page_server` serves it on port
8082, to be looked at.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGTERM
from subprocess import PIPE
from tempfile import mkdtemp

from msgspec.structs import replace

from forge import Calls, Limits, Workflow, call, tool
from forge.agent import Agent, agent_tool
from forge.callbacks import OnChunk, Watcher
from forge.connection import Connection, Setup
from forge.serve import RunServer, ServeOptions
from stages.effect import Fault, NeedsInput, Replied, Reply, Send, Undelivered, Usage
from stages.wire.deltas import reply_pieces

ROOT = Path(__file__).parents[2]

HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script> \u202egnp.exe\u202c zero\u200bwidth tag\U000e0041 "
    "\x1b[31mred\x07 </textarea></script> e\u0301\u0301\u0301\u0301\u0301"
)
"""Markup, a script, text turned round, and what cannot be seen."""


@tool(effect="read")
def get_order(order_id: str) -> dict[str, str | float]:
    """Look up an order's customer_id and total.

    Args:
        order_id: Such as X-99.
    """
    return {"customer_id": "C-204", "total": 129.9}


@tool(approval=True)
async def refund(order_id: str, amount: float, note: str) -> str:
    """Pay an amount back to the customer.

    Args:
        order_id: Such as X-99.
        amount: In euros.
        note: What the customer reads.
    """
    if "stuck" in note:
        await asyncio.Event().wait()
    return f"refunded {amount}. {'The receipt. ' * 200 if 'long' in note else ''}"


@tool(idempotent=True)
def finish(note: str) -> str:
    """Tell the user what was done."""
    return f"Done: {note}"


@tool
def ask_back(question: str) -> NeedsInput:
    """Ask the user something."""
    return NeedsInput(question=question, suggestions=("A-17", "B-42"))


desk = Workflow(
    "desk",
    tools=[get_order, refund, finish],
    required_steps=["get_order", "refund"],
    terminal_tool="finish",
    system_prompt="You look orders up, and refund those that qualify.",
    calls=Calls(in_doubt="ask"),
    limits=Limits(max_iterations=12, max_tokens=20_000),
)
inquiry = Workflow(
    "inquiry",
    tools=[get_order, ask_back, finish],
    terminal_tool=["finish", "ask_back"],
    system_prompt="You answer {who}.",
    limits=Limits(max_iterations=5),
)


class Model:
    """The model. What hangs goes on when it is released."""

    def __init__(self) -> None:
        self.released, self.asked = asyncio.Event(), set[str]()

    def reply(self, effect: Send) -> Reply:
        """What it says: by what the user asked for, and by how many results there are."""
        body = json.loads(effect.request.body)
        asked = [one["content"] for one in body["messages"] if one["role"] == "user"]
        results = [one["content"] for one in body["messages"] if one["role"] == "tool"]
        done = [text for text in results if "customer_id" in text or "refunded" in text or "Rejected" in text]
        tools = [one["function"]["name"] for one in body.get("tools", ())]
        if "task_completion" in tools:  # an agent: it asks its tool, then tells what came of it
            if body["messages"][-1]["role"] == "tool":
                return Reply(text=f"I was told: {results[-1]}", usage=Usage(prompt=50, completion=9, cached=0))
            return call("get_order", order_id="A-17") if "get_order" in tools else call("expert", task=asked[-1])
        first = asked[0]
        text, thought = "I look the order up, then I see what is left to do.", "The user wants an order looked up."
        if "ask" in first and len(asked) == 1:
            made = call("ask_back", question="Which order do you mean?")
        elif "early" in first and not results:
            made = call("finish", note="nothing yet")
        elif not done:
            made = call("get_order", order_id="A-17")
        elif "refund" in {one["function"]["name"] for one in body["tools"]} and len(done) == 1:
            note = HOSTILE if "hostile" in first else f"Sorry about that. {first}"
            made, thought = call("refund", order_id="A-17", amount=129.9, note=note), ""
            text = HOSTILE if "hostile" in first else "It qualifies for a refund."
        else:
            made, text, thought = call("finish", note=asked[-1].split()[-1]), "", ""
        size = len(effect.request.body) // 4
        return replace(made, text=text, reasoning=thought, usage=Usage(prompt=size, completion=24, cached=size // 2))

    async def send(self, effect: Send) -> Replied | Undelivered:
        """The whole reply."""
        if b"away" in effect.request.body and "away" not in self.asked:
            self.asked.add("away")
            return Undelivered(fault=Fault(kind="unreachable", detail="nobody is there"))
        if b"hang" in effect.request.body:
            await self.released.wait()
        return Replied(reply=self.reply(effect), seconds=0.8)

    async def stream(self, effect: Send, on_chunk: OnChunk) -> Replied | Undelivered:
        """The reply in pieces: the first half of them, and the rest when it is released."""
        watcher, pieces = Watcher(on_chunk), reply_pieces(self.reply(effect))
        half = len(pieces) // 2
        for piece in pieces[:half]:
            await watcher.see(piece)
        replied = await self.send(effect)
        for piece in pieces[half:]:
            await watcher.see(piece)
        return replied

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Reach it."""
        yield Connection(Setup(model="player", context_tokens=8192), self.send, self.stream)


expert = Agent("expert", backend=Model(), tools=[get_order])
clerk = Agent("clerk", backend=Model(), tools=[agent_tool(expert, description="Ask an expert on orders.")])


class Serving:
    """The server in a process of its own; it can be stopped and started again on the same port and database."""

    def __init__(self, folder: Path, keys: Path | None = None) -> None:
        self._command = [sys.executable, "-m", "tests.serve.page_server", str(folder)]
        self._keys = [str(keys)] if keys else []
        self._port = "0"
        self.start()

    def start(self) -> None:
        """Begin to serve."""
        command = [*self._command, self._port, *self._keys]
        self._process = subprocess.Popen(command, cwd=ROOT, text=True, stdin=PIPE, stdout=PIPE)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self._port = self.url.rpartition(":")[2]

    def stop(self) -> None:
        """Stop; runs under way are left as they are."""
        self._process.send_signal(SIGTERM)
        self._process.communicate()

    def release(self) -> None:
        """Let what hangs go on, now and later."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()


async def serve(folder: Path, port: int, keys: Path | None) -> None:
    """Serve until a signal comes; a line at the standard input releases the model."""
    model, loop = Model(), asyncio.get_running_loop()
    options = ServeOptions(port=port, keys=keys, grace=0.1)
    async with RunServer([desk, inquiry, clerk], database=folder / "runs.db", backend=model, options=options) as server:
        loop.add_signal_handler(SIGTERM, server.stop)
        loop.add_reader(sys.stdin, lambda: model.released.set() if sys.stdin.readline() else loop.remove_reader(0))
        print(server.url, flush=True)
        await server.stopped()


if __name__ == "__main__":
    match sys.argv[1:]:
        case [folder, port, *keys]:
            asyncio.run(serve(Path(folder), int(port), Path(keys[0]) if keys else None))
        case _:
            asyncio.run(serve(Path(mkdtemp()), 8082, None))
