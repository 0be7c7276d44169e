"""Whole runs against a scripted model: the happy path, what is mended, each Halt.

What the model is told of each mistake is in tests/stages/nudges/test_rendering.py, to the letter.
"""

import asyncio
import json

import pytest

from forge import Calls, Finished, Halted, Limits, Workflow, resume, run_or_raise, run_sync
from forge import errors as forge_errors
from forge.interpreters.scripted import Line, Scripted, ScriptError, call, calls
from forge.tools import respond_tool
from stages import halt as halts
from stages.effect import Fault, Price, RawCall, Reply, Said, Usage
from stages.message import Assistant, Kind, Tool, User
from stages.rescue import Claim, Family, Names, Read
from stages.rules import RepairLimits
from tests.flows import Desk

LOOK = call("look", what="a")
FINISH = call("finish", result="ok")


def finished(desk: Desk, script: list[Line], **options: object) -> Finished:
    model = Scripted(script)
    result = run_sync(desk.workflow, "Go.", backend=model, **options)  # type: ignore[arg-type]  # a test's options
    model.assert_complete()
    return result.unwrap()


def halted(desk: Desk, script: list[Line]) -> Halted:
    model = Scripted(script)
    result = run_sync(desk.workflow, "Go.", backend=model)
    model.assert_complete()
    return result.failure()


def nudges(run: Finished | Halted) -> list[tuple[Kind, str]]:
    corrections = (Kind.RETRY_NUDGE, Kind.STEP_NUDGE, Kind.PREREQUISITE_NUDGE)
    return [(m.kind, m.text) for m in run.state.history if isinstance(m, User | Tool) and m.kind in corrections]


def results(run: Finished | Halted) -> list[str]:
    return [m.text for m in run.state.history if isinstance(m, Tool) and m.kind is Kind.TOOL_RESULT]


def test_the_happy_path_ends_with_what_the_terminal_tool_returned() -> None:
    desk = Desk()
    run = finished(desk, [LOOK, FINISH])
    assert run.value == "ok"
    assert desk.log == ["look a", "finish"]
    assert [type(m).__name__ for m in run.state.history] == ["System", "User", "Assistant", "Tool", "Assistant", "Tool"]


def test_an_empty_reply_leaves_no_empty_message_behind() -> None:
    run = finished(Desk(), ["", LOOK, FINISH])
    assert "empty" in nudges(run)[0][1]
    assert not [m for m in run.state.history if isinstance(m, Assistant) and not m.text and not m.calls]


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "look", "args": {"what": "a"}}',
        '```json\n{"name": "look", "arguments": {"what": "a"}}\n```',
        '<tool_call>\n{"name": "look", "arguments": {"what": "a"}}\n</tool_call>',
    ],
)
def test_a_call_in_the_text_is_rescued_and_says_where_it_was_found(text: str) -> None:
    run = finished(Desk(), [text, FINISH])
    said = run.state.history[2]
    assert isinstance(said, Assistant)
    assert said.calls[0].origin != "native"
    assert not nudges(run)


@pytest.mark.parametrize(
    "damaged",
    [Reply(calls=(RawCall(name="look", arguments="{'what': 'a',}"),)), '{"tool": "look", "args": {what: "a"}}'],
)
def test_a_damaged_call_of_a_reading_tool_is_mended_and_says_how(damaged: Line) -> None:
    run = finished(Desk(), [damaged, FINISH])
    said = run.state.history[2]
    assert isinstance(said, Assistant)
    assert said.calls[0].arguments == '{"what":"a"}'
    assert said.calls[0].repairs


def test_a_call_that_changes_something_is_never_guessed() -> None:
    """What could be read in one way only is run; a guess is asked for again."""
    desk = Desk()
    guess = '{"tool": "fail", "args": {"how": "for good"}'
    run = finished(desk, [guess, LOOK, FINISH])
    assert "too important to run on a guess" in nudges(run)[0][1]
    assert desk.log == ["look a", "finish"]
    bold = Desk(calls=Calls(repair_limits=RepairLimits(write=1)))
    finished(bold, [guess, LOOK, FINISH])
    assert bold.log == ["fail for good", "look a", "finish"]


def test_a_call_that_was_cut_off_is_not_closed_for_the_model() -> None:
    desk = Desk()
    finished(desk, [Reply(text='{"tool": "look", "args": {"what": "a"', finish="length"), LOOK, FINISH])
    assert desk.log == ["look a", "finish"]


def test_a_grammar_of_one_s_own_is_one_option() -> None:
    def read(text: str, start: int, names: Names) -> Read | None:
        claim = Claim(name="look", arguments='{"what":"a"}')
        return Read(start=start, end=start + 2, claims=(claim,), keep="") if names.knows("look") else None

    run = finished(Desk(calls=Calls(families=[Family(name="bang", first="!", opener="!!", read=read)])), ["!!", FINISH])
    said = run.state.history[2]
    assert isinstance(said, Assistant)
    assert said.calls[0].origin == "bang"


