"""The words of a reply that is coming, in whichever mode the model writes its calls."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.cli.status import ComingReply, coming_call, coming_words, grown
from stages.effect import Fault
from stages.wire.deltas import CallDelta, CallStarted, Delta, ReasoningDelta, Reclassified, Retry, TextDelta


def after(*deltas: Delta) -> ComingReply:
    reply = ComingReply()
    for delta in deltas:
        reply = grown(reply, delta)
    return reply


def text(written: str) -> ComingReply:
    return after(TextDelta(text=written))


@pytest.mark.parametrize(
    ("reply", "words", "call"),
    [
        (text("Hello **the"), "Hello **the", ""),
        (text('{"answer": "Hello\\nth'), "Hello\nth", ""),
        (text('[{"tool":"task_completion","args":{"result":"It is \\"7'), 'It is "7', "task_completion"),
        (text('{"tool":"converse","args":{"message":"Hi"}}'), "Hi", "converse"),
        (text('{"tool":"ask_question","args":{"question":"Which?","suggestions":["a'), "Which?", "ask_question"),
        (text('[\n {\n "tool": "list_files",\n "args": {"folder": "task_completion'), "", "list_files"),
        (text('[{"tool":"look","args":{}},{"tool":"write","args":{"result":"x'), "", "write"),
        (text("[{"), "", ""),
        (text("<tool_call>"), "", ""),
        (after(CallStarted(index=0, name="look"), CallDelta(index=0, arguments='{"a":')), "", "look"),
        (
            after(CallStarted(index=0, name="converse"), CallDelta(index=0, arguments='{"message":"Hi')),
            "Hi",
            "converse",
        ),
        (after(TextDelta(text="Hm"), Retry(fault=Fault(kind="timeout", detail=""), attempt=1, seconds=1)), "", ""),
        (after(TextDelta(text="thought.Hello"), Reclassified(to_reasoning=13), TextDelta(text="Hello")), "Hello", ""),
        (after(ReasoningDelta(text="Hello"), Reclassified(to_text=5)), "Hello", ""),
    ],
)
def test_what_the_user_is_told_so_far(reply: ComingReply, words: str, call: str) -> None:
    assert (coming_words(reply), coming_call(reply)) == (words, call)


@given(said=st.text(st.characters(codec="utf-8")), cut=st.integers(0, 60))
def test_of_every_answer_in_json_a_beginning_is_read_and_in_the_end_the_whole(said: str, cut: int) -> None:
    whole = json.dumps({"answer": said})
    assert coming_words(text(whole)) == said
    half = ("\ud800", "\udbff")  # of a character of two escapes
    so_far = coming_words(text(whole[:cut]))
    assert said.startswith(so_far[:-1] if half[0] <= so_far[-1:] <= half[1] else so_far) or cut <= len('{"answer": "')
