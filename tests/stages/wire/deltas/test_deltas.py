"""Deltas: the pieces of a reply add up to it, and to a fault where they do not."""

from hypothesis import given
from hypothesis import strategies as st

from stages.effect import Fault, RawCall, Reply
from stages.reasoning import Split
from stages.wire.deltas import (
    CallDelta,
    CallStarted,
    Ended,
    ReasoningDelta,
    Reclassified,
    TextDelta,
    gather_reply,
    reply_pieces,
    watched_deltas,
)


@given(st.from_type(Reply))
def test_a_whole_reply_taken_apart_and_put_together_is_the_same(reply: Reply) -> None:
    assert gather_reply(reply_pieces(reply)) == reply


def test_calls_that_come_in_turns_are_put_together_each_by_itself() -> None:
    pieces = (
        CallStarted(index=0, name="look", id="a"),
        CallStarted(index=1, name="write", id="b"),
        CallDelta(index=0, arguments="{"),
        CallDelta(index=1, arguments="{}"),
        CallDelta(index=0, arguments="}"),
        Ended(finish="tool_calls"),
    )
    calls = (RawCall(id="a", name="look", arguments="{}"), RawCall(id="b", name="write", arguments="{}"))
    assert gather_reply(pieces) == Reply(calls=calls, finish="tool_calls")


def test_a_stream_that_ends_too_early_is_no_reply() -> None:
    empty, torn = gather_reply(()), gather_reply((TextDelta(text="Hel"),))
    assert isinstance(empty, Fault)
    assert isinstance(torn, Fault)
    assert (empty.kind, torn.kind) == ("malformed", "interrupted")
    slow = Fault(kind="timeout", detail="slow")
    assert gather_reply((TextDelta(text="Hel"), slow, Ended())) == slow


def test_a_watcher_is_told_when_text_turns_out_to_be_reasoning() -> None:
    split, told = watched_deltas(Split(), TextDelta(text="Hm."))
    assert told == (TextDelta(text="Hm."),)
    split, told = watched_deltas(split, TextDelta(text="</think>Hello."))
    assert told == (Reclassified(to_reasoning=3), TextDelta(text="Hello."))
    assert watched_deltas(split, ReasoningDelta(text="So.")) == (split, (ReasoningDelta(text="So."),))
