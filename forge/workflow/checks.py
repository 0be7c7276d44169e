"""Checks of a workflow's definition, all at once and before anything runs."""

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from types import NoneType
from typing import Literal, get_args

from msgspec.structs import replace

from forge.callbacks import placed
from forge.tools.definition import Grounds, grounds
from forge.workflow.result_type import RESULT
from stages import rescue
from stages.guards import GUARDS, CompletionCheck, PastCall, sees_results
from stages.objection import Correction, Guard, NudgeKind, Reword
from stages.offer import NARROWINGS
from stages.options import did_you_mean, unfit_function
from stages.order import Use
from stages.rescue import Family, Format, Read
from stages.rules import REPLY_CHECKS, Rules
from stages.tool import RECALL, Prerequisite, ToolSpec

# Templates: texts with `{placeholders}`; all other braces are literal.

_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")


def placeholders(template: str) -> set[str]:
    """The names of the template's placeholders."""
    return {match[2] for match in _PLACEHOLDER.finditer(template) if match[2]}


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with each `{name}` replaced; `{{name}}` stands for `{name}`. KeyError for a name without a value."""
    return _PLACEHOLDER.sub(lambda match: values[match[2]] if match[2] else f"{{{match[1]}}}", template)


def literal(text: str) -> str:
    """The template for exactly this text, braces included."""
    return _PLACEHOLDER.sub(lambda match: f"{{{match[0]}}}", text)


# The user's functions, wrapped so that an error names the place of the function in the definition.


def own_checks(checks: Mapping[str, CompletionCheck]) -> Mapping[str, CompletionCheck]:
    """The user's completion checks."""
    return {name: _own_check(check, f"completion_checks[{name!r}]") for name, check in checks.items()}


def _own_check(check: CompletionCheck, place: str) -> CompletionCheck:
    asked = placed(check, place, str, NoneType)
    if not sees_results(check):
        return asked

    def of_both(arguments: dict[str, object], results: tuple[PastCall, ...]) -> str | None:
        return asked(arguments, results)  # the signature of `asked` does not show that it takes both

    return of_both


def own_order(order: Sequence[Use]) -> tuple[Use, ...]:
    """The user's rules of order."""
    return tuple(
        replace(use, counts_if=placed(use.counts_if, f"order[{i}].counts_if", bool)) if use.counts_if else use
        for i, use in enumerate(order)
    )


def own_families(families: Sequence[Family | Format]) -> tuple[Family, ...]:
    """The user's families and formats of calls in text."""
    places = ((family, f"calls.families[{i}].read") for i, family in enumerate(families))
    return tuple(
        rescue.family_of(family)
        if isinstance(family, Format)
        else replace(family, read=placed(family.read, place, Read, NoneType))
        for family, place in places
    )


# The user's nudges: texts with placeholders, or functions, that replace forge's.

Nudges = Mapping[NudgeKind, str | Reword]
"""By kind: a text with the placeholders `{tool}`, `{text}`, `{allowed}` and `{pending}`, or a function."""

_KINDS: tuple[str, ...] = get_args(NudgeKind)
_WORDS = ("allowed", "pending", "text", "tool")


def nudge_mistakes(nudges: Nudges) -> tuple[str, ...]:
    """The mistakes in the user's nudges, one sentence each."""
    found = [
        f"nudges: unknown kind {kind!r}; the kinds are: {', '.join(_KINDS)}" for kind in nudges if kind not in _KINDS
    ]
    for kind, given in nudges.items():
        if not isinstance(given, str):
            found += [f"nudges[{kind!r}]: {said}" for said in [unfit_function(given, "correction")] if said]
        elif not given.strip():
            found.append(f"nudges: the text for {kind!r} is empty; the model would be told nothing")
        else:
            found += [
                f"nudges: the text for {kind!r} has the placeholder {{{name}}}; there are: {', '.join(_WORDS)}; "
                f"write {{{{{name}}}}} for literal braces"
                for name in sorted(placeholders(given) - {*_WORDS})
            ]
    return tuple(found)


def rewords(nudges: Nudges) -> dict[NudgeKind, Reword]:
    """The user's nudges, all as functions."""

    def filled(template: str, wrong: Correction) -> str:
        listed = {"allowed": ", ".join(wrong.allowed) or "none", "pending": ", ".join(wrong.pending) or "none"}
        return fill(template, {**listed, "text": wrong.text, "tool": wrong.tool})

    return {
        kind: partial(filled, given) if isinstance(given, str) else placed(given, f"nudges[{kind!r}]", str)
        for kind, given in nudges.items()
    }


# Names to turn off.


