"""Messages: their kinds, their sizes in a prompt, and which of them correct the model."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.message import (
    CUT_PHASE,
    NUDGES,
    WARNINGS,
    Assistant,
    Kind,
    Message,
    System,
    Tool,
    ToolCall,
    User,
    call_id,
    is_nudge,
    size,
    turn_of,
)
from stages.tokens import length

MESSAGES: st.SearchStrategy[Message] = st.one_of([st.from_type(kind) for kind in get_args(Message)])
CALL = ToolCall(id="call_000000001", name="look", arguments='{"what":"a"}')


@given(MESSAGES, st.text(min_size=1))
def test_a_longer_text_takes_more_of_the_prompt(message: Message, more: str) -> None:
    longer: dict[type, Message] = {
        System: System(text=message.text + more),
        User: User(text=message.text + more),
        Assistant: Assistant(text=message.text + more, calls=getattr(message, "calls", ())),
        Tool: Tool(call_id="1", name=getattr(message, "name", ""), text=message.text + more),
    }
    assert size(longer[type(message)]) == size(message) + length(more)


@pytest.mark.parametrize("other", [Assistant(calls=(CALL, CALL)), Assistant(calls=(CALL,), text="first")])
def test_every_call_and_every_word_counts(other: Assistant) -> None:
    assert size(other) > size(Assistant(calls=(CALL,))) > size(Assistant())


def test_what_only_the_server_reads_is_not_counted() -> None:
    assert size(Assistant(text="a", sealed="x" * 1000)) == size(Assistant(text="a"))


@pytest.mark.parametrize(
    ("message", "kind", "nudge"),
    [
        (Assistant(text="a"), Kind.TEXT_RESPONSE, False),
        (Assistant(text="a", calls=(CALL,)), Kind.TOOL_CALL, False),
        (User(text="a"), Kind.USER_INPUT, False),
        (User(text="a", kind=Kind.RETRY_NUDGE), Kind.RETRY_NUDGE, True),
        (Tool(call_id="1", name="look", text="a"), Kind.TOOL_RESULT, False),
        (Tool(call_id="1", name="look", text="a", kind=Kind.STEP_NUDGE), Kind.STEP_NUDGE, True),
        (User(text="a", kind=Kind.CONTEXT_WARNING), Kind.CONTEXT_WARNING, False),
    ],
)
def test_what_a_message_is(message: User | Assistant | Tool, kind: Kind, *, nudge: bool) -> None:
    assert (message.kind, is_nudge(message)) == (kind, nudge)


def test_a_system_prompt_corrects_nothing_and_belongs_to_no_turn() -> None:
    assert not is_nudge(System(text="a"))
    assert [turn_of(System(text="a")), turn_of(User(text="a", turn=3))] == [0, 3]


def test_corrections_and_warnings_are_the_first_to_be_cut() -> None:
    assert {CUT_PHASE[kind] for kind in NUDGES | WARNINGS} == {1}


@given(st.integers(1, 10**8), st.integers(1, 10**8))
def test_ids_of_calls_sort_as_the_calls_were_made(one: int, other: int) -> None:
    assert (call_id(one) < call_id(other)) == (one < other)
