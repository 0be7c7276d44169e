"""Pipelines of one's own: stages in a workflow, wherever it is run; and every mistake in them told by its place."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as changed
from returns.result import Failure, Result, Success

from forge import Conversation, Workflow, replay, resume, resume_journal, run_sync
from forge.errors import CallbackError, DefinitionError, PipelineError
from forge.guardrails import Guardrails
from forge.guardrails.actions import RunCalls
from forge.interpreters import interpreter
from forge.interpreters.scripted import Line, Scripted, call
from forge.runtime.loop import drive
from forge.workflow.stage_list import STAGE_NAMES
from stages import Stage, compact, enforce, execute, fold, on, pipeline, send, serialize, validate
from stages.compaction import ContextBudget, TieredCompact
from stages.effect import Budget
from stages.halt import BadReplies, BudgetSpent, Halt
from stages.pipeline import StageError, StuckError, advance, dead_stages
from stages.rules import Limits
from stages.state import Answered, Awaiting, Executed, Folded, Phase, Prepared, Ready, StageName, State, Vetted
from stages.wire.deltas import Delta, TextDelta
from tests.flows import Desk

BACKWARDS = '```json\n{"name": "look", "arguments": {"what": "a"}}\n```'[::-1]
SCRIPT: list[Line] = [BACKWARDS, call("finish", result="ok")]


@on(Answered)
def turned_round(state: State, phase: Answered) -> State:
    """A model that writes backwards makes a call all the same."""
    return state.to(Answered(reply=changed(phase.reply, text=phase.reply.text[::-1])))


def beside(name: StageName, *own: object) -> list[object]:
    """Forge's stages, with these in front of the one of that name."""
    at = STAGE_NAMES.index(name)
    return [*STAGE_NAMES[:at], *own, *STAGE_NAMES[at:]]


def desk(*own: Stage) -> Workflow:
    return Desk(stages=beside("validate", *own)).workflow


def test_a_stage_of_ones_own_runs_is_journaled_replayed_and_resumed(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    workflow = desk(turned_round)
    ended = run_sync(workflow, "Go.", backend=Scripted(SCRIPT), journal=str(journal)).unwrap()
    assert ended.value == "ok"
    without_it = Desk(limits=Limits(max_retries_per_step=0)).workflow
    assert isinstance(run_sync(without_it, "Go.", backend=Scripted(SCRIPT)), Failure)
    assert replay(journal, workflow).unwrap() == ended
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-4]))
    resumed = asyncio.run(resume_journal(workflow, journal, backend=Scripted(SCRIPT[1:]))).unwrap()
    assert resumed.state.history == ended.state.history


def test_it_runs_in_conversations_streams_and_the_middleware() -> None:
    seen: list[Delta] = []
    talk = Conversation(desk(turned_round), backend=Scripted([*SCRIPT, *SCRIPT]))
    assert talk.say_sync("Go.", on_chunk=seen.append).unwrap().value == "ok"
    assert talk.say_sync("Again.").unwrap().value == "ok"
    assert any(isinstance(delta, TextDelta) and "eman" in delta.text for delta in seen)
    guard = Guardrails(desk(turned_round))
    assert isinstance(guard.check(BACKWARDS), RunCalls)


def test_a_stage_takes_the_place_of_forges_own() -> None:
    @on(Vetted)
    def no_writing(state: State, phase: Vetted) -> State | Halt:
        if any(one.name == "write" for one in phase.calls):
            return BadReplies(attempts=1, problem="it writes", raw="")
        return state.to(changed(phase, allowed=True))

    mine = Desk(stages=[no_writing if stage == "enforce" else stage for stage in STAGE_NAMES])
    assert run_sync(mine.workflow, "Go.", backend=Scripted([call("finish", result="x")])).unwrap().value == "x"
    halted = run_sync(mine.workflow, "Go.", backend=Scripted([call("write", what="a", text="b")])).failure()
    assert halted.halt == BadReplies(attempts=1, problem="it writes", raw="")
    assert mine.log == ["finish"]


