"""The wires: which fields a request has in each dialect, tool choice, and how a reply is constrained."""

import json
from typing import get_args

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from forge.backends.doctor.examination import choose
from forge.backends.doctor.facts import Facts
from forge.backends.profile import from_toml, named_profile
from forge.errors import ForgeError
from forge.proxy.exchange import adapted
from stages.wire.sampling import Sampling
from stages.wire.server.request import ServerRequest
from stages.wire.wires import (
    WIRES,
    Constrain,
    Dialect,
    ToolChoice,
    Wire,
    demandable,
    field,
    wire,
)


@pytest.mark.parametrize("spoken", WIRES.values(), ids=WIRES)
def test_a_wire_does_what_it_says_that_it_can(spoken: Wire) -> None:
    for way in spoken.constraints:
        dialect = replace(spoken.dialect, constrain=way)
        assert b'{"const":1}' in bytes(wire(dialect).tail(None, Raw(b'{"const":1}')))
    told = wire(replace(spoken.dialect, context_tokens=4321)).head("m", Sampling(), ())
    assert (b"4321" in bytes(told)) == spoken.sets_context
    assert demandable(spoken, Sampling()) == spoken.demands
    for option in spoken.excludes_demand:
        assert not demandable(spoken, Sampling(extra={option: {"type": "enabled"}}))


QUIRKS = [
    (Dialect(option_names={"max_tokens": "most"}), {"max_tokens": 5, "x": 2}, {"most": 5, "x": 2}),
    (Dialect(option_names={"max_tokens": "most"}), {"max_tokens": 7, "most": 5, "x": 2}, {"most": 5, "x": 2}),
]
"""Each quirk about fields, with those of a request and what the backend takes for them."""


@pytest.mark.parametrize(("dialect", "given", "taken"), QUIRKS)
def test_a_backend_gets_its_own_fields_whoever_wrote_them(
    dialect: Dialect, given: dict[str, object], taken: dict[str, object]
) -> None:
    passed = ServerRequest(protocol="chat", body=json.dumps(given).encode(), model="m", history=())
    written = wire(replace(dialect, tools_body=given)).tail(Raw(b"[]"), None)
    assert json.loads(adapted(passed, "", dialect).body) == taken
    assert json.loads(bytes(written)) == {"tools": [], **taken}
    assert adapted(passed, "", Dialect()) is passed


def test_a_client_hears_of_an_option_that_the_backend_lacks_and_forge_refuses_its_own() -> None:
    lacking = Dialect(option_names={"top_k": ""})
    passed = ServerRequest(protocol="chat", body=b'{"top_k":1,"x":2}', model="m", history=())
    assert adapted(passed, "", lacking) is passed
    for dialect in (lacking, replace(lacking, wire="ollama")):
        with pytest.raises(ValueError, match="top_k"):
            wire(dialect).head("m", Sampling(top_k=1), ())
    assert b'"top_k":5' in bytes(wire(lacking).head("m", Sampling(extra={"top_k": 5}), ()))


def test_a_profile_that_contradicts_itself_is_refused() -> None:
    for text in ('wire = "ollama"', 'mode = "prompted"\nnative_calls = false'):
        with pytest.raises(ForgeError, match="needs tools in the request"):
            from_toml(f'name = "mine"\ntool_choice = "named"\n{text}')


@pytest.mark.parametrize(
    ("facts", "takes"),
    [
        (Facts(calls="native", required=True, named=True), "named"),
        (Facts(calls="native", required=False, named=True), "none"),
        (Facts(kind="vllm"), "named"),
        (Facts(kind="vllm", calls="refused"), "none"),
    ],
)
def test_what_the_doctor_found_goes_before_what_is_known(facts: Facts, takes: ToolChoice) -> None:
    assert choose(facts, named_profile(facts.kind)).tool_choice == takes


@pytest.mark.parametrize("constrain", [each for each in get_args(Constrain) if each != "none"])
def test_each_backend_gets_the_schema_in_its_own_field(constrain: Constrain) -> None:
    ((name, value),) = json.loads(msgspec.json.encode(field(Raw(b'{"type":"object"}'), constrain))).items()
    assert name in {"response_format", "format", "structured_outputs", "guided_json"}
    assert '"type": "object"' in json.dumps(value)


def test_a_backend_without_one_is_told_what_to_do() -> None:
    with pytest.raises(ValueError, match="use the mode native or prompted"):
        field(Raw(b"{}"), "none")
