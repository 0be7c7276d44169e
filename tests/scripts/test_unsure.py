"""Runs of a workflow that says what follows calls that the model is not sure of: one loop, one journal, one budget."""

import asyncio
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from returns.result import Failure, Result, Success

import forge
from forge import Limits, Workflow
from forge.backends import Models
from forge.errors import ForgeError, UnsureError
from forge.interpreters.scripted import Line, Scripted, call, worded
from forge.journal import replay
from forge.outcome import Finished, Halted
from forge.runtime.runs import follow
from stages.confidence.decide import DOUBTS, confidences
from stages.confidence.measure import AskLarger, AskPerson, StopRun, ThinkFirst, UnsureStep, Vote, WhenUnsure
from stages.effect import Fault, NeedsInput, Reply
from stages.halt import BackendFailed, BudgetSpent, Unsure
from stages.message import Assistant
from stages.state import Completed


class Desk:
    """A workflow that routes a ticket; `log` are the calls that ran."""

    def __init__(self, then: UnsureStep | tuple[UnsureStep, ...], below: float = 0.6, **options: object) -> None:
        self.log: list[str] = []
        when = WhenUnsure(below=below, then=then, max_calls=int(str(options.pop("max_calls", 12))))
        self.workflow = Workflow(
            "desk",
            tools=[self.read, self.route],
            terminal_tool="route",
            unsure=when,
            **options,  # type: ignore[arg-type]
        )

    def read(self, ticket: int) -> str:
        """Read a ticket."""
        self.log.append(f"read {ticket}")
        return "The user was charged twice."

    def route(self, queue: Literal["billing", "sales", "technical"]) -> str:
        """Route the ticket."""
        self.log.append(f"route {queue}")
        return queue


def route(queue: str, sure: float) -> Reply:
    return worded(f'{{"tool": "route", "args": {{"queue": "{queue}"}}}}', **{queue: sure})


READ = worded('{"tool": "read", "args": {"ticket": 7}}')


def run(desk: Desk, *script: Line, **watching: Any) -> tuple[Result[Finished, Halted], list[dict[str, Any]]]:
    backend = Scripted(script, mode="constrained", logprobs=True)
    result = asyncio.run(forge.run(desk.workflow, "Route ticket 7.", backend=backend, **watching))
    backend.assert_complete()
    return result, [msgspec.json.decode(body) for body in backend.requests]


def value_of(result: Result[Finished, Halted]) -> object:
    outcome = result.unwrap().outcome
    assert isinstance(outcome, Completed)
    return msgspec.json.decode(outcome.value)


@pytest.mark.parametrize("then", [StopRun(), AskPerson(), Vote(), ThinkFirst(), ()], ids=str)
def test_a_sure_call_is_run_as_if_nothing_had_been_said(then: UnsureStep) -> None:
    result, _ = run(Desk(then), READ, route("billing", 0.9))
    assert value_of(result) == "billing"
    assert [*confidences(result.unwrap().state).values()] == pytest.approx([1.0, 0.9])


def test_an_unsure_call_is_not_run_and_ends_the_run_as_unsure() -> None:
    desk = Desk(StopRun())
    result, _ = run(desk, READ, route("billing", 0.5))
    halted = result.failure()
    assert halted.halt == Unsure(tool="route", arguments='{"queue":"billing"}', confidence=0.5, below=0.6)
    assert "50% sure" in str(halted)
    assert desk.log == ["read 7"]
    backend = Scripted([route("billing", 0.5)], mode="constrained", logprobs=True)
    with pytest.raises(UnsureError, match="route"):
        forge.run_or_raise(Desk(StopRun()).workflow, "Go.", backend=backend)


def test_the_threshold_itself_is_sure_enough_and_zero_only_measures() -> None:
    assert value_of(run(Desk(StopRun(), below=0.5), route("sales", 0.5))[0]) == "sales"
    assert value_of(run(Desk(StopRun(), below=0.0), route("sales", 0.01))[0]) == "sales"


def test_a_reply_without_probabilities_is_unsure_where_they_count() -> None:
    plain = Reply(text='{"tool": "route", "args": {"queue": "sales"}}')
    halt = run(Desk(StopRun()), plain)[0].failure().halt
    assert isinstance(halt, Unsure)
    assert halt.confidence is None
    assert value_of(run(Desk(StopRun(), below=0.0), plain)[0]) == "sales"


