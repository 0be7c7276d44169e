"""Every codec by itself: a request's messages from 10 to 1,000, and a reply. Linear in the messages."""

from collections.abc import Callable

import msgspec
import pytest
from msgspec import Raw
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.histories import history
from stages.effect import Fault, RawCall, Reply
from stages.message import History, ToolCall
from stages.wire import prompted
from stages.wire.anthropic import messages as anthropic
from stages.wire.ollama import chat as ollama
from stages.wire.openai import chat as openai
from stages.wire.valid import alternating_history, valid_history

ENCODERS: dict[str, Callable[[History], tuple[Raw, ...]]] = {
    "openai": lambda whole: openai.encode_messages(openai.encode_history(whole)),
    "ollama": lambda whole: openai.encode_messages(ollama.encode_history(whole)),
    "anthropic": lambda whole: openai.encode_messages(anthropic.encode_history(whole)),
    "prompted json": lambda whole: openai.encode_messages(openai.encode_history(prompted.as_text(whole, "# Tools"))),
}


@pytest.mark.parametrize("messages", [10, 100, 1_000])
@pytest.mark.parametrize("wire", ENCODERS)
def test_encode(benchmark: BenchmarkFixture, wire: str, messages: int) -> None:
    assert len(benchmark(ENCODERS[wire], history(messages))) >= messages - 1


@pytest.mark.parametrize("messages", [10, 100, 1_000])
@pytest.mark.parametrize("function", [valid_history, alternating_history], ids=lambda function: function.__name__)
def test_valid(benchmark: BenchmarkFixture, function: Callable[[History], History], messages: int) -> None:
    whole = history(messages)
    assert benchmark(function, whole) == whole


ARGUMENTS = b'{"what":"something"}'
ANSWERS: dict[str, tuple[Callable[[bytes], Reply | Fault], object]] = {
    "openai": (
        openai.decode_reply,
        {"choices": [{"message": {"tool_calls": [{"function": {"name": "look", "arguments": ARGUMENTS.decode()}}]}}]},
    ),
    "ollama": (
        ollama.decode_reply,
        {"message": {"tool_calls": [{"function": {"name": "look", "arguments": Raw(ARGUMENTS)}}]}},
    ),
    "anthropic": (
        anthropic.decode_reply,
        {"content": [{"type": "tool_use", "id": "t", "name": "look", "input": Raw(ARGUMENTS)}]},
    ),
}


@pytest.mark.parametrize("wire", ANSWERS)
def test_decode(benchmark: BenchmarkFixture, wire: str) -> None:
    decode, answer = ANSWERS[wire]
    reply = benchmark(decode, msgspec.json.encode(answer))
    assert [call.arguments.encode() for call in reply.calls] == [ARGUMENTS]


@pytest.mark.parametrize("size", [200, 4_000, 100_000])
def test_decode_calls(benchmark: BenchmarkFixture, size: int) -> None:
    arguments = msgspec.json.encode({"path": "a.py", "text": "x = {'a': [1, 2]}\n" * (size // 18)}).decode()
    call = ToolCall(id="", name="write", arguments=arguments)
    written = prompted.JSON.encode_calls((call,))
    assert benchmark(prompted.JSON.decode_calls, written) == (RawCall(name="write", arguments=arguments),)
