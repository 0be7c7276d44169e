"""Runs on a backend with a model of its own for summaries: who is asked, who pays, and what a replay needs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import forge
from forge import Context, Limits, Workflow, tool
from forge.agent import Agent
from forge.backends import Models
from forge.connection import Connection, Setup
from forge.interpreters.scripted import Line, Scripted, call
from forge.journal import read_journal, replay
from forge.outcome import Finished
from stages.effect import Fault, Price, Reply, Usage
from stages.events import Event, SummaryFailed
from tests.heard import heard_by

NOTE = "I have read pages 1 to 3. Each has many words and nothing else. Open: the other pages, then the answer."
ROOM = 1024 + 1000  # for a reply, and for the prompt
PAGES = 5


@tool(effect="read")
def read(page: int, reason: str) -> str:
    """Read one page, and say why."""
    return f"Page {page}: many words"


@tool(effect="terminal")
def finish(result: str) -> str:
    """Finish."""
    return result


def reading(page: int) -> Reply:
    return call("read", page=page, reason="because the answer may be on this page " * 8)


WORKFLOW = Workflow("reader", tools=[read, finish], limits=Limits(max_iterations=20), context=Context(summarize=True))
SCRIPT = (*map(reading, range(1, PAGES)), call("finish", result="found"))


def model(*script: Line, room: int = ROOM, **options: Any) -> Scripted:
    return Scripted(script, context_tokens=room, **options)


LATER: tuple[Line, ...] = (*map(reading, range(1, PAGES + 1)), NOTE, call("finish", result="found"))
"""With a page more, before which a summary has failed: this model is asked for the next."""


def run(turns: Scripted, summaries: Scripted, workflow: Workflow = WORKFLOW, **watching: Any) -> Finished:
    backend = Models(turns, summaries=summaries)
    return asyncio.run(forge.run(workflow, "Find it.", backend=backend, **watching)).unwrap()


def test_summaries_are_asked_of_the_other_model_and_nothing_else() -> None:
    turns, summaries = model(*SCRIPT), model(NOTE, room=8192)
    state = run(turns, summaries).state
    turns.assert_complete()
    (asked,) = summaries.requests
    assert b"[Summary] The older part" in asked
    assert b"because the answer may be" in asked
    assert not any(b"[Summary] The older part" in request for request in turns.requests)
    assert NOTE.encode() in turns.requests[-1]
    assert state.ledger.budget.calls == 20 - len(SCRIPT) - 1


def test_it_is_paid_for_out_of_the_same_budget_and_says_nothing_of_this_models_tokens() -> None:
    priced = Workflow(
        "reader",
        tools=[read, finish],
        limits=Limits(max_iterations=20, price=Price(prompt=1.0), max_cost=9.0),
        context=Context(summarize=True),
    )
    counted = Reply(text=NOTE, usage=Usage(prompt=1_000_000, completion=50))
    state = run(model(*SCRIPT), model(counted, room=8192), priced).state
    # The other model's tokens as it counted them; those of the run's own, which counts none, are estimated.
    assert (state.ledger.tokens_used, state.ledger.cost) == pytest.approx((1_000_050, 1.0), rel=0.01)
    assert state.ledger.budget.cost == pytest.approx(8.0, rel=0.01)
    plain = run(model(*SCRIPT), model(NOTE, room=8192)).state
    assert state.ledger.tokens_per_character == plain.ledger.tokens_per_character


@pytest.mark.parametrize("mode", ["native", "prompted", "constrained"])
def test_each_is_asked_in_its_own_mode(mode: Any) -> None:
    turns, summaries = model(*SCRIPT), model(NOTE, room=8192, mode=mode)
    run(turns, summaries)
    (asked,) = summaries.requests
    assert (b'"tools":' in asked) == (mode == "native")
    assert all(b'"tools":' in request for request in turns.requests)


def test_a_conversation_without_room_there_is_summed_up_here() -> None:
    turns, summaries = model(*SCRIPT[:-1], NOTE, SCRIPT[-1]), model(room=1024 + 600)
    run(turns, summaries)
    assert summaries.requests == ()
    assert any(b"[Summary] The older part" in request for request in turns.requests)


@pytest.mark.parametrize("bad", ["No.", Fault(kind="unreachable", detail="connection refused")])
def test_once_one_could_not_be_used_the_other_model_is_asked(bad: Line) -> None:
    heard: list[Event] = []
    turns, summaries = model(*LATER), model(bad, room=8192)
    run(turns, summaries, on_event=heard_by(heard.append))
    turns.assert_complete()
    assert len(summaries.requests) == 1
    assert any(isinstance(event, SummaryFailed) for event in heard)


class Small:
    """A model of another name, whose summary cannot be used."""

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        async with model("No.", room=8192).connect() as connection:
            yield replace(connection, setup=replace(connection.setup, model="small"))


def test_the_turn_after_it_is_written_for_the_runs_own_model() -> None:
    turns = model(*LATER)
    asyncio.run(forge.run(WORKFLOW, "Find it.", backend=Models(turns, summaries=Small()))).unwrap()
    assert all(b'"model":"scripted"' in request for request in turns.requests)


def test_a_journal_replays_without_either(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    ended = run(model(*SCRIPT), model(NOTE, room=8192), journal=path)
    assert replay(path, WORKFLOW).unwrap().state.ledger == ended.state.ledger
    header = read_journal(path).header
    assert header.setup.targets["summary"].context_tokens == 8192


def test_deltas_of_a_summary_are_heard() -> None:
    heard: list[object] = []
    run(model(*SCRIPT), model(NOTE, room=8192), on_chunk=heard.append)
    assert NOTE in str(heard)


def test_an_agent_has_a_model_for_summaries_and_another_to_fall_back_on() -> None:
    summaries = model(NOTE, NOTE, room=8192)
    down = model(*map(reading, range(1, PAGES)), Fault(kind="unreachable", detail="no"))
    agent = Agent(
        "reader",
        backend=Models(down, summaries=summaries),
        fallbacks=[model("Found.")],
        tools=[read],
        context=Context(summarize=True),
    )
    assert agent.process_sync("Find it.").unwrap().value == "Found."
    summaries.assert_complete()


def test_its_setup_has_no_models_within() -> None:
    async def setup() -> Setup:
        nested = Models(model(), summaries=model())
        async with Models(model(), summaries=nested).connect() as connection:
            return connection.setup

    (other,) = asyncio.run(setup()).targets.values()
    assert other.targets == {}