def test_the_person_is_asked_about_the_least_sure_choice_and_their_answer_goes_on() -> None:
    desk = Desk(AskPerson())
    result, _ = run(desk, READ, route("sales", 0.4))
    asked, state = result.unwrap().outcome, result.unwrap().state
    question = "Which queue is meant for route: sales or billing or technical?"
    assert asked == NeedsInput(question=question, suggestions=("sales", "billing", "technical"))
    assert state.history[-1] == Assistant(text=question)
    assert desk.log == ["read 7"]
    backend = Scripted([route("billing", 0.99)], mode="constrained", logprobs=True)
    answered = asyncio.run(follow(desk.workflow, state, "billing", backend=backend))
    assert value_of(answered) == "billing"


def test_nothing_is_asked_of_the_server_without_it_and_the_probabilities_with_it() -> None:
    plain = Workflow("desk", tools=[Desk(()).route], terminal_tool="route")
    backend = Scripted([route("sales", 1.0)], mode="constrained", logprobs=True)
    forge.run_sync(plain, "Go.", backend=backend)
    (before,) = (msgspec.json.decode(body) for body in backend.requests)
    _, (after,) = run(Desk(()), route("sales", 1.0))
    assert "logprobs" not in before
    assert (after["logprobs"], after["top_logprobs"]) == (True, 20)


def test_a_backend_without_probabilities_is_refused_before_anything_happens() -> None:
    backend = Scripted(["unused"], mode="constrained")
    with pytest.raises(ForgeError, match="logprobs = true"):
        forge.run_sync(Desk(StopRun()).workflow, "Go.", backend=backend)
    assert backend.requests == ()
    alone = Scripted(["unused"], mode="constrained", logprobs=True)
    with pytest.raises(ForgeError, match="Models"):
        forge.run_sync(Desk((Vote(), AskLarger())).workflow, "Go.", backend=alone)


def test_a_vote_takes_the_most_frequent_calls_and_how_many_agree_is_how_sure_it_is() -> None:
    desk = Desk(Vote(samples=4, temperature=0.9))
    answers = (route("sales", 0.5), route("billing", 0.3), route("technical", 0.9), route("billing", 0.2))
    result, bodies = run(desk, READ, *answers)
    assert value_of(result) == "billing"
    assert desk.log == ["read 7", "route billing"]
    assert [*confidences(result.unwrap().state).values()][-1] == 0.5
    first, *votes = bodies[1:]
    assert [vote.pop("temperature") for vote in votes] == [0.9] * 3
    first.pop("temperature", None)
    assert votes == [first] * 3


def test_a_vote_that_agrees_ends_the_steps_and_one_that_does_not_goes_on_to_the_next() -> None:
    then = (Vote(samples=3), StopRun())
    agreed = run(Desk(then), route("sales", 0.5), route("billing", 0.5), route("billing", 0.5))[0]
    assert value_of(agreed) == "billing"
    split = run(Desk(then), route("sales", 0.5), route("billing", 0.5), route("technical", 0.5))[0]
    halt = split.failure().halt
    assert isinstance(halt, Unsure)
    assert halt.confidence == pytest.approx(1 / 3)


def test_a_thought_comes_before_the_call_without_a_schema_and_stays_out_of_the_record() -> None:
    desk = Desk(ThinkFirst(tokens=50))
    result, bodies = run(desk, READ, route("sales", 0.5), "Charged twice: billing.", route("billing", 0.95))
    assert value_of(result) == "billing"
    _, first, thought, second = bodies
    assert thought["max_tokens"] == 50
    assert not {"response_format", "logprobs", "top_logprobs"} & thought.keys()
    assert thought["messages"][:-1] == first["messages"][:-1]
    assert "think" in thought["messages"][-1]["content"]
    assert [message["content"] for message in second["messages"][-2:]] == [
        "Charged twice: billing.",
        "Now make the call.",
    ]
    assert second["response_format"] == first["response_format"]
    said = [message.text for message in result.unwrap().state.history if isinstance(message, Assistant)]
    assert "Charged twice: billing." not in said


