"""A request's options for a backend of another protocol: what that protocol has, in its own words.

The tools that are demanded have a field of their own (`wires.demanding`). Options that the backend has not are dropped:
a client of one protocol does not know which.
"""

from collections.abc import Mapping
from typing import assert_never

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import asdict, replace

from stages.wire import constrained
from stages.wire.anthropic import messages as anthropic
from stages.wire.constrained import Constrain
from stages.wire.sampling import Sampling
from stages.wire.served import Format, ServerRequest
from stages.wire.wires import Wire

_OBJECT = Raw(b'{"type":"object"}')

_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
"""How much thought Anthropic's API can be asked for."""


def translated_sampling(request: ServerRequest, wire: Wire) -> Sampling:
    """The options of a reply for that backend; how much it is to think, and that it makes one call, are in `extra`.

    So is the form of the text for Anthropic's API; for others it is `format_field`.
    """
    names: Mapping[str, str] = anthropic.OPTION_NAMES if wire.name == "anthropic" else wire.dialect.option_names
    given = asdict(request.sampling)
    lacks = {name: UNSET for name, own in names.items() if own == "" and name in given}
    return replace(request.sampling, **lacks, extra={**request.sampling.extra, **_extra(request, wire)})


def _extra(request: ServerRequest, wire: Wire) -> dict[str, object]:
    one = bool(request.tools) and not request.parallel
    effort = request.thinking.effort
    match wire.name:
        case "openai":
            thought = {"reasoning_effort": effort} if effort else {}
            return {**thought, **({"parallel_tool_calls": False} if one else {})}
        case "anthropic":
            config = {**({"effort": effort} if effort in _EFFORTS else {}), **_output_format(request)}
            output = {"output_config": config} if config else {}
            # A demand of a call is a `tool_choice` of its own.
            alone = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
            return {**output, **(alone if one and request.choice.mode == "auto" else {})}
        case "ollama":
            # Models that cannot think refuse to be told to, but not to be told not to.
            return {"think": False} if effort == "none" or request.thinking.wanted is False else {}
        case other:
            assert_never(other)


def _output_format(request: ServerRequest) -> dict[str, object]:
    """Anthropic's API keeps the text to a schema; it has no word for any object at all."""
    if request.format is None or request.format.schema is None:
        return {}
    return {"format": {"type": "json_schema", "schema": request.format.schema}}


def format_field(form: Format, wire: Wire) -> bytes:
    """The field of a request that asks for a text of that form; empty for Anthropic's API: see translated_sampling."""
    if wire.name == "anthropic":
        return b""
    match wire.dialect.constrain:
        case "json_object" | "format" | "structured_outputs" | "guided_json" as way:
            return constrained.field(form.schema or _OBJECT, way)
        case "none" | "json_schema" | "strict":
            # Chat completions have the field, whether or not forge would have calls constrained by it.
            return b'"response_format":' + msgspec.json.encode(_response_format(form, wire.dialect.constrain))
        case other:
            assert_never(other)


def _response_format(form: Format, way: Constrain) -> dict[str, object]:
    # LM Studio takes a schema, but no `json_object`.
    if form.schema is None and way != "json_schema":
        return {"type": "json_object"}
    strict = {"strict": True} if form.strict else {}
    schema = {"name": form.name or "answer", "schema": form.schema or _OBJECT, **strict}
    return {"type": "json_schema", "json_schema": schema}
