"""The Messages API: what is sent, and what is read of the answers that its documents show."""

import json
from typing import Any

import pytest
from msgspec import Raw

from stages.effect import Fault, RawCall, Reply, Request, Usage
from stages.message import Assistant, History, Kind, System, Tool, ToolCall, User
from stages.tool import ToolSpec
from stages.wire.anthropic import messages as anthropic
from stages.wire.openai import chat as openai
from stages.wire.sampling import Sampling
from stages.wire.wires import ANTHROPIC

TOOLS = tuple(ToolSpec(name=n, description=f"{n}.", parameters=Raw(b'{"type":"object"}')) for n in ("look", "write"))
A = ToolCall(id="call_000000001", name="look", arguments='{"what":"a"}')
B = ToolCall(id="call_000000002", name="look", arguments='{"what":"b"}')
USE_A = {"type": "tool_use", "id": A.id, "name": "look", "input": {"what": "a"}}
USE_B = {"type": "tool_use", "id": B.id, "name": "look", "input": {"what": "b"}}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def sent(*history: Any) -> list[Any]:
    return [json.loads(bytes(raw)) for raw in openai.encode_messages(anthropic.encode_history(tuple(history)))]


def test_a_request_is_what_the_protocol_says() -> None:
    history: History = (
        System(text="Do it."),
        User(text="Go."),
        Assistant(text="Both.", calls=(A, B), reasoning="hidden", turn=1),
        Tool(call_id=A.id, name="look", text="7", turn=1),
        Tool(call_id=B.id, name="look", text="No such thing.", kind=Kind.RETRY_NUDGE, turn=1),
        User(text="Go on.", kind=Kind.ITERATION_WARNING, turn=1),
    )
    request = Request(
        head=ANTHROPIC.head("claude", Sampling(temperature=0.5), tuple(history)),
        messages=openai.encode_messages(anthropic.encode_history(history)),
        tail=ANTHROPIC.tail(anthropic.encode_tools(TOOLS), None),
    )
    assert json.loads(request.body) == {
        "max_tokens": 1024,
        "temperature": 0.5,
        "model": "claude",
        "system": [text("Do it.")],
        "messages": [
            {"role": "user", "content": [text("Go.")]},
            {"role": "assistant", "content": [text("Both."), USE_A, USE_B]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": A.id, "content": "7"},
                    {"type": "tool_result", "tool_use_id": B.id, "content": "No such thing.", "is_error": True},
                    text("Go on."),
                ],
            },
        ],
        "tools": [
            {"name": "look", "description": "look.", "input_schema": {"type": "object"}},
            {"name": "write", "description": "write.", "input_schema": {"type": "object"}},
        ],
    }


def test_marks_for_the_cache_stand_where_the_prompt_does_not_change() -> None:
    head = json.loads(bytes(anthropic.request_head("claude", Sampling(), {}, {}, "Do it.", cache=True)))
    tools = json.loads(bytes(anthropic.encode_tools(TOOLS, cache=True)))
    mark = {"type": "ephemeral"}
    assert head["cache_control"] == mark
    assert head["system"] == [text("Do it.") | {"cache_control": mark}]
    assert [tool.get("cache_control") for tool in tools] == [None, mark]


def test_options_that_the_api_has_not_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no min_p, seed; leave"):
        ANTHROPIC.head("claude", Sampling(min_p=0.1, seed=1), ())


