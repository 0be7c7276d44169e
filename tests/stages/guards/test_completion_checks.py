"""Checks of how a run may end: of the arguments of its last call, and of what was found out before."""

import pytest

from forge import Workflow, run_sync, tool
from forge.errors import CallbackError, DefinitionError
from forge.interpreters.scripted import Scripted, call
from stages.guards import CompletionCheck, PastCall, completion, past_calls
from stages.message import ToolCall
from stages.objection import Custom, Incomplete, Objection, Verdict
from stages.state import State


@tool(effect="read", repeatable=True)
def run_check(path: str) -> dict[str, object]:
    """Check a file."""
    return {"path": path, "passed": path == "b"}


@tool
def finish(path: str) -> str:
    """End."""
    return f"{path} is done"


def passed(arguments: dict[str, object], results: tuple[PastCall, ...]) -> str | None:
    """The last check of this very file has passed."""
    last = next((one.result for one in reversed(results) if one.arguments == arguments), None)
    return None if isinstance(last, dict) and last["passed"] is True else f"{arguments['path']} has not passed."


def checking(check: CompletionCheck, **options: object) -> Workflow:
    tools = (run_check, finish)
    return Workflow("w", tools=tools, terminal_tool="finish", completion_checks={"finish": check}, **options)  # type: ignore[arg-type]  # a test's options


def test_a_check_sees_what_was_found_out() -> None:
    script = [call("run_check", path="a"), call("finish", path="a"), call("run_check", path="b")]
    model = Scripted([*script, call("finish", path="b")])
    assert run_sync(checking(passed), "Go.", backend=model).unwrap().value == "b is done"
    assert b"[Incomplete] finish was not accepted: a has not passed. Fix that" in model.requests[2]


@pytest.mark.parametrize("asking", ["check", "guard"])
def test_compaction_keeps_what_a_check_or_a_guard_wants_to_see(asking: str) -> None:
    big = "many words " * 300

    @tool(effect="read")
    def read(page: int) -> str:
        """Read a page."""
        return f"{page}: {big}"

    @tool
    def end() -> str:
        """End."""
        return "read"

    def all_read(_: dict[str, object], results: tuple[PastCall, ...]) -> str | None:
        pages = [one.arguments["page"] for one in results if one.tool == "read"]
        return None if pages == [*range(6)] else f"only {pages} were read."

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        wrong = all_read({}, past_calls(state))
        return tuple(Objection(call=one, wrong=Custom(text=wrong)) for one in calls if one.name == "end" and wrong)

    own = {"completion_checks": {"end": all_read}} if asking == "check" else {"guards": [guard]}
    flow = Workflow("reader", tools=[read, end], terminal_tool="end", **own)
    model = Scripted([*(call("read", page=n) for n in range(6)), call("end")], context_tokens=4_000)
    run = run_sync(flow, "Read six pages.", backend=model).unwrap()
    assert run.state.ledger.compactions
    assert run.value == "read"


def test_a_check_of_neither_is_refused_where_it_is_written() -> None:
    def odd(arguments: object, results: object, more: object) -> None: ...

    with pytest.raises(
        DefinitionError, match=r"completion_checks\['finish'\]: odd cannot be called as odd\(arguments\)"
    ):
        checking(odd)  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError, match=r"takes \(arguments\) or \(arguments, results\)"):
        completion({"finish": odd})  # type: ignore[dict-item]  # the same, in a pipeline of one's own


def test_a_check_of_results_that_fails_is_named_with_its_place() -> None:
    def broken(arguments: dict[str, object], results: tuple[PastCall, ...]) -> str | None:
        raise ValueError(len(results))

    with pytest.raises(CallbackError, match=r"completion_checks\['finish'\], .*broken, raised ValueError: 0"):
        run_sync(checking(broken), "Go.", backend=Scripted([call("finish", path="a")]))


def test_a_check_in_a_pipeline_of_ones_own() -> None:
    guard = completion({"finish": lambda arguments: "no."})
    made = ToolCall(id="1", name="finish", arguments="{}")
    assert guard(State(history=()), (made,)) == [Objection(call=made, wrong=Incomplete(problem="no."))]
