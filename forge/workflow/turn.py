"""The turn of a workflow on a backend: its stages, chosen by what the backend can do."""

import logging
from collections.abc import Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from returns.result import Result

from forge.connection import Setup
from forge.errors import ForgeError
from forge.workflow.workflow import CompiledWorkflow, StageName, arranged
from stages import Stage, compact, enforce, execute, fold, pipeline, rescue, send, serialize, validate
from stages.batch_selection import kept_calls
from stages.compaction import ContextBudget, Meter, TieredCompact
from stages.confidence.decide import LARGER, ask_again, hear, settle, think_first, weigh
from stages.confidence.measure import AskLarger, WhenUnsure
from stages.halt import Halt
from stages.nudges import in_own_words
from stages.reading.replies import ReplyRead, reader
from stages.rescue.chat_template import template_family
from stages.rescue.markers import Openers
from stages.serialize import overhead
from stages.state import MAIN, Ready, State
from stages.view.notes import note_progress, warn_of_calls, warn_of_context
from stages.view.summary import SUMMARY, ask_for_summary
from stages.wire.deltas import Sampling
from stages.wire.prompted import FORMS, LIST
from stages.wire.target import Target
from stages.wire.wires import Wire, wire

# The stages of a workflow that says what follows calls that the model is not sure of.

_NO_LOGPROBS = (
    "the workflow says what follows unsure calls (unsure=…), and this backend gives no log-probabilities, by which "
    "calls are known to be sure; use a profile with logprobs = true if the server does give them, else leave unsure out"
)


_NO_LARGER = (
    "the workflow hands unsure calls to a larger model (AskLarger), and this backend has none; "
    "use Cascade(small, larger) of forge.backends, on the command line --larger, or leave AskLarger out"
)


_Made = Mapping[StageName, Mapping[str, Stage]]


def _refuse_unable(when: WhenUnsure | None, setup: Setup) -> None:
    """ForgeError for a backend without the probabilities or the larger model that the workflow asks for.

    Also for another model than the one whose priors it has.
    """
    if when is not None and not setup.logprobs:
        raise ForgeError(_NO_LOGPROBS)
    if when is not None and LARGER not in setup.targets and AskLarger() in when.steps:
        raise ForgeError(_NO_LARGER)
    if when is not None and when.priors and when.priors.model != setup.model:
        raise ForgeError(
            f"the priors of the workflow are those of the model {when.priors.model!r}, and this is {setup.model!r}; "
            "measure them with this one (forge priors), or leave priors out"
        )


def _with_logprobs(when: WhenUnsure | None, setup: Setup, wire: Wire) -> Setup:
    """The setup that asks for log-probabilities where the workflow needs them and the model has them."""
    if when is None or not setup.logprobs:
        return setup
    return replace(setup, sampling=setup.sampling.over(Sampling(extra=wire.logprobs)))


def _with_unsure_stages(workflow: CompiledWorkflow, wire: Wire, made: _Made) -> _Made:
    """The stages with those that measure, settle and ask again, each beside the one of forge's that it goes with."""
    when = workflow.unsure
    if when is None:
        return made
    tools = workflow.tools
    return {
        **made,
        "fold": {**made["fold"], "think_first": think_first()},
        "serialize": {**made["serialize"], "ask_again": ask_again(when, wire.dialect.option_names)},
        "validate": {"hear": hear(workflow.rules.tools), **made["validate"], "weigh": weigh(when, tools)},
        "enforce": {**made["enforce"], "settle": settle(when)},
    }


# Turn: the stages of one turn of a workflow on a model, set up by name; and the parts of it that others need.


class _OnBackend(Struct, frozen=True, kw_only=True):
    """A workflow on a backend."""

    workflow: CompiledWorkflow
    setup: Setup
    target: Target


def _on(workflow: CompiledWorkflow, setup: Setup) -> _OnBackend:
    return _OnBackend(workflow=workflow, setup=setup, target=_target(workflow, setup))


def _target(workflow: CompiledWorkflow, setup: Setup) -> Target:
    rules, spoken = workflow.rules, wire(setup.dialect)
    target = Target(
        mode=setup.mode,
        model=setup.model,
        sampling=_with_logprobs(workflow.unsure, setup, spoken).sampling,
        wire=spoken,
        form=FORMS[setup.form],
        alternating=setup.alternating,
        schemas=workflow.schemas,
        falls_back=setup.falls_back,
        families=_grammars(workflow, setup),
    )
    # Only this form leaves a constraint room for words, and for several calls.
    lists = target.mode == "constrained" and rules.tools and rules.on_text == "accept"
    return replace(target, form=LIST) if lists else target


def _targets(workflow: CompiledWorkflow, here: _OnBackend) -> dict[str, Target]:
    """The models that may be asked: the run's own, and the others that the backend has."""
    return {MAIN: here.target, **{name: _target(workflow, setup) for name, setup in here.setup.targets.items()}}


def turn_of(workflow: CompiledWorkflow, setup: Setup) -> Stage:
    """One turn: its stages composed."""
    return pipeline(*stages_of(workflow, setup).values())


