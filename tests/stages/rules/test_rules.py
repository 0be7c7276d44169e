"""The rules of a workflow: what is pending, what may be called now, and what everything else needs first."""

import pytest
from msgspec import Raw

from stages.message import UnknownCall, User
from stages.order import Use
from stages.rules import (
    Rules,
    blocking_unknown_outcome,
    legal_tools,
    missing_prerequisites,
    needed_tools,
    pending,
    required_tools,
)
from stages.state import Ledger, State, Success
from stages.tool import Prerequisite, ToolEffect, ToolSpec


def tool(name: str, effect: ToolEffect = "write", *before: Prerequisite) -> ToolSpec:
    return ToolSpec(name=name, description="", parameters=Raw(b"{}"), effect=effect, prerequisites=before)


SAME = tool("refund", "write", Prerequisite(tool="look", match_arg="order"))
RULES = Rules(tools=(tool("look", "read"), SAME, tool("finish", "terminal")), required=("look",))


def after(*done: str | tuple[str, str], in_doubt: tuple[str, ...] = ()) -> Ledger:
    pairs = [one if isinstance(one, tuple) else (one, "{}") for one in done]
    return Ledger(
        successes=tuple(Success(name=name, arguments=arguments) for name, arguments in pairs),
        in_doubt=tuple(UnknownCall(id=name, name=name, arguments="{}") for name in in_doubt),
    )


def names(rules: Rules, ledger: Ledger) -> list[str]:
    return [one.name for one in legal_tools(rules, State(history=(), ledger=ledger))]


@pytest.mark.parametrize(
    ("ledger", "legal"),
    [
        (after(), ["look"]),
        (after("look"), ["look", "refund", "finish"]),
        (after("look", in_doubt=("refund",)), ["look", "finish"]),
        (after("look", in_doubt=("look",)), ["look", "refund", "finish"]),  # reads are simply made again
    ],
)
def test_what_may_be_called_now(ledger: Ledger, legal: list[str]) -> None:
    assert names(RULES, ledger) == legal


def test_steps_are_pending_until_they_succeed_and_then_those_used_too_seldom() -> None:
    rules = Rules(tools=RULES.tools, required=("look",), order=(Use(tool="refund", at_least=2),))
    assert pending(rules, after()) == ("look", "refund")
    assert pending(rules, after("look", "refund")) == ("refund",)
    assert pending(rules, after("look", "refund", "refund")) == ()
    assert required_tools(rules) == ("look", "refund")


@pytest.mark.parametrize(
    ("looked", "arguments", "missing"),
    [
        ('{"order":"A"}', '{"order":"A","sum":1}', ()),
        ('{"order":"A"}', '{"order":"B"}', ("look",)),
        ('{"order":"A"}', "{}", ("look",)),
        ('{"order":1}', '{"order":1.0}', ()),
        ('{"order":{"a":1,"b":2}}', '{"order":{"b":2,"a":1}}', ()),
        ('{"order":"A"}', None, ()),
        (None, None, ("look",)),
    ],
)
def test_a_prerequisite_is_of_the_same_thing(looked: str | None, arguments: str | None, missing: tuple[str]) -> None:
    ledger = after(*([("look", looked)] if looked else []))
    assert missing_prerequisites(RULES, SAME, arguments, ledger) == missing


def test_what_has_to_succeed_first_is_followed_to_its_beginning() -> None:
    rules = Rules(
        tools=(tool("a"), tool("b", "write", Prerequisite(tool="a")), tool("c"), tool("d")),
        order=(Use(tool="c", after=("b",)),),
    )
    assert needed_tools(rules, ["c"]) == {"a", "b", "c"}
    assert needed_tools(rules, ["d"]) == {"d"}


@pytest.mark.parametrize(
    ("ledger", "blocking"),
    [
        (after("look"), None),
        (after("look", in_doubt=("refund",)), None),
        (after("look", in_doubt=("finish",)), "finish"),
        (after("look", in_doubt=("refund", "finish")), "finish"),
    ],
)
def test_a_person_has_to_decide_where_the_run_cannot_end_without_the_tool(ledger: Ledger, blocking: str | None) -> None:
    found = blocking_unknown_outcome(RULES, State(history=(), ledger=ledger))
    assert (found and found.name) == blocking


@pytest.mark.parametrize(("said", "blocking"), [("Look at it.", "refund"), ("Look at it, and close the case.", None)])
def test_a_withheld_tool_that_was_named_is_a_way_on_for_a_run_with_an_unknown_outcome(
    said: str, blocking: str | None
) -> None:
    """Without it nothing could be called any more, and a person would have to decide first."""
    rules = Rules(tools=(tool("refund"), tool("close_case")), withheld=("close_case",))
    found = blocking_unknown_outcome(rules, State(history=(User(text=said),), ledger=after(in_doubt=("refund",))))
    assert (found and found.name) == blocking
