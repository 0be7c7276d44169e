"""Ablations: a workflow without one of forge's guardrails, or without all of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from msgspec import Struct, structs
from toolz import compose_left

from forge.tools.decorator import Tool, tool
from forge.workflow.workflow import Workflow
from stages.compaction import NoCompact
from stages.rules import Escalation

_Change = Callable[[Workflow[Any]], Workflow[Any]]


class Ablation(Struct, frozen=True):
    """What is taken away, in words, and the workflow without it."""

    does: str
    apply: _Change


def _options(**changes: Any) -> _Change:
    return lambda workflow: replace(workflow, **changes)


def _tools(**changes: object) -> _Change:
    """The same tools with other specs."""

    def change(workflow: Workflow[Any]) -> Workflow[Any]:
        made = (one if isinstance(one, Tool) else tool(one) for one in workflow.tools)
        tools = [Tool(one.function, structs.replace(one.spec, **changes), one.problems) for one in made]
        return replace(workflow, tools=tools)

    return change


def _naming(workflow: Workflow[Any], *, withheld: bool = False) -> Workflow[Any]:
    """The same with its writes named as optional, so that none is withheld for want of a rule; or all of them."""
    rules = workflow.rules
    known = () if withheld else (*rules.withheld, *rules.held_back)
    writes = tuple(spec.name for spec in rules.tools if spec.effect == "write" and spec.name not in known)
    return replace(workflow, optional_steps=writes)


_no_rescue = _options(rescue_enabled=False)
_no_nudge = _options(rescue_enabled=False, max_retries_per_step=0)
_no_steps = _options(required_steps=(), order=())
_no_recovery = _options(max_tool_errors=0)
_no_compact = _options(compactor=NoCompact(), summarize=False)
_no_grounding: _Change = compose_left(_naming, _options(grounded=None, value_checks=False), _tools(grounded=()))
_no_calculation: _Change = compose_left(_naming, _options(calculated=None), _tools(calculated=()))
_no_prerequisites: _Change = compose_left(_naming, _tools(prerequisites=()))
_no_checks: _Change = compose_left(_naming, _options(guards=(), completion_checks=None))
_no_escalation = _options(escalation=Escalation(levels=(), look_first=False, end_in_time=False))
_no_repeats = _options(max_repeats=None)
_no_withholding: _Change = partial(_naming, withheld=True)
_no_notes = _options(progress_notes=False, iteration_warning=0, context_thresholds=())

_BARE = (
    _no_nudge,
    _no_steps,
    _no_recovery,
    _no_compact,
    _no_grounding,
    _no_calculation,
    _no_prerequisites,
    _no_checks,
    _no_escalation,
    _no_repeats,
    _no_withholding,
    _no_notes,
)

REFORGED = "reforged"
"""Everything on, by the name that forge-guardrails gives it."""

ABLATIONS: Mapping[str, Ablation] = MappingProxyType(
    {
        REFORGED: Ablation("nothing is taken away", lambda workflow: workflow),
        "no_rescue": Ablation("calls in text are not found, damaged ones not repaired", _no_rescue),
        "no_nudge": Ablation("nor is a reply without a usable call corrected: it ends the run", _no_nudge),
        "no_steps": Ablation("no required steps and no rules of order", _no_steps),
        "no_recovery": Ablation("the first error of a tool ends the run", _no_recovery),
        "no_compact": Ablation("the history is not shortened", _no_compact),
        "no_grounding": Ablation("arguments and answers may have any values, placeholders too", _no_grounding),
        "no_calculation": Ablation("numbers are worked out by the model", _no_calculation),
        "no_prerequisites": Ablation("tools may be called before what they need", _no_prerequisites),
        "no_checks": Ablation("no guards and completion checks of the workflow's own", _no_checks),
        "no_escalation": Ablation("every legal tool is offered, however long nothing new has come", _no_escalation),
        "no_withholding": Ablation("writes that nothing needs may be called", _no_withholding),
        "bare": Ablation("all of these off, warnings and notes too", compose_left(*_BARE)),
    }
)
"""By name."""
