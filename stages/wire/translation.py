"""A request's options for a backend of another protocol: what that protocol has, in its own words.

The tools that are demanded and the form of the text have fields of their own (`wires.demanding`, `Wire.tail`). Options
that the backend has not are dropped: a client of one protocol does not know which.
"""

from collections.abc import Mapping
from typing import assert_never

from msgspec import UNSET
from msgspec.structs import asdict, replace

from stages.wire.anthropic import messages as anthropic
from stages.wire.sampling import Sampling
from stages.wire.served import ServerRequest
from stages.wire.wires import Wire

_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
"""How much thought Anthropic's API can be asked for."""


def translated_sampling(request: ServerRequest, wire: Wire) -> Sampling:
    """The options of a reply for that backend; how much it is to think, and that it makes one call, are in `extra`."""
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
            thinking = {"output_config": {"effort": effort}} if effort in _EFFORTS else {}
            # A demand of a call is a `tool_choice` of its own.
            alone = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
            return {**thinking, **(alone if one and request.choice.mode == "auto" else {})}
        case "ollama":
            # Models that cannot think refuse to be told to, but not to be told not to.
            return {"think": False} if effort == "none" or request.thinking.wanted is False else {}
        case other:
            assert_never(other)
