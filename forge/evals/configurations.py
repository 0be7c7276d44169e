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

from forge.evals.player import Player
from forge.evals.row import Configuration, RowKey
from forge.evals.scenario import Scenario
from forge.tools.definition import Tool, tool
from forge.workflow.workflow import Workflow
from stages.compaction import Compactor, NoCompact, SlidingWindowCompact, TieredCompact
from stages.guards import GUARDS
from stages.offer import NARROWINGS
from stages.wire.sampling import Sampling

# Ablations: a workflow without one of forge's guardrails, or without all of them.

_Change = Callable[[Workflow[Any]], Workflow[Any]]


def _options(**changes: Any) -> _Change:
    return lambda workflow: replace(workflow, **changes)


def _without(*names: str) -> _Change:
    """Without these guards and narrowings, and those that the workflow already excludes."""
    return lambda workflow: replace(workflow, without=workflow.rules.without.union(names))


def _group(name: str, **changes: object) -> _Change:
    """The workflow with changed options of a group."""
    return lambda workflow: replace(workflow, **{name: structs.replace(getattr(workflow, name), **changes)})


_limits, _context, _calls = partial(_group, "limits"), partial(_group, "context"), partial(_group, "calls")


def _tools(**changes: object) -> _Change:
    """The same tools with changed specs."""

    def change(workflow: Workflow[Any]) -> Workflow[Any]:
        made = (one if isinstance(one, Tool) else tool(one) for one in workflow.tools)
        tools = [Tool(one.function, structs.replace(one.spec, **changes), one.problems) for one in made]
        return replace(workflow, tools=tools)

    return change


def _naming(workflow: Workflow[Any], *, withheld: bool = False) -> Workflow[Any]:
    """The workflow with its writes as optional steps, so that none is withheld for lack of a rule.

    With `withheld`, this includes writes that are withheld so far.
    """
    rules = workflow.rules
    known = () if withheld else (*rules.withheld, *rules.unruled)
    writes = tuple(spec.name for spec in rules.tools if spec.effect == "write" and spec.name not in known)
    return replace(workflow, optional_steps=writes)


REFORGED = "reforged"
"""Everything on; forge-guardrails uses this name."""

_no_rescue = _calls(rescue_enabled=False)

_SINGLE: Mapping[str, _Change] = {
    "no_rescue": _no_rescue,
    "no_nudge": compose_left(_no_rescue, _limits(max_retries_per_step=0)),
    "no_steps": _options(required_steps=(), order=()),
    "no_recovery": _limits(max_tool_errors=0),
    "no_compact": _context(compactor=NoCompact(), summarize=False),
    "no_grounding": compose_left(
        _naming,
        _options(grounded=None),
        _tools(grounded=()),
        _without("no_placeholders", "no_echoed_answers", "no_unseen_values"),
    ),
    "no_calculation": compose_left(_naming, _options(calculated=None), _tools(calculated=())),
    "no_prerequisites": compose_left(_naming, _tools(prerequisites=())),
    "no_checks": compose_left(_naming, _options(guards=(), completion_checks=None)),
    "no_narrowing": _without(*NARROWINGS),
    "no_withholding": partial(_naming, withheld=True),
}
_bare: _Change = compose_left(
    *_SINGLE.values(),
    _without(*GUARDS),
    _limits(max_repeats=None),
    _context(progress_notes=False, iteration_warning=0),
)

ABLATIONS: Mapping[str, _Change] = MappingProxyType({REFORGED: lambda workflow: workflow, **_SINGLE, "bare": _bare})
"""Ablations by name; docs/evals.md says what each one does."""


# Variants: changes to the workflow and its requests.

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
"""Request fields for thinking: on or off for a chat template, or the effort of a reasoning model."""


def configured_workflow(workflow: Workflow[Any], configuration: Configuration) -> Workflow[Any]:
    """The workflow, changed as the configuration says."""
    changed = ABLATIONS[configuration.ablation or REFORGED](workflow)
    return _context(compactor=COMPACTORS[configuration.compact])(changed) if configuration.compact else changed


def configured_sampling(configuration: Configuration) -> Sampling | None:
    """Sampling options of the configuration, which override the server's; None if it has none."""
    return Sampling(extra=THINKING[configuration.think]) if configuration.think else None


# Cells: the runs to make, one per configuration, scenario and seed.

_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class Cell(Struct, frozen=True, kw_only=True):
    """One run to make."""

    configuration: Configuration
    scenario: Scenario
    seed: int

    @property
    def key(self) -> RowKey:
        """The key of its row."""
        return (self.configuration, self.scenario.name, self.seed)

    @property
    def journal(self) -> str:
        """The path of its journal in the journal folder, without suffix; unique to the cell."""
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
    """All runs; configurations of one scenario and seed follow each other, so that pairs are complete early.

    Scenarios that exclude a configuration are left out.
    """
    # Seeds outermost: a series that is stopped has compared everything a little, rather than a few things fully.
    for seed in seeds:
        for scenario in (one for one in scenarios if one.has(seed)):
            for configuration in configurations:
                player = players[configuration.player]
                if not scenario.not_counted & {configuration.ablation, player.name, player.counted_like}:
                    yield Cell(configuration=configuration, scenario=scenario, seed=seed)
