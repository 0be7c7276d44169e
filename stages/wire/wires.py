"""The wires as values: what a stage or an interpreter must know of a protocol to speak it."""

from collections.abc import Callable

from msgspec import Raw, Struct

from stages.effect import Fault, Reply
from stages.message import History
from stages.tool import ToolSpec
from stages.wire import anthropic, constrained, ollama, openai, valid


class Wire(Struct, frozen=True, kw_only=True):
    """A protocol. `path` is where requests go, below the server's base address.

    `head` and `tail` are the fields of a request before and after its messages; `head` is given the history, because
    some protocols keep the system prompt there. `tail` is given the tools and the bare JSON Schema of the reply.
    """

    name: str
    path: str
    head: Callable[[str, openai.Sampling, History], Raw]
    tools: Callable[[tuple[ToolSpec, ...]], Raw]
    messages: Callable[[History], tuple[Raw, ...]]
    tail: Callable[[Raw | None, Raw | None], Raw]
    decode: Callable[[bytes], Reply | Fault]


def _openai_tail(tools: Raw | None, schema: Raw | None) -> Raw:
    return openai.tail(tools, None if schema is None else constrained.response_format(schema))


def _anthropic_tail(tools: Raw | None, schema: Raw | None) -> Raw:
    if schema is not None:
        raise ValueError("the Messages API takes no JSON Schema of the reply; use the mode native or prompted")
    return anthropic.tail(tools)


OPENAI = Wire(
    name="openai",
    path="/chat/completions",
    head=lambda model, sampling, _: openai.head(model, sampling),
    tools=openai.encode_tools,
    messages=lambda history: openai.encode_messages(openai.encode_history(valid.repaired(history))),
    tail=_openai_tail,
    decode=openai.decode_reply,
)
OLLAMA = Wire(
    name="ollama",
    path="/api/chat",
    head=lambda model, sampling, _: ollama.head(model, sampling),
    tools=ollama.encode_tools,
    messages=lambda history: ollama.encode_messages(ollama.encode_history(history)),
    tail=ollama.tail,
    decode=ollama.decode_reply,
)
ANTHROPIC = Wire(
    name="anthropic",
    path="/messages",
    head=lambda model, sampling, history: anthropic.head(model, sampling, anthropic.system_text(history)),
    tools=anthropic.encode_tools,
    messages=lambda history: openai.encode_messages(anthropic.encode_history(history)),
    tail=_anthropic_tail,
    decode=anthropic.decode_reply,
)
WIRES = {wire.name: wire for wire in (OPENAI, OLLAMA, ANTHROPIC)}
