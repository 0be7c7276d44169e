"""An agent as a tool: its budget, its questions, its journal and its events are those of the agent that calls it."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from forge import Limits, Workflow, follow, resume_journal, tool
from forge.agent import Agent, agent_tool
from forge.agent.memory import InProcessStore, Session, SQLiteStore
from forge.cli.timelines import timeline
from forge.interpreters.scripted import Line, Scripted, call, calls
from forge.journal import journal_parts, read_journal, replay, states
from forge.outcome import Finished
from forge.runtime.runs import resume, run
from stages.effect import Budget, Execute, Fault, NeedsInput, Price, Reply, Said, Usage
from stages.events import CallsAccepted, RunFailed, RunFinished, RunHalted, RunStarted, Stamped, ToolsReturned
from stages.halt import BudgetSpent, Cancelled
from stages.message import Tool
from stages.saved import load, save
from stages.state import Awaiting, State
from tests.flows import approve

TASK = call("expert", task="Add 3 and 4.")
WHICH = call("ask_question", question="Which order?", suggestions=["A-17", "B-2"])


@tool
async def add() -> str:
    """Add."""
    return "added"


def costing(line: Reply | str, tokens: int = 100) -> Reply:
    """The reply, for which the server counted so many tokens."""
    reply = Reply(text=line) if isinstance(line, str) else line
    return replace(reply, usage=Usage(prompt=tokens, completion=0))


def asker(name: str, *script: Line, **options: Any) -> Agent:
    return Agent(name, backend=Scripted(script), built_in_tools=["ask_question"], **options)


def two(*child: Line, parent: tuple[Line, ...] = (TASK, "It is 7."), **options: Any) -> tuple[Agent, Agent]:
    """An expert that may ask, and the boss that has it as a tool. The options are the boss's, `expert` the other's."""
    expert = asker("expert", *child, **options.pop("expert", {}))
    boss = Agent("boss", backend=Scripted(parent), tools=[agent_tool(expert, description="Sums.")], **options)
    return boss, expert


def told(agent: Agent, name: str = "expert") -> str:
    """What the model was last told of a call of that tool."""
    assert agent.state is not None
    return [m.text for m in agent.state.history if isinstance(m, Tool) and m.name == name][-1]


# What it takes.


def test_what_it_spends_its_caller_has_spent() -> None:
    child = (costing(call("nothing")), costing("Seven."))
    boss, _ = two(
        *child, parent=(costing(TASK), costing("It is 7.")), limits=Limits(max_iterations=10, max_tokens=1000)
    )
    state = boss.process_sync("What is 3 and 4?").unwrap().state
    assert state.ledger.budget.calls == 10 - 4
    assert state.ledger.budget.tokens == 1000 - 400
    assert state.ledger.tokens_used == 400


def test_it_is_never_given_more_than_its_caller_has_left() -> None:
    boss, _ = two(*[call("nothing")] * 9, parent=(TASK, "I could not."), limits=Limits(max_iterations=4))
    state = boss.process_sync("What is 3 and 4?").unwrap().state
    assert "budget of calls is spent" in told(boss)
    assert state.ledger.budget.calls == 0  # one for the call, two for the expert, one kept for the answer


def test_its_tokens_are_its_callers() -> None:
    child = [costing(call("nothing"), 400)] * 9
    boss, _ = two(*child, parent=(costing(TASK), "I could not."), limits=Limits(max_tokens=1000))
    ended = boss.process_sync("What is 3 and 4?")
    assert isinstance(ended.failure().halt, BudgetSpent)  # 100, then three times 400
    assert ended.failure().state.ledger.tokens_used == 1300


def test_its_cost_is_counted_by_its_own_price_or_by_its_callers() -> None:
    def cost(price: Price | None = None) -> float:
        child = (costing("Seven.", 1_000_000),)
        boss, _ = two(
            *child, limits=Limits(max_cost=100.0, price=Price(prompt=2.0)), expert={"limits": Limits(price=price)}
        )
        return boss.process_sync("What is 3 and 4?").unwrap().state.ledger.cost

    assert cost() == pytest.approx(2.0, abs=0.01)  # what the boss itself said is estimated
    assert cost(price=Price(prompt=0.5)) == pytest.approx(0.5, abs=0.01)


def test_several_at_once_share_what_is_left() -> None:
    answers = {name: Scripted([call("nothing")] * 9) for name in ("one", "other")}
    tools = [
        agent_tool(Agent(name, backend=model), description="Reads.", effect="read") for name, model in answers.items()
    ]
    parent = Scripted([calls(("one", {"task": "Read."}), ("other", {"task": "Read."})), "Neither could."])
    boss = Agent("boss", backend=parent, tools=tools, limits=Limits(max_iterations=6))
    state = boss.process_sync("Read.").unwrap().state
    assert [len(model.requests) for model in answers.values()] == [2, 2]
    assert state.ledger.budget.calls == 0


def test_what_it_had_spent_counts_where_it_came_to_no_end() -> None:
    def broken(arguments: dict[str, object]) -> str:
        raise ValueError("broken")

    expert: dict[str, Any] = {"tools": [add], "completion_checks": {"add": broken}}
    boss, _ = two(costing(call("add")), parent=(TASK, "Sorry."), limits=Limits(max_iterations=5), expert=expert)
    state = boss.process_sync("What is 3 and 4?").unwrap().state
    assert "broken" in told(boss)
    assert state.ledger.budget.calls == 5 - 3
    assert state.ledger.tokens_used == 100


def test_a_saved_state_does_not_say_what_it_may_spend() -> None:
    saved: list[State] = []

    async def keep(state: State) -> None:
        saved.append(state)

    model = Scripted([call("nothing")] * 9)
    tools = [agent_tool(Agent("expert", backend=model), description="Sums.", effect="read")]
    boss = Workflow("boss", tools=tools, on_text="accept", limits=Limits(max_iterations=4))
    asyncio.run(run(boss, "Add.", backend=Scripted([TASK, "Sorry."]), keep=keep)).unwrap()
    begun = next(s for s in saved if isinstance(s.phase, Awaiting) and isinstance(s.phase.effect, Execute))
    assert isinstance(begun.phase, Awaiting)
    assert isinstance(begun.phase.effect, Execute)
    rich = begun.to(replace(begun.phase, effect=replace(begun.phase.effect, budget=Budget(calls=100))))
    asked = len(model.requests)
    asyncio.run(resume(boss, rich, backend=Scripted(["Sorry."]))).unwrap()
    assert len(model.requests) - asked == asked == 2


# What it asks.


def test_its_question_is_its_callers_and_the_answer_goes_to_it() -> None:
    boss, expert = two(WHICH, "A-17 is paid.", parent=(TASK, "It is paid."))
    asked = boss.process_sync("Is my order paid?").unwrap()
    assert asked.outcome == NeedsInput(question="Which order?", suggestions=("A-17", "B-2"))
    assert boss.process_sync("A-17").unwrap().value == "It is paid."
    assert told(boss) == "[The user was asked: Which order? The answer: A-17]\nA-17 is paid."
    assert expert.state is None


def test_an_expert_that_fails_after_the_answer_says_what_it_had_asked() -> None:
    boss, _ = two(WHICH, call("nothing"), parent=(TASK, "Sorry."), expert={"limits": Limits(max_iterations=1)})
    boss.process_sync("Is my order paid?").unwrap()
    boss.process_sync("A-17").unwrap()
    assert "[The user was asked: Which order? The answer: A-17]\n" in told(boss)
    assert "budget of calls is spent" in told(boss)


def test_the_expert_goes_on_with_all_that_was_said() -> None:
    model = Scripted([WHICH, "A-17 is paid."])
    tools = [agent_tool(Agent("expert", backend=model, built_in_tools=["ask_question"]), description="Knows.")]
    boss = Agent("boss", backend=Scripted([call("expert", task="Look it up."), "Paid."]), tools=tools)
    boss.process_sync("Is my order paid?").unwrap()
    boss.process_sync("A-17").unwrap()
    assert b"Look it up." in model.requests[1]
    assert b"Which order?" in model.requests[1]
    assert b"A-17" in model.requests[1].split(b"Which order?")[1]


@pytest.mark.parametrize("kind", [InProcessStore, SQLiteStore])
def test_a_question_is_still_one_in_another_process(kind: Any, tmp_path: Path) -> None:
    place = () if kind is InProcessStore else (tmp_path / "memory.db",)
    store = kind(*place)

    def desk(child: list[Line], parent: list[Line]) -> Agent:
        tools = [agent_tool(asker("expert", *child), description="Knows.")]
        return Agent("boss", backend=Scripted(parent), tools=tools, memory=Session(store, "ann"))

    desk([WHICH], [TASK]).process_sync("Is my order paid?").unwrap()
    later = desk(["A-17 is paid."], ["It is paid."])
    assert later.process_sync("A-17").unwrap().value == "It is paid."


def test_it_may_ask_again_and_so_may_an_agent_within_it() -> None:
    inner = asker("inner", WHICH, "A-17: 5 EUR.")
    model = Scripted([call("inner", task="Price?"), call("ask_question", question="In which currency?"), "5 EUR."])
    expert = Agent("expert", backend=model, tools=[agent_tool(inner, description="Prices.")])
    boss = Agent("boss", backend=Scripted([TASK, "5 EUR"]), tools=[agent_tool(expert, description="Knows.")])
    said = [boss.process_sync(m).unwrap().value for m in ("What is my total?", "A-17", "EUR")]
    questions = [one.question for one in said if isinstance(one, NeedsInput)]
    assert (questions, said[2]) == (["Which order?", "In which currency?"], "5 EUR")


def test_calls_after_the_one_that_asks_wait_for_the_answer() -> None:
    written: list[str] = []

    @tool
    def write(text: str) -> str:
        """Write."""
        written.append(text)
        return "written"

    expert = agent_tool(asker("expert", WHICH, "A-17."), description="Knows.")
    both = calls(("expert", {"task": "Which?"}), ("write", {"text": "done"}))
    boss = Agent("boss", backend=Scripted([both, "Done."]), tools=[expert, write])
    boss.process_sync("Do it.").unwrap()
    assert written == []
    boss.process_sync("A-17").unwrap()
    assert written == ["done"]


def test_several_questions_are_asked_one_by_one() -> None:
    tools = [
        agent_tool(
            asker(name, call("ask_question", question=f"{name}?"), f"{name} is done."),
            description="Reads.",
            effect="read",
        )
        for name in ("one", "other")
    ]
    parent = Scripted([calls(("one", {"task": "Read."}), ("other", {"task": "Read."})), "Done."])
    boss = Agent("boss", backend=parent, tools=tools)
    said = [boss.process_sync(m).unwrap().value for m in ("Read.", "first", "second")]
    assert said == [NeedsInput(question="one?"), NeedsInput(question="other?"), "Done."]
    assert "first" in told(boss, "one")
    assert "second" in told(boss, "other")


def test_a_question_whose_tool_is_gone_is_given_up() -> None:
    store = InProcessStore()
    asking = agent_tool(asker("expert", WHICH), description="Knows.")
    Agent("boss", backend=Scripted([TASK]), tools=[asking], memory=Session(store, "ann")).process_sync("Hi.").unwrap()
    later = Agent("boss", backend=Scripted(["I cannot."]), memory=Session(store, "ann"))
    assert later.process_sync("A-17").unwrap().value == "I cannot."
    assert "no such tool any more" in told(later)


def test_a_damaged_conversation_is_a_failed_call() -> None:
    boss, _ = two(WHICH, parent=(TASK, "Sorry."))
    state = boss.process_sync("Is it paid?").unwrap().state
    damaged = load(save(state).replace(b'"saved":"{', b'"saved":"{{'))
    ended = asyncio.run(follow(boss.workflow, damaged, "A-17", backend=Scripted(["Sorry."]))).unwrap()
    assert ended.outcome == Said(text="Sorry.")
    assert any("not a saved state" in m.text for m in ended.state.history)


def test_a_workflow_may_have_an_agent_as_a_tool() -> None:
    expert = agent_tool(asker("expert", WHICH, "A-17 is paid."), description="Knows.")
    desk = Workflow("desk", tools=[expert], on_text="accept", limits=Limits(max_iterations=5))

    async def talk() -> Finished:
        asked = (await run(desk, "Is it paid?", backend=Scripted([TASK]))).unwrap()
        return (await follow(desk, asked.state, "A-17", backend=Scripted(["Paid."]))).unwrap()

    ended = asyncio.run(talk())
    assert ended.value == "Paid."
    assert ended.state.ledger.budget.calls == 5 - 2  # the answer's own: one of the expert, one of the desk


def test_what_its_models_server_said_is_not_for_the_calling_model() -> None:
    fault = Fault(kind="status", status=400, detail="http://host answered 400: the key sk-123456 is invalid")
    boss, _ = two(fault, parent=(TASK, "I could not."))
    seen = boss.process_sync("What is 3 and 4?").unwrap().state.history
    (result,) = [message.text for message in seen if isinstance(message, Tool)]
    assert "gave no usable answer" in result
    assert "sk-123456" not in result


def test_who_the_run_asks_decides_on_its_calls() -> None:

    paid: list[str] = []

    @tool(approval=True)
    def pay() -> str:
        """Pay."""
        paid.append("yes")
        return "paid"

    boss, _ = two(call("pay"), "Paid.", expert={"tools": [pay]})
    boss.process_sync("Pay.", ask=approve).unwrap()
    assert paid == ["yes"]


# What is recorded of it.


def test_its_journal_is_beside_that_of_the_run(tmp_path: Path) -> None:
    boss, expert = two("Seven.")
    boss.process_sync("What is 3 and 4?", journal=tmp_path / "run.jsonl").unwrap()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.call_000000001.jsonl", "run.jsonl"]
    assert journal_parts(tmp_path / "run.jsonl") == (tmp_path / "run.jsonl",)
    assert replay(tmp_path / "run.jsonl", boss.workflow).unwrap().value == "It is 7."
    assert replay(tmp_path / "run.call_000000001.jsonl", expert.workflow).unwrap().value == "Seven."


def test_a_replay_has_what_it_spent(tmp_path: Path) -> None:
    boss, _ = two(costing("Seven."))
    live = boss.process_sync("What is 3 and 4?", journal=tmp_path / "run.jsonl").unwrap().state.ledger
    assert replay(tmp_path / "run.jsonl", boss.workflow).unwrap().state.ledger == live
    assert live.tokens_used == 100


def test_a_journal_holds_the_question_and_another_the_answer(tmp_path: Path) -> None:
    boss, expert = two(WHICH, "A-17 is paid.", parent=(TASK, "It is paid."))
    boss.process_sync("Is my order paid?", journal=tmp_path / "1.jsonl").unwrap()
    boss.process_sync("A-17", journal=tmp_path / "2.jsonl").unwrap()
    journal = read_journal(tmp_path / "1.jsonl")
    shown = [item.text for section in timeline(journal, states(journal, boss.workflow))[0] for item in section.items]
    assert "asks the user: Which order?" in shown
    assert isinstance(replay(tmp_path / "1.jsonl", boss.workflow).unwrap().value, NeedsInput)
    assert replay(tmp_path / "2.jsonl", boss.workflow).unwrap().value == "It is paid."
    assert replay(tmp_path / "2.call_000000001.jsonl", expert.workflow).unwrap().value == "A-17 is paid."


def test_a_resumed_run_records_it_too(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    boss, _ = two("Seven.", parent=(Fault(kind="unreachable", detail="no"),))
    boss.process_sync("What is 3 and 4?", journal=path).failure()
    ended = asyncio.run(resume_journal(boss.workflow, path, backend=Scripted([TASK, "It is 7."]))).unwrap()
    assert ended.value == "It is 7."
    assert (tmp_path / "run.call_000000001.jsonl").exists()


def test_secrets_hidden_in_a_journal_are_not_in_another(tmp_path: Path) -> None:
    from forge.journal import Redact

    boss, _ = two("The pin is 4711.", parent=(call("expert", task="The pin 4711?"), "Yes."))
    boss.process_sync("Pin?", journal=tmp_path / "run.jsonl", redact=Redact(values=("4711",))).unwrap()
    assert [one.name for one in tmp_path.iterdir()] == ["run.jsonl"]
    assert b"4711" not in (tmp_path / "run.jsonl").read_bytes()


# What is told of it.


def answers(heard: list[Stamped], agent: str) -> list[str]:
    return [one.event.text for one in heard if one.agent == agent and isinstance(one.event, RunFinished)]


def test_its_events_are_in_its_callers_stream_as_its_own() -> None:
    heard: list[Stamped] = []
    boss, _ = two("Seven.")
    boss.process_sync("What is 3 and 4?", on_event=heard.append).unwrap()
    own = [one for one in heard if not one.parent]
    childs = [one for one in heard if one.parent]
    assert {one.agent for one in own} == {"boss"}
    assert {(one.agent, one.call_id, one.parent) for one in childs} == {("expert", "call_000000001", own[0].run)}
    assert isinstance(childs[0].event, RunStarted)
    assert isinstance(childs[-1].event, RunFinished)
    assert {one.run for one in childs} != {own[0].run}
    assert (answers(heard, "expert"), answers(heard, "boss")) == (["Seven."], ["It is 7."])


def test_those_of_agents_within_agents_name_the_run_that_asked() -> None:
    heard: list[Stamped] = []
    inner = Agent("inner", backend=Scripted(["Seven."]))
    model = Scripted([call("inner", task="Add."), "7"])
    expert = Agent("expert", backend=model, tools=[agent_tool(inner, description="Adds.")])
    tools = [agent_tool(expert, description="Sums.")]
    Agent("boss", backend=Scripted([TASK, "7."]), tools=tools).process_sync("Add.", on_event=heard.append).unwrap()
    runs = {one.agent: (one.run, one.parent) for one in heard}
    assert runs["inner"][1] == runs["expert"][0]
    assert runs["expert"][1] == runs["boss"][0]
    assert runs["boss"][1] == ""
    assert answers(heard, "inner") == ["Seven."]


def test_a_question_ends_the_call_in_the_stream_and_the_answer_begins_it_again() -> None:
    heard: list[Stamped] = []
    boss, _ = two(WHICH, "A-17 is paid.", parent=(TASK, "It is paid."))
    boss.process_sync("Is my order paid?", on_event=heard.append).unwrap()
    boss.process_sync("A-17", on_event=heard.append).unwrap()
    own = [one.event for one in heard if not one.parent]
    results = [result for event in own if isinstance(event, ToolsReturned) for result in event.results]
    assert [type(result).__name__ for result in results] == ["Paused", "Succeeded"]
    assert answers(heard, "boss") == ["Which order?", "It is paid."]


def test_cancelling_its_caller_ends_it_and_its_events() -> None:
    heard: list[Stamped] = []
    agents: list[Agent] = []

    async def wait() -> str:
        agents[0].cancel()
        await asyncio.Event().wait()
        return "never"

    boss, _ = two(call("wait"), expert={"tools": [tool(name="wait")(wait)]})
    agents.append(boss)
    halted = boss.process_sync("What is 3 and 4?", on_event=heard.append).failure()
    assert isinstance(halted.halt, Cancelled)
    inner = [one.event for one in heard if one.parent]
    assert isinstance(inner[-1], RunFailed)
    assert [type(event) for event in inner].count(CallsAccepted) == 1
    assert [type(event) for event in inner].count(ToolsReturned) == 1
    assert isinstance(heard[-1].event, RunHalted)


def test_it_waits_for_a_slow_reader_too() -> None:
    model = Scripted([call("add")] * 1000)
    expert = Agent("expert", backend=model, tools=[add], limits=Limits(max_iterations=1000, max_repeats=None))
    boss = Agent(
        "boss",
        backend=Scripted([TASK]),
        tools=[agent_tool(expert, description="Sums.")],
        limits=Limits(max_iterations=1000),
    )

    async def slow() -> int:
        async with aclosing(boss.stream("Add.")) as events:
            await anext(events)
            for _ in range(10_000):
                await asyncio.sleep(0)
            return len(model.requests)

    assert 0 < asyncio.run(slow()) < 100


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_task_is_a_failed_call(text: str) -> None:
    boss, _ = two(parent=(call("expert", task=text), "Sorry."))
    boss.process_sync("Hi.").unwrap()
    assert "the message is empty" in told(boss)
