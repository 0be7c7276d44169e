"""The narrowings of values: each offers fewer values of an argument, is told of, and is turned off by its name."""

import json
from collections.abc import Callable

import pytest
from msgspec import Raw

from stages.message import Assistant, Tool, ToolCall, User
from stages.offer import Offer, offer
from stages.rules import Rules
from stages.seen import with_values
from stages.state import Held, Ledger, State, Success
from stages.tool import Calculated, Grounded, ToolEffect, ToolSpec

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
