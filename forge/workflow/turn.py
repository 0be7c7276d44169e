"""The turn of a workflow on a backend: its stages, chosen by what the backend can do."""

import logging
from collections.abc import Mapping
from functools import cache, partial

from msgspec.structs import replace
from returns.result import Result

from forge.connection import Setup
from forge.errors import CallbackError, ForgeError, PipelineError
from forge.workflow.stage_list import arranged
from forge.workflow.workflow import CompiledWorkflow, Workflow
from stages import Stage, compact, enforce, execute, fold, pipeline, rescue, send, serialize, validate
from stages.batch_selection import kept_calls
from stages.compaction import Meter, TieredCompact
from stages.confidence.measure import LARGER, AskLarger
from stages.halt import Halt
from stages.objection import in_own_words
from stages.pipeline import StuckError, advance
from stages.reading.replies import ReplyRead, reader
from stages.rescue.markers import Grammars, Openers
from stages.serialize import overhead
from stages.state import MAIN, Ready, StageName, State
from stages.view.notes import note_progress, warn_of_calls
from stages.view.summary import SUMMARY, ask_for_summary
from stages.wire.prompted import JSON, LIST, RESPONDING, Form
from stages.wire.sampling import Sampling
from stages.wire.target import Target
from stages.wire.wires import wire

# What `unsure` needs of a backend.

_NO_LOGPROBS = (
    "unsure=… needs log-probabilities, which this backend does not return; if the server does return them, use a "
    "profile with logprobs = true, else leave unsure out"
)
_NO_LARGER = (
    "the workflow hands unsure calls to a larger model (AskLarger), and this backend has none; "
    "run it from Python with Models(small, larger=larger) of forge.backends, or leave AskLarger out"
)


# The stages of a turn, and parts of it for others.


def _target(workflow: CompiledWorkflow, setup: Setup) -> Target:
    rules, spoken, sampling = workflow.rules, wire(setup.dialect), setup.sampling
    if workflow.unsure is not None and setup.logprobs:
        sampling = sampling.over(Sampling(extra=spoken.logprobs))
    form: Form = JSON
    if setup.mode == "constrained" and rules.tools:
        # Only these forms let a constrained reply have words, or several calls. Where unsure calls are asked again, an
        # answer stays one of the tools, because its probability among these is needed.
        if rules.on_text == "accept":
            form = LIST
        elif rules.on_text == "respond" and workflow.unsure is None:
            form = RESPONDING
    return Target(
        mode=setup.mode,
        model=setup.model,
        sampling=sampling,
        wire=spoken,
        form=form,
        alternating=setup.alternating,
        schemas=workflow.schemas,
        falls_back=setup.falls_back,
        families=_grammars(workflow, setup),
    )


def compiled_turn(workflow: CompiledWorkflow, setup: Setup) -> Stage:
    """The stages of one turn, composed."""
    return pipeline(*stages_of(workflow, setup).values())


def turn_on(workflow: Workflow, setup: Setup) -> Stage:
    """The same, cached for the next run with an equal setup: making a turn takes as long as running three."""
    match workflow.turns:
        case [(known, turn)] if known == setup:
            return turn
    turn = compiled_turn(workflow.compiled, setup)
    workflow.turns[:] = [(setup, turn)]
    return turn


