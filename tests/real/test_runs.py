"""Runs on real models: what a user relies on, whatever the model says."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec
import pytest
from msgspec.structs import replace
from returns.result import Result, Success

from forge import Finished, Halted, Limits, replay, run_sync
from forge.backends import Server
from forge.cli import demo
from forge.connection import Connection
from forge.testing import assert_answered
from stages.effect import Said
from stages.message import History
from stages.state import Completed
from stages.wire.openai.chat import encode_history
from stages.wire.sampling import Sampling
from stages.wire.target import Mode

SHORT = dataclasses.replace(demo.workflow, limits=Limits(max_iterations=3))
"""What holds of ten turns holds of three."""

MODES: list[Mode] = ["native", "prompted", "constrained"]


def on(url: str, mode: Mode, seed: int, max_tokens: int = 128) -> Server:
    return Server(url, mode=mode, sampling=Sampling(temperature=0.7, seed=seed, max_tokens=max_tokens))


def state_of(result: Result[Finished, Halted]) -> Finished | Halted:
    return result.unwrap() if isinstance(result, Success) else result.failure()


def accepted(url: str, history: History) -> bool:
    """Whether the server takes the history as native messages: one broken call in it, and it never would again."""
    body = b'{"max_tokens":1,"messages":' + msgspec.json.encode(encode_history(history)) + b"}"
    return httpx.post(f"{url}/v1/chat/completions", content=body, timeout=120).status_code == 200


@pytest.mark.parametrize("mode", MODES)
def test_a_model_that_is_never_right_ends_typed_within_its_budget(smol: str, mode: Mode, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    backend = on(smol, mode, seed=1, max_tokens=48)
    result = run_sync(SHORT, demo.request("A-17"), backend=backend, journal=str(path))
    run = state_of(result)
    assert run.state.ledger.turn <= 3
    assert_answered(run.state.history)
    assert accepted(smol, run.state.history)
    assert replay(path, SHORT) == result


@pytest.mark.parametrize(
    "mode", ["prompted", *(pytest.param(mode, marks=pytest.mark.soak) for mode in ("native", "constrained"))]
)
def test_a_small_model_ends_typed_and_its_journal_replays_to_the_same_end(
    qwen: str, mode: Mode, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    backend = on(qwen, mode, seed=2, max_tokens=64)
    result = run_sync(SHORT, demo.request("B-42"), backend=backend, journal=str(path))
    run = state_of(result)
    assert run.state.ledger.turn <= 3
    assert_answered(run.state.history)
    assert accepted(qwen, run.state.history)
    assert replay(path, SHORT) == result


def test_constrained_a_model_of_half_a_billion_finishes(qwen: str) -> None:
    """The steps cannot be skipped, so it ends in a report or in a typed halt, and never in a third thing."""
    result = run_sync(demo.workflow, demo.request("A-17"), backend=on(qwen, "constrained", seed=0))
    run = result.unwrap()
    assert isinstance(run.outcome, Completed)
    assert {success.name for success in run.state.ledger.successes} >= {"get_order", "get_customer", "send_report"}


@pytest.mark.parametrize("request_", ["Which orders are A-17 and B-42?", "Thank you, goodbye."])
def test_a_constrained_conversation_answers_in_words_or_calls(qwen: str, request_: str) -> None:
    """The server takes the schema of a list of calls or an answer, and what it makes of it is read."""
    chat = dataclasses.replace(demo.workflow, required_steps=(), on_text="accept", limits=Limits(max_iterations=3))
    run = state_of(run_sync(chat, request_, backend=on(qwen, "constrained", seed=1)))
    assert run.state.prompt.mode == "constrained"
    assert run.state.ledger.successes or (isinstance(run, Finished) and isinstance(run.outcome, Said))


class Boastful:
    """A server that says that it has more context than it has."""

    def __init__(self, url: str) -> None:
        self.server = Server(url, mode="native", sampling=Sampling(max_tokens=16))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        async with self.server.connect() as connection:
            yield replace(connection, setup=replace(connection.setup, context_tokens=100_000))


def test_a_prompt_over_the_context_is_a_typed_refusal(qwen: str) -> None:
    """The server says 400 exceed_context_size_error; forge keeps status and body."""
    halt = run_sync(demo.workflow, "word " * 6000, backend=Boastful(qwen)).failure().halt
    assert type(halt).__name__ == "BackendFailed"
    assert "exceed_context_size_error" in str(halt)