TORN = '<tool_call>\n{"name": "look", "arguments": {"what": "b'


def test_a_call_cut_off_after_a_good_one_is_told_of_once_the_good_one_has_run() -> None:
    desk = Desk()
    good = '<tool_call>\n{"name": "look", "arguments": {"what": "a"}}\n</tool_call>\n'
    run = finished(desk, [good + TORN, FINISH])
    assert desk.log == ["look a", "finish"]
    *_, said, result, notice, _, _ = run.state.history
    assert isinstance(said, Assistant)
    assert [made.name for made in said.calls] == ["look"]
    assert isinstance(result, Tool)
    assert isinstance(notice, User)
    assert notice.kind is Kind.RETRY_NUDGE
    assert "Another call in your reply was not run: its JSON ends before it is complete" in notice.text


@pytest.mark.parametrize(
    "reply",
    [
        (
            '<tool_call>{"name": "look", "arguments": {"what": [}}</tool_call>\n'
            '<tool_call>{"name": "look", "arguments": {"what": "a"}}</tool_call>'
        ),
        '<tool_call>{"name": "finish", "arguments": {"result": "ok"}}</tool_call>\n' + TORN,
    ],
    ids=["before", "terminal"],
)
def test_a_call_after_a_damaged_one_and_one_that_would_end_the_run_wait_for_it(reply: str) -> None:
    desk = Desk()
    run = finished(desk, [reply, LOOK, FINISH])
    assert desk.log == ["look a", "finish"]
    ((kind, text),) = nudges(run)
    assert kind is Kind.RETRY_NUDGE
    assert "cannot be read. Send both calls again, in the same order." in text
    assert "Another call in your reply was not run" in text


def test_rescue_can_be_switched_off() -> None:
    run = finished(Desk(calls=Calls(rescue_enabled=False)), ['{"tool": "look", "args": {"what": "a"}}', LOOK, FINISH])
    assert len(nudges(run)) == 1


@pytest.mark.parametrize("name", ["functions.look", "Look", "LOOK", "default_api.look"])
def test_a_name_that_can_only_mean_one_tool_is_understood_and_the_repair_noted(name: str) -> None:
    desk = Desk()
    run = finished(desk, [call(name, what="a"), FINISH])
    said = run.state.history[2]
    assert isinstance(said, Assistant)
    assert (said.calls[0].name, said.calls[0].repairs) == ("look", (f"name {name}",))
    assert desk.log == ["look a", "finish"]


def test_arguments_that_do_not_fit_are_refused_with_path_and_expectation() -> None:
    desk = Desk()
    run = finished(desk, [call("look", what=["a", "b"]), call("look"), LOOK, FINISH])
    texts = [text for _, text in nudges(run)]
    assert all(text.startswith("[ToolArgValidationError]") and "what" in text for text in texts)
    assert desk.log == ["look a", "finish"], "a call that does not fit never runs"


def test_damaged_arguments_go_back_to_the_server_as_text_so_that_it_never_refuses_the_history() -> None:
    """A server answers 500 for good to a history with arguments that are no JSON."""
    run = finished(Desk(), [Reply(calls=(RawCall(name="look", arguments="{"),), finish="length"), LOOK, FINISH])
    said, nudge = run.state.history[2:4]
    assert isinstance(said, Assistant)
    assert not said.calls
    assert said.text == "look({)"
    assert isinstance(nudge, User)
    assert "cut off" in nudge.text


def test_a_prerequisite_wants_the_same_argument_and_then_halts() -> None:
    desk = Desk()
    early = call("write", what="b", text="t")
    run = halted(desk, [LOOK, early, early, early])
    assert run.halt == halts.PrerequisitesSkipped(tool="write", attempts=3, missing=("look",))
    assert nudges(run)[0][1].startswith("[PrereqError]")
    assert "what" in nudges(run)[0][1]
    assert desk.log == ["look a"]


def test_tools_that_raise_are_heard_counted_and_then_halt() -> None:
    run = halted(Desk(), [call("fail", how="x")] * 3)
    assert run.halt == halts.ToolsFailing(
        tool="fail", attempts=3, error="RuntimeError: broken: x", call_id="call_000000003"
    )
    assert results(run)[0] == "[ToolError] RuntimeError: broken: x"


def test_a_clean_batch_sets_the_count_of_errors_back() -> None:
    broken = call("fail", how="x")
    finished(Desk(), [broken, broken, LOOK, broken, broken, FINISH])


