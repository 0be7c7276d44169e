"""The middleware: what it says to do after each reply and each result, in a loop that is not forge's."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from forge import Limits, Workflow, tool
from forge.errors import BackendError, DefinitionError, ForgeError, as_error
from forge.guardrails import (
    Action,
    AskPerson,
    Call,
    CallModel,
    ErrorTracker,
    Finished,
    Guardrails,
    Halted,
    ResponseValidator,
    RunCalls,
    StepEnforcer,
    reply_of,
)
from forge.interpreters.scripted import call, calls
from stages.confidence.measure import StopRun, WhenUnsure
from stages.effect import NeedsInput, RawCall, Reply
from stages.message import Kind, User
from stages.tool import Prerequisite

LOOK, WRITE, FINISH = call("look", what="a"), call("write", what="a", text="t"), call("finish", result="ok")


@tool(effect="read")
def look(what: str) -> str:
    """Look something up."""
    return what


@tool(prerequisites=[Prerequisite(tool="look", match_arg="what")])
def write(what: str, text: str) -> str:
    """Write something down."""
    return what + text


@tool
def finish(result: str) -> str:
    """Finish."""
    return result


def guarded(**limits: object) -> Guardrails:
    options = {"required_steps": "look", "terminal_tool": "finish"} | limits
    return Guardrails(tools=[look, write, finish], **options)  # type: ignore[arg-type]  # passed on as they are


def said(action: Action) -> str:
    """The action in a word or two."""
    match action:
        case RunCalls(calls=made, rest=rest):
            return " ".join(["run", *(c.name for c in made), *(f"({c.name})" for c in rest)])
        case AskPerson(call=asked):
            return f"ask {asked.name}"
        case CallModel(nudges=nudges):
            return "model " + " ".join(f"{n.role}:{n.kind}:{n.tier}" for n in nudges) if nudges else "model"
        case Finished(outcome=outcome):
            return type(outcome).__name__
        case Halted(halt=halt):
            return type(halt).__name__


OK: dict[str, Exception | str] = {}
FAILED = ValueError("broken")

# That the same rules are asked as in forge's own loop, whatever the replies, is shown in test_guardrails_laws.
SEQUENCES: dict[str, tuple[dict[str, object], Sequence[object], list[str]]] = {
    "the straight way": ({}, [LOOK, OK, FINISH, OK], ["run look", "model", "run finish", "Completed"]),
    "an answer in words, as a call": (
        {"on_text": "respond"},
        [LOOK, OK, call("respond", message="Hi.")],
        ["run look", "model", "Completed"],
    ),
    "a skipped step": (
        {},
        [FINISH, FINISH, FINISH, FINISH],
        ["model tool:step_nudge:1", "model tool:step_nudge:2", "model tool:step_nudge:3", "StepsSkipped"],
    ),
    "a failure in words is counted": (
        {"limits": Limits(max_tool_errors=0)},
        [LOOK, "it broke"],
        ["run look", "ToolsFailing"],
    ),
    "a batch in groups": (
        {"required_steps": ()},
        [
            calls(("look", {"what": "a"}), ("look", {"what": "b"}), ("finish", {"result": "x"})),
            OK,
            OK,
        ],
        ["run look look (finish)", "run finish", "Completed"],
    ),
    "no end after a failure in the same reply": (
        {"required_steps": ()},
        [calls(("look", {"what": "a"}), ("finish", {"result": "x"})), FAILED],
        ["run look (finish)", "model"],
    ),
}


def follow(guard: Guardrails, events: Sequence[object], *, saved: bool = False) -> list[str]:
    """What the middleware says to each reply and each result of the sequence; `saved`: through JSON every time."""
    heard = []
    for event in events:
        if saved:
            guard.from_json(guard.to_json())
        action = guard.action
        if not isinstance(action, RunCalls):
            heard.append(said(guard.check(event)))
        elif isinstance(event, dict):
            heard.append(said(guard.record()))
        elif isinstance(event, Exception | str):
            first, *others = [c.id for c in action.calls]
            heard.append(said(guard.record(dict.fromkeys(others), {first: event})))
    return heard


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("name", SEQUENCES)
def test_what_to_do_next(name: str, saved: bool) -> None:
    limits, events, expected = SEQUENCES[name]
    assert follow(guarded(**limits), events, saved=saved) == expected


def test_forges_own_tools_are_answered_by_forge() -> None:
    answering = guarded(on_text="respond", required_steps=())
    answered = answering.check(call("respond", message="Hi."))
    assert isinstance(answered, Finished)
    assert answered.value == "Hi."
    submitting = Guardrails(Workflow("w", tools=[look], result=int))
    looks = submitting.check(calls(("look", {"what": "a"}), ("submit_result", {"result": 3})))
    assert said(looks) == "run look"
    submitted = submitting.record()
    assert isinstance(submitted, Finished)
    assert submitted.value == 3


def test_an_option_that_cannot_hold_in_another_loop_is_refused() -> None:
    workflow = Workflow("w", tools=[look], on_text="accept", unsure=WhenUnsure(below=0.5, then=StopRun()))
    with pytest.raises(DefinitionError, match="unsure: only forge's own loop writes the requests"):
        Guardrails(workflow)


def test_the_servers_own_ids_come_back_in_calls_and_messages() -> None:
    guard = guarded()
    reply = Reply(calls=(RawCall(id="abc", name="look", arguments='{"what":"a"}'),), text="Looking.")
    action = guard.check(reply)
    assert isinstance(action, RunCalls)
    assert action == RunCalls(calls=(Call(id="abc", name="look", text='{"what":"a"}'),))
    assert action.calls[0].arguments == {"what": "a"}
    after = guard.record({"abc": {"found": 7}})
    assert isinstance(after, CallModel)
    function = {"name": "look", "arguments": '{"what":"a"}'}
    assert after.openai() == [
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [{"type": "function", "id": "abc", "function": function}],
        },
        {"role": "tool", "content": '{"found":7}', "tool_call_id": "abc"},
    ]
    assert after.anthropic() == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "abc", "name": "look", "input": {"what": "a"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "abc", "content": '{"found":7}'}]},
    ]


@pytest.mark.parametrize("ids", [("", "x"), ("same", "same")])
def test_ids_that_tell_nothing_apart_are_not_used(ids: tuple[str, str]) -> None:
    made = tuple(RawCall(id=one, name="look", arguments=f'{{"what":"{n}"}}') for n, one in enumerate(ids))
    action = guarded().check(Reply(calls=made))
    assert isinstance(action, RunCalls)
    assert [c.id for c in action.calls] == ["call_000000001", "call_000000002"]


def test_a_loop_that_runs_a_whole_reply_at_once_may_record_it_at_once() -> None:
    guard = guarded(required_steps=())
    action = guard.check(
        calls(("look", {"what": "a"}), ("write", {"what": "a", "text": "t"}), ("finish", {"result": "x"}))
    )
    assert said(action) == "model tool:prerequisite_nudge:1 tool:prerequisite_nudge:1 tool:prerequisite_nudge:1"
    action = guard.check(calls(("look", {"what": "a"}), ("look", {"what": "b"}), ("finish", {"result": "x"})))
    assert isinstance(action, RunCalls)
    every = [c.id for c in (*action.calls, *action.rest)]
    done = guard.record(dict.fromkeys(every[:2], 1) | {every[2]: "the end"})
    assert isinstance(done, Finished)
    assert done.value == "the end"


def test_a_result_for_a_call_that_was_not_to_be_run_is_no_secret() -> None:
    guard = guarded(required_steps=())
    action = guard.check(calls(("look", {"what": "a"}), ("finish", {"result": "x"})))
    assert isinstance(action, RunCalls)
    with pytest.raises(ValueError, match="these calls were not to be run"):
        guard.record({action.rest[0].id: "x"}, {action.calls[0].id: FAILED})


def test_a_result_for_a_call_of_another_reply_is_refused_before_anything_is_recorded() -> None:
    guard = guarded()
    action = guard.check(call("look", what="a"))
    assert isinstance(action, RunCalls)
    (made,) = action.calls
    with pytest.raises(ValueError, match="these calls were not to be run"):
        guard.record({made.id: "a is 7", "call_of_before": "b"})
    assert guard.action == action
    assert isinstance(guard.record({made.id: "a is 7"}), CallModel)


def test_a_result_that_is_lacking_is_asked_for() -> None:
    guard = guarded()
    guard.check(calls(("look", {"what": "a"}), ("look", {"what": "b"})))
    with pytest.raises(ValueError, match="no result for call_000000002"):
        guard.record({"call_000000001": 1})
    assert said(guard.record()) == "model"


def test_a_tool_may_end_the_task_with_a_question() -> None:
    guard = guarded()
    follow(guard, [LOOK, OK])
    action = guard.check(FINISH)
    assert isinstance(action, RunCalls)
    done = guard.record({action.calls[0].id: NeedsInput(question="Which?")})
    assert isinstance(done, Finished)
    assert done.outcome == NeedsInput(question="Which?")


def test_a_person_is_asked_first() -> None:
    @tool(approval=True)
    def pay(total: float) -> str:
        """Pay."""
        return str(total)

    guard = Guardrails(Workflow("pay", tools=[pay, finish], terminal_tool="finish"))
    asked = guard.check(call("pay", total=5))
    assert isinstance(asked, AskPerson)
    assert asked.call.arguments == {"total": 5}
    assert said(guard.reject("too much")) == "model"
    assert isinstance(guard.check(call("pay", total=5)), CallModel), "nobody is asked the same again"
    guard.check(call("pay", total=6))
    edited = guard.approve({"total": 4})
    assert isinstance(edited, RunCalls)
    assert edited.calls[0].arguments == {"total": 4}


def test_out_of_turn_is_said_and_changes_nothing() -> None:
    guard = guarded()
    with pytest.raises(ForgeError, match="now: call the model and check its reply"):
        guard.record()
    guard.check(LOOK)
    with pytest.raises(ForgeError, match="now: record the results of the calls"):
        guard.check(LOOK)
    with pytest.raises(ForgeError, match="approve can only be called"):
        guard.approve()
    assert said(guard.record()) == "model"


def test_after_the_end_only_another_task_can_begin() -> None:
    guard = guarded(limits=Limits(max_retries_per_step=0))
    halted = guard.check("Hm.")
    assert isinstance(halted, Halted)
    assert "no usable tool call" in str(as_error(halted.halt, halted.state))
    with pytest.raises(ForgeError, match="start another with reset"):
        guard.check(LOOK)
    guard.reset("Again.")
    assert said(guard.check(LOOK)) == "run look"
    assert guard.state.history == (User(text="Again."),)


def test_what_the_user_says_is_there_for_guards_but_not_told_twice() -> None:
    guard = guarded()
    guard.hear("Look at a.")
    action = guard.check("Hm.")
    assert isinstance(action, CallModel)
    assert [type(m).__name__ for m in guard.state.history] == ["User", "Assistant", "User"]
    assert [m["role"] for m in action.openai()] == ["assistant", "user"]


def test_a_saved_state_of_something_else_is_refused() -> None:
    guard = guarded()
    with pytest.raises(ForgeError, match="this is not a saved state of Guardrails"):
        guard.from_json("{}")
    with pytest.raises(ForgeError, match="version 9"):
        guard.from_json(guard.to_json().replace(b',"version":1}', b',"version":9}'))


OPENAI_TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look.",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
    },
}
ANTHROPIC_TOOL = {"name": "look", "description": "Look.", "input_schema": OPENAI_TOOL["function"]["parameters"]}  # type: ignore[index]


@pytest.mark.parametrize("given", [OPENAI_TOOL, ANTHROPIC_TOOL, look, look.spec, look.function])
def test_tools_in_every_form_are_checked(given: object) -> None:
    guard = Guardrails(tools=[given, "finish"], terminal_tool="finish")  # type: ignore[list-item]
    assert said(guard.check(call("look"))) == "model tool:retry_nudge:1"
    assert said(guard.check(LOOK)) == "run look"
    assert [t["function"]["name"] for t in guard.openai_tools()] == ["look", "finish"]  # type: ignore[index]
    assert [t["name"] for t in guard.anthropic_tools()] == ["look", "finish"]


def test_what_is_no_reply_says_what_it_is() -> None:
    guard = Guardrails(tools=[look, finish], terminal_tool="finish")
    with pytest.raises(BackendError, match="overloaded"):
        guard.check({"error": {"message": "overloaded", "type": "server_error"}})
    with pytest.raises(TypeError, match="one chunk of a streamed reply; pass the complete reply"):
        guard.check({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "a"}}]})
    guard.check(LOOK)
    with pytest.raises(DefinitionError, match=r"results is \['found'\]; it must be a dict"):
        guard.record(["found"])  # type: ignore[arg-type]  # wrong on purpose


def test_mistakes_are_said_at_once() -> None:
    with pytest.raises(DefinitionError) as caught:
        Guardrails(tools=["a"], required_steps=["b"], terminal_tool="c")
    assert len(caught.value.problems) == 2
    with pytest.raises(DefinitionError, match=r"must be a Workflow or None\. Did you mean tools=…\?"):
        Guardrails([look])  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(DefinitionError, match="not a tool of the OpenAI or Anthropic API"):
        Guardrails(tools=[{"function": {"nam": "x"}}], terminal_tool="c")
    wrong = {"name": "x", "input_schema": {"type": "object", "properties": 3}}
    with pytest.raises(DefinitionError) as caught:
        Guardrails(tools=[wrong, "a"], terminal_tool="c")
    assert [p[:52] for p in caught.value.problems] == [
        "tool x: its parameters are not a JSON Schema of an o",
        "terminal_tool: there is no tool named 'c'; the tools",
    ]
    with pytest.raises(TypeError, match="not both"):
        Guardrails(Workflow("w", tools=[finish], terminal_tool="finish"), tools=["a"])


FUNCTION = {"name": "look", "arguments": '{"what":"a"}'}
OPENAI_MESSAGE = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "type": "function", "function": FUNCTION}],
}
EXPECTED = Reply(calls=(RawCall(id="1", name="look", arguments='{"what":"a"}'),))


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("Hi.", Reply(text="Hi.")),
        ("\ud800", Reply(text="\ufffd")),
        (EXPECTED, EXPECTED),
        (OPENAI_MESSAGE, EXPECTED),
        (
            {"choices": [{"message": OPENAI_MESSAGE, "finish_reason": "length"}]},
            Reply(calls=EXPECTED.calls, finish="length"),
        ),
        ({"choices": [{"message": {"content": "\ud800"}}]}, Reply(text="\ufffd")),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "1", "name": "look", "input": {"what": "a"}}],
            },
            EXPECTED,
        ),
        ({"role": "assistant", "content": [{"type": "text", "text": "Hi."}]}, Reply(text="Hi.")),
        ({"done": True, "done_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}, Reply(text="Hi.")),
        (
            {"type": "ai", "content": "", "tool_calls": [{"name": "look", "args": {"what": "a"}, "id": "1"}]},
            EXPECTED,
        ),
        (
            {
                "type": "ai",
                "content": [{"type": "text", "text": "Hi."}],
                "invalid_tool_calls": [{"name": "look", "args": "{"}],
            },
            Reply(text="Hi.", calls=(RawCall(name="look", arguments="{"),)),
        ),
    ],
)
def test_replies_in_every_form(response: object, expected: Reply) -> None:
    found = reply_of(response)
    assert (found.text, found.finish) == (expected.text, expected.finish)
    assert [(c.id, c.name, json.loads(c.arguments) if c.arguments != "{" else "{") for c in found.calls] == [
        (c.id, c.name, json.loads(c.arguments) if c.arguments != "{" else "{") for c in expected.calls
    ]


@pytest.mark.parametrize("response", [None, 3, {"role": "user", "content": "x"}, {}, ["x"]])
def test_what_is_no_reply_is_said(response: object) -> None:
    with pytest.raises(TypeError, match="a reply cannot be read from"):
        reply_of(response)


@pytest.mark.parametrize("response", [{"choices": []}, {"choices": 3}, {"type": "message", "content": 3}])
def test_a_damaged_response_is_the_servers_fault(response: object) -> None:
    with pytest.raises(BackendError) as caught:
        reply_of(response)
    assert caught.value.fault.kind == "malformed"


def nested(levels: int) -> list[object]:
    inner: list[object] = []
    for _ in range(levels):
        inner = [inner]
    return inner


@pytest.mark.parametrize(("kind", "levels"), [("message", 200), ("ai", 50_000)])
def test_a_response_that_is_too_deep_is_no_end_of_the_program(kind: str, levels: int) -> None:
    deep = {"type": kind, "content": [], "tool_calls": [{"name": "x", "args": {"a": nested(levels)}}]}
    with pytest.raises(BackendError, match=r"not valid JSON|not a message"):
        reply_of(deep)


class TestParts:
    """The parts of the middleware, each by itself."""

    def test_a_validator(self) -> None:
        validator = ResponseValidator([look, "respond"])
        found = validator.validate('<tool_call>{"name": "look", "arguments": {"what": "a"}}</tool_call>')
        assert not found.needs_retry
        assert [c.name for c in found.tool_calls] == ["look"]
        wrong = validator.validate(call("look"))
        assert wrong.needs_retry
        assert wrong.nudge is not None
        assert wrong.nudge.content.startswith("[ToolArgValidationError]")
        bare = ResponseValidator(["look"], rescue_enabled=False).validate('{"tool": "look", "args": {}}')
        assert bare.nudge is not None
        assert (bare.nudge.role, bare.nudge.kind) == ("user", Kind.RETRY_NUDGE)

    def test_an_enforcer(self) -> None:
        matching = [Prerequisite(tool="look", match_arg="what")]
        needed: dict[str, str | list[str | Prerequisite]] = {"write": [*matching], "erase": "look"}
        enforcer = StepEnforcer(["look"], ["finish"], needed)
        end = [Call(id="1", name="finish", text="{}")]
        tiers = [check.nudge.tier for check in (enforcer.check(end) for _ in range(4)) if check.nudge]
        assert (tiers, enforcer.premature_exhausted, enforcer.pending()) == ([1, 2, 3, 4], True, ("look",))
        assert "look" in getattr(
            enforcer.check_prerequisites([Call(id="0", name="erase", text="{}")]).nudge, "content", ""
        )
        enforcer.reset_premature()
        enforcer.reset_prereq_violations()
        enforcer.record("look", {"what": "a"})
        assert not enforcer.check(end).needs_nudge
        assert (enforcer.premature_attempts, enforcer.is_satisfied(), enforcer.completed_steps) == (0, True, ("look",))
        other = [Call(id="2", name="write", text='{"what":"b"}')]
        assert enforcer.check_prerequisites(other).needs_nudge
        assert not enforcer.check_prerequisites([Call(id="3", name="write", text='{"what":"a"}')]).needs_nudge
        assert (enforcer.prereq_violations, enforcer.prereq_exhausted) == (1, False)

    def test_a_tracker(self) -> None:
        tracker = ErrorTracker(max_retries=1, max_tool_errors=0)

        def exhausted() -> tuple[bool, bool]:
            return tracker.retries_exhausted, tracker.tool_errors_exhausted

        tracker.record_retry()
        assert exhausted() == (False, False)
        tracker.record_retry()
        assert exhausted() == (True, False)
        tracker.reset_retries()
        tracker.record_result(success=False, is_soft_error=True)
        assert exhausted() == (False, False)
        tracker.record_result(success=False)
        tracker.record_result(success=True)
        assert exhausted() == (False, True)
        tracker.reset_errors()
        assert exhausted() == (False, False)


def test_without_max_iterations_a_workflow_of_yours_counts_no_model_calls() -> None:
    workflow = Workflow("desk", tools=[look, finish], terminal_tool="finish", limits=Limits(max_retries_per_step=99))
    rails = Guardrails(workflow)
    assert {type(rails.check("Hm.")) for _ in range(30)} == {CallModel}
    counted = Guardrails(replace(workflow, limits=Limits(max_iterations=2, max_retries_per_step=99)))
    assert [type(counted.check("Hm.")) for _ in range(2)] == [CallModel, Halted]
