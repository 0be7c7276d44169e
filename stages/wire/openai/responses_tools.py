"""Tools of OpenAI's Responses and the choice among them, read as a server.

Codex groups tools in namespaces and calls them by both names. The model is shown a tool's own name where no other tool
has it, for that is the shorter; else both.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.wire import custom_tools
from stages.wire.request_body import Refused, distinct, offered, read_part, spec
from stages.wire.served import Choice, Foreign, OfferedTool


class SentTool(Struct):
    """A tool of any type, or a namespace of tools."""

    type: str
    name: str = ""
    description: str | None = None
    parameters: Raw = Raw(b"null")
    strict: bool | None = None
    tools: Raw = Raw(b"null")


class SentName(Struct):
    """A tool by its name."""

    type: str = "function"
    name: str = ""
    namespace: str | None = None


class SentChoice(SentName):
    """A tool by its name, or those that are allowed."""

    mode: str = "auto"
    tools: list[SentName] = []


NamespacedTools = Mapping[tuple[str, str], str]
"""What the model calls a tool, by its namespace and its own name."""

_tools = msgspec.json.Decoder(list[SentTool])


def decode_tools(tools: Raw, at: str) -> Iterator[OfferedTool | Foreign]:
    """The tools of one list, under their own names, and those that another server would run."""
    if bytes(tools) != b"null":
        listed = read_part(_tools, tools, at)
        for number, tool in enumerate(listed):
            yield from _decoded(tool, f"{at}[{number}]", "")


def _decoded(tool: SentTool, at: str, namespace: str) -> Iterator[OfferedTool | Foreign]:
    match tool.type:
        case "function":
            made = OfferedTool(spec=spec(tool.name, tool.description, tool.parameters), strict=bool(tool.strict))
            yield replace(offered(made, at), namespace=namespace, own_name=tool.name)
        case "custom":
            made = OfferedTool(spec=spec(tool.name, tool.description, custom_tools.CUSTOM_PARAMETERS), kind="custom")
            yield replace(offered(made, at), namespace=namespace, own_name=tool.name)
        case "namespace" if not namespace:
            listed = read_part(_tools, tool.tools, f"{at}.tools")
            for number, inner in enumerate(listed):
                yield from _decoded(inner, f"{at}.tools[{number}]", tool.name)
        case kind:
            yield Foreign(at=at, kind=kind[:50], fate="dropped")


def named_tools(tools: Iterable[OfferedTool]) -> tuple[OfferedTool, ...]:
    """The tools as the model is shown them."""
    known = tuple(tools)
    count = Counter(tool.own_name for tool in known)
    return distinct(replace(tool, spec=replace(tool.spec, name=_name(tool, count[tool.own_name]))) for tool in known)


def _name(tool: OfferedTool, bearers: int) -> str:
    return tool.own_name if bearers == 1 or not tool.namespace else f"{tool.namespace.rstrip('_')}__{tool.own_name}"


def names_of(tools: Iterable[OfferedTool]) -> NamespacedTools:
    """What the model calls each tool."""
    return {(tool.namespace, tool.own_name): tool.spec.name for tool in tools}


def decode_choice(choice: str | SentChoice | None, names: NamespacedTools) -> Choice:
    """Which calls are allowed or demanded. Refused for a word that is none, and for a tool without a name."""
    match choice:
        case None | "auto":
            return Choice()
        case "none":
            return Choice(mode="none")
        case "required":
            return Choice(mode="required")
        case str():
            raise Refused(f"it is {choice[:50]!r}; it must be auto, none, required or a tool", "tool_choice")
        case SentChoice(type="allowed_tools", mode="auto" | "required" as mode, tools=allowed):
            mine = (_chosen(each, names) for each in allowed if is_mine(each))
            return Choice(mode="required" if mode == "required" else "auto", tools=tuple(mine))
        case SentChoice(type="allowed_tools"):
            raise Refused("it must be auto or required", "tool_choice.mode")
        case SentChoice():
            return Choice(mode="required", tools=(_chosen(choice, names),)) if is_mine(choice) else Choice()


def is_mine(choice: SentName) -> bool:
    """Whether the choice is of a tool that the client runs."""
    return choice.type in ("function", "custom")


def _chosen(choice: SentName, names: NamespacedTools) -> str:
    if not choice.name:
        raise Refused("it must have a name", "tool_choice")
    given = (choice.namespace or "", choice.name)
    return names.get(given) or next((name for (_, own), name in names.items() if own == choice.name), choice.name)
