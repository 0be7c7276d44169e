"""An agent's journals: fallbacks and what is said too late are recorded, each run in a part of its own."""

import asyncio
from pathlib import Path

import pytest

from forge import resume_journal
from forge.agent import Agent
from forge.errors import JournalError
from forge.interpreters.scripted import Scripted, call
from forge.journal import journal_parts, replay
from stages.events import CallsAccepted, Event
from tests.agent.test_provider import DOWN, chain
from tests.flows import look
from tests.heard import heard_by

LOOK = call("look", what="a")


def test_another_model_goes_on_with_a_journal(tmp_path: Path) -> None:
    (agent, _), path = chain([LOOK, DOWN], [DOWN], ["It is 7."]), tmp_path / "run.jsonl"
    ended = agent.process_sync("Go.", journal=path).unwrap()
    assert ended.value == "It is 7."
    parts = journal_parts(path)
    assert [part.name for part in parts] == ["run.jsonl", "run.part-2.jsonl", "run.part-3.jsonl"]
    assert replay(parts[0], agent.workflow).failure().halt.fault == DOWN  # type: ignore[union-attr]
    assert replay(parts[-1], agent.workflow).unwrap().state.history == ended.state.history


def test_a_model_that_cannot_be_reached_leaves_no_part(tmp_path: Path) -> None:
    closed = "http://127.0.0.1:9/v1"
    agent = Agent("chain", backend=closed, fallbacks=[Scripted(["Hello."])], tools=[look])
    assert agent.process_sync("Go.", journal=tmp_path / "run.jsonl").unwrap().value == "Hello."
    assert replay(tmp_path / "run.jsonl", agent.workflow).unwrap().value == "Hello."


def test_the_last_part_can_be_resumed(tmp_path: Path) -> None:
    (agent, _), path = chain([LOOK, DOWN], [DOWN]), tmp_path / "run.jsonl"
    agent.process_sync("Go.", journal=path).failure()
    last = journal_parts(path)[-1]
    assert last.name == "run.part-2.jsonl"
    ended = asyncio.run(resume_journal(agent.workflow, last, backend=Scripted(["It is 7."]))).unwrap()
    assert ended.value == "It is 7."
    assert replay(last, agent.workflow).unwrap().value == "It is 7."


def test_what_came_too_late_is_in_a_part_too(tmp_path: Path) -> None:
    model = Scripted([call("task_completion", result="7"), "7 EUR."])
    agent = Agent("late", backend=model, tools=[look])
    said: list[str] = []

    def observer(event: Event) -> None:
        if isinstance(event, CallsAccepted) and not said:
            said.append("In euros.")
            agent.steer(said[0])

    path = tmp_path / "run.jsonl"
    ended = agent.process_sync("Go.", on_event=heard_by(observer), journal=path).unwrap()
    assert ended.value == "7 EUR."
    assert [replay(part, agent.workflow).unwrap().value for part in journal_parts(path)] == ["7", "7 EUR."]


def test_a_journal_that_is_there_is_refused_before_anything_happens(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("mine")
    agent, (model,) = chain(["Never asked."])
    with pytest.raises(JournalError, match="already exists"):
        agent.process_sync("Go.", journal=path)
    assert (agent.state, model.requests, path.read_text()) == (None, (), "mine")


def test_parts_of_another_journal_are_refused_too(tmp_path: Path) -> None:
    (tmp_path / "run.part-2.jsonl").write_text("another's")
    agent, _ = chain(["Never asked."])
    with pytest.raises(JournalError, match=r"run\.part-2\.jsonl exists already"):
        agent.process_sync("Go.", journal=tmp_path / "run.jsonl")
    assert agent.process_sync("Go.", journal=tmp_path / "other.jsonl").unwrap().value == "Never asked."


def test_a_message_that_is_refused_is_not_lost_with_what_was_said_before(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("mine")
    agent, (model,) = chain(["Ok."])
    agent.steer("In euros.")
    with pytest.raises(JournalError):
        agent.process_sync("Go.", journal=path)
    agent.process_sync("Go.").unwrap()
    assert b"In euros." in model.requests[0]
