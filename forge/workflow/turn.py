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
from stages import Stage, compact, enforce, execute, fold, pipeline, send, serialize, validate
from stages.batch_selection import kept_calls
from stages.compaction import ContextBudget, Meter, TieredCompact
from stages.confidence.decide import ask_again, for_larger, settle, think_first
from stages.confidence.measure import AskLarger, WhenUnsure
from stages.halt import Halt
from stages.nudges import in_own_words
from stages.offer import possible_escalation, with_mode_changes
from stages.pipeline import falling_back
from stages.reading.replies import ReplyRead, reader
from stages.rescue.chat_template import template_family
from stages.rescue.markers import Openers
from stages.serialize import Mode, overhead
from stages.state import Ready, State
from stages.view.notes import note_progress, warn_of_calls, warn_of_context
from stages.view.summary import ask_for_summary, for_summaries
from stages.wire.deltas import Sampling
from stages.wire.prompted.forms import FORMS, JSON, LIST, Form
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


def refuse_unable(when: WhenUnsure | None, setup: Setup) -> None:
    """ForgeError for a backend without the probabilities or the larger model that the workflow asks for.

    Also for another model than the one whose priors it has.
    """
    if when is not None and not setup.logprobs:
        raise ForgeError(_NO_LOGPROBS)
    if when is not None and setup.larger is None and AskLarger() in when.steps:
        raise ForgeError(_NO_LARGER)
    if when is not None and when.priors and when.priors.model != setup.model:
        raise ForgeError(
            f"the priors of the workflow are those of the model {when.priors.model!r}, and this is {setup.model!r}; "
            "measure them with this one (forge priors), or leave priors out"
        )


def with_logprobs(when: WhenUnsure | None, setup: Setup, wire: Wire) -> Setup:
    """The setup that asks for log-probabilities where the workflow needs them and the model has them."""
    if when is None or not setup.logprobs:
        return setup
    return replace(setup, sampling=setup.sampling.over(Sampling(extra=wire.logprobs)))


def with_unsure_stages(when: WhenUnsure | None, wire: Wire, made: _Made, larger: _Made) -> _Made:
    """The stages with those that ask again and settle, each behind the one of forge's own that it follows.

    `larger` are those of the same names that write its request and read its reply for the larger model.
    """
    if when is None:
        return made
    both = {name: {**own, **_by_model(own, larger.get(name, {}))} for name, own in made.items()}
    return {
        **both,
        "fold": {**made["fold"], "think_first": think_first()},
        "serialize": {**both["serialize"], "ask_again": ask_again(when, wire.dialect.option_names)},
        "enforce": {**made["enforce"], "settle": settle(when)},
    }


def _by_model(own: Mapping[str, Stage], larger: Mapping[str, Stage]) -> dict[str, Stage]:
    return {name: for_larger(own[name], stage) for name, stage in larger.items()}


# Turn: the stages of one turn of a workflow on a model, set up by name; and the parts of it that others need.


class _OnBackend(Struct, frozen=True, kw_only=True):
    """A workflow on a backend, with those levels of its escalation that the backend supports.

    `in_text`: calls may be asked for as text, now or later in the run.
    """

    workflow: CompiledWorkflow
    setup: Setup
    wire: Wire
    form: Form
    in_text: bool


def _on(workflow: CompiledWorkflow, setup: Setup) -> _OnBackend:
    rules, spoken = workflow.rules, wire(setup.dialect)
    setup = with_logprobs(rules.unsure, setup, spoken)
    possible = possible_escalation(rules, setup.mode, spoken, setup.sampling)
    constrains = "constrained" in (setup.mode, *possible.modes)
    return _OnBackend(
        workflow=workflow if possible == rules.escalation else workflow.under(replace(rules, escalation=possible)),
        setup=setup,
        wire=spoken,
        # Only this form leaves a constraint room for words, and for several calls.
        form=LIST if constrains and rules.tools and rules.on_text == "accept" else FORMS[setup.form],
        in_text=setup.falls_back or bool(possible.modes) or setup.mode != "native",
    )


def turn_of(workflow: CompiledWorkflow, setup: Setup) -> Stage:
    """One turn: its stages composed."""
    return pipeline(*stages_of(workflow, setup).values())


