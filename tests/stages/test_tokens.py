"""Tokens: what is estimated before a request, against what real servers said of it."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from forge import resume
from forge.backends.questions import Tokenizer
from forge.connection import Backend, Connection
from forge.interpreters.scripted import Scripted, call
from stages.events import Event, TurnStarted
from stages.message import Assistant, Tool, ToolCall, size
from stages.state import Ledger, State
from stages.tokens import (
    STARTING_RATE,
    SUM_CHUNK,
    WEIGHTS,
    Report,
    calibrated,
    characters_of,
    fitting_length,
    length,
    rate_of,
    tokens_of,
)
from tests.flows import Desk
from tests.heard import heard_by
from tests.token_runs import errors, kinds, reports, runs

RUNS = runs()
REPORTS = reports()
VLLM = Path(__file__).parents[1] / "data" / "vllm"
NOTHING = Report()
texts = st.text(st.characters(), max_size=60) | st.text(st.characters(), max_size=12).map(lambda text: text * 700)
rates = st.floats(0.05, 1.0)
told = st.builds(Report, characters=st.integers(0, 10**6), tokens=st.integers(0, 10**6))


@pytest.mark.parametrize("asked", [False, True], ids=["by replies alone", "and by the tokenizer"])
def test_after_three_replies_half_of_all_estimates_are_within_5_percent_and_none_is_10_too_low(asked: bool) -> None:
    after: list[float] = []
    for report in REPORTS:
        ledger = Ledger(tokens_per_character=report.rate) if asked else Ledger()
        found = errors(RUNS[report.run], report, ledger)
        assert min(found[1:]) > -0.1, f"{report.model}, {report.run}, {report.mode}"
        after += map(abs, found[3:])
    assert median(after) < 0.05


def test_the_first_estimate_is_not_too_low_either() -> None:
    assert all(errors(RUNS[r.run], r, Ledger())[0] > -0.1 for r in REPORTS)


def test_texts_of_many_kinds_and_languages_take_about_as_much_by_length() -> None:
    for kind in kinds():
        taken = sum(count * WEIGHTS[byte] for byte, count in enumerate(kind.bytes))
        middle = sorted(kind.tokens.values())[len(kind.tokens) // 2] / taken
        assert 0.11 < middle < 0.29, kind.kind


@given(texts, texts)
def test_a_length_is_the_sum_of_its_parts(one: str, other: str) -> None:
    assert length(one + other) == length(one) + length(other) >= len(one) + len(other)
    assert length(one) == sum(WEIGHTS[byte] for byte in one.encode(errors="surrogatepass"))


def test_the_heaviest_bytes_of_a_chunk_do_not_overflow_its_sum() -> None:
    assert max(WEIGHTS) * SUM_CHUNK < 65521
    heavy = chr(0x1F600) * SUM_CHUNK
    assert length(heavy) == SUM_CHUNK * length(chr(0x1F600))


@given(texts, st.integers(-5, 3000))
def test_as_much_of_a_text_fits_as_can(text: str, most: int) -> None:
    count = fitting_length(text, most)
    assert length(text[:count]) <= max(most, 0)
    assert count == len(text) or length(text[: count + 1]) > most


def test_everything_that_is_sent_counts() -> None:
    """400 kB of arguments were nothing."""
    arguments = msgspec.json.encode({"text": "long " * 1000}).decode()
    made = ToolCall(id="call_1", name="write", arguments=arguments)
    assert size(Assistant(calls=(made,))) > size(Assistant()) + len(arguments)
    assert size(Tool(call_id="call_1", name="a" * 50, text="")) == size(Tool(call_id="call_1", name="", text="")) + 50


@given(st.integers(1, 10**5), rates, told)
def test_what_fits_is_the_most_that_fits(tokens: int, rate: float, report: Report) -> None:
    found = characters_of(tokens, rate, report)
    assert found <= 0 or tokens_of(found, rate, report) <= tokens
    assert tokens_of(found + int(3 / (rate * 0.75)) + 1, rate, report) > tokens


def test_the_last_report_is_exact_and_what_came_since_is_counted_at_once() -> None:
    report = Report(characters=8000, tokens=1500)
    assert tokens_of(8000, STARTING_RATE, report) == 1501
    assert tokens_of(8400, STARTING_RATE, report) == 1601
    assert tokens_of(4000, STARTING_RATE, report) == 1500 - 750 + 1


@pytest.mark.parametrize(
    "tokens",
    [0, 10**9, 300],
    ids=["none", "absurd", "only what was not cached"],
)
def test_a_report_that_cannot_be_is_not_believed(tokens: int) -> None:
    last = Report(characters=4000, tokens=900)
    assert calibrated(0.2, last, Report(characters=5000, tokens=tokens), history=4800) == (0.2, last)


def test_tools_that_a_template_does_not_show_are_not_counted_once_that_is_known() -> None:
    rate, report = calibrated(STARTING_RATE, NOTHING, Report(characters=20_000, tokens=40), history=100)
    assert tokens_of(20_400, rate, report) == 141


@given(st.lists(st.tuples(st.integers(0, 10**5), st.integers(-(10**12), 10**12)), max_size=8))
def test_whatever_a_server_reports_the_rate_stays_within_bounds(said: list[tuple[int, int]]) -> None:
    rate, report = STARTING_RATE, NOTHING
    for characters, tokens in said:
        rate, report = calibrated(rate, report, Report(characters=characters, tokens=tokens), history=characters)
        assert 0.05 <= rate <= 1.0
        assert 0 <= report.tokens <= report.characters + 2000
        assert tokens_of(characters, rate, report) > 0


def test_the_rate_rises_at_once_and_falls_slowly() -> None:
    last = Report(characters=1000, tokens=200)
    dense, _ = calibrated(0.2, last, Report(characters=3000, tokens=1000), history=2900)
    sparse, _ = calibrated(0.4, last, Report(characters=3000, tokens=600), history=2900)
    assert dense > 0.37
    assert 0.34 < sparse < 0.35


def asked(answer: Callable[[httpx.Request], httpx.Response], request: bytes) -> tuple[int | None, float | None]:
    async def go() -> tuple[int | None, float | None]:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            tokenizer = Tokenizer(client, "http://server")
            return await tokenizer.count(request), await tokenizer.tokens_per_character()

    return asyncio.run(go())


def streamed(status: int, content: bytes) -> httpx.Response:
    """An answer whose body is still to be read, as a server's is."""

    async def body() -> AsyncIterator[bytes]:
        yield content

    return httpx.Response(status, content=body())


