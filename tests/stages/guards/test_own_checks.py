"""Own checks: the calls that they are shown, and what they are asked about."""

import pytest
from msgspec import Raw, structs

from stages.guards import PastCall, of_both, past_calls, problem_with
from stages.message import Assistant, Tool, ToolCall
from stages.state import Cleared, State
from stages.tool import Calculated, ToolSpec

CALLS = (
    ToolCall(id="1", name="look", arguments='{"at":"x"}'),
    ToolCall(id="2", name="look", arguments='{"at":"y"}'),
    ToolCall(id="3", name="fail", arguments="{}"),
)
RESULTS = (
    Tool(call_id="1", name="look", text='{"n": 1}'),
    Tool(call_id="2", name="look", text="not JSON"),
    Tool(call_id="3", name="fail", text="[ToolError] no", status="failed"),
)
FIRST = PastCall(tool="look", arguments={"at": "x"}, result={"n": 1})
SECOND = PastCall(tool="look", arguments={"at": "y"}, result="not JSON")


def cut(call_id: str, text: str) -> Cleared:
    made = next(one for one in CALLS if one.id == call_id)
    return Cleared(call_id=call_id, name=made.name, arguments=made.arguments, text=text)


@pytest.mark.parametrize(
    ("state", "past"),
    [
        (State(history=()), ()),
        (State(history=(Assistant(calls=CALLS), *RESULTS)), (FIRST, SECOND)),
        (State(history=(Assistant(calls=CALLS[1:]), *RESULTS[1:]), cleared=(cut("1", '{"n":1}'),)), (FIRST, SECOND)),
        (
            State(
                history=(Assistant(calls=CALLS), structs.replace(RESULTS[0], text='{"n"…'), *RESULTS[1:]),
                cleared=(cut("1", '{"n":1}'),),
            ),
            (FIRST, SECOND),
        ),
    ],
    ids=["nothing", "in the history", "cut with its call", "cut in its place"],
)
def test_the_calls_that_have_succeeded_are_there_whatever_compaction_has_cut(
    state: State, past: tuple[PastCall, ...]
) -> None:
    assert past_calls(state) == past


def test_a_check_is_given_what_a_calculation_comes_to() -> None:
    pay = ToolSpec(name="pay", description="", parameters=Raw(b"{}"), calculated=(Calculated(argument="amount"),))

    def check(arguments: dict[str, object]) -> str | None:
        return None if arguments["amount"] == 5 else f"{arguments['amount']} is wrong."

    assert problem_with(of_both(check), '{"amount":"2 + 3"}', pay, ()) is None
    assert problem_with(of_both(check), '{"amount":"2 + 4"}', pay, ()) == "6 is wrong."
    assert "cannot be worked out" in (problem_with(of_both(check), '{"amount":"2 / 0"}', pay, ()) or "")
