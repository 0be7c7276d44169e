"""The stage `serialize`: where tools and calls stand in each mode; requests go on where the last ended."""

import json
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from stages import compact, fold, on, pipeline, serialize
from stages.compaction import ContextBudget, TieredCompact
from stages.message import Assistant, History, System, Tool, ToolCall, User
from stages.pipeline import StageError
from stages.rules import Rules
from stages.serialize import overhead
from stages.state import Cleared, Folded, Ledger, Prepared, Ready, State, Success, SummaryOrder
from stages.tool import Calculated, Grounded, ToolSpec
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


FIND = ToolSpec(
    name="find",
    description="Find somebody.",
    parameters=Raw(b'{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}'),
    effect="read",
)


def given(name: str, text: str) -> History:
    made = ToolCall(id=f"call_{name}", name=name, arguments="{}")
    return (Assistant(calls=(made,), turn=1), Tool(call_id=made.id, name=name, text=text, turn=1))


def constraint(rules: Rules, state: State, view: History) -> str:
    return json.dumps(
        body(serialize(rules, Target(mode="constrained"))(state.to(Folded(view=view))).unwrap())["response_format"]
    )


@pytest.mark.parametrize("cut", [(), (Cleared(call_id="c", name="look", arguments="{}", text='["D-4"]'),)])
def test_a_schema_proposes_what_the_view_shows_and_nothing_that_it_hides(cut: tuple[Cleared, ...]) -> None:
    history = (*ASKED, *given("look", '["B-2","C-3"]'))
    view = (*ASKED, *given("look", '["B-2","[hidden]"]'))
    rules = Rules(tools=(replace(FIND, grounded=(Grounded(argument="name", sources=("look", "recall")),)),))
    state = State(history=history, cleared=cut)
    shown, whole = constraint(rules, state, view), constraint(rules, state, history)
    assert ('"B-2"' in shown, '"C-3"' in shown) == (not cut, False)
    assert ('"B-2"' in whole, '"C-3"' in whole) == (not cut, not cut), "what was cut may be meant: nothing is listed"


def test_a_calculation_is_limited_to_the_numbers_of_the_view_and_to_none_once_some_were_cut() -> None:
    pay = ToolSpec(
        name="pay",
        description="Pay.",
        parameters=Raw(b'{"type":"object","properties":{"sum":{"type":"string"}},"required":["sum"]}'),
        calculated=(Calculated(argument="sum"),),
    )
    rules, state = Rules(tools=(pay,)), State(history=(User(text="Pay 4711 and 30."),))
    view = (User(text="Pay some and 30."),)
    assert "4711" in constraint(rules, state, state.history)
    assert "4711" not in constraint(rules, state, view)
    assert "30" in constraint(rules, state, view)
    cut = replace(state, cleared=(Cleared(call_id="c", name="look", arguments="{}", text="4711"),))
    assert "30" not in constraint(rules, cut, view)


def ship(name: str = "ship", *sources: str) -> ToolSpec:
    return ToolSpec(
        name=name,
        description="Ship an order.",
        parameters=Raw(b'{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}'),
        grounded=(Grounded(argument="order", sources=sources),),
    )


def test_a_grounded_argument_is_a_value_of_the_view_from_the_first_call_on() -> None:
    rules, history = Rules(tools=(ship(),)), (User(text="A-17"), *given("look", '["B-2","C-3"]'))
    assert '"enum": ["A-17", "C-3", "B-2"]' in constraint(rules, State(history=history), history)
    hidden = (User(text="A-17"), *given("look", '["B-2","[hidden]"]'))
    assert "C-3" not in constraint(rules, State(history=history), hidden)
    named = Rules(tools=(ship("ship", "look"),))
    assert '"enum": ["C-3", "B-2"]' in constraint(named, State(history=history), history)


def test_once_a_result_was_cut_a_grounded_argument_may_be_anything() -> None:
    cut = State(history=ASKED, cleared=(Cleared(call_id="c", name="look", arguments="{}", text="4711"),))
    assert "enum" not in constraint(Rules(tools=(ship(),)), cut, ASKED)


def test_an_optional_argument_is_any_value_or_null() -> None:
    optional = Raw(b'{"type":"object","properties":{"order":{"type":"string"}}}')
    rules = Rules(tools=(replace(ship(), parameters=optional),))
    view = (User(text="Ship it. " * 100),)
    assert '"required": ["order"]' in constraint(rules, State(history=view), view)
    few = (User(text="A-17"), *given("look", '["B-2"]'))
    assert "B-2" not in constraint(rules, State(history=few), few), "any value or none, but not one of these"


def test_a_request_lists_no_more_values_than_servers_take() -> None:
    rules = Rules(tools=tuple(ship(f"ship_{n}") for n in range(8)))
    history = (User(text="Go."), *given("look", json.dumps([f"A-{n}" for n in range(150)])))
    assert constraint(rules, State(history=history), history).count('"enum"') == 600 // 151


def test_what_was_looked_up_is_not_offered_again_while_its_like_was_not() -> None:
    look = replace(ship("look"), effect="read")
    history = (*ASKED, *given("list", '["B-2","C-3"]'))
    done = Ledger(turn=2, progress=2, successes=(Success(name="look", arguments='{"order":"B-2"}', turn=2),))
    asked = constraint(Rules(tools=(look,)), State(history=history, ledger=done), history)
    assert ('"C-3"' in asked, '"B-2"' in asked) == (True, False)
    assert '"B-2"' in constraint(Rules(tools=(look,)), State(history=history), history)


def test_a_view_that_a_stage_has_shortened_counts_as_what_it_is() -> None:
    @on(Folded)
    def short(state: State, phase: Folded) -> State:
        return state.to(replace(phase, view=tuple(replace(m, text=m.text[:50]) for m in phase.view)))

    asking = pipeline(compact(TieredCompact(), ContextBudget(tokens=9000)), fold(), short, serialize(RULES))
    asked = asking(State(history=(*ASKED, User(text="word " * 1000)))).unwrap()
    view = (*ASKED, User(text="word " * 10))
    assert asked.ledger.prompt_size == overhead(RULES, Target()) + State(history=view).measure()
