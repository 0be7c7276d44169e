"""Variants: what a configuration changes in a workflow and in how its model is asked."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from msgspec import structs

from forge.evals.ablations import ABLATIONS, REFORGED
from forge.evals.row import Configuration
from forge.evals.unsure_variants import unsure_variant
from forge.workflow.workflow import Workflow
from stages.compaction import Compactor, NoCompact, SlidingWindowCompact, TieredCompact
from stages.confidence.measure import WhenUnsure
from stages.wire.deltas import Sampling

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


def configured_workflow(workflow: Workflow[Any], configuration: Configuration) -> Workflow[Any]:
    """The workflow as the configuration has it."""
    changed = ABLATIONS[configuration.ablation or REFORGED].apply(workflow)
    if configuration.unsure:
        changed = replace(changed, unsure=_for_workflow(unsure_variant(configuration.unsure), changed))
    return replace(changed, compactor=COMPACTORS[configuration.compact]) if configuration.compact else changed


def _for_workflow(unsure: WhenUnsure, workflow: Workflow[Any]) -> WhenUnsure:
    """With the priors of this workflow's tools alone: one file may have those of many scenarios."""
    if unsure.priors is None:
        return unsure
    names = {tool.name for tool in workflow.rules.tools}
    own = tuple(prior for prior in unsure.priors.priors if prior.tool in names)
    return structs.replace(unsure, priors=structs.replace(unsure.priors, priors=own))


def configured_sampling(configuration: Configuration) -> Sampling | None:
    """What the configuration says of a request, over what the server is asked with; None: nothing."""
    return Sampling(extra=THINKING[configuration.think]) if configuration.think else None
