"""Turn: the stages of one turn of a workflow on a model, set up by name; and the parts of it that others need."""

import logging
from functools import partial
from types import NoneType

from msgspec.structs import replace

from forge.connection import Setup
from forge.runtime.callbacks import placed
from forge.workflow.nudge_texts import rewords
from forge.workflow.stage_list import StageName, arranged
from forge.workflow.workflow import Workflow
from stages import Stage, compact, enforce, execute, fold, pipeline, rescue, send, serialize, validate
from stages.compaction import Compacted, Compactor, ContextBudget, Meter, TieredCompact
from stages.halt import CannotFit
from stages.nudges.wording import Say, in_own_words
from stages.pipeline import falling_back
from stages.policy.backend_escalation import possible_escalation, with_mode_changes
from stages.policy.batch_selection import kept_calls
from stages.policy.rules import Rules, required_tools
from stages.reading.replies import Read, reader
from stages.rescue import Family
from stages.rescue.chat_template import Markers, template_family
from stages.rescue.found import Read as Found
from stages.serialize import Mode, overhead
from stages.state import Ready, State
from stages.view.recall import RECALL
from stages.view.summary import Summarize, ask_for_summary
from stages.view.warnings import note_progress, warn_of_calls, warn_of_context
from stages.wire.openai import strict
from stages.wire.prompted.forms import FORMS, JSON, Form
from stages.wire.wires import wire


def turn_of(workflow: Workflow, setup: Setup) -> Stage:
    """One turn: its stages composed."""
    return pipeline(*stages_of(workflow, setup).values())


def stages_of(workflow: Workflow, setup: Setup) -> dict[str, Stage]:
    """The stages by name, in running order, set up for the workflow on that model: forge's own, and the user's."""
    _tell_what_is_loose(workflow.rules, setup)
    mode = _mode(workflow.rules, setup)
    workflow = _climbing(workflow, setup)
    in_text = _in_text(workflow, setup)
    budget = _context(workflow, setup, mode)
    view = fold(workflow.reasoning_replay, workflow.failed_attempts)
    asking: dict[StageName, dict[str, Stage]] = {
        "compact": _compacting(workflow, budget),
        "fold": {"fold": view, **_warnings(workflow, budget, mode)},
        "serialize": {"serialize": _serialize(workflow, setup)},
    }
    judging = _judging(workflow, setup.markers, FORMS[setup.form], in_text=in_text)
    return arranged(workflow.stages, {**asking, **judging})


def _climbing(workflow: Workflow, setup: Setup) -> Workflow:
    """The workflow with those levels of its escalation that the backend supports."""
    rules = workflow.rules
    possible = possible_escalation(rules, _mode(rules, setup), wire(setup.dialect), setup.sampling)
    return workflow if possible == rules.escalation else workflow.changed(rules=replace(rules, escalation=possible))


def judging(workflow: Workflow) -> dict[str, Stage]:
    """The stages that judge a reply and have its calls run, where another loop asks the model: all but the request's.

    Those of the user's that stand before `send` are among them; they see the phases that such a task goes through.
    """
    return arranged(workflow.stages, _judging(workflow))


def _judging(
    workflow: Workflow, markers: Markers | None = None, form: Form = JSON, *, in_text: bool = False
) -> dict[StageName, dict[str, Stage]]:
    """From `send` to `execute`. `markers` and `form` are the backend's; `in_text`: calls were asked for as text."""
    rules = workflow.rules
    guards, keep = workflow.named_guards.values(), partial(kept_calls, rules)
    return {
        "send": {"send": send(rules)},
        "validate": {"validate": _validate(workflow, markers, form, in_text=in_text)},
        "enforce": {"enforce": enforce(*guards, on_violation=rules.on_violation, keep=keep, say=_say(workflow))},
        "execute": {"execute": execute(rules)},
    }


def reading(workflow: Workflow, setup: Setup) -> Read:
    """The function that finds the calls in a reply, as the stage `validate` does on that model."""
    return reader(
        workflow.rules,
        in_text=_in_text(_climbing(workflow, setup), setup),
        families=_grammars(workflow, setup.markers),
        checks=workflow.checks,
        form=FORMS[setup.form],
    )


def written(workflow: Workflow, state: State, setup: Setup) -> State:
    """The state with the request that its history makes as it is, for a look at it: what it takes, say."""
    view = fold(workflow.reasoning_replay, workflow.failed_attempts)
    write = _serialize(_climbing(workflow, setup), setup)
    return pipeline(view, write)(state.to(Ready())).unwrap()


