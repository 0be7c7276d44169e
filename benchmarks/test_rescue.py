"""Rescue: a clean call of each format, replies of three sizes, 20 kB of many kinds, and the worst texts that we know.

The tools' names are prepared, as a reader of replies has them (`stages.reading.toolset`).
"""

import json

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from stages.reasoning import split_reasoning
from stages.rescue import rescue
from stages.rescue.names import indexed

NAMES = indexed(
    {
        "get_weather": ("city", "unit"),
        "search": ("query",),
        "write_file": ("path", "content"),
        "set_timer": ("seconds",),
        "run_sql": ("sql",),
        "get_time": (),
    }
)
CALL = '{"name": "get_weather", "arguments": {"city": "Paris", "unit": "celsius"}}'
LONG = json.dumps({"name": "write_file", "arguments": {"path": "a.py", "content": "x = {'a': [1, 2]}\n" * 190}})
PROSE = "The quick brown fox jumps over the (lazy) dog, and `then` it rests. "
THOUGHT = "The user asks for the weather in Paris. I should call the tool for that, with the city (Paris), and `unit`. "
HERMES = f"<tool_call>\n{CALL}\n</tool_call>"
CODER = (
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
    "<parameter=unit>\ncelsius\n</parameter>\n</function>\n</tool_call>"
)
CLEAN = {
    "in a fence": f"```json\n{CALL}\n```",
    "nothing else": CALL,
    "Hermes": HERMES,
    "Hermes after 0.8 kB of thought": f"<think>\n{(THOUGHT * 8)[:800]}\n</think>\n\n{HERMES}",
    "Hermes after 20 kB of thought": f"<think>\n{(THOUGHT * 190)[:20_000]}\n</think>\n\n{HERMES}",
    "Qwen3-Coder": CODER,
    "Mistral": '[TOOL_CALLS]get_weather{"city": "Paris", "unit": "celsius"}',
}
KINDS = {
    "prose": PROSE,
    "code": "def f(x, y=1):\n    total = {'a': [1, 2, {'b': x}]}\n    return [f(y) for y in range(10) if y < x]\n\n",
    "log": '2026-01-02 10:11:12,345 INFO [worker-3] request id=7 path=/a/b status=200 took 12 ms {"user": 7}\n',
    "HTML": '<div class="card"><p>Some <b>words</b> of (a) text.</p><a href="/x?y=1">link</a></div>\n',
    "JavaScript": "function f(req) {\n  const { id } = req;\n  g({ ok: true, args: [id] }, e => { log({ e }); });\n}\n",
    "code with a tool's name": "def f(x, y=1):\n    return [search(x)['a'][y] for y in range(10) if {'b': y} < x]\n\n",
    "HTML with a tool's name": '<div class="card"><p>Some <b>words</b> of a search.</p><a href="/x">link</a></div>\n',
    "JSON": '{"id": 7, "tags": ["a", "b"], "at": {"x": 1}, "name": "Ann"}\n',
    "calls, Hermes, in lines": f"{HERMES}\n",
    "calls, Hermes, on one line": f"<tool_call>{CALL}</tool_call>",
    "calls, JSON": f"{CALL}\n",
    "calls, Qwen3-Coder": f"{CODER}\n",
    "<": "<",
    "<a>": "<a>",
}

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


@pytest.mark.parametrize("kind", CLEAN)
def test_a_clean_call(benchmark: BenchmarkFixture, kind: str) -> None:
    found = benchmark(rescue, CLEAN[kind], NAMES)
    assert [call.name for call in found.calls] == ["get_weather"]


@pytest.mark.parametrize("kind", KINDS)
def test_20_kilobytes(benchmark: BenchmarkFixture, kind: str) -> None:
    whole = 20_000 // len(KINDS[kind])
    found = benchmark(rescue, KINDS[kind] * whole, NAMES)
    assert len(found.calls) == (whole if "calls" in kind else 0)


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