def test_data_that_is_not_there_is_not_counted_and_not_a_step() -> None:
    desk = Desk(limits=Limits(max_repeats=None))
    run = finished(desk, [*[call("look", what="nothing")] * 4, FINISH, LOOK, FINISH])
    assert results(run)[0].startswith("[ToolResolutionError] There is nothing")
    assert [kind for kind, _ in nudges(run)] == [Kind.STEP_NUDGE]


def test_a_definitive_failure_is_not_counted() -> None:
    run = finished(Desk(), [*[call("fail", how="for good")] * 4, LOOK, FINISH])
    assert results(run)[0].startswith("[ToolFailed] The printer is gone.")


def test_a_batch_runs_in_order_and_the_terminal_call_last() -> None:
    desk = Desk()
    batch = calls(("finish", {}), ("look", {"what": "b"}), ("write", {"what": "a", "text": "t"}))
    run = finished(desk, [LOOK, batch])
    assert desk.log == ["look a", "look b", "write a", "finish"]
    answers = [m.name for m in run.state.history if isinstance(m, Tool)]
    assert answers == ["look", "finish", "look", "write"], "history keeps the order of the calls"


def test_a_terminal_call_does_not_run_after_a_failure_in_its_batch() -> None:
    desk = Desk()
    run = finished(desk, [LOOK, calls(("fail", {"how": "x"}), ("finish", {})), FINISH])
    assert desk.log == ["look a", "fail x", "finish"]
    assert "[NotRun] finish was not run: another call of the same reply failed." in results(run)


COUNTED = Reply(calls=LOOK.calls, usage=Usage(prompt=90, completion=20))
TOO_MANY = calls(("look", {"what": "b"}), ("look", {"what": "c"}))


@pytest.mark.parametrize(
    ("limits", "script", "what", "ran"),
    [
        (Limits(max_iterations=3), ["No.", LOOK, LOOK], "calls", 2),
        (Limits(max_tokens=100), [COUNTED], "tokens", 1),
        (Limits(max_tool_calls=3), [LOOK, TOO_MANY, call("look", what="d")], "tool calls", 3),
    ],
)
def test_a_budget_that_is_spent_ends_the_run(limits: Limits, script: list[Line], what: str, ran: int) -> None:
    desk = Desk(limits=limits)
    halt = halted(desk, script).halt
    assert isinstance(halt, halts.BudgetSpent)
    assert (halt.what, halt.turns, halt.completed, len(desk.log)) == (what, len(script), ("look",), ran)


def test_a_budget_of_money_ends_the_run_and_the_ledger_says_what_it_cost() -> None:
    costly = Reply(calls=LOOK.calls, usage=Usage(prompt=1_000, cached=400, completion=200))
    price = Price(prompt=3.0, completion=15.0, cached=0.3)
    run = halted(Desk(limits=Limits(max_cost=0.009, price=price)), [costly, costly])
    assert isinstance(run.halt, halts.BudgetSpent)
    assert (run.halt.what, run.halt.turns) == ("cost", 2)
    assert run.state.ledger.cost == pytest.approx(2 * (600 * 3.0 + 400 * 0.3 + 200 * 15.0) / 1e6)


def test_a_reply_that_was_cut_off_leaves_room_for_the_next_in_a_small_context() -> None:
    cut = Reply(text="Let me think about this. " * 160, finish="length")
    model = Scripted([cut, LOOK, call("finish", result="ok")], context_tokens=2048)
    assert run_sync(Desk().workflow, "Go.", backend=model).unwrap().value == "ok"
    assert b"cut off" in model.requests[1]
    assert b"Let me think" not in model.requests[1]


def test_a_transport_fault_halts_with_status_and_body_and_never_reaches_the_model() -> None:
    """The body of an error used to become what the model had said."""
    fault = Fault(kind="status", status=400, body="context exceeded", detail="400: context exceeded")
    run = halted(Desk(), [LOOK, fault])
    assert run.halt == halts.BackendFailed(fault=fault, attempts=1)
    assert "exceeded" not in str(run.state.history)


def test_a_context_too_small_for_the_system_prompt_is_said_before_anything_is_sent() -> None:
    model = Scripted([], context_tokens=1100)
    result = run_sync(Desk().workflow, "Go. " * 100, backend=model)
    halt = result.failure().halt
    assert isinstance(halt, halts.CannotFit)
    assert model.requests == ()
    assert f"{halt.tokens} tokens" in forge_errors.explain(halt)


def test_text_is_the_answer_where_text_is_welcome_and_costs_one_call() -> None:
    """A plain answer used to cost four calls."""
    run = finished(Desk(on_text="accept"), [LOOK, "It is 7."])
    assert run.outcome == Said(text="It is 7.")
    assert run.value == "It is 7."