def _context(workflow: Workflow, setup: Setup, mode: Mode) -> ContextBudget:
    """What the history may take of the model's context, beside a reply."""
    rules = workflow.rules
    budget = ContextBudget(
        tokens=max(0, setup.context_tokens - setup.sampling.limit),
        threshold=workflow.compact_at,
        low=workflow.compact_to,
        reasoning=workflow.reasoning_replay != "none",
        recall=RECALL in rules.tools,
        record=any(spec.grounded or spec.calculated for spec in rules.tools),
    )
    return replace(budget, meter=Meter(overhead=overhead(rules, mode, wire(setup.dialect), FORMS[setup.form])))


def _compacting(workflow: Workflow, budget: ContextBudget) -> dict[str, Stage]:
    own = workflow.compactor
    compactor: Compactor = placed(own, "compactor", Compacted, CannotFit) if own else TieredCompact()
    policy = Summarize() if workflow.summarize is True else workflow.summarize
    asked = {"summarize": ask_for_summary(policy, compactor, budget)} if policy else {}
    return {**asked, "compact": compact(compactor, budget)}


def _warnings(workflow: Workflow, budget: ContextBudget, mode: Mode) -> dict[str, Stage]:
    """What the model is told of the run's own limits, where the workflow wants it, and of its steps.

    A model that is good at native calls has no need of that; where it was not measured, it is not said.
    """
    thresholds, left = tuple(workflow.context_thresholds), workflow.iteration_warning
    said = workflow.on_context_threshold
    said = placed(said, "on_context_threshold", str, NoneType) if callable(said) else said
    notes = workflow.progress_notes and mode != "native" and required_tools(workflow.rules)
    context = warn_of_context(thresholds, budget, said)
    return {
        **({"warn_of_context": context} if thresholds else {}),
        **({"warn_of_calls": warn_of_calls(workflow.rules, left)} if left else {}),
        **({"note_progress": note_progress(workflow.rules)} if notes else {}),
    }


def _serialize(workflow: Workflow, setup: Setup) -> Stage:
    def write(mode: Mode) -> Stage:
        return serialize(
            workflow.rules,
            mode,
            setup.model,
            setup.sampling,
            wire=wire(setup.dialect),
            form=FORMS[setup.form],
            alternating=setup.alternating,
        )

    first = write(_mode(workflow.rules, setup))
    if modes := workflow.rules.escalation.modes:
        first = with_mode_changes(workflow.rules, first, {mode: write(mode) for mode in modes})
    return falling_back(first, write("prompted")) if setup.falls_back else first


def _validate(workflow: Workflow, markers: Markers | None, form: Form, *, in_text: bool) -> Stage:
    key = (in_text, markers, form)
    if key not in workflow.validates:
        families = _grammars(workflow, markers)
        workflow.validates[key] = validate(
            workflow.rules, in_text=in_text, families=families, checks=workflow.checks, form=form, say=_say(workflow)
        )
    return workflow.validates[key]


def _say(workflow: Workflow) -> Say:
    """What the model is told of an objection: in the user's words, where they have some for its kind."""
    return in_own_words(workflow.rules, rewords(workflow.nudges or {}))


def _grammars(workflow: Workflow, markers: Markers | None) -> tuple[Family, ...]:
    """The user's own, then the model's as its template has it, then all that are known: models mix them up."""
    derived = (template_family(markers),) if markers else ()
    own = (
        replace(family, read=placed(family.read, f"families[{i}].read", Found, NoneType))
        for i, family in enumerate(workflow.families)
    )
    return (*own, *derived, *rescue.FAMILIES)


def _mode(rules: Rules, setup: Setup) -> Mode:
    """The mode. A constraint allows nothing but calls: where words are welcome, the prompt has to do."""
    if setup.mode == "constrained" and rules.on_text == "accept":
        logging.getLogger("forge").info("on_text='accept' leaves no room for a constraint; the mode is prompted")
        return "prompted"
    return setup.mode


def _in_text(workflow: Workflow, setup: Setup) -> bool:
    """Whether calls may be asked for as text, now or later in the run."""
    changes = setup.falls_back or bool(workflow.rules.escalation.modes)
    return changes or _mode(workflow.rules, setup) != "native"


def _tell_what_is_loose(rules: Rules, setup: Setup) -> None:
    if wire(setup.dialect).strict and setup.mode != "prompted":
        for sentence in strict.strict_refusals(rules.tools):
            logging.getLogger("forge").warning("%s; its arguments are checked after the reply alone", sentence)
