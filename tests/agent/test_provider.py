"""A provider: one reply without tools, whole or as it grows; and the models that an agent falls back on."""

import asyncio

import pytest
from returns.result import Failure, Success

from forge import Limits
from forge.agent import Agent, Provider
from forge.errors import CallbackError, DefinitionError
from forge.interpreters.scripted import Line, Scripted, call
from stages.effect import Fault
from stages.halt import BackendFailed, BudgetSpent, Halt
from stages.message import Assistant, System, User
from stages.wire.deltas import Ended, ReasoningDelta, TextDelta
from tests.flows import look

DOWN = Fault(kind="unreachable", detail="connection refused")


def test_a_reply_comes_whole_with_its_reasoning_apart() -> None:
    model = Scripted(["<think>Easy.</think>Seven."])
    reply = asyncio.run(Provider(model).complete("How many?")).unwrap()
    assert (reply.reasoning, reply.text) == ("Easy.", "Seven.")
    (body,) = model.requests
    assert b"tools" not in body


def test_a_conversation_is_sent_as_it_is() -> None:
    model = Scripted(["Ann."])
    history = (System(text="You are brief."), User(text="I am Ann."), Assistant(text="Hello."), User(text="Who am I?"))
    assert asyncio.run(Provider(model).complete(history)).unwrap().text == "Ann."
    places = [model.requests[0].index(m.text.encode()) for m in history]
    assert places == sorted(places)


def test_a_fault_is_a_value() -> None:
    assert asyncio.run(Provider(Scripted([DOWN])).complete("Hi.")) == Failure(DOWN)


@pytest.mark.parametrize("nothing", ["", "  ", ()])
def test_a_request_without_a_message_is_refused(nothing: str) -> None:
    model = Scripted([])
    with pytest.raises(DefinitionError, match="no message"):
        asyncio.run(Provider(model).complete(nothing))


async def streamed(*script: Line) -> list[object]:
    return [one async for one in Provider(Scripted(script)).stream("How many?")]


def test_a_stream_ends_with_the_reply_or_the_fault() -> None:
    *deltas, reply = asyncio.run(streamed("<think>Easy.</think>Seven."))
    assert Success(reply) == asyncio.run(Provider(Scripted(["<think>Easy.</think>Seven."])).complete("How many?"))
    assert "".join(one.text for one in deltas if isinstance(one, TextDelta)).strip() == "Seven."
    assert any(isinstance(one, ReasoningDelta) for one in deltas)
    assert isinstance(deltas[-1], Ended)
    assert asyncio.run(streamed(DOWN)) == [DOWN]


def chain(*scripts: list[Line], **options: object) -> tuple[Agent, list[Scripted]]:
    models = [Scripted(script) for script in scripts]
    first, *others = models
    agent = Agent("chain", backend=first, fallbacks=others, tools=[look], **options)  # type: ignore[arg-type]
    return agent, models


def test_another_model_goes_on_where_a_server_fails() -> None:
    agent, models = chain([call("look", what="a"), DOWN], [DOWN], ["It is 7."])
    ended = agent.process_sync("Go.").unwrap()
    assert ended.value == "It is 7."
    assert [len(model.requests) for model in models] == [2, 1, 1]
    assert b"a is 7" in models[2].requests[0]
    assert ended.state.ledger.budget.calls == agent.workflow.budget.calls - 2, "what was not answered costs nothing"


def test_another_model_goes_on_where_the_replies_are_refused() -> None:
    agent, models = chain(["Hm."] * 4, [call("look", what="a"), call("task_completion", result="7")], on_text="nudge")
    assert agent.process_sync("Go.").unwrap().value == "7"
    assert len(models[0].requests) == 4


def test_the_next_message_begins_with_the_first_model() -> None:
    agent, models = chain([DOWN, "Two."], ["One."])
    assert [agent.process_sync(said).unwrap().value for said in "12"] == ["One.", "Two."]
    assert b"One." in models[0].requests[1]


def test_a_budget_is_spent_on_all_models_together() -> None:
    agent, models = chain([call("look", what="a")], ["Never asked."], limits=Limits(max_iterations=1))
    assert isinstance(agent.process_sync("Go.").failure().halt, BudgetSpent)
    assert not models[1].requests


def test_the_policy_may_be_ones_own() -> None:
    def never(halt: Halt) -> bool:
        return False

    agent, models = chain([DOWN], ["Never asked."], fall_back_on=never)
    assert isinstance(agent.process_sync("Go.").failure().halt, BackendFailed)
    assert not models[1].requests
    agent, _ = chain([DOWN], ["Never asked."], fall_back_on=lambda halt: None)
    with pytest.raises(CallbackError, match="fall_back_on"):
        agent.process_sync("Go.")