def test_a_constraint_leaves_room_for_words_once_they_are_welcome() -> None:
    """Not while a step is required; several calls may be made at once all along."""
    desk = Desk(on_text="accept")
    both = '[{"tool":"look","args":{"what":"a"}},{"tool":"look","args":{"what":"b"}}]'
    model = Scripted([both, '{"answer":"Both are \\"7\\"."}'], mode="constrained")
    run = run_sync(desk.workflow, "Go.", backend=model).unwrap()
    assert (run.outcome, run.value) == (Said(text='Both are "7".'), 'Both are "7".')
    assert sorted(desk.log) == ["look a", "look b"]  # at the same time, so in any order
    schemas = [json.loads(request)["response_format"]["json_schema"]["schema"] for request in model.requests]
    assert ["answer" in json.dumps(schema) for schema in schemas] == [False, True]
    assert {schema["anyOf"][0]["type"] for schema in schemas} == {"array"}


def test_a_conversation_without_tools_is_asked_for_words_without_a_constraint() -> None:
    model = Scripted(["Hello."], mode="constrained")
    run = run_sync(Workflow("chat", tools=[], on_text="accept"), "Hi!", backend=model).unwrap()
    assert run.value == "Hello."
    assert "response_format" not in json.loads(model.requests[0])


def test_an_answer_in_words_does_not_skip_the_steps() -> None:
    run = finished(Desk(on_text="accept"), ["All done!", LOOK, "It is 7."])
    assert len(nudges(run)) == 1
    assert run.value == "It is 7."


def test_a_run_that_is_resumed_in_another_mode_writes_its_own_prompt() -> None:
    desk = Desk()
    first = run_sync(desk.workflow, "Go.", backend=Scripted(["x"] * 4)).failure()
    model = Scripted([LOOK, FINISH], mode="constrained")
    again = asyncio.run(resume(desk.workflow, first.state, backend=model, budget=desk.workflow.budget))
    assert again.unwrap().value == "ok"
    assert b"# Tools" in model.requests[0]


def test_an_answer_in_words_may_be_a_call_too() -> None:
    workflow = Workflow("chat", tools=[respond_tool()], terminal_tool="respond")
    assert run_or_raise(workflow, "Hello!", backend=Scripted([call("respond", message="Hello.")])) == "Hello."


def test_even_there_a_damaged_call_is_corrected() -> None:
    run = finished(Desk(on_text="accept"), ['{"tool": "look", "args": {"what', LOOK, "It is 7."])
    assert len(nudges(run)) == 1


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (["No."] * 4, forge_errors.ToolCallError),
        ([FINISH] * 4, forge_errors.StepEnforcementError),
        ([call("fail", how="x")] * 3, forge_errors.ToolExecutionError),
        ([LOOK] * 10, forge_errors.MaxIterationsError),
        ([Fault(kind="unreachable", detail="nobody there")], forge_errors.BackendError),
    ],
)
def test_run_or_raise_raises_the_halt_under_its_seed_name(script: list[Line], error: type[Exception]) -> None:
    with pytest.raises(error):
        run_or_raise(Desk().workflow, "Go.", backend=Scripted(script))


def test_a_script_that_runs_dry_says_what_was_asked() -> None:
    with pytest.raises(ScriptError, match=r"the script has 1 answer, but the run asked for answer 2 \(turn 2\)"):
        run_sync(Desk().workflow, "Go.", backend=Scripted([LOOK]))


def test_a_script_that_is_too_long_says_so() -> None:
    model = Scripted([LOOK, FINISH, "more"])
    run_sync(Desk().workflow, "Go.", backend=model)
    with pytest.raises(ScriptError, match="used 2 of the script's 3 answers; the next would be 'more'"):
        model.assert_complete()


def test_an_earlier_conversation_goes_on() -> None:
    desk = Desk()
    first = finished(desk, [LOOK, FINISH])
    model = Scripted([LOOK, FINISH])
    second = run_sync(desk.workflow, "Again.", backend=model, initial_messages=first.state.history).unwrap()
    assert second.state.history[: len(first.state.history)] == first.state.history
    assert second.state.ledger.turn == first.state.ledger.turn + 2
    ids = [m.call_id for m in second.state.history if isinstance(m, Tool)]
    assert len(ids) == len(set(ids)) == 4
    said = json.loads(model.requests[0])["messages"]
    assert [m["content"] for m in said if m["role"] == "user"] == ["Go.", "Again."]


def test_with_respond_an_answer_in_words_is_a_call() -> None:
    workflow = Workflow("chat", tools=[Desk().workflow.functions["look"]], required_steps="look", on_text="respond")
    model = Scripted(["Hello!", call("respond", message="early"), LOOK, call("respond", message="It is 7.")])
    assert run_sync(workflow, "What is a?", backend=model).unwrap().value == "It is 7."
    assert b"You may call: look." in model.requests[1]
