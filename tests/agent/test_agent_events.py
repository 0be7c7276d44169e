"""The events of an agent: every start has its end, in an order that a user interface can rely on."""

import asyncio
import re
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from msgspec.structs import replace

from forge import Context, Limits, tool
from forge.agent import Agent
from forge.errors import ForgeError, WatcherError
from forge.interpreters.scripted import Line, Scripted, call, calls
from forge.journal import states
from stages import events
from stages.effect import Approved, Ask, Budget, Fault, InDoubt, Rejected
from stages.events import Stamped
from stages.halt import BudgetSpent, Cancelled, JournalFailed
from stages.state import Completed, Done, State
from stages.wire.deltas import Delta, Ended

T = TypeVar("T")
LOOK = call("look", what="a")

LETTERS: dict[type, str] = {
    events.RunStarted: "S",
    events.Connected: "",
    events.TurnStarted: "(",
    events.SummaryAsked: "(",
    events.ModelReplied: ")",
    events.ModelFailed: "!",
    events.CallsAccepted: "c",
    events.ApprovalAsked: "a",
    events.ApprovalAnswered: "A",
    events.ToolProgressed: "p",
    events.ToolsReturned: "r",
    events.Steered: "U",
    events.Nudged: "n",
    events.BackendReplaced: "B",
    events.RunFinished: ".",
    events.RunHalted: "E",
    events.RunFailed: "E",
}
ORDER = re.compile(r"(S[acAprnU]*(\([)!][acAprn]*U*n*B?)*A?r*[.E])+")
"""A reply before its calls, calls before results, the end last; every start has its end."""


def spelled(told: list[Stamped]) -> str:
    return "".join(LETTERS.get(type(one.event), "") for one in told)


def events_of_kind(told: list[Stamped], kind: type[T]) -> list[T]:
    return [one.event for one in told if isinstance(one.event, kind)]


def assert_contract(told: list[Stamped]) -> None:
    assert all(one.run and one.agent == "told" and one.time for one in told)
    resumed = any(isinstance(one.event, events.BackendReplaced) for one in told)
    for run in {one.run for one in told}:
        numbers = [one.sequence for one in told if one.run == run]
        assert resumed or numbers == sorted(numbers)
    assert ORDER.fullmatch(spelled(told)), spelled(told)
    waiting, asked = set[str](), set[str]()
    for one in told:
        match one.event:
            case events.CallsAccepted(calls=calls):
                assert not waiting & {call.id for call in calls}
                waiting |= {call.id for call in calls}
            case events.ToolProgressed(call_id=call_id):
                assert call_id in waiting
            case events.ToolsReturned(results=results):
                waiting -= {result.call_id for result in results}
            case events.ApprovalAsked(call=call):
                assert call.id not in asked
                asked.add(call.id)
            case events.ApprovalAnswered(call_id=call_id):
                asked.remove(call_id)
            case events.RunFinished() | events.RunHalted() | events.RunFailed():
                assert (waiting, asked) == (set(), set())
            case _:
                pass
        assert msgspec.json.decode(msgspec.json.encode(one), type=Stamped) == one


@tool(effect="read", repeatable=True)
def look(what: str) -> str:
    """Look something up."""
    return f"{what} is 7"


@tool
def work():  # type: ignore[no-untyped-def]  # noqa: ANN201 - as users write it
    """Work."""
    yield "half"
    yield "done"


@tool
def fail() -> None:
    """Fail."""
    raise RuntimeError("broken")


