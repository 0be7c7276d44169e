"""A client's request for a backend of another protocol: what must be refused, and the options in its terms."""

from typing import assert_never

from msgspec import UNSET, Raw
from msgspec.structs import asdict, replace

from stages.wire import wires
from stages.wire.sampling import Sampling
from stages.wire.server.errors import RequestError
from stages.wire.server.request import ServerRequest, TextFormat
from stages.wire.wires import Wire, demandable


def refusal(request: ServerRequest) -> RequestError | None:
    """Why a backend of another protocol cannot serve the request; None if it can."""
    found = next((foreign for foreign in request.foreign if foreign.fate == "refused"), None)
    if found is None:
        return None
    said = f"{found.at}: the backend of this server does not support {found.kind}; leave it out"
    return RequestError(message=said, param=found.at, code="unsupported_value")


# Options that the backend does not have are dropped: a client of another protocol cannot know which those are.

_OBJECT = Raw(b'{"type":"object"}')

_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
"""The efforts that Anthropic's API accepts."""


def translated_sampling(request: ServerRequest, wire: Wire) -> Sampling:
    """The sampling options for that backend, with the reasoning effort in `extra`.

    For Anthropic's API, `extra` also has the format of the text; for others, see `format_field`.
    """
    given = asdict(request.sampling)
    lacks = {name: UNSET for name, own in wire.option_names.items() if own == "" and name in given}
    return replace(request.sampling, **lacks, extra={**request.sampling.extra, **_extra(request, wire)})


def _extra(request: ServerRequest, wire: Wire) -> dict[str, object]:
    effort = request.thinking.effort
    match wire.name:
        case "openai":
            return {"reasoning_effort": effort} if effort else {}
        case "anthropic":
            config: dict[str, object] = {"effort": effort} if effort in _EFFORTS else {}
            # The API can constrain the text to a schema, but not to JSON without one.
            if request.format is not None and request.format.schema is not None:
                config["format"] = {"type": "json_schema", "schema": request.format.schema}
            return {"output_config": config} if config else {}
        case "ollama":
            # Ollama refuses `think: true` for a model that cannot think, but accepts false for any.
            return {"think": False} if effort == "none" or request.thinking.wanted is False else {}
        case other:
            assert_never(other)


def call_fields(request: ServerRequest, wire: Wire, sampling: Sampling, tools: tuple[str, ...]) -> dict[str, object]:
    """The fields that accompany these tools: a call is required (of the only tool, by name), only one is allowed."""
    required = request.choice.mode == "required" and demandable(wire, sampling)
    name = tools[0] if wire.dialect.tool_choice == "named" and len(tools) == 1 else None
    match wire.name:
        case "openai":
            alone: dict[str, object] = {} if request.parallel else {"parallel_tool_calls": False}
            choice = {"type": "function", "function": {"name": name}} if name else "required"
            return {"tool_choice": choice, **alone} if required else alone
        case "anthropic":
            alone = {} if request.parallel else {"disable_parallel_tool_use": True}
            if not required:
                return {"tool_choice": {"type": "auto", **alone}} if alone else {}
            named = {"type": "tool", "name": name} if name else {"type": "any"}
            return {"tool_choice": {**named, **alone}}
        case "ollama":
            return {}
        case other:
            assert_never(other)


def format_field(form: TextFormat, wire: Wire) -> dict[str, object]:
    """The field of a request for text of that format; empty for Anthropic's API (see `translated_sampling`)."""
    if wire.name == "anthropic":
        return {}
    match wire.dialect.constrain:
        case "json_object" | "format" | "structured_outputs" | "guided_json" as way:
            return wires.field(form.schema or _OBJECT, way)
        case "none" | "json_schema" | "strict":
            # `response_format` is part of chat completions, whether or not forge constrains calls with it. Of the
            # backends with `json_schema`, LM Studio refuses `json_object`, so it gets the schema of any object.
            strict = {"strict": True} if form.strict else {}
            schema = {"name": form.name or "answer", "schema": form.schema or _OBJECT, **strict}
            asked: dict[str, object] = {"type": "json_schema", "json_schema": schema}
            if form.schema is None and wire.dialect.constrain != "json_schema":
                asked = {"type": "json_object"}
            return {"response_format": asked}
        case other:
            assert_never(other)