def stages_of(workflow: CompiledWorkflow, setup: Setup) -> dict[str, Stage]:
    """The stages by name, in running order, set up for the workflow on that model: forge's own, and the user's."""
    here = _on(workflow, setup)
    _tell_what_is_loose(here)
    budget = _context(here)
    asking: dict[StageName, dict[str, Stage]] = {
        "compact": _compacting(here.workflow, budget, setup.summaries),
        "fold": {
            "fold": fold(workflow.context.reasoning_replay, workflow.context.failed_attempts),
            **_warnings(here, budget),
        },
        "serialize": {"serialize": _serialize_for(workflow, here, setup.summaries)},
    }
    judging = _judging(here.workflow, _grammars(here), here.form, in_text=here.in_text)
    refuse_unable(workflow.rules.unsure, setup)
    larger = _for_larger(workflow, setup.larger) if setup.larger else {}
    stages = with_unsure_stages(workflow.rules.unsure, here.wire, {**asking, **judging}, larger)
    return arranged(workflow.stages, stages)


def _serialize_for(workflow: CompiledWorkflow, here: _OnBackend, summaries: Setup | None) -> Stage:
    """What writes the requests: for this model, and for the one that summaries are asked of."""
    own = _serialize(here)
    return for_summaries(own, _serialize(_on(workflow, summaries))) if summaries else own


def _for_larger(workflow: CompiledWorkflow, setup: Setup) -> dict[StageName, dict[str, Stage]]:
    """The stages that write a request for the larger model, and read its reply."""
    there = _on(workflow, setup)
    judging = _judging(there.workflow, _grammars(there), there.form, in_text=there.in_text)
    return {"serialize": {"serialize": _serialize(there)}, "validate": judging["validate"]}


def judging(workflow: CompiledWorkflow) -> dict[str, Stage]:
    """The stages that judge a reply and have its calls run, where another loop asks the model: all but the request's.

    Those of the user's that stand before `send` are among them; they see the phases that such a task goes through.
    """
    return arranged(workflow.stages, _judging(workflow, workflow.openers))


def _judging(
    workflow: CompiledWorkflow, grammars: Openers, form: Form = JSON, *, in_text: bool = False
) -> dict[StageName, dict[str, Stage]]:
    """From `send` to `execute`. `form` is the backend's; `in_text`: calls were asked for as text."""
    rules, guards = workflow.rules, workflow.guards.values()
    say, keep = in_own_words(rules, workflow.rewords), partial(kept_calls, rules)
    read = validate(rules, in_text=in_text, families=grammars, tools=workflow.tools, form=form, say=say)
    return {
        "send": {"send": send(rules)},
        "validate": {"validate": read},
        "enforce": {"enforce": enforce(*guards, on_violation=rules.calls.on_violation, keep=keep, say=say)},
        "execute": {"execute": execute(rules)},
    }


def reading(workflow: CompiledWorkflow, setup: Setup) -> ReplyRead:
    """The function that finds the calls in a reply, as the stage `validate` does on that model."""
    here = _on(workflow, setup)
    return reader(workflow.rules, in_text=here.in_text, families=_grammars(here), tools=workflow.tools, form=here.form)


def asked_first(workflow: CompiledWorkflow, state: State, setup: Setup) -> Result[State, Halt]:
    """The state as it awaits the model, with the request that its history makes as it is: neither cut nor warned of.

    The user's own stages take part, so nothing is in the request that they keep from the model.
    """
    here = _on(workflow, setup)
    asking: dict[StageName, dict[str, Stage]] = {
        "fold": {"fold": fold(workflow.context.reasoning_replay, workflow.context.failed_attempts)},
        "serialize": {"serialize": _serialize(here)},
        "send": {"send": send(here.workflow.rules)},
    }
    return pipeline(*arranged(workflow.stages, asking).values())(state.to(Ready()))


def _context(here: _OnBackend) -> ContextBudget:
    """What the history may take of the model's context, beside a reply."""
    workflow, setup = here.workflow, here.setup
    beside = overhead(workflow.rules, here.setup.mode, here.wire, here.form, workflow.schemas)
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


def _serialize(here: _OnBackend) -> Stage:
    rules, setup = here.workflow.rules, here.setup

    def write(mode: Mode) -> Stage:
        return serialize(
            rules,
            mode,
            setup.model,
            setup.sampling,
            wire=here.wire,
            form=here.form,
            alternating=setup.alternating,
            schemas=here.workflow.schemas,
        )

    first = write(here.setup.mode)
    if modes := rules.escalation.modes:
        first = with_mode_changes(rules, first, {mode: write(mode) for mode in modes})
    return falling_back(first, write("prompted")) if setup.falls_back else first


def _grammars(here: _OnBackend) -> Openers:
    """The user's own, then the model's as its template has it, then all that are known: models mix them up."""
    known, markers = here.workflow.openers, here.setup.markers
    return known.with_family(template_family(markers), here.workflow.own_families) if markers else known


def _tell_what_is_loose(here: _OnBackend) -> None:
    if here.wire.strict and here.setup.mode != "prompted":
        for sentence in here.workflow.schemas.refused:
            logging.getLogger("forge").warning("%s; its arguments are checked after the reply alone", sentence)
