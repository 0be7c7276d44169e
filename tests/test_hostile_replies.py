"""Replies that no honest model or server gives: the run goes on, or ends typed."""

import asyncio
import tracemalloc
from typing import Any

import msgspec
import pytest

from forge import Limits, Workflow, run, tool
from forge.interpreters.scripted import Line, Scripted, call
from forge.testing import assert_answered
from stages.effect import Fault, Price, RawCall, Reply, Usage
from stages.halt import BudgetSpent
from stages.wire.deltas import LINE_LIMIT, StreamRead
from stages.wire.openai.chat import CALL_NAME_LIMIT, OpenAIStream
from stages.wire.wires import ANTHROPIC, OLLAMA, OPENAI, Wire
from tests.flows import finish


@tool
def look(where: dict[str, int]) -> str:
    """Look."""
    return "nothing"


DEEP = 5_000
ARRAYS = '{"where":' + "[" * DEEP + "]" * DEEP + "}"
OBJECTS = '{"where":' + '{"a":' * DEEP + "1" + "}" * (DEEP + 1)
ENDLESS = '{"where":' + "[" * DEEP


@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize("name", ["look", "finish", "unknown"])
@pytest.mark.parametrize("arguments", [ARRAYS, OBJECTS, ENDLESS], ids=["arrays", "objects", "endless"])
def test_arguments_nested_without_end_are_a_mistake_of_the_model(arguments: str, name: str, mode: str) -> None:
    called: Line = Reply(calls=(RawCall(name=name, arguments=arguments),), finish="tool_calls")
    if mode == "prompted":
        called = f'{{"tool": "{name}", "args": {arguments}}}'
    model = Scripted([called, call("finish")], context_tokens=100_000)
    ended = asyncio.run(run(Workflow("w", tools=[look, finish], terminal_tool="finish"), "Go.", backend=model))
    assert ended.unwrap().value == "ok"
    assert_answered(ended.unwrap().state.history)


@pytest.mark.parametrize(("limits", "spent"), [({"max_tokens": 100}, "tokens"), ({"max_cost": 1e-4}, "cost")])
def test_a_server_that_counts_backwards_does_not_lengthen_the_run(limits: dict[str, Any], spent: str) -> None:
    counts = [
        Usage(prompt=60, completion=0),
        Usage(prompt=-1000, completion=-1000, cached=-1000),
        Usage(prompt=60, completion=0),
    ]
    told = [Reply(text="Hm.", usage=usage) for usage in counts]
    price = Price(prompt=1.0, completion=1.0, cached=0.1)
    flow = Workflow(
        "w", tools=[finish], terminal_tool="finish", limits=Limits(max_retries_per_step=9, price=price, **limits)
    )
    halted = asyncio.run(run(flow, "Go.", backend=Scripted([*told, call("finish")]))).failure()
    assert isinstance(halted.halt, BudgetSpent)
    assert halted.halt.what == spent


def test_a_name_that_never_ends_is_too_large() -> None:
    """It is told anew whenever it grows: without a bound that is the square of a stream of megabytes."""
    stream, found = OpenAIStream(), []
    for number in range(2 * CALL_NAME_LIMIT):
        name = "ab"[number % 2] * (1 + number % 2)
        delta = {"tool_calls": [{"index": 0, "function": {"name": name}}]}
        chunk = msgspec.json.encode({"choices": [{"delta": delta}]})
        stream, pieces = stream.advance(b"data: " + chunk + b"\n\n")
        found += [piece for piece in pieces if isinstance(piece, Fault)]
        if found:
            break
    assert [fault.kind for fault in found] == ["too_large"]


EMPTY = b",".join([b"{}"] * (LINE_LIMIT // 3))
"""As many objects as fit into the longest line that is read: decoded they take two gigabytes and more."""

WHOLE = [
    (OPENAI, b'{"choices":[{"message":{"tool_calls":[%b]}}]}'),
    (OPENAI, b'{"choices":[%b]}'),
    (OLLAMA, b'{"message":{"tool_calls":[%b]}}'),
    (ANTHROPIC, b'{"content":[%b]}'),
]
STREAMED = [
    (OPENAI, b'data: {"choices":[{"delta":{"tool_calls":[%b]}}]}\n'),
    (OPENAI, b'data: {"choices":[%b]}\n'),
    (OLLAMA, b'{"message":{"tool_calls":[%b]}}\n'),
    (ANTHROPIC, b'data: {"type":"content_block_start","content_block":{"input":[%b]}}\n'),
]


def costs(wire: Wire, answer: bytes, *, streamed: bool) -> tuple[object, int]:
    """What a wire makes of an answer, and the most memory that it takes for that."""
    tracemalloc.start()
    found = wire.stream.advance(answer)[1][-1] if streamed else wire.decode(answer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, peak


@pytest.mark.parametrize(("wire", "answer", "streamed"), [(*w, False) for w in WHOLE] + [(*s, True) for s in STREAMED])
def test_an_answer_of_countless_objects_is_refused_before_it_is_decoded(
    wire: Wire, answer: bytes, streamed: bool
) -> None:
    found, peak = costs(wire, answer % EMPTY, streamed=streamed)
    assert isinstance(found, Fault)
    assert found.kind == "too_large"
    assert peak < 4 * LINE_LIMIT


@pytest.mark.parametrize("wire", [OPENAI, OLLAMA, ANTHROPIC], ids=lambda wire: wire.name)
def test_a_line_without_end_is_too_large(wire: Wire) -> None:
    stream = wire.stream
    found: StreamRead = ()
    for _ in range(LINE_LIMIT // 65536 + 1):
        stream, found = stream.advance(b" " * 65536)
    assert [fault.kind for fault in found if isinstance(fault, Fault)] == ["too_large"]


def test_log_probabilities_of_a_long_reply_are_no_crowd() -> None:
    token = b'{"token":"a","top_logprobs":[' + b",".join([b'{"token":"a","logprob":-1}'] * 20) + b"]}"
    told = b",".join([token] * 4096)
    answer = b'{"choices":[{"message":{"content":"hi"},"logprobs":{"content":[' + told + b"]}}]}"
    assert isinstance(OPENAI.decode(answer), Reply)
