"""Rescue: a clean call, replies of three sizes, and the worst texts that we know."""

import json

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from stages.reasoning import split_reasoning
from stages.rescue import rescue

NAMES = ("get_weather", "search", "write_file", "set_timer", "run_sql", "get_time")
CALL = '{"name": "get_weather", "arguments": {"city": "Paris", "unit": "celsius"}}'
LONG = json.dumps({"name": "write_file", "arguments": {"path": "a.py", "content": "x = {'a': [1, 2]}\n" * 190}})
PROSE = "The quick brown fox jumps over the (lazy) dog, and `then` it rests. "

REPLIES = {
    "200 B, fenced": f"I'll look that up for you.\n\n```json\n{CALL}\n```",
    "4 kB, one call": f"<tool_call>\n{LONG}\n</tool_call>",
    "4 kB, prose": (PROSE * 60)[:4000],
    "100 kB, prose": (PROSE * 1600)[:100_000],
    "100 kB, reasoning and a call": f"<think>{(PROSE * 1600)[:100_000]}</think>\n<tool_call>\n{CALL}\n</tool_call>",
}
WORST = {
    "braces": "{",
    "brackets": "[{",
    "openers": "<tool_call>",
    "quotes": '"',
    "backticks": "`",
    "fences": "```\n",
    "nesting": '{"a":',
    "calls": f"{CALL}\n",
    "torn calls": '<tool_call>{"name": "get_weather"',
    "xml": "<function=get_weather><parameter=a>",
    "invokes": '<invoke name="get_weather"><parameter name="x">',
    "tags": "<get_weather><a>",
    "thoughts": "<think>",
    "examples": f"For example: {CALL} ",
    "arguments": "get_weather[ARGS]{",
    "recipients": ">>>get_weather\n{",
    "bare names": '{"name": get_weather, x',
    "bare keys": "{a:",
    "doubled braces": "{{a:",
    "addresses": "to=functions.get_weather json{",
    "tags and braces": "<get_weather>{",
    "any tags": "<a>",
    "empty tags": "<get_weather/>",
    "labels": "Tool: get_weather\nInput: a\n",
    "torn labels": '{"a":"\nAction: {',
    "python": "```\nget_weather(",
    "strange python": '[x(a="',
    "logs": "<log>",
    "deep arrays": '{"name":[[[[',
    "half arrays": '[{"name":"get_weather"},',
    "semicolons": '{"a":;{',
    "torn fences": "```json\n{",
    "text in text": '{"name":"get_weather","arguments":"{\\"a\\":[{"name":"x"},',
    "less than": "<",
}


def test_a_clean_fenced_call(benchmark: BenchmarkFixture) -> None:
    found = benchmark(rescue, f"```json\n{CALL}\n```", NAMES)
    assert [call.name for call in found.calls] == ["get_weather"]


@pytest.mark.parametrize("size", REPLIES)
def test_a_reply(benchmark: BenchmarkFixture, size: str) -> None:
    benchmark(rescue, REPLIES[size], NAMES)


@pytest.mark.benchmark(max_time=0.2, min_rounds=3)
@pytest.mark.parametrize("kilobytes", [50, 100])
@pytest.mark.parametrize("kind", WORST)
def test_the_worst_texts(benchmark: BenchmarkFixture, kind: str, kilobytes: int) -> None:
    length = kilobytes * 1000
    text = (WORST[kind] * (length // len(WORST[kind]) + 1))[:length]
    benchmark(rescue, text, NAMES)


def test_splitting_reasoning(benchmark: BenchmarkFixture) -> None:
    benchmark(split_reasoning, REPLIES["100 kB, reasoning and a call"])