def test_two_stages_of_one_name_both_run() -> None:
    count: list[str] = []

    def counting(which: str) -> Stage:
        @on(Folded)
        def fold(state: State, _: Folded) -> State:
            count.append(which)
            return state

        return fold

    workflow = Desk(stages=beside("serialize", counting("first"), counting("second"))).workflow
    run_sync(workflow, "Go.", backend=Scripted([call("look", what="a"), call("finish")])).unwrap()
    assert count == ["first", "second"] * 2


async def asynchronous(state: State) -> Result[State, Halt]:
    return Success(state)


def without(*names: str) -> list[object]:
    return [stage for stage in STAGE_NAMES if stage not in names]


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        (["validat"], "stages[0] is 'validat'; it must be one of compact, fold, serialize, send, validate"),
        (beside("validate", validate), "stages[4]: validate makes a stage; call it, as in validate(…)"),
        (beside("validate", asynchronous), "stages[4]: asynchronous is async, but it is called without await"),
        ([3], "stages[0] is 3; it must be"),
        (without("enforce"), "stages has neither 'enforce' nor a replacement that acts on Vetted"),
        ([*without("enforce"), "enforce"], "they must run in the order compact, fold"),
    ],
)
def test_what_is_wrong_with_the_list_is_told_before_anything_runs(stages: list[object], says: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        Desk(stages=stages)
    assert any(says in problem for problem in refused.value.problems), refused.value.problems


def test_compaction_may_be_left_out() -> None:
    model = Scripted([call("look", what="a"), call("finish", result="ok")])
    assert run_sync(Desk(stages=without("compact")).workflow, "Go.", backend=model).unwrap().value == "ok"


@on(Answered)
def nothing(state: State, phase: Answered) -> State:  # type: ignore[empty-body]  # what it is about
    pass


@on(Answered)
def raising(state: State, phase: Answered) -> State:
    return state.to(Answered(reply=changed(phase.reply, text=phase.reply.text + 1)))  # type: ignore[operator]


@on(Answered)
def saying(state: State, phase: Answered) -> State:
    return state.say("hello")  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        (nothing, "stages[4]: the stage nothing returned None; it must return a State or a Halt"),
        (raising, "stages[4], raising, raised TypeError: can only concatenate str"),
        (lambda state: 5, "stages[4]: the stage "),
        (pipeline(fold(), raising), "stages[4], fold, raising, raised TypeError: can only concatenate str"),
        (saying, "stages[4], saying, raised TypeError: say() takes messages, such as User(text=…), not 'hello' (test_"),
    ],
)
def test_a_stage_that_fails_is_named_and_the_run_goes_on_without_it(stage: Stage, says: str) -> None:
    model = Scripted([call("look", what="a"), call("finish", result="ok")])
    with pytest.raises(CallbackError) as failed:
        run_sync(desk(stage), "Go.", backend=model)
    assert str(failed.value).startswith(says)
    state = failed.value.state
    assert state is not None
    left = Scripted([call("finish", result="ok")])
    result = asyncio.run(resume(Desk().workflow, state, backend=model if isinstance(state.phase, Ready) else left))
    assert result.unwrap().value == "ok"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (fold, "stage 2: fold makes a stage; call it, as in fold(…)"),
        ("validate", "stage 2: 'validate' is not a stage"),
        (Workflow, "stage 2: Workflow is a class"),
        (asynchronous, "stage 2: asynchronous is async"),
        (lambda state, phase: state, "stage 2: <lambda> cannot be called with a State alone"),
    ],
)
def test_what_is_no_stage_is_not_composed(given: object, says: str) -> None:
    with pytest.raises(StageError) as refused:
        pipeline(fold(), given)  # type: ignore[arg-type]
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize(
    ("phases", "says"),
    [
        *(((wrong,), r"as in @on\(Answered\); the phases are Ready, ") for wrong in ("answered", None, State)),
        ((Ready, Folded, Answered), "@on takes one phase or two, not 3; write a stage for each"),
    ],
)
def test_on_takes_one_phase_or_two(phases: tuple[object, ...], says: str) -> None:
    with pytest.raises(StageError, match=says):
        on(*phases)  # type: ignore[call-overload]  # wrong on purpose


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (asynchronous, "asynchronous is async; a stage does no I/O"),
        (lambda state: state, r"<lambda> cannot be called as <lambda>\(state, phase\): too many"),
    ],
)
def test_what_is_no_stage_is_none_under_on_either(function: Any, says: str) -> None:
    with pytest.raises(StageError, match=says):
        on(Ready)(function)