def test_every_call_counts_in_the_budget_and_in_the_bound_of_the_steps() -> None:
    out_of_budget = run(Desk(Vote(samples=3), limits=Limits(max_iterations=2)), READ, route("sales", 0.5))[0]
    assert value_of(out_of_budget) == "sales"  # there is no room for the vote, so the decision stands
    other = worded('{"tool": "read", "args": {"ticket": 8}}')
    spent = run(Desk(Vote(samples=3), limits=Limits(max_iterations=3)), READ, READ, other)[0]
    assert isinstance(spent.failure().halt, BudgetSpent)
    bounded = Desk((Vote(samples=3), StopRun()), max_calls=2)
    unsure_read = worded('{"tool": "read", "args": {"ticket": 7}}', read=0.5)
    first = [route("sales", 0.5), unsure_read, unsure_read]
    halted = run(bounded, *first, route("sales", 0.5))[0].failure()
    assert isinstance(halted.halt, Unsure)  # the first vote took both
    assert DOUBTS.get(halted.state).calls == 2
    assert halted.state.ledger.budget.calls == 10 - 4


def test_a_vote_that_is_no_call_corrects_the_model_and_the_decision_begins_anew() -> None:
    desk = Desk(Vote(samples=3))
    answers = (route("sales", 0.5), worded('{"tool": "route", "args": {"queue": "other"}}'), route("billing", 0.9))
    assert value_of(run(desk, *answers)[0]) == "billing"


def test_a_run_that_asked_again_is_replayed_from_its_journal_alone(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    desk = Desk((ThinkFirst(), Vote(samples=3), StopRun()))
    answers = (route("sales", 0.5), "Hm.", route("sales", 0.4), route("billing", 0.3), route("billing", 0.3))
    result, _ = run(desk, READ, *answers, journal=journal)
    assert value_of(result) == "billing"
    replayed = replay(journal, desk.workflow)
    assert isinstance(replayed, Success | Failure)
    assert replayed.unwrap().state == result.unwrap().state
    assert desk.log == ["read 7", "route billing"]


def two(small: list[Line], larger: list[Line], **options: Any) -> tuple[Scripted, Scripted, Models]:
    first = Scripted(small, mode="constrained", logprobs=True)
    second = Scripted(larger, **{"mode": "native", **options})
    return first, second, Models(first, larger=second)


@pytest.mark.parametrize("mode", ["native", "constrained"])
def test_the_larger_model_decides_what_the_small_one_is_not_sure_of_and_nothing_else(mode: Any, tmp_path: Path) -> None:
    said = call("route", queue="billing") if mode == "native" else '{"tool": "route", "args": {"queue": "billing"}}'
    small, larger, both = two([READ, route("sales", 0.4)], [said], mode=mode)
    desk, journal = Desk((AskLarger(), StopRun())), tmp_path / "run.jsonl"
    result = forge.run_sync(desk.workflow, "Route ticket 7.", backend=both, journal=journal)
    assert value_of(result) == "billing"
    assert desk.log == ["read 7", "route billing"]
    small.assert_complete()
    (asked,) = (msgspec.json.decode(body) for body in larger.requests)
    assert ("tools" in asked, "logprobs" in asked) == (mode == "native", False)
    assert any("charged twice" in message["content"] for message in asked["messages"])
    assert replay(journal, desk.workflow).unwrap().state == result.unwrap().state


def test_after_the_larger_model_the_small_one_is_asked_as_if_it_had_decided_itself() -> None:
    """Its own request goes on: neither the model's name nor the form of the larger one stays in it."""
    unsure_read = worded('{"tool": "read", "args": {"ticket": 7}}', read=0.5)
    small, larger, both = two([unsure_read, route("sales", 0.9)], [READ], mode="constrained")
    desk = Desk(AskLarger())
    assert value_of(forge.run_sync(desk.workflow, "Go.", backend=both)) == "sales"
    alone = Scripted([READ, route("sales", 0.9)], mode="constrained", logprobs=True)
    forge.run_sync(Desk(AskLarger()).workflow, "Go.", backend=Models(alone, larger=Scripted([])))
    assert small.requests == alone.requests
    assert len(larger.requests) == 1


def test_a_larger_model_that_cannot_be_reached_ends_the_run_as_any_other() -> None:
    _, _, both = two([route("sales", 0.4)], [Fault(kind="no_tools", detail="it takes no tools")])
    halt = forge.run_sync(Desk(AskLarger()).workflow, "Go.", backend=both).failure().halt
    assert isinstance(halt, BackendFailed)


def test_a_watcher_hears_both_models() -> None:
    heard: list[object] = []
    _, _, both = two([route("sales", 0.4)], [call("route", queue="billing")])
    forge.run_sync(Desk(AskLarger()).workflow, "Go.", backend=both, on_chunk=heard.append)
    assert [type(delta).__name__ for delta in heard] == ["TextDelta", "Ended", "CallStarted", "CallDelta", "Ended"]
