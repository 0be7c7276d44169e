"""The laws of the wires: what is written is read back the same, servers that are strict take it, it only grows."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct

from forge.testing.strategies import TOOL_NAMES, histories, texts
from stages.compaction import Compacted, Compactor, ContextBudget, SlidingWindowCompact, TieredCompact
from stages.effect import RawCall, Reply, Usage
from stages.message import Assistant, History, System, Tool, ToolCall, User
from stages.wire import prompted
from stages.wire.anthropic import messages as anthropic
from stages.wire.ollama import chat as ollama
from stages.wire.openai import chat as openai
from stages.wire.valid import alternating_history, is_object, valid_history
from tests.property import servers


class Wire(Struct, frozen=True, kw_only=True):
    """A codec, as `serialize` needs one."""

    messages: Callable[[History], tuple[Raw, ...]]
    check: Callable[[list[Any]], None]
    """What a strict server refuses; AssertionError."""


def wire(encode: Callable[[History], tuple[Struct, ...]], check: Callable[[list[Any]], None]) -> Wire:
    return Wire(messages=lambda history: openai.encode_messages(encode(history)), check=check)


def text_wire(form: prompted.Form) -> Wire:
    return wire(lambda history: openai.encode_history(prompted.as_text(history, "# Tools", form)), servers.takes_turns)


WIRES = {
    "openai": wire(lambda history: openai.encode_history(valid_history(history)), servers.openai),
    "openai, strict template": wire(
        lambda history: openai.encode_history(alternating_history(history)), servers.strict_template
    ),
    "ollama": wire(ollama.encode_history, servers.ollama),
    "anthropic": wire(anthropic.encode_history, servers.anthropic),
    "prompted json": text_wire(prompted.JSON),
}
COMPACTORS: tuple[Compactor, ...] = (
    TieredCompact(keep_recent=0),
    TieredCompact(keep_recent=2),
    SlidingWindowCompact(keep_recent=1),
)


@st.composite
def compacted(draw: st.DrawFn) -> History:
    """A history that a run may send: whole, or cut by a compactor."""
    history = draw(histories())
    cut = draw(st.sampled_from(COMPACTORS))(history, ContextBudget(tokens=draw(st.integers(50, 2000))))
    return cut.history if isinstance(cut, Compacted) else history


damaged = st.sampled_from(
    ["", "{", '{"what": "a', "[1]", "null", '"text"', "{'what': 'a'}", '{"a": 1e999}', '{"a": "\\ud800"}', "x" * 50]
)


@st.composite
def imported(draw: st.DrawFn) -> History:
    """A history from elsewhere: damaged arguments, names that are none, calls and answers that lack each other."""

    def spoilt(message: Any) -> Any:
        match message, draw(st.integers(0, 5)):
            case Assistant(calls=(first, *others)), 0:
                bad = msgspec.structs.replace(first, arguments=draw(damaged))
                return msgspec.structs.replace(message, calls=(bad, *others))
            case Assistant(calls=(first, *others)), 1:
                bad = msgspec.structs.replace(first, name=draw(st.sampled_from(["", "no name", "a.b", "é", "x" * 200])))
                return msgspec.structs.replace(message, calls=(bad, *others))
            case Assistant(calls=(first, *others)), 4:
                return msgspec.structs.replace(message, calls=(first, *others, first))
            case Tool(), 2:
                return None
            case Tool(), 3:
                return msgspec.structs.replace(message, call_id="call_of_nobody")
        return message

    return tuple(m for m in map(spoilt, draw(compacted())) if m is not None)


def parsed(messages: tuple[Raw, ...]) -> list[Any]:
    return [json.loads(bytes(message)) for message in messages]


@given(history=compacted())
def test_strict_servers_take_what_a_run_sends(history: History) -> None:
    for wire in WIRES.values():
        wire.check(parsed(wire.messages(history)))


@given(history=imported())
def test_strict_servers_take_what_was_damaged_elsewhere(history: History) -> None:
    """No server ever refuses a conversation for good."""
    for wire in WIRES.values():
        wire.check(parsed(wire.messages(history)))


@given(history=compacted() | imported(), data=st.data())
def test_what_is_new_is_the_end_of_the_whole(history: History, data: st.DataObject) -> None:
    """What was sent stays, byte for byte, and what is added from a reply on is written by itself."""
    cuts = [
        n
        for n in range(1, len(history))
        if isinstance(history[n], Assistant) and not isinstance(history[n - 1], Assistant)
    ]
    at = data.draw(st.sampled_from(cuts)) if cuts else len(history)
    for wire in WIRES.values():
        added = wire.messages(history[at:]) if at < len(history) else ()
        assert wire.messages(history[:at]) + added == wire.messages(history)


@given(history=compacted())
def test_equal_histories_give_equal_bytes(history: History) -> None:
    """And no state is kept from one history to the next."""
    copy = msgspec.json.decode(msgspec.json.encode(history), type=type_of_history)
    for wire in WIRES.values():
        assert wire.messages(copy) == wire.messages(history)


type_of_history = tuple[System | User | Assistant | Tool, ...]


@given(history=compacted() | imported())
def test_no_word_is_lost(history: History) -> None:
    for wire in WIRES.values():
        written = "\n".join(servers.words(message) for message in parsed(wire.messages(history)))
        for message in history:
            if not isinstance(message, System):
                assert message.text.strip() in written
            if isinstance(message, Assistant):
                assert all(call.name in written for call in message.calls if call.name != "no name")


@given(history=compacted())
def test_a_sound_history_is_left_alone(history: History) -> None:
    assert valid_history(history) == history


@given(history=compacted() | imported())
def test_what_was_repaired_stays(history: History) -> None:
    once, turns = valid_history(history), alternating_history(history)
    assert valid_history(once) == once
    assert alternating_history(turns) == turns
    assert all(is_object(call.arguments) for m in once if isinstance(m, Assistant) for call in m.calls)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
MARKUP = st.lists(
    st.sampled_from(
        ["</parameter>", "<parameter ", 'name="x"', ">", "\n</invoke>", "<invoke ", "\\u003c", "<", "{", "\n", '"', "é"]
    ),
    max_size=8,
).map("".join)
objects = st.dictionaries(st.sampled_from(["a", "b-c", "d.e"]) | st.text(max_size=6), values | MARKUP, max_size=4)
canonical = objects.map(lambda value: msgspec.json.encode(value).decode())
spaced = objects.map(lambda value: json.dumps(value, indent=1, ensure_ascii=True)).filter(is_object)
any_calls = st.lists(
    st.builds(ToolCall, id=st.just(""), name=st.sampled_from(TOOL_NAMES) | st.text(), arguments=canonical | spaced),
    min_size=1,
    max_size=3,
).map(tuple)


@pytest.mark.parametrize("form", [prompted.JSON, prompted.LIST], ids=lambda form: form.name)
@given(made=any_calls)
def test_calls_in_text_come_back_as_they_were(form: prompted.Form, made: tuple[ToolCall, ...]) -> None:
    said = tuple(RawCall(name=call.name, arguments=call.arguments) for call in made)
    if form is prompted.JSON and any("\n" in call.arguments for call in made):
        return  # a call a line: arguments over several lines are for one call alone
    assert form.decode_calls(form.encode_calls(made)) == said
    assert form.decode_calls(f"\n {form.encode_calls(made)} \n") == said


@pytest.mark.parametrize("form", [prompted.JSON, prompted.LIST], ids=lambda form: form.name)
@given(text=st.text() | MARKUP)
def test_text_around_calls_is_for_rescue(form: prompted.Form, text: str) -> None:
    call = ToolCall(id="", name="look", arguments='{"what":"a"}')
    words = "Sure: " + text
    assert form.decode_calls(words) == ()
    assert form.decode_calls(f"{words}\n{form.encode_calls((call,))}") == ()


usages = st.none() | st.builds(Usage, prompt=st.integers(1, 10**6), completion=st.integers(1, 10**5))
raw_calls = st.lists(
    st.builds(RawCall, id=st.text(min_size=1, max_size=9), name=st.text(), arguments=canonical | spaced), max_size=3
).map(tuple)


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    made = draw(raw_calls)
    finish = "tool_calls" if made else draw(st.sampled_from(["stop", "length"]))
    usage = draw(usages)
    return Reply(text=draw(texts()), reasoning=draw(texts()), calls=made, finish=finish, usage=usage)


@given(reply=replies())
def test_a_reply_over_chat_completions_comes_back(reply: Reply) -> None:
    assert openai.decode_reply(servers.openai_reply(reply)) == reply


@given(reply=replies())
def test_a_reply_over_ollama_comes_back_without_the_ids_that_it_has_not(reply: Reply) -> None:
    bare = tuple(msgspec.structs.replace(call, id="") for call in reply.calls)
    finish = "stop" if reply.finish == "tool_calls" else reply.finish
    assert ollama.decode_reply(servers.ollama_reply(reply)) == msgspec.structs.replace(reply, calls=bare, finish=finish)


@given(reply=replies(), cached=st.integers(0, 500))
def test_a_reply_over_the_messages_api_comes_back(reply: Reply, cached: int) -> None:
    usage = reply.usage and msgspec.structs.replace(reply.usage, prompt=reply.usage.prompt + cached, cached=cached)
    whole = msgspec.structs.replace(reply, usage=usage)
    found = anthropic.decode_reply(servers.anthropic_reply(whole))
    assert isinstance(found, Reply)
    assert bool(found.sealed) == bool(whole.reasoning)
    assert msgspec.structs.replace(found, sealed="") == whole


@pytest.mark.parametrize("decode", [openai.decode_reply, ollama.decode_reply, anthropic.decode_reply])
@given(body=st.binary() | values.map(lambda value: json.dumps(value).encode()))
def test_no_answer_is_too_strange_to_be_told(decode: Callable[[bytes], object], body: bytes) -> None:
    decode(body)