def returning(made: object) -> Stage:
    @on(Ready)
    def stage(state: State, _: Ready) -> State:
        return made  # type: ignore[return-value]

    return stage


def test_a_function_under_on_returns_a_state_a_halt_or_a_result_of_them() -> None:
    state, halt = State(history=()), BadReplies(attempts=1, problem="", raw="")
    ways: tuple[tuple[object, Result[State, Halt]], ...] = (
        (state, Success(state)),
        (halt, Failure(halt)),
        (Success(state), Success(state)),
        (Failure(halt), Failure(halt)),
    )
    for made, result in ways:
        assert pipeline(returning(made))(state) == result
    for made in (None, (state,), Success(None), Failure("no"), Success(Success(state))):
        with pytest.raises(StageError, match="it must return a State or a Halt"):
            returning(made)(state)


def whole(*guarded: Stage) -> Stage:
    rules = Desk().workflow.rules
    return pipeline(
        compact(TieredCompact(), ContextBudget(tokens=8192)),
        fold(),
        serialize(rules),
        send(rules),
        validate(rules),
        *guarded,
        execute(rules),
    )


def driven(turn: Stage, mine: Desk) -> object:
    perform = interpreter(Scripted([call("finish", result="ok")]), mine.workflow.execute)
    return asyncio.run(drive(turn, mine.workflow.start("Go."), perform))


def test_a_pipeline_without_guards_runs_no_tool() -> None:
    mine = Desk()
    with pytest.raises(PipelineError, match="no stage asked the guards whether the calls may run") as stopped:
        driven(whole(), mine)
    assert mine.log == []
    assert stopped.value.state is not None


def test_guards_after_the_calls_were_begun_are_too_late_to_be_left_out() -> None:
    mine = Desk()
    with pytest.raises(PipelineError, match="no stage after enforce runs the calls"):
        driven(pipeline(*[whole()], enforce()), mine)
    assert mine.log == []


def test_without_guards_on_purpose_it_runs_whatever_is_called() -> None:
    mine = Desk()
    assert isinstance(driven(whole(enforce()), mine), Success)
    assert mine.log == ["finish"]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ((), "in Ready: no stage of it acts there, as fold does"),
        ((fold(),), "in Folded: no stage of it acts there, as serialize does"),
    ],
)
def test_what_a_turn_lacks_is_named(parts: tuple[Stage, ...], says: str) -> None:
    with pytest.raises(PipelineError, match=says):
        driven(pipeline(*parts), Desk())


def test_advance_applies_the_turn_once_and_tells_where_a_run_may_not_rest() -> None:
    mine = Desk().workflow
    turn, start = whole(enforce()), mine.start("Go.")
    asked = advance(turn, start)
    assert asked == turn(start)
    assert isinstance(asked.unwrap().phase, Awaiting)
    spent = start.note(budget=Budget(calls=0))
    assert isinstance(advance(turn, spent).failure(), BudgetSpent)
    with pytest.raises(
        StuckError, match="leaves the run in Prepared: no stage of it acts there, as send does"
    ) as stuck:
        advance(pipeline(fold(), serialize(mine.rules)), start)
    assert isinstance(stuck.value.state.phase, Prepared)