def without_mistakes(without: Collection[str]) -> Iterator[str]:
    """The unknown names in `without`, one sentence each."""
    known = [*GUARDS, *NARROWINGS, *REPLY_CHECKS]
    for name in sorted({*without}.difference(known)):
        listed = ", ".join(known)
        yield f"without: there is no guard or narrowing {name!r}; there are: {listed}.{did_you_mean(name, known)}"


# Hints for the developer: tools that are withheld, writes without any rule, and tools that may be either.


_Hint = Literal["withheld", "unruled", "undeclared"]

_HINTS: Mapping[_Hint, str] = {
    "withheld": (
        "%s: withheld from the model, because they write and no required step needs them: %s. To have one offered, "
        'name it in optional_steps, give it a rule such as prerequisites, or say effect="read" if it only reads'
    ),
    "unruled": (
        "%s: nothing but the user's message says when to call %s, and with what. Where a wrong call would do harm, "
        "say what has to come first (required_steps, prerequisites), which values must have been seen (grounded), "
        'or that a person is asked (approval=True); say effect="terminal" if it only returns the answer. To silence '
        "this, list it in optional_steps"
    ),
    "undeclared": (
        '%s: no tool is declared with effect="read", so forge cannot tell which tools write, and the rules of '
        'plain requests (docs/guards.md) are off: the same call may run again. Say effect="read" of the tools that '
        "only read; name those that write in optional_steps, or give them a rule: %s"
    ),
}


HINT_LOGGER = "forge.workflow"


@cache
def hint(about: _Hint, workflow: str, tools: tuple[str, ...]) -> None:
    """Log the hint about these tools; once per process and workflow name."""
    if tools:
        logging.getLogger(HINT_LOGGER).warning(_HINTS[about], workflow, ", ".join(tools))


# Grounding, completion checks and order.


def grounded_specs(specs: Iterable[ToolSpec], wanted: Mapping[str, Grounds]) -> tuple[ToolSpec, ...]:
    """The tools with the workflow's grounded arguments; if a required one has one source only, that is a prerequisite.

    Such a value cannot be known before that tool has succeeded.
    """
    made = []
    for spec in specs:
        grounded, needed = spec.grounded + grounds(wanted.get(spec.name, ())), spec.required
        only = (g.sources[0] for g in grounded if len(g.sources) == 1 and g.argument in needed)
        known = {prerequisite.tool for prerequisite in spec.prerequisites}
        more = tuple(Prerequisite(tool=name) for name in dict.fromkeys(only) if name not in known)
        made.append(replace(spec, grounded=grounded, prerequisites=spec.prerequisites + more))
    return tuple(made)


def guard_mistakes(rules: Rules, grounded: Mapping[str, Grounds], checked: Collection[str] = ()) -> tuple[str, ...]:
    """The mistakes in grounding, completion checks and order, one sentence each."""
    names = [spec.name for spec in rules.tools]
    found = [f"grounded: there is no tool named {name!r}" for name in grounded if name not in names]
    found += [problem for spec in rules.tools if spec.grounded for problem in _grounding(spec, names)]
    found += [f"completion_checks: there is no tool named {name!r}" for name in checked if name not in names]
    specs = {spec.name: spec for spec in rules.tools}
    found += [problem for use in rules.order for problem in _use(use, specs)]
    each = [use.tool for use in rules.order if use.each_of]
    found += [f"order of {name}: each_of can be said only once" for name in sorted({*each}) if each.count(name) > 1]
    found += [
        f"order of {name}: at_least and each_of are not allowed on a terminal tool"
        for name in (use.tool for use in rules.order if use.at_least or use.each_of)
        if name in rules.terminal
    ]
    left: dict[str, set[str]] = {}
    for use in rules.order:
        left.setdefault(use.tool, set()).update(change.tool for change in use.changes)
    left = {tool: found & left.keys() for tool, found in left.items()}
    while free := [step for step, found in left.items() if not found]:
        left = {step: found - {*free} for step, found in left.items() if step not in free}
    circle = ", ".join(left)
    found += [f"order: {circle} form a cycle in again_after; the run could never end"] if circle else []
    found += [
        f"order of {name}: counts_if has no effect on a terminal tool"
        for name in (use.tool for use in rules.order if use.counts_if)
        if name in rules.terminal
    ]
    steps = [use.at_step for use in rules.order if use.at_step is not None]
    found += [
        f"order: two tools are forced at step {step}" for step in sorted({s for s in steps if steps.count(s) > 1})
    ]
    return tuple(found)


