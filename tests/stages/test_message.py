"""Messages: their kinds, their sizes in a prompt, and which of them correct the model."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from stages.message import (
    Assistant,
    Message,
    System,
    Tool,
    User,
    call_id,
    size,
)
from stages.tokens import length

MESSAGES: st.SearchStrategy[Message] = st.one_of([st.from_type(kind) for kind in get_args(Message)])


@given(MESSAGES, st.text(min_size=1))
def test_a_longer_text_takes_more_of_the_prompt(message: Message, more: str) -> None:
    longer: dict[type, Message] = {
        System: System(text=message.text + more),
        User: User(text=message.text + more),
        Assistant: Assistant(text=message.text + more, calls=getattr(message, "calls", ())),
        Tool: Tool(call_id="1", name=getattr(message, "name", ""), text=message.text + more),
    }
    assert size(longer[type(message)]) == size(message) + length(more)


def test_what_only_the_server_reads_is_not_counted() -> None:
    assert size(Assistant(text="a", sealed="x" * 1000)) == size(Assistant(text="a"))


@given(st.integers(1, 10**8), st.integers(1, 10**8))
def test_ids_of_calls_sort_as_the_calls_were_made(one: int, other: int) -> None:
    assert (call_id(one) < call_id(other)) == (one < other)
