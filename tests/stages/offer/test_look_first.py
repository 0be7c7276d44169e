"""Look first: what is offered while a run makes progress."""

from msgspec.structs import replace

from stages.offer import offered_tools
from stages.order import Use
from stages.rules import Rules
from stages.state import Attempt, State, Success
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
