"""Agents as durable runs: a message is a run, a conversation goes on from the last; agents within one are told of."""

import asyncio
import json
from collections.abc import Awaitable
from pathlib import Path

import pytest

from forge import Approved, Scripted, Workflow, call, durable, tool
from forge.agent import Agent, agent_tool
from forge.agent.memory import Facts, InProcessStore, Session
from forge.durable import Runs
from forge.errors import DefinitionError, RunError
from stages.effect import NeedsInput, Reply, Said, Send
from stages.events import RunFinished, Stamped
from stages.message import User
from tests.durable.till import Answering


@tool(effect="read")
def get_order(order_id: str) -> float:
    """Look up an order."""
    return 129.9


@tool(approval=True)
def refund(amount: float) -> str:
    """Refund an amount."""
    return f"refunded {amount}"


def shop(*script: Reply | str, **options: object) -> tuple[Agent, Scripted]:
    model = Scripted(script)
    return Agent("shop", backend=model, tools=[get_order, refund], **options), model  # type: ignore[arg-type]


async def refused(doing: Awaitable[object]) -> tuple[str, str]:
    with pytest.raises(RunError) as error:
        await doing
    return error.value.kind, str(error.value)


async def said(runs: Runs, run: str) -> str:
    outcome = (await runs.result(run)).unwrap().outcome
    assert isinstance(outcome, Said)
    return outcome.text


async def test_a_conversation_outlives_its_process(tmp_path: Path) -> None:
    database = tmp_path / "runs.db"
    agent, _ = shop(call("get_order", order_id="A-17"), "It costs 129.90.")
    async with durable.worker(agent, database=database) as runs:
        first = await runs.start(agent, "What does A-17 cost?", conversation="ann")
        assert await said(runs, first) == "It costs 129.90."
    agent, model = shop(call("refund", amount=129.9), "Done.", instructions="Be brief.")
    async with durable.worker(agent, database=database) as runs:
        second = await runs.start(agent, "Refund it.", conversation="ann", id="a-key")
        waiting = await runs.wait(second)
        assert waiting.question is not None
        # While that waits for a person, no other message is worked on; the same start is the same run.
        kind, why = await refused(runs.start(agent, "And the next one.", conversation="ann"))
        assert (kind, f"the run {second} is waiting" in why) == ("wrong-state", True)
        assert await runs.start(agent, "Refund it.", conversation="ann", id="a-key") == second
        assert (await refused(runs.start(agent, "Do not.", conversation="ann", id="a-key")))[0] == "reused-id"
        await runs.answer(second, Approved(digest=waiting.question.digest))
        assert await said(runs, second) == "Done."
        asked = json.loads(model.requests[0])["messages"]
        assert [one["content"] for one in asked if one["role"] == "user"] == ["What does A-17 cost?", "Refund it."]
        assert "Be brief." in asked[0]["content"]  # what it is told today
        listed = (await runs.list(conversation="ann")).runs
        assert {(run.id, run.follows, run.followed_by) for run in listed} == {(second, first, ""), (first, "", second)}
        assert {run.conversation for run in listed} == {"ann"}
        assert {run.id for run in (await runs.list(states=["completed"])).runs} == {second, first}


async def test_of_two_messages_at_once_one_is_refused(tmp_path: Path) -> None:
    agent, _ = shop("Hello.", "Yes.")
    async with durable.worker(agent, database=tmp_path / "runs.db") as runs:
        for round_ in ("first", "second"):
            both = [runs.start(agent, f"{round_} {one}", conversation="ann") for one in ("a", "b")]
            ended = await asyncio.gather(*both, return_exceptions=True)
            (wrong,) = (one for one in ended if not isinstance(one, str))
            assert isinstance(wrong, RunError)
            (run,) = (one for one in ended if isinstance(one, str))
            await runs.result(run)
        # Another's conversation of that name is another.
        others = await runs.start(agent, "Hello?", conversation="ann", owner="bob")
        assert (await runs.get(others)).follows == ""


async def test_what_comes_too_late_is_read_with_the_next_message(tmp_path: Path) -> None:
    asked, going = asyncio.Event(), asyncio.Event()

    async def answer(_: Send) -> Reply:
        asked.set()
        await going.wait()
        return Reply(text="Hello.")

    agent = Agent("slow", backend=Answering(answer))
    async with durable.worker(agent, database=tmp_path / "runs.db") as runs:
        first = await runs.start(agent, "Hello?", conversation="ann")
        await asked.wait()
        assert await runs.say(first, "I am Ann.") == 1
        going.set()
        await runs.result(first)
        second = await runs.start(agent, "Who am I?", conversation="ann")
        state = (await runs.result(second)).unwrap().state
        assert [m.text for m in state.history if isinstance(m, User)] == ["Hello?", "I am Ann.\n\nWho am I?"]
        # Deleted, and said in other words: another run, whose writes have other keys.
        await runs.delete(second)
        again = await runs.start(agent, "Who?", conversation="ann")
        assert again != second
        assert (await runs.get(again)).follows == first
        assert "I am Ann" in (await runs.result(again)).unwrap().state.history[-2].text
        # The same for a whole conversation.
        await runs.delete(again)
        await runs.delete(first)
        anew = await runs.start(agent, "Hello?", conversation="ann")
        assert (anew != first, (await runs.get(anew)).follows) == (True, "")
        assert await runs.start(agent, "Hello?", conversation="bob") != anew


