"""The baseline of every ratio: the loop with no framework, httpx and msgspec alone.

Each turn encodes the whole history, as a plain reading of the protocol asks. Arguments are decoded into their
types, and nothing else is checked. In the mode `stub` the replies lie ready as bytes.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Literal

import httpx
import msgspec
from _aio import wait
from msgspec import Raw, Struct
from replies import scripted
from workload import SYSTEM, TOOLS, USER, openai_tools

MODES = ("http", "stub")
TERMINAL = "text"
IMPORT = "import httpx, msgspec"


class Function(Struct):
    name: str
    arguments: str


class Call(Struct):
    id: str
    function: Function
    type: Literal["function"] = "function"


class Message(Struct, omit_defaults=True):
    role: str
    content: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None


class Choice(Struct):
    message: Message


class Completion(Struct):
    choices: list[Choice]


class Request(Struct):
    model: str
    messages: list[Message]
    tools: Raw


class Search(Struct):
    query: str
    limit: int


class Fetch(Struct):
    doc_id: int
    section: str


class Compute(Struct):
    a: float
    b: float
    op: str


Arguments = Search | Fetch | Compute
ARGUMENTS: dict[str, msgspec.json.Decoder[Search] | msgspec.json.Decoder[Fetch] | msgspec.json.Decoder[Compute]] = {
    "search": msgspec.json.Decoder(Search),
    "fetch": msgspec.json.Decoder(Fetch),
    "compute": msgspec.json.Decoder(Compute),
}
HEADERS = {"content-type": "application/json"}
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Completion).decode
tools = Raw(encode(openai_tools(*TOOLS)))

Model = Callable[[list[Message]], Awaitable[bytes]]


class Peer:
    """The client, open as long as the worker."""

    client = httpx.AsyncClient(timeout=120)
    url = ""


def setup(base_url: str) -> None:
    Peer.url = f"{base_url}/chat/completions"


def over_http(name: str) -> Model:
    async def ask(messages: list[Message]) -> bytes:
        body = encode(Request(name, messages, tools))
        response = await Peer.client.post(Peer.url, content=body, headers=HEADERS)
        response.raise_for_status()
        return response.content

    return ask


def in_process(turns: int) -> Model:
    ready: Iterator[bytes] = scripted(turns, TERMINAL)

    async def ask(_: list[Message]) -> bytes:
        return next(ready)

    return ask


async def loop(ask: Model) -> str | None:
    messages = [Message("system", SYSTEM), Message("user", USER)]
    while True:
        said = decode(await ask(messages)).choices[0].message
        messages.append(said)
        if not said.tool_calls:
            return said.content
        for call in said.tool_calls:
            arguments: Arguments = ARGUMENTS[call.function.name].decode(call.function.arguments)
            result = TOOLS[call.function.name](**msgspec.structs.asdict(arguments))
            messages.append(Message("tool", result, tool_call_id=call.id))


def run(turns: int, model: str, mode: str) -> None:
    wait(loop(over_http(model) if mode == "http" else in_process(turns)))
