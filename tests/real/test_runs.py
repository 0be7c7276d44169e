"""Runs on real models: what a user relies on, whatever the model says."""

import dataclasses
from pathlib import Path

import httpx
import msgspec
import pytest
from returns.result import Result, Success

from forge import Finished, Halted, Limits, replay, run_sync
from forge.backends import Server
from forge.cli import demo
from forge.testing import assert_answered
from stages.effect import Said
from stages.message import History
from stages.wire.openai.chat import encode_history
from stages.wire.sampling import Sampling
from stages.wire.target import Mode

SHORT = dataclasses.replace(demo.workflow, limits=Limits(max_iterations=3))
"""What holds of ten turns holds of three."""


def on(url: str, mode: Mode, seed: int, max_tokens: int = 128) -> Server:
    return Server(url, mode=mode, sampling=Sampling(temperature=0.7, seed=seed, max_tokens=max_tokens))


def state_of(result: Result[Finished, Halted]) -> Finished | Halted:
    return result.unwrap() if isinstance(result, Success) else result.failure()


def accepted(url: str, history: History) -> bool:
    """Whether the server takes the history as native messages: one broken call in it, and it never would again."""
    body = b'{"max_tokens":1,"messages":' + msgspec.json.encode(encode_history(history)) + b"}"
    return httpx.post(f"{url}/v1/chat/completions", content=body, timeout=120).status_code == 200


@pytest.mark.parametrize(
    "mode", ["native", *(pytest.param(mode, marks=pytest.mark.soak) for mode in ("prompted", "constrained"))]
)
def test_a_model_that_is_never_right_ends_typed_within_its_budget(smol: str, mode: Mode, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    backend = on(smol, mode, seed=1, max_tokens=48)
    result = run_sync(SHORT, demo.request("A-17"), backend=backend, journal=str(path))
    run = state_of(result)
    assert run.state.ledger.turn <= 3
    assert_answered(run.state.history)
    assert accepted(smol, run.state.history)
    assert replay(path, SHORT) == result


@pytest.mark.soak  # the next one tells as much
@pytest.mark.parametrize("mode", ["native", "prompted", "constrained"])
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


def test_constrained_a_model_of_half_a_billion_finishes(qwen: str, tmp_path: Path) -> None:
    """The steps cannot be skipped, so it ends in a report or in a typed halt, and never in a third thing."""
    path = tmp_path / "run.jsonl"
    result = run_sync(demo.workflow, demo.request("A-17"), backend=on(qwen, "constrained", seed=0), journal=str(path))
    run = result.unwrap()
    assert run.value == "Report sent: an order of 129.9 from Lisbon."
    assert replay(path, demo.workflow) == result
    assert {success.name for success in run.state.ledger.successes} >= {"get_order", "get_customer", "send_report"}


def test_a_constrained_conversation_answers_in_words_or_calls(qwen: str) -> None:
    """The server takes the schema of a list of calls or an answer, and what it makes of it is read."""
    chat = dataclasses.replace(demo.workflow, required_steps=(), on_text="accept", limits=Limits(max_iterations=3))
    run = state_of(run_sync(chat, "Thank you, goodbye.", backend=on(qwen, "constrained", seed=1)))
    assert run.state.prompt.mode == "constrained"
    assert run.state.ledger.successes or (isinstance(run, Finished) and isinstance(run.outcome, Said))