def stages_of(workflow: CompiledWorkflow, setup: Setup) -> dict[str, Stage]:
    """The stages of a turn on that backend by name, in running order: forge's own and the user's."""
    rules, context, when = workflow.rules, workflow.context, workflow.unsure
    here = _target(workflow, setup)
    targets = {MAIN: here, **{name: _target(workflow, other) for name, other in setup.targets.items()}}
    if here.wire.strict and setup.mode != "prompted":
        for sentence in workflow.schemas.refused:
            logging.getLogger("forge").warning("%s; its arguments are checked after the reply alone", sentence)
    budget = replace(workflow.prompt, tokens=_room(setup), meter=Meter(overhead=overhead(rules, here)))
    made: dict[StageName, dict[str, Stage]] = {
        "compact": {"compact": compact(context.compactor or TieredCompact(), budget)},
        "fold": {"fold": fold(context.reasoning_replay, context.failed_attempts)},
        "serialize": {"serialize": serialize(rules, targets)},
        **_judging(workflow, targets),
    }
    if policy := context.summary:
        other = setup.targets.get(SUMMARY)
        # A server that does not report its context is assumed to have as much as the main one.
        elsewhere = None if other is None else _room(other) if other.context_tokens else budget.tokens
        summarize = ask_for_summary(policy, context.compactor or TieredCompact(), budget, elsewhere=elsewhere)
        made["compact"] = {"summarize": summarize, **made["compact"]}
    if left := context.iteration_warning:
        made["fold"]["warn_of_calls"] = warn_of_calls(rules, left)
    # Not with native calls: models that are good at them need no notes.
    if context.progress_notes and setup.mode != "native":
        made["fold"]["note_progress"] = note_progress(rules)
    if when is not None:
        from stages.confidence import decide  # noqa: PLC0415 - few workflows say what follows unsure calls

        if not setup.logprobs:
            raise ForgeError(_NO_LOGPROBS)
        if LARGER not in setup.targets and AskLarger() in when.steps:
            raise ForgeError(_NO_LARGER)
        made["fold"]["think_first"] = decide.think_first()
        made["serialize"]["ask_again"] = decide.ask_again(when, here.wire.dialect.option_names)
        made["validate"] = {"hear": decide.hear(rules.tools), **made["validate"], "weigh": decide.weigh}
        made["enforce"]["settle"] = decide.settle(when)
    return arranged(workflow.stages, made)


def judging(workflow: CompiledWorkflow) -> dict[str, Stage]:
    """The stages that judge a reply and request its calls, for a loop of your own that asks the model.

    The user's own stages before `send` are included; they see the phases that occur there.
    """
    return arranged(workflow.stages, _judging(workflow, {MAIN: Target(families=workflow.grammars)}))


def _judging(workflow: CompiledWorkflow, targets: Mapping[str, Target]) -> dict[StageName, dict[str, Stage]]:
    """The stages from `send` to `execute`, for replies of these models."""
    rules, guards = workflow.rules, workflow.guards.values()
    say, keep = in_own_words(rules, workflow.rewords), partial(kept_calls, rules)
    return {
        "send": {"send": send(rules)},
        "validate": {"validate": validate(rules, targets, tools=workflow.tools, say=say)},
        "enforce": {
            "enforce": enforce(*guards, on_violation=rules.calls.on_violation, keep=keep, say=say, limits=rules.limits)
        },
        "execute": {"execute": execute(rules)},
    }


def reading(workflow: CompiledWorkflow, setup: Setup) -> ReplyRead:
    """The function that finds the calls in a reply, as the stage `validate` does on that backend."""
    here = _target(workflow, setup)
    in_text = here.modes != {"native"}
    return reader(
        workflow.rules, in_text=in_text, families=_grammars(workflow, setup), tools=workflow.tools, form=here.form
    )


def asked_first(workflow: CompiledWorkflow, state: State, setup: Setup) -> Result[State, Halt]:
    """The state with the request for its whole history: nothing cut, no warning added.

    The user's own stages take part, so what they hide from the model is not in it.
    """
    asking: dict[StageName, dict[str, Stage]] = {
        "fold": {"fold": fold(workflow.context.reasoning_replay, workflow.context.failed_attempts)},
        "serialize": {"serialize": serialize(workflow.rules, _target(workflow, setup))},
        "send": {"send": send(workflow.rules)},
    }
    return pipeline(*arranged(workflow.stages, asking).values())(state.to(Ready()))


def _room(setup: Setup) -> int:
    """Maximum tokens of a prompt, with room for a reply."""
    return max(0, setup.context_tokens - setup.sampling.limit)


def _grammars(workflow: CompiledWorkflow, setup: Setup) -> Grammars:
    """The user's grammars of calls, then those of the model's template and profile, then all known ones.

    All, because models mix them up.
    """

    @cache
    def compiled() -> Openers:
        known = workflow.grammars()
        theirs = [rescue.template_family(setup.markers)] if setup.markers else []
        for family in reversed((*theirs, *map(rescue.family_of, setup.formats))):
            known = known.with_family(family, workflow.own_families)
        return known

    return compiled


def advanced(turn: Stage, state: State) -> Result[State, Halt]:
    """`stages.pipeline.advance` with errors as ForgeErrors that carry a state to continue from.

    For a callback that failed, that is the state before the turn; for a PipelineError, the state in which the turn got
    stuck.
    """
    try:
        return advance(turn, state)
    except CallbackError as error:
        error.state = error.state or state
        raise
    except StuckError as error:
        raise PipelineError(str(error), error.state) from None