def function_mistakes(guards: Sequence[Guard], checks: Mapping[str, CompletionCheck]) -> Iterator[str]:
    """The guards and completion checks that cannot be called, one sentence each."""
    asked = [(f"guards[{place}]", unfit_function(guard, "state", "calls")) for place, guard in enumerate(guards)]
    checking = ((name, check) for name, check in checks.items() if not sees_results(check))
    asked += [(f"completion_checks[{name!r}]", unfit_function(check, "arguments")) for name, check in checking]
    yield from (f"{place}: {said}" for place, said in asked if said)


def _use(use: Use, specs: Mapping[str, ToolSpec]) -> Iterator[str]:
    where = f"order of {use.tool}"
    yield from (f"{where}: there is no tool named {name!r}" for name in use.names if name not in specs)
    if use.each_of and use.tool in specs and use.each_of.argument not in (known := specs[use.tool].properties):
        yield f"{where}: each_of: {_no_argument(use.each_of.argument, known)}"


def _grounding(spec: ToolSpec, names: Collection[str]) -> list[str]:
    known, where = spec.properties, f"tool {spec.name}: grounded"
    found = []
    for bound in spec.grounded:
        if bound.argument not in known:
            found.append(f"{where}: {_no_argument(bound.argument, known)}")
        found += [
            f"{where}: source {name!r} of {bound.argument} is not a tool" for name in bound.sources if name not in names
        ]
        if spec.name in bound.sources and len(bound.sources) == 1:
            found.append(f"{where}: {bound.argument} could only come from {spec.name} itself")
    return found


def _no_argument(name: str, known: Iterable[str]) -> str:
    return f"it has no argument {name!r}; it has: {', '.join(known) or 'none'}"


# Tools, steps and prerequisites.

OnText = Literal["nudge", "accept", "respond"]
"""What a reply without a call means to a workflow."""


_ADDED = {
    "respond": ', which on_text="respond" adds',
    RESULT: ", which the option result adds",
    RECALL.name: ", which Context(recall=True) adds",
}
"""The names of forge's own tools, each with the option that adds it."""


def mistakes(rules: Rules, ends: set[str], optional: Sequence[str] = ()) -> tuple[str, ...]:
    """The mistakes in tools, steps and prerequisites, one sentence each."""
    names = [spec.name for spec in rules.tools]
    known = ", ".join(names) or "none"
    found = [
        f"two tools are named {name}{_ADDED.get(name, '')}; name yours differently, as in tool(name=…)"
        for name in sorted({n for n in names if names.count(n) > 1})
    ]
    found += [f"terminal_tool: there is no tool named {n!r}; the tools are: {known}" for n in sorted(ends - {*names})]
    steps = {"required_steps": rules.required, "optional_steps": optional}
    found += [
        f"{option}: there is no tool named {n!r}; the tools are: {known}"
        for option, named in steps.items()
        for n in named
        if n not in names
    ]
    found += [f"{name}: a terminal tool cannot be a required step" for name in rules.required if name in rules.terminal]
    if rules.on_text == "nudge" and not rules.terminal and not ends:
        found.append(
            "there is no terminal_tool: nothing could end the run; name one, or set on_text to accept or respond"
        )
    found += [sentence for spec in rules.tools for sentence in _prerequisite_mistakes(spec, rules)]
    return (*found, *_cycles(rules))


def _prerequisite_mistakes(spec: ToolSpec, rules: Rules) -> Iterator[str]:
    for prerequisite in spec.prerequisites:
        needed, argument = rules.tool(prerequisite.tool), prerequisite.match_arg
        if needed is None:
            yield f"tool {spec.name}: its prerequisite {prerequisite.tool!r} is not a tool of the workflow"
            continue
        if needed.effect == "terminal":
            yield f"tool {spec.name}: its prerequisite {needed.name} is terminal: the run would be over"
        lacking = [s.name for s in (spec, needed) if argument and argument not in s.properties]
        yield from (f"tool {spec.name}: match_arg {argument!r} is not an argument of {name}" for name in lacking)


def _cycles(rules: Rules) -> Iterator[str]:
    """A sentence for each tool that could never be called, because what it needs first needs the tool itself."""
    needs: dict[str, list[str]] = {spec.name: [p.tool for p in spec.prerequisites] for spec in rules.tools}
    for use in rules.order:
        needs.setdefault(use.tool, []).extend(use.after)
    users: dict[str, list[str]] = {}
    for name, needed in needs.items():
        for one in needed:
            users.setdefault(one, []).append(name)
    for name, needed in needs.items():
        dependents, new = set[str](), {name} if needed else set()
        while new:
            dependents |= new
            new = {user for one in new for user in users.get(one, ())} - dependents
        found = (one for one in dict.fromkeys(needed) if one in dependents)
        yield from (f"tool {name}: it needs {one}, which needs {name}: neither can be called" for one in found)
