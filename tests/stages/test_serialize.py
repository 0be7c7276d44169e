"""The stage `serialize`: where tools and calls stand in each mode; requests go on where the last ended."""

import json
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from stages import serialize
from stages.compaction import ContextBudget
from stages.ledger import Success
from stages.message import Assistant, History, System, Tool, ToolCall, User
from stages.phase import Folded, Prepared, Ready, SummaryOrder
from stages.serialize import Mode, overhead
from stages.state import State
from stages.wire.sampling import Sampling
from stages.wire.wires import ANTHROPIC, OLLAMA, OPENAI, Wire
from tests.property.machine import RULES

MODES: tuple[Mode, ...] = ("native", "constrained", "prompted")
ASKED: History = (System(text="Do the work."), User(text="Go."))
CALL = ToolCall(id="call_1", name="look", arguments='{"what":"a"}')
TURN: History = (Assistant(calls=(CALL,), turn=1), Tool(call_id="call_1", name="look", text="7", turn=1))


def written(state: State, mode: Mode = "native", **options: Any) -> State:
    return serialize(RULES, mode, "tiny", **options)(state.to(Folded(view=state.history))).unwrap()


def body(state: State) -> dict[str, Any]:
    assert isinstance(state.phase, Prepared)
    found: dict[str, Any] = json.loads(state.phase.request.body)
    return found


def test_native_tools_stand_in_their_own_field() -> None:
    request = body(written(State(history=ASKED + TURN)))
    assert [tool["function"]["name"] for tool in request["tools"]] == ["look", "write", "finish"]
    assert [message["role"] for message in request["messages"]] == ["system", "user", "assistant", "tool"]
    assert request["model"] == "tiny"


@pytest.mark.parametrize("mode", ["constrained", "prompted"])
def test_as_text_tools_stand_in_the_prompt_and_nowhere_else(mode: Mode) -> None:
    request = body(written(State(history=ASKED + TURN), mode))
    assert "tools" not in request
    assert all(name in request["messages"][0]["content"] for name in ("look", "write", "finish"))
    assert {message["role"] for message in request["messages"]} <= {"system", "user", "assistant"}


@pytest.mark.parametrize(("done", "allowed"), [((), {"look"}), (("look",), {"look", "write", "finish"})])
def test_a_constraint_allows_what_is_legal_now(done: tuple[str, ...], allowed: set[str]) -> None:
    state = State(history=ASKED).note(successes=tuple(Success(name=name, arguments="{}") for name in done))
    text = json.dumps(body(written(state, "constrained"))["response_format"])
    assert {tool.name for tool in RULES.tools if f'"const": "{tool.name}"' in text} == allowed


def test_the_options_of_a_reply_are_sent() -> None:
    request = body(written(State(history=ASKED), sampling=Sampling(temperature=0.0, max_tokens=7)))
    assert (request["temperature"], request["max_tokens"]) == (0.0, 7)


@pytest.mark.parametrize(("mode", "wire"), [*product(MODES, (OPENAI, OLLAMA)), ("native", ANTHROPIC)])
def test_a_request_that_goes_on_is_the_same_as_one_written_anew(mode: Mode, wire: Wire) -> None:
    first = written(State(history=ASKED), mode, wire=wire)
    onward = written(first.to(Ready()).say(*TURN), mode, wire=wire)
    anew = written(State(history=ASKED + TURN), mode, wire=wire)
    assert body(onward) == body(anew)
    assert onward.ledger.prompt_size == anew.ledger.prompt_size > first.ledger.prompt_size


@pytest.mark.parametrize("other", [{"mode": "prompted"}, {"wire": OLLAMA}])
def test_a_request_in_another_form_begins_anew(other: dict[str, Any]) -> None:
    first = written(State(history=ASKED))
    assert body(written(first.to(Ready()).say(*TURN), **other)) == body(written(State(history=ASKED + TURN), **other))


def test_a_cut_history_is_written_as_it_is_now() -> None:
    first = written(State(history=ASKED + TURN))
    assert len(body(written(first.reshape(ASKED).to(Ready())))["messages"]) == 2


def test_notes_stand_at_the_end_of_one_prompt_alone() -> None:
    note = User(text="Two replies are left.")
    state = State(history=ASKED + TURN)
    noted = serialize(RULES, model="tiny")(state.to(Folded(view=state.history, notes=(note,)))).unwrap()
    assert body(noted)["messages"][-1]["content"] == note.text
    assert body(written(noted.to(Ready())))["messages"] == body(written(state))["messages"]


def test_a_summary_is_asked_for_in_words() -> None:
    order = SummaryOrder(text="Sum up.", messages=1, shortest=1, budget=ContextBudget(tokens=100))
    state = State(history=ASKED, phase=Folded(view=ASKED, summary=order))
    constrained = json.dumps(body(serialize(RULES, "constrained")(state).unwrap())["response_format"])
    assert "done_and_found" in constrained
    assert "tools" in body(serialize(RULES)(state).unwrap()), "they stand at the beginning of the prompt, which is kept"


def test_what_every_prompt_takes_beside_its_history_is_counted() -> None:
    bare = replace(RULES, tools=())
    assert overhead(RULES, "native", OPENAI) > overhead(bare, "native", OPENAI)
    state = written(State(history=ASKED))
    assert state.ledger.prompt_size == overhead(RULES, "native", OPENAI) + State(history=ASKED).measure()
