"""Tools of chat completions and the choice among them, read as a server."""

import msgspec
from msgspec import Raw, Struct

from stages.wire import custom_tools
from stages.wire.request_body import Refused, distinct, kept, offered, read_part, spec
from stages.wire.served import Choice, Foreign, OfferedTool


class _Function(Struct):
    name: str
    description: str | None = None
    parameters: Raw = Raw(b"null")
    strict: bool | None = None


class _Custom(Struct):
    name: str
    description: str | None = None


class SentTool(Struct):
    """A tool of any kind; those of kinds that forge does not know have neither of the two."""

    type: str = "function"
    function: _Function | None = None
    custom: _Custom | None = None


class _Named(Struct):
    name: str


class SentName(Struct):
    """A tool by its name."""

    type: str = "function"
    function: _Named | None = None
    custom: _Named | None = None


class _Allowed(Struct):
    mode: str = "auto"
    tools: list[SentName] = []


class SentChoice(SentName):
    """A tool by its name, or those that are allowed."""

    allowed_tools: _Allowed | None = None


_tools = msgspec.json.Decoder(list[SentTool] | None)


@kept
def decode_tools(tools: bytes) -> tuple[tuple[OfferedTool, ...], tuple[Foreign, ...]]:
    """The tools that the client will run, and those of other kinds, which another server would."""
    known: list[OfferedTool] = []
    foreign: list[Foreign] = []
    for number, tool in enumerate(read_part(_tools, tools, "tools") or ()):
        at = f"tools[{number}]"
        if (function := tool.function) is not None:
            made = OfferedTool(
                spec=spec(function.name, function.description, function.parameters), strict=bool(function.strict)
            )
            known.append(offered(made, f"{at}.function"))
        elif (custom := tool.custom) is not None:
            made = OfferedTool(
                spec=spec(custom.name, custom.description, custom_tools.CUSTOM_PARAMETERS), kind="custom"
            )
            known.append(offered(made, f"{at}.custom"))
        elif tool.type in ("function", "custom"):
            raise Refused("it is missing", f"{at}.{tool.type}")
        else:
            foreign.append(Foreign(at=at, kind=tool.type[:50], fate="dropped"))
    return distinct(known), tuple(foreign)


def decode_choice(choice: str | SentChoice | None) -> Choice:
    """Which calls are allowed or demanded. Refused for a word or a kind of choice that is none."""
    match choice:
        case None | "auto":
            return Choice()
        case "none":
            return Choice(mode="none")
        case "required":
            return Choice(mode="required")
        case str():
            raise Refused(f"it is {choice[:50]!r}; it must be auto, none, required or a tool", "tool_choice")
        case SentChoice(allowed_tools=_Allowed() as allowed):
            if allowed.mode not in ("auto", "required"):
                raise Refused("it must be auto or required", "tool_choice.allowed_tools.mode")
            names = tuple(map(_name, allowed.tools))
            return Choice(mode="required" if allowed.mode == "required" else "auto", tools=names)
        case SentChoice():
            return Choice(mode="required", tools=(_name(choice),))


def _name(choice: SentName) -> str:
    named = choice.function or choice.custom
    if named is None:
        raise Refused("it must name a function", "tool_choice")
    return named.name
