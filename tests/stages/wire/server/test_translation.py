"""What a client's options become for a backend of another protocol."""

import json

import msgspec
import pytest

from stages.wire.deltas import Sampling
from stages.wire.openai.chat_server import decode_request
from stages.wire.server.request import ServerRequest
from stages.wire.server.translation import format_field, translated_sampling
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
    ({"parallel_tool_calls": False}, OPENAI, Sampling()),
    ({"parallel_tool_calls": False, "tools": [LOOK]}, OPENAI, Sampling(extra={"parallel_tool_calls": False})),
    ({"parallel_tool_calls": False, "tools": [LOOK], "tool_choice": "required"}, ANTHROPIC, Sampling()),
]


@pytest.mark.parametrize(("body", "backend", "sampling"), CASES)
def test_options_are_said_in_the_words_of_the_backend(
    body: dict[str, object], backend: Wire, sampling: Sampling
) -> None:
    found = translated_sampling(asked(**body), backend)
    assert found == sampling
    assert isinstance(json.loads(bytes(backend.head("m", found, ()))), dict)


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
    written = json.loads(b"{" + format_field(request.format, backend) + b"}")
    extra = msgspec.json.encode(translated_sampling(request, backend).extra)
    assert {**written, **json.loads(extra)} == fields