async def test_facts_are_shown_with_a_message(tmp_path: Path) -> None:
    facts = Facts(InProcessStore(), "ann")
    await facts.remember("Ann's invoices go to Oslo.")
    agent, model = shop("To Oslo.", facts=facts)
    async with durable.worker(agent, database=tmp_path / "runs.db") as runs:
        assert await said(runs, await runs.start(agent, "Where do my invoices go?")) == "To Oslo."
        assert b"Ann's invoices go to Oslo." in model.requests[0]


async def test_agents_within_a_run_are_told_of_in_its_stream(tmp_path: Path) -> None:
    database, heard = tmp_path / "runs.db", list[Stamped]()
    expert = Agent(
        "expert",
        backend=Scripted([call("get_order", order_id="A-17"), call("ask_question", question="Which part?"), "Of oak."]),
        tools=[get_order],
        built_in_tools=["ask_question"],
    )
    model = Scripted([call("expert", task="What is A-17 made of?"), "Of oak, all of it."])
    desk = Agent("desk", backend=model, tools=[agent_tool(expert, description="Ask an expert.")])
    async with durable.worker(desk, database=database, on_event=heard.append) as runs:
        run = await runs.start(desk, "What is A-17 made of?", conversation="ann")
        outcome = (await runs.result(run)).unwrap().outcome
        assert isinstance(outcome, NeedsInput)  # what the expert asks is asked by the run, and the answer goes to it
        told = [one async for one in runs.events(run, desk.workflow)]
        within = [one for one in told if one.parent]
        assert {(one.agent, one.parent) for one in within} == {("expert", run)}
        names = [type(one.event).__name__ for one in within]
        assert (names[0], names[-1], names.count("ToolsReturned")) == ("RunStarted", "RunFinished", 2)
        # In order, each once, and from any of them on.
        assert sorted(one.sequence for one in told) == [one.sequence for one in told]
        assert len({one.sequence for one in told}) == len(told)
        middle = told.index(within[3])
        assert [one async for one in runs.events(run, desk.workflow, after=within[3].sequence)] == told[middle + 1 :]
        live = [one for one in heard if one.parent == run and isinstance(one.event, RunFinished)]
        assert [one.agent for one in live] == ["expert"]
        assert (await runs.journal(run)).entries  # its journal is that of its own effects
        follows = await runs.start(desk, "The top", conversation="ann")
        assert await said(runs, follows) == "Of oak, all of it."


async def test_what_a_worker_cannot_do_for_an_agent_is_refused(tmp_path: Path) -> None:
    kept, _ = shop(memory=Session(InProcessStore(), "ann"), fallbacks=[Scripted([])])
    flow = Workflow("flow", tools=[get_order], on_text="accept")
    with pytest.raises(DefinitionError) as wrong:
        async with durable.worker([kept, flow], database=tmp_path / "runs.db"):
            pass
    assert [problem.partition("; ")[2] for problem in wrong.value.problems] == [
        "give the worker a backend",
        "remove the agent's memory",
        "remove them",
    ]
    agent, _ = shop("Hello.")
    async with durable.worker(agent, database=tmp_path / "runs.db", backend=Scripted(["From elsewhere."])) as runs:
        assert await said(runs, await runs.start(agent, "Hello?")) == "From elsewhere."


async def test_an_agent_within_a_run_that_dies_has_an_unknown_outcome_or_is_asked_again(tmp_path: Path) -> None:
    asked, going = asyncio.Event(), asyncio.Event()

    async def answer(_: Send) -> Reply:
        asked.set()
        await going.wait()
        return Reply(text="Of oak.")

    for effect in ("write", "read"):
        database = tmp_path / f"{effect}.db"
        within = agent_tool(Agent("expert", backend=Answering(answer)), description="Ask an expert.", effect=effect)
        asked.clear()
        going.clear()
        desk = Agent("desk", backend=Scripted([call("expert", task="What is it made of?")]), tools=[within])
        async with durable.worker(desk, database=database, drain=0.05) as runs:
            run = await runs.start(desk, "What is T-1 made of?", conversation="ann")
            await asked.wait()
        going.set()
        model = Scripted(["That is all that I know.", "Hello again."])
        async with durable.worker(desk, database=database, backend=model) as runs:
            assert await said(runs, run) == "That is all that I know."
            told = json.loads(model.requests[0])["messages"][-1]["content"]
            assert ("Of oak." in told) == (effect == "read")
            assert ("[InDoubt]" in told) == (effect == "write")
            assert await said(runs, await runs.start(desk, "Hello?", conversation="ann")) == "Hello again."
