"""The narrowings of values: each offers fewer values of an argument, is told of, and is turned off by its name."""

import json
from collections.abc import Callable

import pytest
from msgspec import Raw
from msgspec.structs import replace

from stages.message import Assistant, Tool, ToolCall, User
from stages.offer import Offer, offer, offered_tools
from stages.order import Use
from stages.rules import Rules
from stages.seen import with_values
from stages.state import Attempt, Held, Ledger, State, Success
from stages.tool import Calculated, Grounded, ToolEffect, ToolSpec
from tests.flows import Desk

TEXT = {"type": "string"}


def spec(effect: ToolEffect, *needed: str, **properties: object) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(needed)}
    grounded = tuple(Grounded(argument=name) for name, kind in properties.items() if kind == TEXT)
    return ToolSpec(
        name="use", description="", effect=effect, parameters=Raw(json.dumps(schema).encode()), grounded=grounded
    )


LOOK = spec("read", "order", order=TEXT)
SUM = ToolSpec(
    name="use",
    description="",
    effect="write",
    parameters=Raw(b'{"type":"object","properties":{"total":{"type":"string"}},"required":["total"]}'),
    calculated=(Calculated(argument="total", number=Raw(b'{"type":"number"}')),),
)
LISTED = (
    User(text="Go."),
    Assistant(calls=(ToolCall(id="c1", name="list", arguments="{}"),), turn=1),
    Tool(call_id="c1", name="list", text='["B-2","C-3",7]', turn=1),
)
DONE = Ledger(turn=2, progress=2, successes=(Success(name="use", arguments='{"order":"B-2"}', turn=2),))

CASES: list[tuple[str, ToolSpec, State, Callable[[Offer], bool]]] = [
    ("seen_values", LOOK, State(history=LISTED), lambda now: [*now.seen["use"]] == ["order"]),
    ("looked_up_values", LOOK, State(history=LISTED, ledger=DONE), lambda now: now.tried == {"use": {"b-2"}}),
    ("given_numbers", SUM, State(history=LISTED), lambda now: [*map(int, now.numbers)] == [7]),
]


@pytest.mark.parametrize(("name", "tool", "state", "narrowed"), CASES, ids=[c[0] for c in CASES])
def test_it_offers_fewer_values_and_says_so(
    name: str, tool: ToolSpec, state: State, narrowed: Callable[[Offer], bool]
) -> None:
    shown = with_values((), state.history, 0)
    now = offer(Rules(tools=(tool,)), state, shown)
    assert narrowed(now)
    assert Held(tool="use", by=name, values=True) in now.held
    without = offer(Rules(tools=(tool,), without=frozenset({name})), state, shown)
    assert name not in {held.by for held in without.held}
    assert without.tools == now.tools == (tool,)


def test_nothing_is_limited_where_no_values_are_shown() -> None:
    now = offer(Rules(tools=(LOOK,)), State(history=LISTED, ledger=DONE))
    assert (now.seen, now.tried, now.held) == ({}, {}, ())


def test_a_write_may_have_any_value_until_a_look_up_has_returned_something() -> None:
    # The user has only said A-17: a model that must choose a value would send that for the city too.
    send = replace(spec("terminal", "city", city=TEXT), name="send")
    find = spec("read", "order", order=TEXT)
    rules, asked = Rules(tools=(find, send)), (User(text="Where is A-17?"),)
    before = offer(rules, State(history=asked), with_values((), asked, 0))
    assert [*before.seen] == ["use"]
    found = (
        *asked,
        Assistant(calls=(ToolCall(id="c1", name="use", arguments='{"order":"A-17"}'),), turn=1),
        Tool(call_id="c1", name="use", text='{"city":"Lyon"}', turn=1),
    )
    after = offer(rules, State(history=found), with_values((), found, 0))
    assert "Lyon" in (after.seen["send"]["city"].texts or ())
    alone = offer(Rules(tools=(send,)), State(history=asked), with_values((), asked, 0))
    assert [*alone.seen] == ["send"]


# --- Look first: what is offered while a run makes progress

RULES = Desk().workflow.rules


def success(name: str) -> Success:
    return Success(name=name, arguments="{}", answer="0" * 16, turn=1)


def attempt(name: str, turn: int = 1) -> Attempt:
    return Attempt(name=name, arguments="{}", answer="0" * 16, turn=turn)


def test_what_something_required_needs_or_what_cannot_come_later_is_offered_at_once() -> None:
    start = State(history=())

    def first(rules: Rules) -> set[str]:
        return {spec.name for spec in offered_tools(rules, start)}

    assert first(replace(RULES, without=frozenset({"look_first"}))) == {"look", "fail"}
    assert first(replace(RULES, required=("look", "fail"))) == {"look", "fail"}
    assert first(replace(RULES, required=("fail",))) == {"look", "fail"}, "nothing is to be looked up first"
    after = replace(RULES, tools=tuple(replace(t, effect="read") if t.name == "write" else t for t in RULES.tools))
    needs = replace(after, required=("look", "write"), order=(Use(tool="write", after=("fail",)),))
    assert first(needs) == {"look", "fail"}
    assert first(replace(RULES, order=(Use(tool="fail", before=("look",)),))) == {"look", "fail"}
    assert first(replace(RULES, order=(Use(tool="fail", at_most=1),))) == {"look"}
