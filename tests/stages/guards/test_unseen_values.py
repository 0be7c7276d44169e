"""Values that nobody gave, in a write that no rule speaks of."""

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from msgspec import Raw

from forge.testing import assert_guard_laws
from stages.guards import no_echoes, no_unseen_values
from stages.message import History, Kind, System, Tool, ToolCall, User
from stages.rules import Rules
from stages.state import Attempt, Ledger, State
from stages.tool import ToolSpec

KINDS = b'{"type":"object","properties":{"day":{"enum":["Friday"]},"at":{},"people":{},"note":{},"on":{}}}'
BOOK = ToolSpec(name="book", description="", parameters=Raw(KINDS))
RULES = Rules(tools=(BOOK,), unruled=("book",), on_text="accept")
SAID: History = (
    User(text="A table for four at Verde, 19:30 please. Order B-7."),
    Tool(call_id="call_1", name="look", text='{"people": 4}'),
)


@pytest.mark.parametrize(
    ("arguments", "unseen"),
    [
        ('{"at": "Verde", "people": 4}', ()),
        ('{"at": "verde", "people": 4.0}', ()),
        ('{"at": "19:30"}', ()),
        ('{"at": "14:00", "people": 2}', ("at", "people")),
        ('{"at": "Osteria"}', ("at",)),
        ('{"at": "order B-8"}', ("at",)),
        ('{"note": "Jane Smith"}', ("note",)),
        ('{"note": "Verde, dinner"}', ()),
        ('{"note": "by the window, if there is one"}', ()),
        ('{"day": "Friday", "on": true, "note": ""}', ()),
    ],
)
def test_a_number_a_word_or_a_code_has_to_be_seen_and_no_text_of_its_own_words(
    arguments: str, unseen: tuple[str, ...]
) -> None:
    call = ToolCall(id="call_2", name="book", arguments=arguments)
    verdict = no_unseen_values(RULES)(State(history=SAID), (call,))
    assert isinstance(verdict, list)
    found = tuple(value.argument for one in verdict for value in getattr(one.wrong, "values", ()))
    assert found == unseen


def test_a_date_a_time_or_a_number_that_is_said_again_was_worked_out_and_a_name_was_not() -> None:
    call = ToolCall(id="call_2", name="book", arguments='{"at": "12:00", "people": 2}')
    named = ToolCall(id="call_2", name="book", arguments='{"at": "Osteria", "people": 2}')
    for made, left in ((call, ()), (named, ("at",))):
        ledger = Ledger(attempts=(Attempt(name="book", arguments=made.arguments),))
        verdict = no_unseen_values(RULES)(State(history=SAID, ledger=ledger), (made,))
        assert isinstance(verdict, list)
        assert tuple(value.argument for one in verdict for value in getattr(one.wrong, "values", ())) == left


def test_the_laws_of_guards() -> None:
    assert_guard_laws(no_unseen_values(RULES), max_examples=settings().max_examples // 3)


# --- Questions: the user is not asked what the user has just asked

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
