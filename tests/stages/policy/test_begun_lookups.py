"""Begun look-ups: what was given together with a value that was looked up, and was not looked up yet."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from forge import Workflow, run_sync, tool
from forge.interpreters.scripted import Scripted, call
from stages.grounding.matching import leaves
from stages.ledger import Attempt, Ledger, Success
from stages.message import Tool, User
from stages.policy.begun_lookups import begun_lookups
from stages.state import State
from stages.tool import ToolEffect, ToolSpec

ONE_TEXT = Raw(b'{"type":"object","properties":{"id":{"type":"string"}}}')
LOOK = ToolSpec(name="look", description="", parameters=ONE_TEXT, effect="read")


def state(*texts: str, said: str = "Go.", looked: tuple[str, ...] = ("A-1",), tried: tuple[str, ...] = ()) -> State:
    arguments = [msgspec.json.encode({"id": value}).decode() for value in looked]
    vain = tuple(Attempt(name="look", arguments=f'{{"id":"{value}"}}') for value in tried)
    vain += (Attempt(name="write", arguments='{"x":"A-3"}'),)  # refused: it has looked at nothing
    done = tuple(Success(name="look", arguments=one) for one in arguments)
    results = (Tool(call_id="c", name="list", text=text) for text in texts)
    return State(history=(User(text=said), *results), ledger=Ledger(successes=done, attempts=vain))


CASES: list[tuple[str, State, tuple[str, ...]]] = [
    ("a list", state('["A-1","A-2","A-3"]'), ("A-2", "A-3")),
    ("a member of each entry", state('[{"id":"A-1","city":"Oslo"},{"id":"A-2","city":"Rome"}]'), ("A-2",)),
    ("another member of the same entry", state('{"id":"A-1","next":"B-7"}'), ()),
    ("another result", state('["A-1"]', '["A-2"]'), ()),
    ("nothing was looked up yet", state('["A-1","A-2"]', looked=()), ()),
    ("it has failed with it", state('["A-1","A-2","A-3"]', tried=("A-2",)), ("A-3",)),
    ("what the user named with it", state(said="Compare A-1 with A-2, not with C7."), ("A-2",)),
    ("what the user named, and not with it", state(said="It is about A-2."), ()),
    ("a text of any length", state('["A-1","' + "x" * 81 + '"]'), ()),
    ("all was looked up", state('["A-1","A-2"]', looked=("A-1", "A-2")), ()),
]


@pytest.mark.parametrize(("state", "left"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_left_of_a_look_up_that_was_begun(state: State, left: tuple[str, ...]) -> None:
    assert begun_lookups(LOOK, state) == left


@pytest.mark.parametrize(
    ("effect", "parameters"),
    [
        ("write", ONE_TEXT),
        ("terminal", ONE_TEXT),
        ("read", Raw(b'{"type":"object","properties":{"id":{"type":"string"},"at":{"type":"string"}}}')),
        ("read", Raw(b'{"type":"object","properties":{"id":{"type":"integer"}}}')),
    ],
)
def test_only_look_ups_by_one_text_are_gone_on_with(effect: ToolEffect, parameters: Raw) -> None:
    tool = ToolSpec(name="look", description="", parameters=parameters, effect=effect)
    assert begun_lookups(tool, state('["A-1","A-2"]')) == ()


@given(st.lists(st.text(max_size=9), max_size=5), st.lists(st.text(max_size=9), max_size=3).map(tuple))
def test_nothing_is_invented_and_nothing_is_asked_for_twice(given: list[str], looked: tuple[str, ...]) -> None:
    text = msgspec.json.encode(given).decode()
    found = begun_lookups(LOOK, state(text, looked=looked))
    assert {*found} <= {*leaves(text)}
    assert {*found}.isdisjoint(looked)


def test_a_model_that_has_looked_one_up_is_told_of_the_others_beside_the_end() -> None:
    @tool(effect="read")
    def names() -> list[str]:
        """List the names."""
        return ["Ann", "Bo", "Cy"]

    @tool(effect="read")
    def age(name: str) -> int:
        """Look up an age."""
        return len(name)

    @tool
    def answer(name: str) -> str:
        """Name the oldest."""
        return name

    flow = Workflow("ages", tools=[names, age, answer], required_steps=["names", "age"], terminal_tool="answer")
    script = [call("names"), call("age", name="Ann"), call("age", name="Cy"), call("age", name="Bo")]
    model = Scripted([*script, call("answer", name="Ann")], mode="constrained")
    run_sync(flow, "Who is the oldest?", backend=model).unwrap()
    end = b"As soon as all that was asked for is done, call answer."
    assert b"Done: names, age. Not called yet: age with Bo, Cy. " + end in model.requests[2]
    assert b"Done: names, age. Not called yet: age with Bo. " + end in model.requests[3]
    assert b"Done: names, age. " + end in model.requests[4]
