"""Definition of guards: what is wrong with what they and the escalation go by, a sentence a mistake."""

from collections.abc import Collection, Iterable, Mapping
from typing import get_args

import msgspec
from msgspec.structs import replace

from forge.tools.decorator import Grounds, grounds
from stages.options import unfit_function
from stages.rules import BatchPolicy, CompletionCheck, EscalationLevel, OnViolation, Rules, Use, sees_results
from stages.tool import Prerequisite, ToolSpec


def grounded_specs(specs: Iterable[ToolSpec], wanted: Mapping[str, Grounds]) -> tuple[ToolSpec, ...]:
    """The tools with what the workflow wants grounded in them, and a source that an argument must have as a step."""
    return tuple(_with_sources(replace(s, grounded=s.grounded + grounds(wanted.get(s.name, ())))) for s in specs)


def _with_sources(spec: ToolSpec) -> ToolSpec:
    """A value that must come from one tool cannot be known before that tool has succeeded."""
    needed = _schema(spec).required
    only = (g.sources[0] for g in spec.grounded if len(g.sources) == 1 and g.argument in needed)
    known = {prerequisite.tool for prerequisite in spec.prerequisites}
    more = tuple(Prerequisite(tool=name) for name in dict.fromkeys(only) if name not in known)
    return replace(spec, prerequisites=spec.prerequisites + more)


def guard_mistakes(rules: Rules, grounded: Mapping[str, Grounds], checked: Collection[str] = ()) -> tuple[str, ...]:
    """Everything that is wrong with the guards of a workflow, a sentence each."""
    levels = get_args(EscalationLevel)
    names = [spec.name for spec in rules.tools]
    known = ", ".join(levels)
    found = [
        f"escalation: {level!r} is no level; the levels are: {known}"
        for level in rules.escalation.levels
        if level not in levels
    ]
    found += [
        f"escalation: writes has {name!r}, which is no tool" for name in rules.escalation.writes if name not in names
    ]
    if rules.max_repeats is not None and rules.max_repeats < 1:
        found.append(
            f"max_repeats is {rules.max_repeats}; a call must be allowed at least once (None: any number of times)"
        )
    choices = {"batch": (rules.batch, BatchPolicy), "on_violation": (rules.on_violation, OnViolation)}
    found += [
        f"{option} is {value!r}; it must be one of {', '.join(get_args(known))}"
        for option, (value, known) in choices.items()
        if value not in get_args(known)
    ]
    found += [f"grounded: there is no tool named {name!r}" for name in grounded if name not in names]
    found += [problem for spec in rules.tools if spec.grounded for problem in _grounding(spec, names)]
    found += [f"completion_checks: there is no tool named {name!r}" for name in checked if name not in names]
    specs = {spec.name: spec for spec in rules.tools}
    found += [problem for use in rules.order for problem in _use(use, specs)]
    each = [use.tool for use in rules.order if use.each_of]
    found += [f"order of {name}: each_of can be said only once" for name in sorted({*each}) if each.count(name) > 1]
    found += [
        f"order of {name}: it ends the run, so it cannot have to be called before the end"
        for name in (use.tool for use in rules.order if use.at_least or use.each_of)
        if name in rules.terminal
    ]
    found += _endless(rules)
    found += [
        f"order of {name}: it ends the run, so nothing is left that its answer could count for (counts_if)"
        for name in (use.tool for use in rules.order if use.counts_if)
        if name in rules.terminal
    ]
    steps = [use.at_step for use in rules.order if use.at_step is not None]
    found += [
        f"order: two tools are forced at step {step}" for step in sorted({s for s in steps if steps.count(s) > 1})
    ]
    return tuple(found)


def check_mistakes(checks: Mapping[str, CompletionCheck]) -> tuple[str, ...]:
    """What is wrong with the functions that check the end of a run, a sentence each."""
    return tuple(
        f"completion_checks[{name!r}]: {said}"
        for name, check in checks.items()
        if (said := unfit_function(check, "arguments")) and not sees_results(check)
    )


def count_mistakes(order: Iterable[Use]) -> tuple[str, ...]:
    """What is wrong with the functions that say when an answer counts, a sentence each."""
    return tuple(
        f"order of {use.tool}: counts_if: {said}"
        for use in order
        if use.counts_if and (said := unfit_function(use.counts_if, "result"))
    )


def _use(use: Use, specs: Mapping[str, ToolSpec]) -> list[str]:
    where = f"order of {use.tool}"
    found = [f"{where}: there is no tool named {name!r}" for name in use.names if name not in specs]
    if use.tool in use.names[1:]:
        found.append(f"{where}: it cannot come before or after itself")
    changed = [change.tool for change in use.changes]
    found += [f"{where}: it cannot come before {name} and again after it" for name in use.before if name in changed]
    if changed and use.at_most == 1:
        found.append(f"{where}: at_most is 1, so it could not be called again after {changed[0]}")
    if both := [name for name in use.after if name in use.before]:
        found.append(f"{where}: it cannot come both before and after {both[0]}")
    if use.at_step is not None and use.at_step < 1:
        found.append(f"{where}: at_step is {use.at_step}; the first step is 1")
    if use.at_most is not None and use.at_most < max(1, use.at_least):
        found.append(f"{where}: at_most is {use.at_most}; it must be 1 or more, and no less than at_least")
    if use.distinct and use.at_least < 2:
        found.append(f"{where}: distinct is about several calls; say with at_least how many, 2 or more")
    if use.each_of and use.tool in specs and use.each_of.argument not in (known := _schema(specs[use.tool]).properties):
        found.append(f"{where}: each_of: {_no_argument(use.each_of.argument, known)}")
    if use.at_least < 0:
        found.append(f"{where}: at_least is {use.at_least}; it cannot be negative")
    return found


def _endless(rules: Rules) -> list[str]:
    """Tools of which each would have to be called again after another, and so on round a circle."""
    left: dict[str, set[str]] = {}
    for use in rules.order:
        left.setdefault(use.tool, set()).update(change.tool for change in use.changes)
    left = {tool: found & left.keys() for tool, found in left.items()}
    while free := [step for step, found in left.items() if not found]:
        left = {step: found - {*free} for step, found in left.items() if step not in free}
    circle = ", ".join(left)
    return [f"order: {circle} come each again after another of them: that would never end"] if circle else []


def _grounding(spec: ToolSpec, names: Collection[str]) -> list[str]:
    known, where = _schema(spec).properties, f"tool {spec.name}: grounded"
    found = []
    for bound in spec.grounded:
        if bound.argument not in known:
            found.append(f"{where}: {_no_argument(bound.argument, known)}")
        found += [
            f"{where}: the source {name!r} of {bound.argument} is no tool"
            for name in bound.sources
            if name not in names
        ]
        if spec.name in bound.sources and len(bound.sources) == 1:
            found.append(f"{where}: {bound.argument} could only come from {spec.name} itself")
    return found


def _no_argument(name: str, known: Iterable[str]) -> str:
    return f"it has no argument {name!r}; it has: {', '.join(known) or 'none'}"


class _Schema(msgspec.Struct):
    properties: dict[str, msgspec.Raw] = {}
    required: tuple[str, ...] = ()


def _schema(spec: ToolSpec) -> _Schema:
    return msgspec.json.decode(spec.parameters, type=_Schema)
