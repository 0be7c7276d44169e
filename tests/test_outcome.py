"""How a run ended, as a person meets it: what `unwrap` raises, what a repr shows, and what a type checker knows."""

import copy
import pickle
import traceback
from typing import Literal, assert_type

import msgspec
import pytest
from hypothesis.vendor.pretty import pretty
from returns.primitives.exceptions import UnwrapFailedError
from returns.result import Failure, Result

from forge import (
    Conversation,
    Finished,
    Halted,
    Limits,
    Workflow,
    replay,
    resume,
    resume_journal,
    run,
    run_or_raise,
    run_sync,
)
from forge.backends import Local, Server
from forge.errors import ForgeError, explain
from forge.interpreters.scripted import Scripted, call
from forge.testing import histories  # noqa: F401 - the kit teaches Hypothesis to print whole states
from stages.halt import BudgetSpent, Cancelled, ToolsFailing
from stages.message import User
from stages.state import State
from tests.flows import Desk

SENTENCE = (
    "the run's budget of calls is spent after 1 model call; done: nothing; pending: look. "
    "To allow more, raise max_iterations (limits=Limits(…))"
)


def spent() -> Result[Finished, Halted]:
    return run_sync(Desk(limits=Limits(max_iterations=1)).workflow, "Go.", backend=Scripted(["Hm."]))


def test_unwrapping_a_halted_run_says_the_sentence_of_the_halt() -> None:
    with pytest.raises(UnwrapFailedError) as raised:
        spent().unwrap()
    assert SENTENCE in "".join(traceback.format_exception(raised.value))
    assert isinstance(raised.value.__cause__, Halted)
    assert str(raised.value.__cause__) == SENTENCE


def test_a_halted_run_is_matched_compared_copied_and_pickled_like_a_value() -> None:
    match spent():
        case Failure(Halted(halt=BudgetSpent(what=what), state=State(history=history))):
            assert what == "calls"
            assert len(history) == 4
        case other:
            pytest.fail(repr(other))
    halted = spent().failure()
    again = Halted(halt=halted.halt, state=halted.state)
    assert Failure(halted) == Failure(again)
    assert {halted} == {again, copy.copy(halted), pickle.loads(pickle.dumps(halted))}  # noqa: S301 - our own bytes
    assert halted != Halted(halt=halted.halt, state=State(history=()))
    assert isinstance(halted, ForgeError)


def test_a_repr_says_what_matters_and_is_short_whatever_the_run_was() -> None:
    long = "x" * 100_000
    desk = Desk()
    script = [call("look", what=long), call("finish", result=long)]
    ended = run_sync(desk.workflow, long, backend=Scripted(script, context_tokens=10_000_000))
    shown = repr(ended)
    assert shown.startswith("<Success: Finished(Completed, value='xxx")
    assert shown.endswith("State(Done, turn 2, 6 messages, done: look, finish))>")
    assert len(shown) < 400
    halted = repr(spent())
    assert halted == f"<Failure: {SENTENCE}>"
    assert repr(spent().failure()).startswith(f"Halted(BudgetSpent: {SENTENCE}, State(Ready, turn 1, ")
    assert len(repr(ended.unwrap().state)) < 100
    expected = (
        "Workflow('desk', tools: look, write, fail, finish, required_steps: look, terminal_tool: finish)",
        "Conversation('desk', None)",
    )
    assert (repr(desk.workflow), repr(Conversation(desk.workflow, backend="local"))) == expected


def test_a_repr_of_a_backend_says_where_its_model_is_and_no_key() -> None:
    used = Scripted(["Hm."])
    run_sync(Desk(limits=Limits(max_iterations=1)).workflow, "Go.", backend=used)
    assert [repr(one) for one in (used, Scripted([]), Local())] == [
        "Scripted(1 of 1 answer used)",
        "Scripted(0 of 0 answers used)",
        "Local('qwen2.5-coder-0.5b')",
    ]
    server = Server("127.0.0.1:8080", profile="vllm", model="qwen", api_key="s3cret", headers={"x-key": "s3cret"})
    assert repr(server) == "Server('http://127.0.0.1:8080/v1', profile='vllm', model='qwen')"
    assert repr(Server("http://127.0.0.1:8080")) == "Server('http://127.0.0.1:8080/v1')"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("RuntimeError: ", "the last of them pay: RuntimeError. Try"),
        ("KeyError: 'a'", "KeyError: 'a'. Try"),
        ("OSError: It is gone!", "gone! Try"),
    ],
)
def test_what_failed_last_is_told_as_a_sentence(error: str, told: str) -> None:
    assert told in explain(ToolsFailing(tool="pay", attempts=3, error=error))
    assert explain(Cancelled(turns=2, completed=())) == "cancelled in turn 2"


def test_a_failing_property_still_shows_all_of_a_state() -> None:
    state = State(history=(User(text="Go."),))
    assert "history=(User(text='Go.'" in pretty(state)


class Report(msgspec.Struct):
    total: float


TYPED = Workflow("typed", tools=[], result=Report)
UNTYPED = Desk().workflow


def any_workflow(workflow: Workflow) -> str:
    return workflow.name


def test_the_value_has_the_type_of_the_workflows_result() -> None:
    """`assert_type` is checked by mypy, which reads the tests as well."""
    assert_type(TYPED, Workflow[Report])
    model = Scripted([call("submit_result", total=1.5)] * 3)
    ended = run_sync(TYPED, "Go.", backend=model)
    assert_type(ended, Result[Finished[Report], Halted])
    assert_type(ended.unwrap().value, Report)
    assert ended.unwrap().value.total == 1.5
    assert_type(run_or_raise(TYPED, "Go.", backend=model), Report)
    conversation = Conversation(TYPED, backend=model)
    assert_type(conversation.say_sync("Go.").unwrap().value, Report)
    assert_type(UNTYPED, Workflow)
    assert any_workflow(TYPED) == "typed"
    assert_type(Workflow("w", tools=[], result=list[int]), Workflow[list[int]])
    assert_type(Workflow("w", tools=[], result=Literal["a", "b"]), Workflow[object])


async def typed_everywhere(workflow: Workflow[Report], state: State) -> None:
    """Only read by mypy: every way to run keeps the type."""
    assert_type((await run(workflow, "Go.", backend="local")).unwrap().value, Report)
    assert_type((await resume(workflow, state, backend="local")).unwrap().value, Report)
    assert_type((await resume_journal(workflow, "x", backend="local")).unwrap().value, Report)
    assert_type(replay("x", workflow).unwrap().value, Report)
