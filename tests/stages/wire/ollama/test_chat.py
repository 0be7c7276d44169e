"""Ollama's /api/chat: what is sent, and what its servers have been seen to answer."""

import json

import msgspec
import pytest
from msgspec import Raw

from stages.effect import Fault, RawCall, Reply, Request, Usage
from stages.message import Assistant, Kind, System, Tool, ToolCall, User
from stages.tool import ToolSpec
from stages.wire.ollama import chat as ollama
from stages.wire.openai import chat as openai
from stages.wire.sampling import Sampling
from stages.wire.wires import OLLAMA

LOOK = ToolSpec(name="look", description="Look.", parameters=Raw(b'{"type":"object"}'))
HISTORY = (
    System(text="Do it."),
    User(text="Go."),
    Assistant(
        calls=(
            ToolCall(id="call_000000001", name="look", arguments='{"what":"a"}'),
            ToolCall(id="call_000000002", name="look", arguments='{"what":{"b":[1,2.50]}}'),
        ),
        reasoning="hidden",
        turn=1,
    ),
    Tool(call_id="call_000000001", name="look", text="7", turn=1),
    Tool(call_id="call_000000002", name="look", text="8", turn=1),
    User(text="Go on.", kind=Kind.RETRY_NUDGE, turn=1),
)


def test_a_request_is_what_the_protocol_says() -> None:
    """Field by field: sampling under `options`, arguments as objects, results by the name of their tool."""
    request = Request(
        head=ollama.request_head(
            "qwen3", Sampling(temperature=0.5, seed=7), ollama.OPTION_NAMES, {"think": False}, 8192
        ),
        messages=openai.encode_messages(ollama.encode_history(HISTORY)),
        tail=OLLAMA.tail(openai.encode_tools((LOOK,)), None),
    )
    function = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
    assert json.loads(request.body) == {
        "model": "qwen3",
        "stream": False,
        "think": False,
        "options": {"num_ctx": 8192, "num_predict": 1024, "temperature": 0.5, "seed": 7},
        "messages": [
            {"role": "system", "content": "Do it."},
            {"role": "user", "content": "Go."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"function": {"name": "look", "arguments": {"what": "a"}}},
                    {"function": {"name": "look", "arguments": {"what": {"b": [1, 2.5]}}}},
                ],
            },
            {"role": "tool", "content": "7", "tool_name": "look"},
            {"role": "tool", "content": "8", "tool_name": "look"},
            {"role": "user", "content": "Go on."},
        ],
        "tools": [{"type": "function", "function": function}],
    }


def test_what_is_not_asked_for_is_not_sent() -> None:
    assert json.loads(bytes(OLLAMA.head("m", Sampling(), ()))) == {
        "model": "m",
        "stream": False,
        "options": {"num_predict": 1024},
    }
    assert json.loads(bytes(OLLAMA.tail(None, Raw(b'{"type":"object"}')))) == {"format": {"type": "object"}}


def test_two_system_prompts_are_one_message() -> None:
    wire = ollama.encode_history((System(text="a"), User(text="u"), System(text="b")))
    assert [(m.role, m.content) for m in wire] == [("system", "a\n\nb"), ("user", "u")]


ANSWERS: dict[str, tuple[bytes, Reply]] = {
    "text": (
        (
            b'{"model":"llama3.2","message":{"role":"assistant","content":"Hello!"},'
            b'"done":true,"done_reason":"stop","total_duration":5191566416,"prompt_eval_count":26,"eval_count":298}'
        ),
        Reply(text="Hello!", usage=Usage(prompt=26, completion=298)),
    ),
    "a call": (
        (
            b'{"message":{"role":"assistant","content":"","thinking":"Hm.","tool_calls":[{"function":'
            b'{"name":"temperature","arguments":{"city":"New York","n":[1, 2]}}}]},"done":true,"done_reason":"stop"}'
        ),
        Reply(
            reasoning="Hm.",
            calls=(RawCall(name="temperature", arguments='{"city":"New York","n":[1, 2]}'),),
        ),
    ),
    "arguments as a string": (
        b'{"message":{"tool_calls":[{"function":{"name":"f","arguments":"{\\"a\\":1}"}}]}}',
        Reply(calls=(RawCall(name="f", arguments='{"a":1}'),)),
    ),
    "no arguments at all": (
        b'{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":null}},{}]}}',
        Reply(calls=(RawCall(name="f"), RawCall())),
    ),
    "cut off": (
        b'{"message":{"content":"Once"},"done":true,"done_reason":"length","prompt_eval_count":9,"eval_count":1024}',
        Reply(text="Once", finish="length", usage=Usage(prompt=9, completion=1024)),
    ),
}


@pytest.mark.parametrize(("answer", "reply"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_is_read(answer: bytes, reply: Reply) -> None:
    assert ollama.decode_reply(answer) == reply


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b'{"error":"model \'qwen\' not found"}', "model 'qwen' not found"),
        (b'{"error":"json: cannot unmarshal string into Go struct field"}', "cannot unmarshal"),
        (
            b'{"message":{"content":"a"},"done":false}\n{"message":{"content":"b"},"done":true}',
            "is not one of /api/chat",
        ),
        (b'{"done":true}', "has no message"),
        (b"", "is not one of /api/chat"),
        (b'{"message":"hi"}', "is not one of /api/chat"),
        (
            b'{"message":{"tool_calls":[{"function":{"arguments":' + b"[" * 5000 + b"]" * 5000 + b"}}]}}",
            "not one of /api",
        ),
    ],
)
def test_what_is_no_answer_is_a_fault_that_says_why(answer: bytes, says: str) -> None:
    fault = ollama.decode_reply(answer)
    assert isinstance(fault, Fault)
    assert says in fault.detail
    assert len(fault.body) <= 2000


def test_damaged_arguments_are_mended_or_told() -> None:
    """Ollama answers 400 to arguments that are no object, and would for ever."""

    def sent(arguments: str) -> object:
        call = ToolCall(id="1", name="look", arguments=arguments)
        answer = Tool(call_id="1", name="look", text="No.")
        wire = openai.encode_messages(ollama.encode_history((User(text="u"), Assistant(calls=(call,)), answer)))
        return [msgspec.json.decode(message) for message in wire[1:]]

    assert sent('{"what": "a",}') == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "look", "arguments": {"what": "a"}}}],
        },
        {"role": "tool", "content": "No.", "tool_name": "look"},
    ]
    assert sent("what is this") == [
        {"role": "assistant", "content": "[called look: what is this]"},
        {"role": "user", "content": "Result of look:\nNo."},
    ]