def stages_of(workflow: CompiledWorkflow, setup: Setup) -> dict[str, Stage]:
    """The stages by name, in running order, set up for the workflow on that model: forge's own, and the user's."""
    here = _on(workflow, setup)
    targets = _targets(workflow, here)
    _tell_what_is_loose(here)
    budget = _context(here)
    asking: dict[StageName, dict[str, Stage]] = {
        "compact": _compacting(here.workflow, budget, setup.targets.get(SUMMARY)),
        "fold": {
            "fold": fold(workflow.context.reasoning_replay, workflow.context.failed_attempts),
            **_warnings(here, budget),
        },
        "serialize": {"serialize": serialize(workflow.rules, targets)},
    }
    _refuse_unable(workflow.unsure, setup)
    made = {**asking, **_judging(here.workflow, targets)}
    stages = _with_unsure_stages(workflow, here.target.wire, made)
    return arranged(workflow.stages, stages)


def judging(workflow: CompiledWorkflow) -> dict[str, Stage]:
    """The stages that judge a reply and have its calls run, where another loop asks the model: all but the request's.

    Those of the user's that stand before `send` are among them; they see the phases that such a task goes through.
    """
    return arranged(workflow.stages, _judging(workflow, {MAIN: Target(families=workflow.openers)}))


def _judging(workflow: CompiledWorkflow, targets: Mapping[str, Target]) -> dict[StageName, dict[str, Stage]]:
    """From `send` to `execute`, for replies of these models."""
    rules, guards = workflow.rules, workflow.guards.values()
    say, keep = in_own_words(rules, workflow.rewords), partial(kept_calls, rules)
    read = validate(rules, targets, tools=workflow.tools, say=say)
    return {
        "send": {"send": send(rules)},
        "validate": {"validate": read},
        "enforce": {"enforce": enforce(*guards, on_violation=rules.calls.on_violation, keep=keep, say=say)},
        "execute": {"execute": execute(rules)},
    }


def reading(workflow: CompiledWorkflow, setup: Setup) -> ReplyRead:
    """The function that finds the calls in a reply, as the stage `validate` does on that model."""
    here = _on(workflow, setup)
    in_text = here.target.modes != {"native"}
    families = _grammars(workflow, setup)
    return reader(workflow.rules, in_text=in_text, families=families, tools=workflow.tools, form=here.target.form)


def asked_first(workflow: CompiledWorkflow, state: State, setup: Setup) -> Result[State, Halt]:
    """The state as it awaits the model, with the request that its history makes as it is: neither cut nor warned of.

    The user's own stages take part, so nothing is in the request that they keep from the model.
    """
    here = _on(workflow, setup)
    asking: dict[StageName, dict[str, Stage]] = {
        "fold": {"fold": fold(workflow.context.reasoning_replay, workflow.context.failed_attempts)},
        "serialize": {"serialize": serialize(workflow.rules, here.target)},
        "send": {"send": send(here.workflow.rules)},
    }
    return pipeline(*arranged(workflow.stages, asking).values())(state.to(Ready()))


def _context(here: _OnBackend) -> ContextBudget:
    """What the history may take of the model's context, beside a reply."""
    workflow, setup = here.workflow, here.setup
    beside = overhead(workflow.rules, here.target)
    return replace(workflow.prompt, tokens=_room(setup), meter=Meter(overhead=beside))


def _room(setup: Setup) -> int:
    """Tokens of a prompt that leave room for a reply."""
    return max(0, setup.context_tokens - setup.sampling.limit)


def _compacting(workflow: CompiledWorkflow, budget: ContextBudget, other: Setup | None) -> dict[str, Stage]:
    compactor, policy = workflow.context.compactor or TieredCompact(), workflow.context.summary
    # Of a server that does not say how much context it has, as much is expected as of the run's own.
    elsewhere = None if other is None else _room(other) if other.context_tokens else budget.tokens
    asked = {"summarize": ask_for_summary(policy, compactor, budget, elsewhere=elsewhere)} if policy else {}
    return {**asked, "compact": compact(compactor, budget)}


def _warnings(here: _OnBackend, budget: ContextBudget) -> dict[str, Stage]:
    """What the model is told of the run's own limits, where the workflow wants it, and of its steps.

    A model that is good at native calls has no need of that; where it was not measured, it is not said.
    """
    context, rules = here.workflow.context, here.workflow.rules
    thresholds, left = tuple(context.context_thresholds), context.iteration_warning
    notes = context.progress_notes and here.setup.mode != "native"
    return {
        **(
            {"warn_of_context": warn_of_context(thresholds, budget, context.on_context_threshold)} if thresholds else {}
        ),
        **({"warn_of_calls": warn_of_calls(rules, left)} if left else {}),
        **({"note_progress": note_progress(rules)} if notes else {}),
    }


def _grammars(workflow: CompiledWorkflow, setup: Setup) -> Openers:
    """The user's own, then the model's as its template and its profile have it, then all that are known.

    All, because models mix them up.
    """
    known = workflow.openers
    theirs = [template_family(setup.markers)] if setup.markers else []
    for family in reversed((*theirs, *map(rescue.family_of, setup.formats))):
        known = known.with_family(family, workflow.own_families)
    return known


def _tell_what_is_loose(here: _OnBackend) -> None:
    if here.target.wire.strict and here.setup.mode != "prompted":
        for sentence in here.workflow.schemas.refused:
            logging.getLogger("forge").warning("%s; its arguments are checked after the reply alone", sentence)
