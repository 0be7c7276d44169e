"""Look first: what is offered while a run makes progress."""

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from stages.message import User
from stages.offer import offered_tools
from stages.order import Use
from stages.rules import Rules
from stages.state import Attempt, Ledger, State, Success
from stages.tool import Grounded, ToolEffect, ToolSpec
from tests.flows import Desk

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


PLACE, PARCEL = Grounded(argument="place"), Grounded(argument="parcel_id")
ENDS: list[tuple[str, tuple[Grounded, ...], Ledger, dict[str, Any], bool]] = [
    ("nothing was looked up", (PARCEL, PLACE), Ledger(), {}, False),
    ("one look-up was in vain", (PLACE,), Ledger(turn=1, attempts=(attempt("track"),)), {}, False),
    ("all were", (PLACE,), Ledger(turn=2, attempts=(attempt("track"), attempt("ask", turn=2))), {}, True),
    ("one was found", (PLACE,), Ledger(turn=1, progress=1, successes=(success("ask"),)), {}, True),
    (
        "the model gets nowhere",
        (PLACE,),
        Ledger(turn=5, attempts=(attempt("track"),)),
        {},
        True,
    ),
    ("an id is what the user gives", (PARCEL,), Ledger(), {}, True),
    ("no value has to be seen", (), Ledger(), {}, True),
    ("it is switched off", (PLACE,), Ledger(), {"without": frozenset({"look_first"})}, True),
]


@pytest.mark.parametrize(("grounded", "ledger", "options", "ends"), [c[1:] for c in ENDS], ids=[c[0] for c in ENDS])
def test_a_value_that_has_to_be_seen_is_looked_for_before_the_end(
    grounded: tuple[Grounded, ...], ledger: Ledger, options: dict[str, Any], *, ends: bool
) -> None:
    def spec(name: str, effect: ToolEffect, grounded: tuple[Grounded, ...] = ()) -> ToolSpec:
        return ToolSpec(name=name, description="", parameters=Raw(b"{}"), effect=effect, grounded=grounded)

    tools = (spec("track", "read"), spec("ask", "read"), spec("tell", "terminal", grounded))
    rules = Rules(tools=tools, **options)
    said = (User(text="Where is P-1?"),)
    offered = {one.name for one in offered_tools(rules, State(history=said, ledger=ledger))}
    assert offered == {"track", "ask"} | ({"tell"} if ends else set())
    asking = replace(rules, tools=(*tools, spec("ask_user", "terminal")))
    assert "tell" in {one.name for one in offered_tools(asking, State(history=said, ledger=ledger))}, "it can ask"
    more = (*said, User(text="It is in Oslo."))
    assert "tell" in {one.name for one in offered_tools(rules, State(history=more, ledger=ledger))}, "the user knows"
