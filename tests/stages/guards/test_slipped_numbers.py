"""Slipped numbers: which numbers of an answer are taken for a given one that has lost a zero, or found one."""

import dataclasses
import json
import re

import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from forge import Workflow, run_sync, tool
from forge.interpreters.scripted import Scripted, call
from forge.testing import assert_guard_laws
from stages.effect import Budget
from stages.guards import slipped_numbers
from stages.message import Assistant, Tool, ToolCall, User
from stages.objection import SlippedNumber
from stages.rules import Calls
from stages.state import Ledger, State


@tool(effect="read")
def get_country(name: str) -> dict[str, object]:
    """Look a country up."""
    return {"capital": "Halvik", "population": 2411000, "area": "113,600 km²"}


@tool(effect="terminal")
def tell(text: str) -> str:
    """Answer."""
    return text


WORKFLOW = Workflow("countries", tools=[get_country, tell], terminal_tool="tell")
GUARD = slipped_numbers(WORKFLOW.rules)
RESULT = '{"capital": "Halvik", "population": 2411000, "area": "113,600 km²"}'


def known(question: str = "What is Lirande like?", budget: int = 5) -> State:
    asked = ToolCall(id="1", name="get_country", arguments='{"name": "Lirande"}')
    history = (User(text=question), Assistant(calls=(asked,)), Tool(call_id="1", name="get_country", text=RESULT))
    return State(history=history, ledger=Ledger(budget=Budget(calls=budget)))


def said(text: str, state: State | None = None) -> list[tuple[str, str]]:
    calls = (ToolCall(id="2", name="tell", arguments=f'{{"text": "{text}"}}'),)
    found = GUARD(state or known(), calls)
    assert isinstance(found, list)
    return [(o.wrong.said, o.wrong.given) for o in found if isinstance(o.wrong, SlippedNumber)]


@pytest.mark.parametrize(
    ("text", "slip"),
    [
        ("It has 24.1 million people.", ("24.1 million", "2411000")),
        ("About 24 million people live there.", ("24 million", "2411000")),
        ("Population: 241,100.", ("241,100", "2411000")),
        ("The area is 1,136,000 km².", ("1,136,000", "113600")),
    ],
)
def test_a_number_ten_times_too_large_or_too_small_is_refused(text: str, slip: tuple[str, str]) -> None:
    assert said(text) == [slip]


@pytest.mark.parametrize(
    "text",
    [
        "It has 2,411,000 people.",
        "It has 2.4 million people.",
        "It has 2.41 million people on 113600 km².",
        "It has 2411 thousand people.",
        "21 people live on each of its square kilometres.",
        "It was founded in 1136, as X-241100.",
        "Each of 24,110 people is one of a hundred.",
        "It has many people.",
        "241100",
    ],
)
def test_a_number_that_is_given_rounded_or_another_is_not(text: str) -> None:
    assert said(text) == []


def test_who_asks_for_a_tenth_and_who_has_no_call_left_to_put_it_right_is_left_alone() -> None:
    assert said("10 % are 241,100 people.", known("How many people are 10 % of Lirande's?")) == []
    assert said("It has 241,100 people.", known(budget=0)) == []
    assert said("It has 241,100 people.", known(budget=1)) != []


def test_the_model_is_told_the_given_number_and_may_insist() -> None:
    slipped = call("tell", text="24.1 million people live there.")
    looked = call("get_country", name="Lirande")
    model = Scripted([looked, slipped, call("tell", text="2,411,000 people live there.")])
    assert run_sync(WORKFLOW, "How many?", backend=model).unwrap().value == "2,411,000 people live there."
    told = b"[UngroundedArgument] tell was not run: its text says 24.1 million, and what was given is 2411000."
    assert told in model.requests[2]
    insisting = Scripted([looked, slipped, slipped])
    assert re.match("24.1", str(run_sync(WORKFLOW, "How many?", backend=insisting).unwrap().value))


def test_only_the_latest_texts_are_read() -> None:
    later = (User(text="And now?"),) * 63
    state = known()
    assert said("It has 241,100 people.", replace(state, history=(*state.history, *later))) != []
    assert said("It has 241,100 people.", replace(state, history=(*state.history, *later, User(text="Hm.")))) == []


def test_it_keeps_the_laws_of_guards() -> None:
    texts = st.text(alphabet="0123456789., milonthusad", max_size=40).map(lambda text: json.dumps({"text": text}))
    assert_guard_laws(GUARD, tools=("tell",), arguments=texts, max_examples=30)


def test_without_value_checks_an_answer_is_taken_as_it_is() -> None:
    answers = [call("get_country", name="Lirande"), call("tell", text="It has 24.1 million people.")]
    taken = run_sync(
        dataclasses.replace(WORKFLOW, calls=Calls(value_checks=False)), "Where?", backend=Scripted(answers)
    )
    assert taken.unwrap().value == "It has 24.1 million people."
