"""Nudges in the user's own words: which text goes where, and what is refused."""

import pytest

from forge import Workflow, run_sync
from forge.errors import CallbackError, DefinitionError
from forge.guardrails import CallModel, Guardrails
from forge.interpreters.scripted import Line, Scripted, call, calls
from stages.effect import RawCall, Reply
from stages.message import Tool, ToolCall, User, is_nudge
from stages.objection import BareText, Correction, Custom, NudgeKind, Objection, Verdict
from stages.rules import Calls, Limits
from stages.state import State
from tests.flows import Desk

LOOK, WRITE, FINISH = call("look", what="a"), call("write", what="a", text="t"), call("finish", result="ok")


def nudged(script: list[Line], **nudges: object) -> list[str]:
    ended = run_sync(
        Desk(nudges=nudges, limits=Limits(max_iterations=len(script))).workflow, "Go.", backend=Scripted(script)
    )
    history = (ended.value_or(None) or ended.failure()).state.history
    return [m.text for m in history if isinstance(m, User | Tool) and is_nudge(m)]


@pytest.mark.parametrize(
    ("kind", "reply", "text"),
    [
        ("retry", "Hm.", "Own words; look, fail; look; ."),
        ("unknown_tool", call("loook"), "[UnknownTool] Own words; look, fail; look; loook."),
        ("arguments", call("look"), "[ToolArgValidationError] Own words; look, fail; look; look."),
        ("step", FINISH, "[StepEnforcementError] Own words; look, fail; look; finish."),
        ("prerequisite", WRITE, "[PrereqError] Own words; look, fail; look; write."),
    ],
)
def test_a_text_takes_the_place_of_its_kind_and_of_no_other(kind: NudgeKind, reply: Line, text: str) -> None:
    assert nudged([reply], **{kind: "Own words; {allowed}; {pending}; {tool}."}) == [text]
    (other,) = nudged([reply], **dict.fromkeys({"retry", "step", "arguments", "unknown_tool"} - {kind}, "Never."))
    assert "Never." not in other


def test_each_call_that_cannot_be_read_hears_the_users_words() -> None:
    damaged = Reply(calls=(RawCall(name="look", arguments="{"), RawCall(name="nope", arguments="{")))
    (text,) = nudged([damaged], arguments="Mend {tool}.", unknown_tool="No {tool}.")
    assert text == "[ToolArgValidationError] Mend look.\n[UnknownTool] No nope."


def test_what_a_guard_of_ones_own_says_stands_as_it_is() -> None:
    def guard(_: State, calls: tuple[ToolCall, ...]) -> Verdict:
        return [Objection(call=call, wrong=Custom(text="[Repeated] Enough.")) for call in calls]

    workflow = Desk(
        guards=[guard], nudges={"repeated": "Never.", "retry": "Never."}, limits=Limits(max_iterations=1)
    ).workflow
    history = run_sync(workflow, "Go.", backend=Scripted([LOOK])).failure().state.history
    assert "[Repeated] Enough." in [message.text for message in history]


def test_a_repetition_can_be_reworded() -> None:
    assert nudged([LOOK, LOOK, LOOK], repeated="Enough of {tool}.") == ["[Repeated] Enough of look."]


def test_forges_own_text_can_be_part_of_it() -> None:
    (text,) = nudged([FINISH], step="{text} Please.")
    assert text.startswith("[StepEnforcementError] You cannot call finish yet.")
    assert text.endswith("Please.")


def test_a_function_is_told_what_went_wrong_and_how_often() -> None:
    heard: list[Correction] = []

    def words(wrong: Correction) -> str:
        heard.append(wrong)
        return f"No. {wrong.attempt}"

    assert nudged(["Hm.", "Well."], retry=words) == ["No. 1", "No. 2"]
    assert (heard[0].kind, heard[0].allowed, heard[0].pending) == ("retry", ("look", "fail"), ("look",))
    assert heard[0].text.startswith("Your reply was plain text")
    assert heard[0].wrong == BareText(allowed=("look", "fail"))


def test_it_is_told_so_at_the_moment_of_the_mistake_whatever_else_of_the_reply_runs() -> None:
    """A call that runs beside it may do the step, and a batch that went well sets counts back."""

    def words(wrong: Correction) -> str:
        return f"{wrong.pending} {wrong.attempt}"

    batch = calls(("look", {"what": "a"}), ("finish", {}))
    workflow = Desk(
        nudges={"step": words}, calls=Calls(on_violation="block_call"), limits=Limits(max_iterations=1)
    ).workflow
    history = run_sync(workflow, "Go.", backend=Scripted([batch])).failure().state.history
    assert "[StepEnforcementError] ('look',) 1" in [message.text for message in history]


def test_a_good_call_beside_a_refused_one_is_still_told_to_come_again() -> None:
    told = nudged([calls(("finish", {}), ("look", {"what": "a"}))], step="Not yet.")
    assert told[0] == "[StepEnforcementError] Not yet."
    assert "Repeat it without finish" in told[1]


def test_a_function_that_gives_no_text_is_a_mistake_of_its_author() -> None:
    with pytest.raises(CallbackError, match="returned None; it must return str"):
        nudged(["Hm."], retry=lambda wrong: None)


def test_every_mistake_is_said_before_anything_runs() -> None:
    with pytest.raises(DefinitionError) as caught:
        Desk(nudges={"retri": "x", "retry": "{tols}", "step": " "})
    found = caught.value.problems
    assert len(found) == 3
    for start in (
        "nudges: unknown kind 'retri'; the kinds are: retry, unknown_tool",
        "nudges: the text for 'retry' has the placeholder {tols}; there are: allowed, pending, text, tool",
        "nudges: the text for 'step' is empty",
    ):
        assert any(problem.startswith(start) for problem in found), start


def test_guardrails_speak_the_same_words() -> None:
    workflow: Workflow = Desk(nudges={"retry": "Use a tool: {allowed}."}).workflow
    action = Guardrails(workflow).check("Hm.")
    assert isinstance(action, CallModel)
    assert [nudge.content for nudge in action.nudges] == ["Use a tool: look, fail."]