def llama(request: httpx.Request) -> httpx.Response:
    """A server whose template writes what it is asked, and whose tokens are four characters long."""
    body = msgspec.json.decode(request.content)
    if request.url.path == "/apply-template":
        return streamed(200, msgspec.json.encode({"prompt": "".join(m["content"] for m in body["messages"])}))
    return streamed(200, msgspec.json.encode({"tokens": [1] * (len(body["content"]) // 4)}))


def test_a_prompt_is_counted_by_the_servers_own_template_and_tokenizer() -> None:
    tokens, rate = asked(llama, b'{"messages":[{"role":"user","content":"' + b"x" * 400 + b'"}]}')
    assert tokens == 100
    assert rate is not None
    assert 0.15 < rate < 0.3


def test_vllms_tokenizer_is_asked_for_the_messages_and_the_tools() -> None:
    """The questions and the answers that were recorded."""
    whole, text = (json.loads((VLLM / f"tools__tokenize_{name}.json").read_text()) for name in ("messages", "prompt"))
    questions: list[object] = []

    def answer(request: httpx.Request) -> httpx.Response:
        questions.append(msgspec.json.decode(request.content))
        assert request.url.path == "/tokenize"
        return streamed(200, (whole if "messages" in msgspec.json.decode(request.content) else text)["body"].encode())

    async def go() -> tuple[int | None, int | None]:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            tokenizer = Tokenizer(client, "http://server", model="qwen05", takes="messages")
            request = {"temperature": 0, **whole["request"]["body"], "response_format": {}, "max_tokens": 9}
            return await tokenizer.count(msgspec.json.encode(request)), await tokenizer.count_text("hello world")

    assert asyncio.run(go()) == (192, 2)
    assert questions == [whole["request"]["body"], text["request"]["body"] | {"add_special_tokens": False}]


@pytest.mark.parametrize("content", [b"", b"{}", b'{"tokens":3}', b"\xff", b"[" * 10_000])
@pytest.mark.parametrize("status", [200, 404])
def test_a_server_that_does_not_count_is_named_in_the_log(
    content: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="forge"):
        assert asked(lambda _: streamed(status, content), b"{}") == (None, None)
    assert "http://server/tokenize does not count tokens" in caplog.text


def test_a_tokenizer_that_says_nothing_sensible_changes_little() -> None:
    assert rate_of(0, 1000) == 0.05
    assert rate_of(10**9, 1000) == 1.0
    assert rate_of(5, 0) == STARTING_RATE


class Counting:
    """The scripted model with a tokenizer beside it. `counted` are the requests that it was asked about."""

    def __init__(self, tokens: int | None, model: str = "m") -> None:
        self.tokens, self.model = tokens, model
        self.counted: list[bytes] = []

    async def count(self, request: bytes) -> int | None:
        self.counted.append(request)
        return self.tokens

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        async with Scripted([call("look", what="a"), call("finish", result="7")]).connect() as scripted:
            known = replace(scripted.setup, model=self.model, tokens_per_character=0.2)
            yield replace(scripted, setup=known, count=self.count)


def started(backend: Backend, state: State | None = None) -> tuple[list[int], State]:
    """What a run says of its prompts, and its last state."""
    said: list[int] = []

    def watch(event: Event) -> None:
        if isinstance(event, TurnStarted):
            said.append(event.prompt_tokens)

    flow = Desk().workflow
    going = resume(flow, state or flow.start("Go."), backend=backend, on_event=heard_by(watch))
    return said, asyncio.run(going).unwrap().state


def test_a_first_prompt_is_counted_and_what_comes_is_added() -> None:
    model = Counting(450)
    (first, second), state = started(model)
    assert first == 451
    assert len(model.counted) == 1
    added = state.ledger.prompt_size - state.ledger.report.characters
    assert second == int(450 + added * 0.2) + 1


@pytest.mark.parametrize("tokens", [None, 10**9])
def test_a_count_that_cannot_be_leaves_an_estimate(tokens: int | None) -> None:
    (first, _), state = started(Counting(tokens))
    assert (state.ledger.report, state.ledger.tokens_per_character) == (NOTHING, 0.2)
    assert 100 < first < 1000


def test_a_run_that_goes_on_keeps_what_it_learnt_and_on_another_model_begins_anew() -> None:
    model = Counting(450)
    flow = Desk().workflow
    learnt = flow.start("Go.").note(model="m", tokens_per_character=0.3, report=Report(characters=3000, tokens=700))
    _, state = started(model, learnt)
    assert state.ledger.report.tokens == 700
    assert not model.counted
    _, state = started(Counting(450, "another"), learnt)
    assert (state.ledger.report.tokens, state.ledger.model) == (450, "another")
