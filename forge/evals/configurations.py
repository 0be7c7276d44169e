"""Configurations: ablations, variants, and the cells of scenario, configuration and seed."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct, structs
from toolz import compose_left

from forge.errors import ForgeError
from forge.evals.player import Player
from forge.evals.row import Configuration, RowKey
from forge.evals.scenario import Scenario
from forge.journal.priors import read_priors
from forge.tools.definition import Tool, tool
from forge.workflow.workflow import Workflow
from stages.compaction import Compactor, NoCompact, SlidingWindowCompact, TieredCompact
from stages.confidence.measure import AskLarger, StopRun, ThinkFirst, UnsureStep, Vote, WhenUnsure
from stages.offer import NARROWINGS
from stages.options import did_you_mean
from stages.wire.deltas import Sampling

# Ablations: a workflow without one of forge's guardrails, or without all of them.

_Change = Callable[[Workflow[Any]], Workflow[Any]]


class Ablation(Struct, frozen=True):
    """What is taken away, in words, and the workflow without it."""

    does: str
    apply: _Change


def _options(**changes: Any) -> _Change:
    return lambda workflow: replace(workflow, **changes)


def _without(*names: str) -> _Change:
    """Without these guards and narrowings, beside those that the workflow itself does without."""
    return lambda workflow: replace(workflow, without=workflow.rules.without.union(names))


def _group(name: str, **changes: object) -> _Change:
    """The workflow with other options of a group."""
    return lambda workflow: replace(workflow, **{name: structs.replace(getattr(workflow, name), **changes)})


_limits, _context, _calls = partial(_group, "limits"), partial(_group, "context"), partial(_group, "calls")


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
    known = () if withheld else (*rules.withheld, *rules.unruled)
    writes = tuple(spec.name for spec in rules.tools if spec.effect == "write" and spec.name not in known)
    return replace(workflow, optional_steps=writes)


_no_rescue = _calls(rescue_enabled=False)
_no_nudge: _Change = compose_left(_no_rescue, _limits(max_retries_per_step=0))
_no_steps = _options(required_steps=(), order=())
_no_recovery = _limits(max_tool_errors=0)
_no_compact = _context(compactor=NoCompact(), summarize=False)
_no_grounding: _Change = compose_left(
    _naming, _options(grounded=None), _calls(value_checks=False), _tools(grounded=()), _without("no_unseen_values")
)
_no_calculation: _Change = compose_left(_naming, _options(calculated=None), _tools(calculated=()))
_no_prerequisites: _Change = compose_left(_naming, _tools(prerequisites=()))
_no_checks: _Change = compose_left(_naming, _options(guards=(), completion_checks=None))
_no_narrowing = _without(*NARROWINGS)
_no_repeats = _limits(max_repeats=None)
_no_withholding: _Change = partial(_naming, withheld=True)
_no_notes = _context(progress_notes=False, iteration_warning=0, context_thresholds=())

_BARE = (
    _no_nudge,
    _no_steps,
    _no_recovery,
    _no_compact,
    _no_grounding,
    _no_calculation,
    _no_prerequisites,
    _no_checks,
    _no_narrowing,
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
        "no_narrowing": Ablation("every legal tool is offered with each reply", _no_narrowing),
        "no_withholding": Ablation("writes that nothing needs may be called", _no_withholding),
        "bare": Ablation("all of these off, warnings and notes too", compose_left(*_BARE)),
    }
)
"""By name."""


# Variants: what a configuration changes in a workflow and in how its model is asked.

COMPACTORS: Mapping[str, Compactor] = MappingProxyType(
    {"tiered": TieredCompact(), "sliding": SlidingWindowCompact(), "none": NoCompact()}
)

THINKING: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "on": {"chat_template_kwargs": {"enable_thinking": True}},
        "off": {"chat_template_kwargs": {"enable_thinking": False}},
        **{level: {"reasoning_effort": level} for level in ("low", "medium", "high")},
    }
)
"""What a request says of thinking: to a chat template whether, to a reasoning model how much."""


_UNSURE: Mapping[str, UnsureStep | None] = MappingProxyType(
    {"measure": None, "priors": None, "stop": StopRun(), "think": ThinkFirst(), "vote": Vote(), "larger": AskLarger()}
)
"""What follows calls that the model is not sure of, as `--unsure` names it; None: nothing."""


def unsure_variant(text: str) -> WhenUnsure:
    """What `HOW` or `HOW:BELOW` stands for, such as `stop:0.8`; below 0.6 if it does not say. ForgeError for others.

    With `measure` nothing follows: confidence is only noted. `priors:FILE` divides out what `forge priors` measured.
    """
    how, colon, below = text.partition(":")
    if how not in _UNSURE:
        raise ForgeError(f"there is no --unsure {how!r}; there are: {', '.join(_UNSURE)}.{did_you_mean(how, _UNSURE)}")
    if how == "priors":
        if not below:
            where = "say where the priors are, as in priors:priors.json; forge priors measures them"
            raise ForgeError(f"unsure {text!r}: {where}")
        return WhenUnsure(below=0.0, then=(), priors=read_priors(below))
    step = _UNSURE[how]
    if step is None:
        if colon:
            raise ForgeError(f"unsure {text!r}: nothing follows with measure, so it takes no threshold")
        return WhenUnsure(below=0.0, then=())
    try:
        threshold = float(below) if colon else 0.6
    except ValueError:
        threshold = -1.0
    if not 0 <= threshold <= 1:
        raise ForgeError(f"unsure {text!r}: {below!r} is not a confidence from 0 to 1, such as 0.8")
    return WhenUnsure(below=threshold, then=step)


def asks_larger(text: str) -> bool:
    """Whether a larger model is asked in that variant."""
    return text.partition(":")[0] == "larger"


def configured_workflow(workflow: Workflow[Any], configuration: Configuration) -> Workflow[Any]:
    """The workflow as the configuration has it."""
    changed = ABLATIONS[configuration.ablation or REFORGED].apply(workflow)
    if configuration.unsure:
        unsure = unsure_variant(configuration.unsure)
        if unsure.priors is not None:  # one file may have those of many scenarios: this workflow's tools alone
            names = {tool.name for tool in changed.rules.tools}
            own = tuple(prior for prior in unsure.priors.priors if prior.tool in names)
            unsure = structs.replace(unsure, priors=structs.replace(unsure.priors, priors=own))
        changed = replace(changed, unsure=unsure)
    return _context(compactor=COMPACTORS[configuration.compact])(changed) if configuration.compact else changed


def configured_sampling(configuration: Configuration) -> Sampling | None:
    """What the configuration says of a request, over what the server is asked with; None: nothing."""
    return Sampling(extra=THINKING[configuration.think]) if configuration.think else None


# Cells: which runs there are to do: each configuration on each scenario with each seed.

_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class Cell(Struct, frozen=True, kw_only=True):
    """A run to do."""

    configuration: Configuration
    scenario: Scenario
    seed: int

    @property
    def key(self) -> RowKey:
        """That of its row."""
        return (self.configuration, self.scenario.name, self.seed)

    @property
    def journal(self) -> str:
        """The path of its journal in the folder of journals, without suffix: no two cells share one."""
        known = self.configuration
        folder = _plain(f"{known.model} {known.name} {_digest(msgspec.json.encode(known))}")
        name = self.scenario.name
        plain = _plain(name)
        return f"{folder}/{plain if plain == name else f'{plain}-{_digest(name.encode())}'}-{self.seed}"


def _plain(name: str) -> str:
    return _ODD.sub("-", name)


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=4).hexdigest()


def cells(
    configurations: Sequence[Configuration],
    scenarios: Sequence[Scenario],
    seeds: Iterable[int],
    players: Mapping[str, Player],
) -> Iterator[Cell]:
    """Every run, all configurations of a scenario and seed one after the other, so that pairs are whole early.

    A scenario is left out where not even a flawless model could pass it.
    """
    for seed in seeds:
        for scenario in (one for one in scenarios if one.has(seed)):
            for configuration in configurations:
                player = players[configuration.player]
                if not scenario.not_counted & {configuration.ablation, player.name, player.counted_like}:
                    yield Cell(configuration=configuration, scenario=scenario, seed=seed)
