"""Tool choice: where a call may be demanded, and what profiles and the doctor say of it."""

import pytest
from msgspec import Raw
from msgspec.structs import replace

from forge.backends.doctor.examination import choose
from forge.backends.doctor.facts import Facts
from forge.backends.profile import from_toml, named_profile
from forge.errors import ForgeError
from stages.wire.sampling import Sampling
from stages.wire.wires import WIRES, ToolChoice, Wire, demandable, wire


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


def test_a_profile_that_contradicts_itself_is_refused() -> None:
    for text in ('wire = "ollama"', 'mode = "prompted"\nnative_calls = false'):
        with pytest.raises(ForgeError, match="needs tools in the request"):
            from_toml(f'name = "mine"\ntool_choice = "named"\n{text}')


@pytest.mark.parametrize(
    ("facts", "takes"),
    [
        (Facts(calls="native", required=True, named=True), "named"),
        (Facts(calls="native", required=True, named=False), "required"),
        (Facts(calls="native", required=False, named=True), "none"),
        (Facts(kind="vllm"), "named"),
        (Facts(kind="vllm", calls="refused"), "none"),
    ],
)
def test_what_the_doctor_found_goes_before_what_is_known(facts: Facts, takes: ToolChoice) -> None:
    assert choose(facts, named_profile(facts.kind)).tool_choice == takes
