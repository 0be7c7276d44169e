"""Tools of Anthropic's API and the choice among them, read as a server.

A deferred tool is offered once a result refers to it. Tools of other types are run by the API itself, or have no schema
but in the model that was trained on them: they have no noun.
"""

from collections.abc import Container

import msgspec
from msgspec import Raw, Struct

from stages.wire.request_body import Refused, distinct, kept, offered, read_part, spec
from stages.wire.served import Choice, Foreign, OfferedTool


class SentTool(Struct):
    """A tool of any type; the client's own are of none, or `custom`."""

    type: str | None = None
    name: str = ""
    description: str | None = None
    input_schema: Raw = Raw(b"null")
    strict: bool | None = None
    defer_loading: bool | None = None


class SentChoice(Struct):
    """Which calls may be made, and whether several."""

    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


_tools = msgspec.json.Decoder(list[SentTool] | None)


def decode_tools(tools: Raw, referenced: Container[str]) -> tuple[tuple[OfferedTool, ...], tuple[Foreign, ...]]:
    """The tools that the client will run, and those of other types."""
    known, deferred, foreign = _decoded(tools)
    if not deferred:
        return known, foreign
    return tuple(t for t in known if t.spec.name not in deferred or t.spec.name in referenced), foreign


@kept
def _decoded(tools: bytes) -> tuple[tuple[OfferedTool, ...], frozenset[str], tuple[Foreign, ...]]:
    """All tools, the names of those that are deferred, and those of other types."""
    known: list[OfferedTool] = []
    foreign: list[Foreign] = []
    listed = read_part(_tools, tools, "tools") or ()
    for number, tool in enumerate(listed):
        at = f"tools[{number}]"
        if tool.type not in (None, "custom"):
            foreign.append(Foreign(at=at, kind=(tool.type or "")[:50], fate="dropped"))
            continue
        made = OfferedTool(spec=spec(tool.name, tool.description, tool.input_schema), strict=bool(tool.strict))
        known.append(offered(made, at, parameters="input_schema"))
    deferred = frozenset(tool.name for tool in listed if tool.defer_loading)
    return distinct(known), deferred, tuple(foreign)


def decode_choice(choice: SentChoice | None) -> Choice:
    """Which calls are allowed or demanded. Refused for a type that is none."""
    match choice:
        case None | SentChoice(type="auto"):
            return Choice()
        case SentChoice(type="none"):
            return Choice(mode="none")
        case SentChoice(type="any"):
            return Choice(mode="required")
        case SentChoice(type="tool", name=str() as name):
            return Choice(mode="required", tools=(name,))
        case SentChoice(type="tool"):
            raise Refused("it is missing", "tool_choice.name")
        case SentChoice(type=kind):
            raise Refused(f"it is {kind[:50]!r}; it must be auto, any, tool or none", "tool_choice.type")