@pytest.mark.parametrize(
    ("history", "messages"),
    [
        (
            (User(text="a"), User(text=" \n"), User(text="b")),
            [{"role": "user", "content": [text("a"), text("b")]}],
        ),
        (
            (
                User(text="a"),
                Assistant(text="one"),
                Assistant(text="two", calls=(A,)),
                Tool(call_id=A.id, name="look", text=""),
            ),
            [
                {"role": "user", "content": [text("a")]},
                {"role": "assistant", "content": [text("one"), text("two"), USE_A]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": A.id}]},
            ],
        ),
        (
            (User(text="a"), Assistant(calls=(A, B)), Tool(call_id=A.id, name="look", text="7"), User(text="Go on.")),
            [
                {"role": "user", "content": [text("a")]},
                {"role": "assistant", "content": [text('[called look: {"what":"a"}]\n[called look: {"what":"b"}]')]},
                {"role": "user", "content": [text("Result of look:\n7"), text("Go on.")]},
            ],
        ),
        (
            (
                User(text="a"),
                Assistant(calls=(A, B)),
                Tool(call_id=B.id, name="look", text="8"),
                Tool(call_id=A.id, name="look", text="7"),
            ),
            [
                {"role": "user", "content": [text("a")]},
                {"role": "assistant", "content": [USE_A, USE_B]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": A.id, "content": "7"},
                        {"type": "tool_result", "tool_use_id": B.id, "content": "8"},
                    ],
                },
            ],
        ),
    ],
    ids=[
        "blank text is left out",
        "replies are joined",
        "a call without answer is told",
        "answers in order",
    ],
)
def test_what_the_api_would_refuse_is_written_otherwise(history: History, messages: list[Any]) -> None:
    assert sent(*history) == messages


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (Tool(call_id=A.id, name="look", text="7"), None),
        (Tool(call_id=A.id, name="look", text="7", status="not_run"), True),
    ],
)
def test_a_result_says_whether_it_is_an_error(answer: Tool, wrong: bool | None) -> None:
    assert sent(User(text="u"), Assistant(calls=(A,)), answer)[-1]["content"][0].get("is_error") is wrong


def test_all_system_prompts_are_kept() -> None:
    """B50b: the last one won."""
    assert anthropic.system_text((System(text="a"), System(text=" "), User(text="u"), System(text="b"))) == "a\n\nb"


ANSWERS: dict[str, tuple[bytes, Reply]] = {
    "text": (
        (
            b'{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"Hi."}],'
            b'"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":6}}'
        ),
        Reply(text="Hi.", usage=Usage(prompt=12, completion=6)),
    ),
    "thinking, text and calls": (
        (
            b'{"content":[{"type":"thinking","thinking":"First","signature":"EqQB"},{"type":"redacted_thinking","data":"x"},'
            b'{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"look","input":{"what": "a"}},'
            b'{"type":"tool_use","id":"toolu_2","name":"look","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":10,'
            b'"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":50,"service_tier":"standard"}}'
        ),
        Reply(
            text="I look.",
            reasoning="First",
            sealed='[{"type":"thinking","thinking":"First","signature":"EqQB"},{"type":"redacted_thinking","data":"x"}]',
            calls=(
                RawCall(id="toolu_1", name="look", arguments='{"what": "a"}'),
                RawCall(id="toolu_2", name="look", arguments="{}"),
            ),
            finish="tool_calls",
            usage=Usage(prompt=1110, completion=50, cached=1000),
        ),
    ),
    "blocks of the server's own tools": (
        b'{"content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"text","text":"a"},'
        b'{"type":"new","text":{"deep":1}}],"stop_reason":"end_turn"}'.replace(b'{"deep":1}', b'"deep"'),
        Reply(text="a"),
    ),
    "nothing said": (
        b'{"content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":0}}',
        Reply(usage=Usage(prompt=1)),
    ),
}


@pytest.mark.parametrize(("answer", "reply"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_is_read(answer: bytes, reply: Reply) -> None:
    assert anthropic.decode_reply(answer) == reply


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_why_a_reply_ended_is_told_in_the_terms_of_chat_completions(reason: str, finish: str) -> None:
    reply = anthropic.decode_reply(json.dumps({"content": [], "stop_reason": reason}).encode())
    assert isinstance(reply, Reply)
    assert reply.finish == finish


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}',
            "overloaded_error: Overloaded",
        ),
        (b'{"type":"message"}', "has no content"),
        (b'{"content":"Hi."}', "is not a message"),
        (b"\xff", "is not a message"),
        (
            b'{"content":[{"type":"tool_use","input":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}]}",
            "is not a message",
        ),
    ],
)
def test_what_is_no_answer_is_a_fault_that_says_why(answer: bytes, says: str) -> None:
    fault = anthropic.decode_reply(answer)
    assert isinstance(fault, Fault)
    assert says in fault.detail
