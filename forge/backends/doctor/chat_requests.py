"""Chat requests of the doctor, written and read by forge's own codecs, so that what is tried is what a run sends."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from forge.backends.doctor.facts import Facts, Question
from forge.backends.profile import named_profile
from forge.backends.questions import ServerAnswer, decoded
from stages.effect import Reply, Request
from stages.message import History, System, User
from stages.repair.decoding import decode
from stages.rescue import rescue
from stages.rescue.found import FoundCall
from stages.tool import ToolSpec
from stages.wire.deltas import Sampling
from stages.wire.wires import Constrain, Dialect, Wire, wire

WEATHER = ToolSpec(
    name="get_weather",
    description="Get the current weather for a city",
    parameters=Raw(
        b'{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":["celsius","fahrenheit"]}},'
        b'"required":["city","unit"]}'
    ),
    effect="read",
)
SEARCH = ToolSpec(
    name="search_docs",
    description="Full-text search in the documentation",
    parameters=Raw(b'{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}'),
    effect="read",
)
TOOLS = (WEATHER, SEARCH)
_PARAMETERS = {"get_weather": ("city", "unit"), "search_docs": ("query",)}

ASKED = (User(text="What is the weather in Paris, in celsius?"),)
"""What no model knows by itself, and one of the tools does."""

OLLAMA_CONTEXT = 4096
"""Tokens that Ollama is told to make room for: what it takes by itself, so that no model is loaded again for this."""

_THINKING = 8
"""A model that thinks first may write so many times more."""


def spoken(facts: Facts, constrain: Constrain = "json_schema", fields: Mapping[str, object] | None = None) -> Wire:
    """The protocol in which forge speaks to a server of this kind, with further fields in each request."""
    body = dict(fields or {})
    if facts.kind == "ollama":
        context = min(facts.context_tokens or OLLAMA_CONTEXT, OLLAMA_CONTEXT)
        return wire(Dialect(wire="ollama", constrain="format", context_tokens=context, body=body))
    names = named_profile("openai").option_names if facts.kind == "openai" else {}
    return wire(Dialect(constrain=constrain, body=body, option_names=names))


def question(
    facts: Facts,
    history: History = ASKED,
    *,
    tokens: int,
    tools: tuple[ToolSpec, ...] = (),
    schema: Raw | None = None,
    constrain: Constrain = "json_schema",
    fields: Mapping[str, object] | None = None,
) -> Question:
    """A chat request as a run would write it; `fields` are further ones, of which forge itself sends none."""
    protocol = spoken(facts, constrain, fields)
    room = tokens * _THINKING if facts.thinks else tokens
    # OpenAI's newer models take no temperature but their own.
    sampling = Sampling(max_tokens=room) if facts.kind == "openai" else Sampling(temperature=0, max_tokens=room)
    request = Request(
        head=protocol.head(facts.model, sampling, history),
        messages=protocol.messages(history),
        tail=protocol.tail(protocol.tools(tools) if tools else None, schema),
    )
    return Question(path=protocol.path, root=protocol.at_root, body=request.body)


def system(text: str, *rest: User) -> History:
    """A conversation that opens with a system prompt."""
    return (System(text=text), *rest)


def reply(facts: Facts, answer: ServerAnswer) -> Reply | None:
    """The reply that an answer holds; None for an error, and for what is no reply."""
    found = spoken(facts).decode(answer.body) if answer.good else None
    return found if isinstance(found, Reply) else None


def in_text(said: Reply) -> tuple[FoundCall, ...]:
    """The calls that a reply writes as text."""
    return rescue(said.text, _PARAMETERS).calls


class _Timings(Struct):
    cache_n: int = 0


class _Timed(Struct):
    timings: _Timings | None = None


def cached(said: Reply, answer: ServerAnswer) -> int | None:
    """Tokens of the prompt that the server had kept; None where it does not say."""
    timed = decoded(answer.body, _Timed)
    if timed and timed.timings:
        return timed.timings.cache_n
    return said.usage.cached if said.usage and b'"cached_tokens"' in answer.body else None


def json_of(text: str) -> object:
    """The JSON value that a text is; the text itself if it is none."""
    try:
        return decode(msgspec.json.Decoder(), text)
    except msgspec.DecodeError:
        return text