@tool(approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def agent(*script: Line, **options: object) -> Agent:
    return Agent("told", backend=Scripted(script), tools=[look, work, fail, pay], **options)  # type: ignore[arg-type]


def events_of(working: Agent, *messages: str, **watching: object) -> list[Stamped]:
    told: list[Stamped] = []
    for message in messages or ("Go.",):
        working.process_sync(message, on_event=told.append, **watching)  # type: ignore[arg-type]
    return told


def answering(*answers: Callable[[Ask], Approved | Rejected]) -> Callable[[Ask], object]:
    left = iter(answers)

    async def ask(question: Ask) -> Approved | Rejected:
        return next(left)(question)

    return ask


def yes(question: Ask) -> Approved:
    return Approved(digest=question.digest)


def edited(arguments: str) -> Callable[[Ask], Approved]:
    return lambda question: Approved(digest=question.digest, edited=arguments)


def no(question: Ask) -> Rejected:
    return Rejected(digest=question.digest, reason="too much")


def test_a_reply_then_its_calls_then_their_results_then_the_answer() -> None:
    thought = replace(LOOK, reasoning="Where is it?", text="Let me see.")
    told = events_of(agent(thought, "<think>So.</think>It is 7."))
    assert spelled(told) == "S()cr()."
    assert [event.thought for event in events_of_kind(told, events.ModelReplied)] == ["Where is it?", "So."]
    assert [event.text for event in events_of_kind(told, events.CallsAccepted)] == ["Let me see."]
    assert [event.text for event in events_of_kind(told, events.RunFinished)] == ["It is 7."]
    assert any(isinstance(one.event, Delta) for one in told), "its replies are streamed"
    assert_contract(told)


PAY = call("pay", amount=7)
DONE = call("task_completion", result="Done.")


@pytest.mark.parametrize(
    ("script", "spelling", "watching"),
    [
        (["Hi."], "S().", {}),
        ([DONE], "S()cr.", {}),
        ([call("ask_question", question="Which?", suggestions=["a"])], "S()cr.", {}),
        ([call("work"), DONE], "S()cppr()cr.", {}),
        ([calls(("look", {"what": "a"}), ("look", {"what": "b"})), DONE], "S()cr()cr.", {}),
        ([call("nothing"), DONE], "S()n()cr.", {}),
        ([call("fail"), DONE], "S()cr()cr.", {}),
        ([PAY, DONE], "S()aAcr()cr.", {"ask": answering(yes)}),
        ([PAY, DONE], "S()aAr()cr.", {"ask": answering(no)}),
        ([PAY, DONE], "S()aAcr()cr.", {"ask": answering(edited('{"amount": 5}'))}),
        ([PAY, DONE], "S()aAaAcr()cr.", {"ask": answering(edited('{"amount": "x"}'), yes)}),
        ([PAY], "S()aAE", {}),
        ([calls(("look", {"what": "a"}), ("pay", {"amount": 7}))], "S()craAE", {}),
        ([Fault(kind="status", status=500, detail="down")], "S(!E", {}),
    ],
)
def test_what_is_told_of_each_kind_of_turn(script: list[Line], spelling: str, watching: dict[str, object]) -> None:
    told = events_of(agent(*script), **watching)
    assert spelled(told) == spelling
    assert_contract(told)


def test_a_turn_that_halts_says_why() -> None:
    *_, last = events_of(agent(LOOK, limits=Limits(max_iterations=1)))
    assert isinstance(last.event, events.RunHalted)
    assert isinstance(last.event.halt, BudgetSpent)


def test_a_compaction_and_a_summary_are_told_too() -> None:
    why = "because the answer may be there " * 8
    looks = [call("look", what=f"{number}, {why}") for number in range(8)]
    model = Scripted([*looks, DONE], context_tokens=1024 + 1400)  # its summary is a call, so it cannot be used
    told = events_of(Agent("told", backend=model, tools=[look], context=Context(summarize=True)))
    assert any(event.summary for event in events_of_kind(told, events.ModelReplied))
    assert events_of_kind(told, events.HistoryCompacted)
    assert_contract(told)


def test_each_message_is_a_run() -> None:
    told = events_of(agent("One.", "Two."), "1", "2")
    assert_contract(told)
    assert len({one.run for one in told}) == 2
    assert [event.message for event in events_of_kind(told, events.RunStarted)] == ["1", "2"]


def test_a_fallback_goes_on_with_the_run() -> None:
    down = Scripted([Fault(kind="status", status=500, detail="down")])
    told = events_of(Agent("told", backend=down, fallbacks=[Scripted(["Hi."])]))
    assert spelled(told) == "S(!B()."
    assert len({one.run for one in told}) == 1
    assert_contract(told)


def test_an_end_that_could_not_be_saved_is_none() -> None:
    class Full:
        async def load(self) -> None:
            return None

        async def save(self, state: State) -> None:
            if isinstance(state.phase, Done):
                raise ForgeError("the disk is full")

    *_, last = events_of(agent("Hi.", memory=Full()))
    assert isinstance(last.event, events.RunHalted)
    assert isinstance(last.event.halt, JournalFailed)


def test_what_the_user_says_meanwhile_is_told_where_the_model_reads_it() -> None:
    working = agent(LOOK, "7 EUR.", "You are welcome.")
    told: list[Stamped] = []
    words = iter(["In euros.", "Thanks."])

    def on_event(stamped: Stamped) -> None:
        told.append(stamped)
        if isinstance(stamped.event, events.CallsAccepted) or (
            isinstance(stamped.event, events.ModelReplied) and stamped.event.reply.text == "7 EUR."
        ):
            working.steer(next(words))

    working.process_sync("Go.", on_event=on_event)
    assert spelled(told) == "S()crU().S()."
    assert [event.message for event in events_of_kind(told, events.RunStarted)] == ["Go.", "Thanks."]
    assert_contract(told)


def test_a_cancelled_turn_is_complete() -> None:
    @tool(effect="write")
    async def wait() -> None:
        """Wait for ever."""
        await asyncio.Event().wait()

    working = Agent("told", backend=Scripted([call("wait")]), tools=[wait])
    told: list[Stamped] = []

    def on_event(stamped: Stamped) -> None:
        told.append(stamped)
        if isinstance(stamped.event, events.CallsAccepted):
            asyncio.get_running_loop().call_soon(working.cancel)

    working.process_sync("Go.", on_event=on_event)
    assert spelled(told) == "S()crE"
    ((result,),) = (event.results for event in events_of_kind(told, events.ToolsReturned))
    assert isinstance(result, InDoubt)
    assert isinstance(told[-1].event, events.RunHalted)
    assert isinstance(told[-1].event.halt, Cancelled)
    assert_contract(told)


def test_a_turn_that_raises_is_complete_too() -> None:
    def on_chunk(delta: Delta) -> None:
        if isinstance(delta, Ended):
            raise ConnectionError("the screen is gone")

    working, told = agent(LOOK), list[Stamped]()
    with pytest.raises(WatcherError):
        working.process_sync("Go.", on_event=told.append, on_chunk=on_chunk)
    assert spelled(told) == "S(!E"
    assert isinstance(told[-1].event, events.RunFailed)
    assert_contract(told)


def test_a_resumed_turn_begins_and_ends_as_well() -> None:
    options = {"limits": Limits(max_iterations=1), "context": Context(iteration_warning=0)}
    working, told = agent(LOOK, "Seven.", **options), list[Stamped]()
    working.process_sync("Go.")
    asyncio.run(working.resume(budget=Budget(calls=1), on_event=told.append))
    assert spelled(told) == "S()."
    assert_contract(told)


async def streamed(working: Agent) -> list[Stamped]:
    return [stamped async for stamped in working.stream("Go.")]


def test_the_stream_gives_what_the_callback_is_told() -> None:
    script: list[Line] = ["Hm. ", replace(LOOK, text="Let me see."), call("work"), DONE]
    told = events_of(agent(*script, on_text="nudge"))
    came = asyncio.run(streamed(agent(*script, on_text="nudge")))
    bare = [[replace(one, run="", time=None) for one in some] for some in (told, came)]
    assert bare[0] == bare[1]
    outcome = Completed(tool="task_completion", value=msgspec.Raw(b'"Done."'))
    assert came[-1].event == events.RunFinished(outcome=outcome)


def test_a_replay_numbers_them_alike(tmp_path: Path) -> None:
    working = agent("Hm. ", LOOK, call("work"), DONE, on_text="nudge")
    told = events_of(working, journal=tmp_path / "run.jsonl")
    again = [one for step in states(tmp_path / "run.jsonl", working.workflow) for one in step.events]
    assert all(one.time is None for one in again)
    # What no state knows is not in a replay, and the messages that a run begins with are in its first state.
    known = [one for one in told if not isinstance(one.event, Delta | events.ToolProgressed) and one.sequence != (0, 0)]
    assert again == [replace(one, time=None) for one in known]


async def test_leaving_the_stream_cancels_the_work_and_the_conversation_goes_on() -> None:
    working = agent(LOOK, "Seven.")
    async with aclosing(working.stream("Go.")) as told:
        async for stamped in told:
            if isinstance(stamped.event, events.CallsAccepted):
                break
    assert len(asyncio.all_tasks()) == 1, "the work goes on behind the reader's back"
    assert (await working.process("And?")).unwrap().value == "Seven."
