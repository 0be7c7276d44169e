"""The choices of a reply: tool and values of each call, found in whatever stands around them."""

import re
from math import log
from typing import Literal

import pytest
from msgspec import Raw

from stages.confidence.measure import measured_calls, measures_of, offer_of
from stages.effect import TokenProbability
from stages.message import User
from stages.rules import Rules
from stages.serialize import serialize
from stages.state import Folded, Prepared, State
from stages.tool import ToolSpec
from stages.wire.prompted import JSON, LIST, Form
from stages.wire.target import Mode, Target
from stages.wire.wires import Constrain, Dialect, WireName, wire

OFFER = {"route": {"queue": ('"billing"', '"sales"')}, "read": {}}


def tokens(text: str, **alternatives: str) -> list[TokenProbability]:
    """The text, word by word; each word named is three times as likely as the one in its place."""
    return [
        TokenProbability(w, log(0.75), ((w, log(0.75)), (alternatives[w], log(0.25))))
        if w in alternatives
        else TokenProbability(w, -1e-6)
        for w in re.findall(r"\w+|\W", text)
    ]


CALL = '{"tool": "route", "args": {"queue": "billing"}}'
NATIVE = (
    '<tool_call>\n{"name": "route", "arguments": {"queue": "billing", "note": "{\\"tool\\":\\"read\\"}"}}\n</tool_call>'
)


@pytest.mark.parametrize(
    ("text", "content", "expected"),
    [
        (CALL, CALL, [0.75 * 0.75]),
        (f'[{CALL}, {{"tool": "read", "args": {{}}}}]', "", [0.75 * 0.75, 1.0]),
        (f'<think>perhaps {{"tool": "read", "args": {{}}}}</think>{CALL}', CALL, [0.75 * 0.75]),
        (NATIVE, "", [0.75 * 0.75]),
        ('{"tool": "drop", "args": {}}', "", []),
        ('{"tool": "route", "args": {"queue": "other"}}', "", []),
        ('{"answer": "the tool is route"}', "", []),
        ('{"tool": "route", "args": {"queue"', "", [0.75]),
    ],
    ids=[
        "alone",
        "list",
        "after thoughts",
        "native",
        "unknown",
        "other value",
        "words",
        "cut",
    ],
)
def test_each_call_has_the_probability_of_all_of_its_choices(text: str, content: str, expected: list[float]) -> None:
    measured = measured_calls(tokens(text, route="read", billing="sales"), content, OFFER)
    assert [call.confidence for call in measured] == pytest.approx(expected, abs=1e-4)


def test_a_choice_says_what_it_was_made_from() -> None:
    (call,) = measured_calls(tokens(CALL, route="read", billing="sales"), CALL, OFFER)
    told = [(choice.argument, choice.chosen, choice.offered) for choice in call.choices]
    assert told == [("", '"route"', ('"route"', '"read"')), ("queue", '"billing"', ('"billing"', '"sales"'))]


def test_where_nothing_else_was_offered_nothing_was_chosen() -> None:
    (call,) = measured_calls(tokens(CALL), CALL, {"route": {"queue": ('"billing"',)}})
    assert call.choices == ()
    assert call.confidence == 1.0


def test_calls_are_matched_by_their_names_in_order() -> None:
    text = f'[{CALL}, {{"tool": "read", "args": {{}}}}]'
    route, read = measured_calls(tokens(text, route="read"), "", OFFER)
    assert measures_of([route, read], ["route", "read"]) == (route, read)
    assert measures_of([route, read], ["read", "route"]) == (read, None)
    assert measures_of([], ["read"]) == (None,)


# --- What a request offered is read from the request that forge itself wrote, on every wire and in every mode

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
