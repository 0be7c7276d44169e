"""The stage `serialize`: where tools and calls stand in each mode; requests go on where the last ended."""

import json
from typing import Any

import jsonschema_rs
import pytest
from msgspec import Raw
from msgspec.structs import replace

from stages import compact, fold, on, pipeline, serialize
from stages.compaction import ContextBudget, TieredCompact
from stages.message import Assistant, History, System, Tool, ToolCall, User
from stages.pipeline import StageError
from stages.rules import Rules
from stages.serialize import overhead
from stages.state import Folded, Ledger, Prepared, Ready, State, Success, SummaryOrder
from stages.tool import Grounded, ToolSpec
from stages.wire.target import Mode, Target
from stages.wire.wires import OLLAMA
from tests.property.machine import RULES

ASKED: History = (System(text="Do the work."), User(text="Go."))
CALL = ToolCall(id="call_1", name="look", arguments='{"what":"a"}')
TURN: History = (Assistant(calls=(CALL,), turn=1), Tool(call_id="call_1", name="look", text="7", turn=1))


def written(state: State, mode: Mode = "native", **options: Any) -> State:
    return serialize(RULES, Target(mode=mode, model="tiny", **options))(state.to(Folded(view=state.history))).unwrap()


def body(state: State) -> dict[str, Any]:
    assert isinstance(state.phase, Prepared)
    found: dict[str, Any] = json.loads(state.phase.request.body)
    return found


@pytest.mark.parametrize("other", [{"mode": "prompted"}, {"wire": OLLAMA}])
def test_a_request_in_another_form_begins_anew(other: dict[str, Any]) -> None:
    first = written(State(history=ASKED))
    assert body(written(first.to(Ready()).say(*TURN), **other)) == body(written(State(history=ASKED + TURN), **other))


TWO = serialize(RULES, {"main": Target(model="tiny"), "larger": Target(mode="prompted", model="big")})


def asked_of(target: str, state: State) -> State:
    return TWO(state.to(Folded(view=state.history, target=target))).unwrap()


def test_each_model_is_asked_in_its_own_way_and_its_own_request_goes_on() -> None:
    first = asked_of("main", State(history=ASKED))
    between = asked_of("larger", first)
    after = asked_of("main", between.say(*TURN))
    assert body(between) == body(written(State(history=ASKED), "prompted")) | {"model": "big"}
    assert [(one.target, one.mode) for one in after.prompts] == [("larger", "prompted"), ("main", "native")]
    assert body(after) == body(written(State(history=ASKED + TURN)))
    assert isinstance(after.phase, Prepared)
    assert isinstance(first.phase, Prepared)
    assert after.phase.request.messages[0] is first.phase.request.messages[0], "what was written for it is kept"


def test_a_model_that_is_not_there_is_named_but_its_summary_is_asked_of_the_runs_own() -> None:
    with pytest.raises(StageError, match="asks for the model 'judge', and serialize was given main, larger"):
        asked_of("judge", State(history=ASKED))
    order = SummaryOrder(text="Sum up.", messages=1, shortest=1, budget=ContextBudget(tokens=100))
    phase = TWO(State(history=ASKED, phase=Folded(view=ASKED, summary=order, target="summary"))).unwrap().phase
    assert isinstance(phase, Prepared)
    assert phase.asked.target == "main"


def test_a_server_that_has_refused_tools_is_asked_in_the_mode_prompted_and_no_other_is() -> None:
    write = serialize(RULES, {"main": Target(falls_back=True), "larger": Target()})
    refused = State(history=ASKED).note(fallback="no tools here")
    asked = [write(refused.to(Folded(view=ASKED, target=name))).unwrap() for name in ("main", "larger")]
    assert [state.asked.mode for state in asked] == ["prompted", "native"]


def test_what_every_prompt_takes_beside_its_history_is_counted() -> None:
    bare = replace(RULES, tools=())
    assert overhead(RULES, Target()) > overhead(bare, Target())
    state = written(State(history=ASKED))
    assert state.ledger.prompt_size == overhead(RULES, Target()) + State(history=ASKED).measure()


def given(name: str, text: str) -> History:
    made = ToolCall(id=f"call_{name}", name=name, arguments="{}")
    return (Assistant(calls=(made,), turn=1), Tool(call_id=made.id, name=name, text=text, turn=1))


def constraint(rules: Rules, history: History) -> str:
    asked = serialize(rules, Target(mode="constrained"))(State(history=history, phase=Folded(view=history)))
    return json.dumps(body(asked.unwrap())["response_format"])


SHIP = ToolSpec(
    name="ship",
    description="Ship an order.",
    parameters=Raw(b'{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}'),
    grounded=(Grounded(argument="order"),),
)


def test_a_prompted_request_has_no_tools_field_and_takes_turns() -> None:
    request = body(written(State(history=(*ASKED, *TURN, *TURN, User(text="Go on."))), "prompted"))
    assert "tools" not in request
    first, second, *rest = request["messages"]
    assert first["content"].startswith("Do the work.\n\n# Tools")
    assert (second["role"], [m["role"] for m in rest]) == ("user", ["assistant", "user"] * 2)
    assert rest[0]["content"] == '{"tool":"look","args":{"what":"a"}}'
    assert rest[-1]["content"] == "Result of look:\n7\n\nGo on."


def test_the_constraint_holds_the_calls_that_are_legal_now_and_the_prompt_stays() -> None:
    """Prerequisites first, the terminal tool only when no step is pending."""
    done = Ledger(successes=(Success(name="look", arguments=CALL.arguments),))
    look, write, finish = (
        {"tool": name, "args": args}
        for name, args in (("look", {"what": "a"}), ("write", {"text": "t"}), ("finish", {}))
    )
    prompts = []
    for ledger, legal in ((Ledger(), [True, False, False]), (done, [True, True, True])):
        request = body(written(State(history=ASKED, ledger=ledger), "constrained"))
        prompts.append(request["messages"])
        valid = jsonschema_rs.validator_for(request["response_format"]["json_schema"]["schema"]).is_valid
        assert [valid(call) for call in (look, write, finish)] == legal
        assert not valid({"tool": "look", "args": {}})
        assert not valid({**look, "more": 1})
    assert prompts[0] == prompts[1]


def test_an_optional_argument_is_written_or_null() -> None:
    optional = Raw(b'{"type":"object","properties":{"order":{"type":"string"}}}')
    rules = Rules(tools=(replace(SHIP, parameters=optional),))
    assert '"required": ["order"]' in constraint(rules, ASKED)


def test_a_constraint_stays_the_same_whatever_values_were_shown() -> None:
    rules = Rules(tools=(SHIP,))
    assert constraint(rules, ASKED) == constraint(rules, (*ASKED, *given("look", '["B-2","C-3"]')))


def test_a_view_that_a_stage_has_shortened_counts_as_what_it_is() -> None:
    @on(Folded)
    def short(state: State, phase: Folded) -> State:
        return state.to(replace(phase, view=tuple(replace(m, text=m.text[:50]) for m in phase.view)))

    asking = pipeline(compact(TieredCompact(), ContextBudget(tokens=9000)), fold(), short, serialize(RULES))
    asked = asking(State(history=(*ASKED, User(text="word " * 1000)))).unwrap()
    view = (*ASKED, User(text="word " * 10))
    assert asked.ledger.prompt_size == overhead(RULES, Target()) + State(history=view).measure()
