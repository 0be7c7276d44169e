"""Codecs: what goes on the wire, byte for byte, and what comes back."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from msgspec import Raw

from stages.effect import Fault, RawCall, Reply, Usage
from stages.message import Assistant, Kind, System, Tool, ToolCall, User
from stages.rules import Rules
from stages.serialize import serialize
from stages.state import Folded, Ledger, Prepared, State, Success
from stages.tool import ToolSpec
from stages.wire.openai import chat as openai
from stages.wire.sampling import Sampling
from stages.wire.target import Target
from tests.property.machine import RULES

HISTORY = (
    System(text="Do it."),
    User(text="Go."),
    Assistant(
        calls=(
            ToolCall(id="call_000000001", name="look", arguments='{"what":"a"}'),
            ToolCall(id="call_000000002", name="look", arguments='{"what":"b"}'),
        ),
        turn=1,
        reasoning="hidden",
    ),
    Tool(call_id="call_000000001", name="look", text="7", turn=1),
    Tool(call_id="call_000000002", name="look", text="8", turn=1),
    User(text="Go on.", kind=Kind.RETRY_NUDGE, turn=1),
)


def body(mode: str, ledger: Ledger | None = None, rules: Rules = RULES, **sampling: object) -> dict[str, object]:
    return json.loads(raw(mode, ledger, rules, **sampling))  # type: ignore[no-any-return]


def raw(mode: str, ledger: Ledger | None = None, rules: Rules = RULES, **sampling: object) -> bytes:
    options = Sampling(**sampling)  # type: ignore[arg-type]  # a test's options
    target = Target(mode=mode, model="qwen", sampling=options)  # type: ignore[arg-type]  # a test's mode
    stage = serialize(rules, target)
    phase = stage(State(history=HISTORY, ledger=ledger or Ledger(), phase=Folded(view=HISTORY))).unwrap().phase
    assert isinstance(phase, Prepared)
    return phase.request.body


def test_a_native_request_is_what_the_protocol_says() -> None:
    assert body("native", temperature=0.5, seed=7) == {
        "temperature": 0.5,
        "seed": 7,
        "max_tokens": 1024,
        "model": "qwen",
        "messages": [
            {"role": "system", "content": "Do it."},
            {"role": "user", "content": "Go."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "type": "function",
                        "id": "call_000000001",
                        "function": {"name": "look", "arguments": '{"what":"a"}'},
                    },
                    {
                        "type": "function",
                        "id": "call_000000002",
                        "function": {"name": "look", "arguments": '{"what":"b"}'},
                    },
                ],
            },
            {"role": "tool", "content": "7", "tool_call_id": "call_000000001"},
            {"role": "tool", "content": "8", "tool_call_id": "call_000000002"},
            {"role": "user", "content": "Go on."},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": t.name,
                    "description": t.description,
                    "parameters": json.loads(bytes(t.parameters)),
                },
            }
            for t in RULES.tools
        ],
    }


def test_a_prompted_request_has_no_tools_field_and_takes_turns() -> None:
    request = body("prompted")
    assert "tools" not in request
    messages = request["messages"]
    assert isinstance(messages, list)
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
    assert messages[0]["content"].startswith("Do it.\n\n# Tools")
    assert messages[2]["content"] == '{"tool":"look","args":{"what":"a"}}\n{"tool":"look","args":{"what":"b"}}'
    assert messages[3]["content"] == "Result of look:\n7\n\nResult of look:\n8\n\nGo on."


def schema(ledger: Ledger, rules: Rules = RULES) -> dict[str, object]:
    form = body("constrained", ledger, rules)["response_format"]
    assert isinstance(form, dict)
    assert form["type"] == "json_schema"
    return form["json_schema"]["schema"]  # type: ignore[no-any-return]


def test_the_constraint_holds_the_calls_that_are_legal_now_and_no_other() -> None:
    """Prerequisites first, the terminal tool only when no step is pending."""
    before = jsonschema_rs.validator_for(schema(Ledger()))
    look, write, finish = (
        {"tool": "look", "args": {"what": "a"}},
        {"tool": "write", "args": {"text": "t"}},
        {"tool": "finish", "args": {}},
    )
    assert [before.is_valid(call) for call in (look, write, finish)] == [True, False, False]
    after = jsonschema_rs.validator_for(schema(Ledger(successes=(Success(name="look", arguments='{"what":"a"}'),))))
    assert [after.is_valid(call) for call in (look, write, finish)] == [True, True, True]
    assert not after.is_valid({"tool": "look", "args": {}})
    assert not after.is_valid({"tool": "look", "args": {"what": "a"}, "more": 1})


def test_the_prompt_does_not_change_with_what_is_legal() -> None:
    """The server's cache of the prompt stays valid."""
    later = Ledger(successes=(Success(name="look", arguments='{"what":"a"}'),))
    assert body("constrained")["messages"] == body("constrained", later)["messages"]


def test_definitions_of_two_tools_do_not_meet() -> None:
    def with_defs(kind: str) -> Raw:
        return Raw(
            msgspec.json.encode(
                {
                    "type": "object",
                    "properties": {"item": {"$ref": "#/$defs/Item"}},
                    "required": ["item"],
                    "$defs": {"Item": {"type": kind}},
                }
            )
        )

    rules = Rules(
        tools=(
            ToolSpec(name="count", description="", parameters=with_defs("integer")),
            ToolSpec(name="name", description="", parameters=with_defs("string")),
        )
    )
    valid = jsonschema_rs.validator_for(schema(Ledger(), rules)).is_valid
    assert valid({"tool": "count", "args": {"item": 1}})
    assert valid({"tool": "name", "args": {"item": "x"}})
    assert not valid({"tool": "name", "args": {"item": 1}})


RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parents[4] / "data/llama_server_replies.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded["name"])
def test_a_real_server_s_answer_is_read(recorded: dict[str, Any]) -> None:
    reply = openai.decode_reply(json.dumps(recorded["response"]).encode())
    assert isinstance(reply, Reply)
    message = recorded["response"]["choices"][0]["message"]
    assert reply.text == (message.get("content") or "")
    assert [call.name for call in reply.calls] == [c["function"]["name"] for c in message.get("tool_calls", [])]
    assert reply.finish == recorded["response"]["choices"][0]["finish_reason"]
    assert isinstance(reply.usage, Usage)


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (b'{"choices":[{"message":{"content":null}}]}', Reply()),
        (
            b'{"choices":[{"message":{"content":"a","reasoning_content":"r"},"finish_reason":"length"}]}',
            Reply(text="a", reasoning="r", finish="length"),
        ),
        (b'{"choices":[{"message":{"reasoning":"r"}}]}', Reply(reasoning="r")),
        (
            b'{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}}]}',
            Reply(calls=(RawCall(name="f", arguments='{"a":1}'),)),
        ),
        (b'{"choices":[{"message":{"tool_calls":[{}]}}]}', Reply(calls=(RawCall(),))),
    ],
)
def test_what_servers_leave_out_or_write_otherwise_is_read(answer: bytes, reply: Reply) -> None:
    assert openai.decode_reply(answer) == reply


@pytest.mark.parametrize(
    "answer", [b"", b"null", b"{", b"[]", b'{"choices":1}', b"\xff\xfe", b'{"error":{"message":"x"}}']
)
def test_what_is_no_completion_is_a_fault(answer: bytes) -> None:
    assert isinstance(openai.decode_reply(answer), Fault)
