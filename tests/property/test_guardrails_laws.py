"""The middleware decides what `forge.run` decides, and its state is all that it knows."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from forge import Finished, Halted, Limits, ToolFailed, ToolResolutionError, Workflow, run_sync, tool
from forge.guardrails import CallModel, Guardrails, RunCalls
from forge.guardrails.actions import Action
from forge.interpreters.scripted import Scripted, calls
from forge.tools import respond_tool
from stages.effect import Reply
from stages.state import State
from stages.tool import Prerequisite
from tests.property.machine import replies


@tool(effect="read")
def look(what: str = "a") -> str:
    """Look; b is not there, c breaks."""
    if what == "b":
        raise ToolResolutionError("There is no b.")
    return what


@tool(prerequisites=[Prerequisite(tool="look")])
def write(text: str) -> str:
    """Write; only short texts."""
    if len(text) > 1:
        raise ToolFailed("too long") if "a" in text else ValueError("too long")
    return text


@tool
def finish() -> str:
    """Finish."""
    return "the end"


FUNCTIONS: dict[str, Callable[..., object]] = {t.name: t for t in (look, write, finish, respond_tool())}
NOTHING: dict[str, object] = {}
FOLLOWERS: tuple[tuple[tuple[str, dict[str, object]], ...], ...] = (
    (),
    (("look", NOTHING),),
    (("write", {"text": "x"}),),
    (("write", {"text": "aa"}),),
    (("finish", NOTHING),),
)
good = st.sampled_from([calls(("look", {"what": what}), *more) for what in "abc" for more in FOLLOWERS])
workflows = st.builds(
    Workflow,
    st.just("w"),
    tools=st.just([look, write, finish]),
    terminal_tool=st.just("finish"),
    required_steps=st.sampled_from([(), ("look",), ("look", "write")]),
    on_text=st.sampled_from(["nudge", "accept", "respond"]),
    limits=st.builds(
        Limits,
        max_iterations=st.integers(1, 6),
        max_retries_per_step=st.integers(0, 3),
        max_tool_errors=st.integers(0, 3),
    ),
)


def perform(guard: Guardrails, action: RunCalls) -> Action:
    """What a loop that knows nothing of forge does with calls."""
    results, failures = {}, {}
    for call in action.calls:
        try:
            results[call.id] = FUNCTIONS[call.name](**call.arguments)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises
            failures[call.id] = error
    return guard.record(results, failures)


def by_hand(workflow: Workflow, script: list[Reply], *, saved: bool) -> Finished | Halted:
    guard = Guardrails(workflow, message="Go.")
    for reply in script:
        action = guard.check(reply)
        while isinstance(action, RunCalls):
            if saved:
                again = Guardrails(workflow)
                again.from_json(guard.to_json())
                assert again.action == action
                guard = again
            action = perform(guard, action)
        if isinstance(action, Finished | Halted):
            return action
        assert isinstance(action, CallModel)
    raise AssertionError("the budget is smaller than the script is long")


def judged(state: State) -> State:
    """What guardrails are about: neither tokens nor the request."""
    ledger = replace(state.ledger, prompt_size=0, model="", tokens_per_character=1.0, context_tokens=0)
    return State(history=state.history, ledger=replace(ledger, report=type(ledger.report)()))


@given(workflows, st.lists(replies | good, min_size=6, max_size=6), st.booleans())
def test_a_loop_by_hand_ends_like_a_run_of_forge(workflow: Workflow, script: list[Reply], saved: bool) -> None:
    ran = run_sync(workflow, "Go.", backend=Scripted(script, context_tokens=10**9))
    expected = ran.value_or(None) or ran.failure()
    found = by_hand(workflow, script, saved=saved)
    if isinstance(expected, Finished):
        assert isinstance(found, Finished)
        assert found.outcome == expected.outcome
    else:
        assert isinstance(found, Halted)
        assert found.halt == expected.halt
    assert judged(found.state) == judged(expected.state)
