"""Questions to the user: not what the user has just asked."""

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from forge.testing import assert_guard_laws
from stages.guards import no_echoes
from stages.message import History, Kind, System, ToolCall, User
from stages.state import State

GUARD = no_echoes("ask_question", "question")
USER: History = (
    System(text="You help."),
    User(text="What is the total of A-17?"),
    User(text="!", kind=Kind.RETRY_NUDGE),
)


def ask(question: object, name: str = "ask_question") -> ToolCall:
    return ToolCall(id="call_1", name=name, arguments=msgspec.json.encode({"question": question}).decode())


@pytest.mark.parametrize(
    ("call", "refused"),
    [
        (ask("What is the total of A-17?"), True),
        (ask("what is the total of a 17"), True),
        (ask("Which order?"), False),
        (ask("What is the total of A-17 in euros?"), False),
        (ask("What is the total of A-17?", "search"), False),
        (ask(7), False),
    ],
)
def test_what_the_user_asked_is_not_asked_back(call: ToolCall, refused: bool) -> None:
    assert bool(GUARD(State(history=USER), (call,))) == refused


def test_where_nobody_has_asked_anything_anything_may_be_asked() -> None:
    assert not GUARD(State(history=()), (ask(""),))
    assert not GUARD(State(history=(User(text="?!"),)), (ask("..."),))


def test_it_keeps_the_laws_of_guards() -> None:
    arguments = st.sampled_from(["{}", '{"question":"What?"}', '{"question":7}'])
    assert_guard_laws(
        GUARD, tools=["ask_question", "look"], arguments=arguments, max_examples=settings().max_examples // 3
    )
