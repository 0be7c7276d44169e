"""What a request offered is read from the request that forge itself wrote, on every wire and in every mode."""

from typing import Literal

import pytest
from msgspec import Raw

from stages.confidence.measure import offer_of
from stages.message import User
from stages.rules import Rules
from stages.serialize import serialize
from stages.state import Folded, Prepared, State
from stages.tool import ToolSpec
from stages.wire.prompted import JSON, LIST, Form
from stages.wire.target import Mode, Target
from stages.wire.wires import Constrain, Dialect, WireName, wire

ROUTE = ToolSpec(
    name="route",
    description="Route.",
    parameters=Raw(
        b'{"type":"object","properties":{"queue":{"enum":["billing","sales"]},"urgent":{"type":"boolean"},'
        b'"level":{"$ref":"#/$defs/Level"},"note":{"type":"string"}},'
        b'"required":["queue","urgent","level","note"],"additionalProperties":false,'
        b'"$defs":{"Level":{"enum":[1,2,3],"type":"integer"}}}'
    ),
)
READ = ToolSpec(name="read", description="Read.", parameters=Raw(b'{"type":"object","properties":{}}'))
OFFERED = {"queue": ('"billing"', '"sales"'), "urgent": ("true", "false"), "level": ("1", "2", "3")}

Way = tuple[WireName, Constrain, Mode, Form]
WAYS: list[Way] = [
    ("openai", "json_schema", "constrained", JSON),
    ("openai", "strict", "constrained", JSON),
    ("openai", "json_schema", "constrained", LIST),
    ("openai", "json_object", "constrained", JSON),
    ("openai", "structured_outputs", "constrained", JSON),
    ("openai", "guided_json", "constrained", LIST),
    ("ollama", "format", "constrained", JSON),
    ("openai", "none", "native", JSON),
    ("openai", "strict", "native", JSON),
    ("anthropic", "none", "native", JSON),
    ("openai", "none", "prompted", JSON),
]


@pytest.mark.parametrize("way", WAYS, ids=[" ".join((*names, form.name)) for *names, form in WAYS])
def test_tools_and_their_values_are_read_from_the_request(way: Way) -> None:
    name, constrain, mode, form = way
    rules = Rules(tools=(ROUTE, READ))
    write = serialize(
        rules, Target(mode=mode, model="m", wire=wire(Dialect(wire=name, constrain=constrain)), form=form)
    )
    state = State(history=(User(text="go"),), phase=Folded(view=(User(text="go"),)))
    phase = write(state).unwrap().phase
    assert isinstance(phase, Prepared)
    assert offer_of(phase.asked.tail, rules.tools) == {"route": OFFERED, "read": {}}


@pytest.mark.parametrize("shape", ["anyOf", "oneOf"])
def test_a_value_or_null_is_one_of_several_and_an_open_value_is_none(shape: Literal["anyOf", "oneOf"]) -> None:
    parameters = (
        b'{"type":"object","properties":{"a":{"%s":[{"enum":["x"]},{"type":"null"}]},'
        b'"b":{"%s":[{"enum":["x"]},{"type":"string"}]},"c":{"$ref":"#/$defs/C"}},"$defs":{"C":{"$ref":"#/$defs/C"}}}'
    )
    tool = ToolSpec(name="t", description="", parameters=Raw(parameters % (shape.encode(), shape.encode())))
    assert offer_of(Raw(b"{}"), (tool,)) == {"t": {"a": ('"x"', "null")}}
