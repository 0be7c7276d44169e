"""What a client's options become for a backend of another protocol."""

import json

import msgspec
import pytest

from stages.wire.openai.chat_server import decode_request
from stages.wire.sampling import Sampling
from stages.wire.server.request import ServerRequest
from stages.wire.server.translation import call_fields, format_field, translated_sampling
from stages.wire.wires import ANTHROPIC, OLLAMA, OPENAI, Dialect, Wire, wire

SCHEMA: dict[str, object] = {"type": "object", "properties": {"n": {"type": "integer"}}}
NAMED: dict[str, object] = {"type": "json_schema", "json_schema": {"name": "number", "schema": SCHEMA}}
ANY = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}
LOOK = {"type": "function", "function": {"name": "look"}}


def asked(**body: object) -> ServerRequest:
    messages = [{"role": "user", "content": "Look."}]
    request = decode_request(msgspec.json.encode({"model": "m", "messages": messages, **body}))
    assert isinstance(request, ServerRequest)
    return request


CASES: list[tuple[dict[str, object], Wire, Sampling]] = [
    ({"temperature": 0.5, "min_p": 0.1, "seed": 3, "stop": "x"}, ANTHROPIC, Sampling(temperature=0.5, stop=("x",))),
    ({"min_p": 0.1, "seed": 3}, OLLAMA, Sampling(min_p=0.1, seed=3)),
    ({"min_p": 0.1}, wire(Dialect(option_names={"min_p": ""})), Sampling()),
    ({"reasoning_effort": "low"}, OPENAI, Sampling(extra={"reasoning_effort": "low"})),
    ({"reasoning_effort": "low"}, ANTHROPIC, Sampling(extra={"output_config": {"effort": "low"}})),
    ({"reasoning_effort": "minimal"}, ANTHROPIC, Sampling()),
    ({"reasoning_effort": "low"}, OLLAMA, Sampling()),
    ({"reasoning_effort": "none"}, OLLAMA, Sampling(extra={"think": False})),
]


@pytest.mark.parametrize(("body", "backend", "sampling"), CASES)
def test_options_are_said_in_the_words_of_the_backend(
    body: dict[str, object], backend: Wire, sampling: Sampling
) -> None:
    found = translated_sampling(asked(**body), backend)
    assert found == sampling
    assert isinstance(json.loads(bytes(backend.head("m", found, ()))), dict)


ONE, BOTH = ("look",), ("look", "fail")
ALONE: dict[str, object] = {"parallel_tool_calls": False}
DEMAND: dict[str, object] = {"tool_choice": "required"}
NAMED_TOOL = {"type": "function", "function": {"name": "look"}}
CLAUDE_UNNAMED = wire(Dialect(wire="anthropic", tool_choice="required"))
CHOICES: list[tuple[dict[str, object], Wire, tuple[str, ...], dict[str, object]]] = [
    ({}, OPENAI, ONE, {}),
    ({}, ANTHROPIC, ONE, {}),
    (ALONE, OPENAI, ONE, {"parallel_tool_calls": False}),
    (ALONE, ANTHROPIC, ONE, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
    (DEMAND, wire(Dialect(tool_choice="required")), ONE, {"tool_choice": "required"}),
    (DEMAND, OPENAI, BOTH, {"tool_choice": "required"}),
    (DEMAND, OPENAI, ONE, {"tool_choice": NAMED_TOOL}),
    (DEMAND | ALONE, OPENAI, ONE, {"tool_choice": NAMED_TOOL, "parallel_tool_calls": False}),
    (DEMAND, ANTHROPIC, BOTH, {"tool_choice": {"type": "any"}}),
    (DEMAND, ANTHROPIC, ONE, {"tool_choice": {"type": "tool", "name": "look"}}),
    (DEMAND, CLAUDE_UNNAMED, ONE, {"tool_choice": {"type": "any"}}),
    (DEMAND | ALONE, ANTHROPIC, BOTH, {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}),
    (DEMAND | ALONE, wire(Dialect()), ONE, {"parallel_tool_calls": False}),
    (DEMAND | ALONE, OLLAMA, ONE, {}),
]


@pytest.mark.parametrize(("body", "backend", "tools", "fields"), CHOICES)
def test_a_demand_and_the_limit_to_one_call_are_one_field_for_anthropic(
    body: dict[str, object], backend: Wire, tools: tuple[str, ...], fields: dict[str, object]
) -> None:
    assert call_fields(asked(tools=[LOOK], **body), backend, Sampling(), tools) == fields


def test_no_call_is_required_together_with_extended_thinking() -> None:
    """The Messages API refuses that."""
    thinking = Sampling(extra={"thinking": {"type": "enabled", "budget_tokens": 1024}})
    request = asked(tools=[LOOK], tool_choice="required", parallel_tool_calls=False)
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    assert call_fields(request, ANTHROPIC, thinking, ONE) == {"tool_choice": choice}


FORMS: list[tuple[dict[str, object], Wire, dict[str, object]]] = [
    (NAMED, wire(Dialect()), {"response_format": NAMED}),
    (NAMED, OPENAI, {"response_format": NAMED}),
    ({"type": "json_object"}, wire(Dialect()), {"response_format": {"type": "json_object"}}),
    ({"type": "json_object"}, OPENAI, {"response_format": ANY}),
    (NAMED, OLLAMA, {"format": SCHEMA}),
    ({"type": "json_object"}, OLLAMA, {"format": {"type": "object"}}),
    (NAMED, wire(Dialect(constrain="json_object")), {"response_format": {"type": "json_object", "schema": SCHEMA}}),
    (NAMED, wire(Dialect(constrain="guided_json")), {"guided_json": SCHEMA}),
    (NAMED, ANTHROPIC, {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
    ({"type": "json_object"}, ANTHROPIC, {}),
]


@pytest.mark.parametrize(("form", "backend", "fields"), FORMS)
def test_a_form_of_the_text_is_asked_for_in_the_field_that_the_backend_has(
    form: dict[str, object], backend: Wire, fields: dict[str, object]
) -> None:
    request = asked(response_format=form)
    assert request.format is not None
    written = json.loads(msgspec.json.encode(format_field(request.format, backend)))
    extra = msgspec.json.encode(translated_sampling(request, backend).extra)
    assert {**written, **json.loads(extra)} == fields