def test_a_pipeline_binds_each_stage_to_the_one_before() -> None:
    mine = Desk().workflow
    stages = (fold(), serialize(mine.rules), send(mine.rules), validate(mine.rules))
    for start in (mine.start("Go."), mine.start("Go.").note(budget=Budget(calls=0))):
        bound = Success(start).bind(stages[0]).bind(stages[1]).bind(stages[2]).bind(stages[3])
        assert pipeline(*stages)(start) == bound


def test_composing_is_associative_and_shows_what_it_is_made_of() -> None:
    apart = (fold(), turned_round, enforce())
    for composed in (pipeline(*apart), pipeline(pipeline(*apart[:2]), apart[2]), pipeline(pipeline(*apart))):
        assert repr(composed) == "pipeline(fold, turned_round, enforce)"
    assert repr(turned_round) == "<stage turned_round on Answered>"
    start = State(history=())
    assert pipeline()(start) == Success(start)


WHERE_A_STAGE_ACTS: list[tuple[type[Phase], set[int]]] = [
    (Ready, {0, 1, 5, 6, 7}),
    (Prepared, {3}),
    (Executed, {0, 1, 2, 3, 4, 5, 6}),
]


@pytest.mark.parametrize(("phase", "places"), WHERE_A_STAGE_ACTS)
def test_a_stage_is_refused_where_it_could_never_act(phase: type[Phase], places: set[int]) -> None:
    @on(phase)
    def redact(state: State, _: Phase) -> State:
        return state

    def problems(place: int) -> tuple[str, ...]:
        stages = [*STAGE_NAMES[:place], redact, *STAGE_NAMES[place:]]
        try:
            dataclasses.replace(Desk().workflow, stages=stages)
        except DefinitionError as error:
            return error.problems
        return ()

    said = {place: problems(place) for place in range(len(STAGE_NAMES) + 1)}
    assert {place for place, sentences in said.items() if not sentences} == places
    for place, sentences in said.items():
        if sentences:
            (sentence,) = sentences
            assert sentence.startswith(
                f"stages[{place}]: redact would never run here: no state is in phase {phase.__name__}. Move it "
            )


@on(Folded)
def redact(state: State, _: Folded) -> State:
    return state


@on(Folded, Answered)
def redact_both(state: State, _: Folded | Answered) -> State:
    return state


MOVE_IT = "Move it after 'fold' and before 'serialize'"
NEVER_RUNS = f"redact would never run here: no state is in phase Folded. {MOVE_IT}"
DEAD_PARTS: list[tuple[int, Stage, str]] = [
    (3, pipeline(redact, turned_round), NEVER_RUNS),
    (1, pipeline(redact, turned_round), NEVER_RUNS),
    (3, redact_both, f"redact_both would never run on Folded here: no state is in that phase. {MOVE_IT}, or "),
]


@pytest.mark.parametrize(("place", "stage", "says"), DEAD_PARTS)
def test_each_part_and_each_phase_of_a_stage_is_looked_at(place: int, stage: Stage, says: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        dataclasses.replace(Desk().workflow, stages=[*STAGE_NAMES[:place], stage, *STAGE_NAMES[place:]])
    (problem,) = refused.value.problems
    assert problem.startswith(f"stages[{place}]: {says}")


def test_parts_of_a_turn_may_hold_forges_own_stages() -> None:
    mine = Desk().workflow
    asking = pipeline(fold(), redact_both, serialize(mine.rules), send(mine.rules))
    assert [*dead_stages(["compact", asking, "validate", "enforce", "execute"])] == []


def test_a_function_that_is_not_made_with_on_may_lead_anywhere() -> None:
    def own_fold(state: State) -> Result[State, Halt]:
        return fold()(state)

    assert [*dead_stages(["compact", own_fold, redact, *STAGE_NAMES[2:]])] == []


def test_a_turn_without_a_workflow_is_driven_with_a_warning_of_its_dead_stages() -> None:
    with pytest.warns(UserWarning, match=NEVER_RUNS):
        driven(pipeline(whole(enforce()), redact), Desk())
