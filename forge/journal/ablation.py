"""Ablation: what a recorded run would have decided without each of its guardrails, reply by reply, without a model.

Each decision is repeated from the state that the run was really in, so it is exact for that step. What the model
would have said after a different decision is unknown, so nothing is followed beyond the first difference.
"""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from returns.result import Success

from forge.errors import checked_options
from forge.journal.records import Journal, read_journal
from forge.journal.replaying import Move, Step, as_recorded, move, offers, states
from forge.workflow.turn import advanced, compiled_turn
from forge.workflow.workflow import CompiledWorkflow, Workflow
from stages.compaction import NoCompact
from stages.decoding import decode_or
from stages.offer import NARROWINGS, offer
from stages.pipeline import Stage
from stages.rules import REPLY_CHECKS, RepairLimits, Rules
from stages.schema import Check, Fits, Misfit, Problem
from stages.state import Answered, Awaiting, Edited, Executed, Ready

Where = Literal["reply", "prompt", "offer", "guard"]
"""What a guardrail acts on: the model's reply and its consequences, the prompt, what a constraint offers; or, as guards
do, the reply and the offer."""


class Acted(Struct, frozen=True, kw_only=True):
    """A turn in which a guardrail made a difference: what the run did, and what it would have done otherwise.

    `turn` is the number of the model call, `step` the state that was decided on, as `states` counts. `ends`:
    without the guardrail the run would have ended here.
    """

    turn: int
    step: int
    did: Move
    without: Move
    ends: bool


class Ablated(Struct, frozen=True, kw_only=True):
    """A guardrail, what it does, and each turn in which it made a difference."""

    guardrail: str
    does: str
    acted: tuple[Acted, ...]


class _Variant(Struct, frozen=True, kw_only=True):
    does: str
    where: Where
    workflow: CompiledWorkflow


@checked_options
def ablate(journal: str | Path | Journal, workflow: Workflow) -> tuple[Ablated, ...]:
    """For each guardrail of the workflow, the turns of the recorded run that it changed. Raises as `states`."""
    record = journal if isinstance(journal, Journal) else read_journal(journal)
    compiled = as_recorded(record, workflow)
    variants = _variants(compiled)
    turns = {name: compiled_turn(variant.workflow, record.header.setup) for name, variant in variants.items()}
    rules = compiled.rules
    without = {name: replace(rules, without=rules.without | {name}) for name in variants}
    acted: dict[str, list[Acted]] = {name: [] for name in variants}
    # One pass for all: keeping all states of a run would take memory quadratic in its length.
    for before, after in pairwise(states(record, workflow)):
        for name, variant in variants.items():
            if found := _acted(before, after, (rules, without[name]), variant.where, turns[name]):
                acted[name].append(found)
    return tuple(
        Ablated(guardrail=name, does=variant.does, acted=tuple(acted[name])) for name, variant in variants.items()
    )


def _acted(before: Step, after: Step, rules: tuple[Rules, Rules], where: Where, turn: Stage) -> Acted | None:
    """What a variant does instead, if it decides differently on the state `before` than the run did.

    `rules` are those of the run, and those without the guardrail, by which its offers are made.
    """
    state, sent = before.state, after.state
    asking = isinstance(state.phase, Ready)
    if asking and where in {"offer", "guard"}:
        # Only where the step asked for a reply under a constraint of calls.
        if after.halt or not isinstance(sent.phase, Awaiting):
            return None
        if sent.phase.summary or sent.phase.asked.mode != "constrained":
            return None
        seen = replace(state, history=sent.prompt.view, cleared=())
        did, without = (offers(offer(one, seen)) for one in rules)
    elif (
        after.outcome is not None
        or where == "offer"
        or not isinstance(state.phase, Ready | Answered | Edited | Executed)
        or (where == "prompt") != asking
    ):
        return None
    else:
        moved = advanced(turn, state)
        did = move(state, after.halt or sent)
        without = move(state, moved.unwrap() if isinstance(moved, Success) else moved.failure())
    if did == without:
        return None
    over = without.kind in {"halts", "ends"} and did.kind not in {"halts", "ends"}
    return Acted(turn=state.ledger.turn + asking, step=before.number, did=did, without=without, ends=over)


_NARROWINGS = {name: (one.narrow.__doc__ or name).partition("\n")[0].rstrip(".") for name, one in NARROWINGS.items()}
"""What each narrowing of the offer does."""


def _variants(workflow: CompiledWorkflow) -> Mapping[str, _Variant]:
    """The workflow without each of its guardrails, by the guardrail's name."""
    rules, calls, limits, context = workflow.rules, workflow.rules.calls, workflow.rules.limits, workflow.context
    unguessing = RepairLimits(read=0, write=0, terminal=0)
    found: dict[str, _Variant] = {}

    def add(name: str, does: str, other: Rules | CompiledWorkflow, where: Where = "reply") -> None:
        changed = workflow.under(other) if isinstance(other, Rules) else other
        found[name] = _Variant(does=does, where=where, workflow=changed)

    unrescued = replace(calls, rescue_enabled=False)
    add("rescue", "finds calls in text and repairs damaged ones", replace(rules, calls=unrescued))
    unrepaired = replace(calls, repair_limits=unguessing)
    add("guesses", "repairs what is ambiguous, within the limits", replace(rules, calls=unrepaired))
    add("coercion", "converts values to the schema's type", workflow.checked_by(_exact))
    add("schema", "refuses arguments that do not match", workflow.checked_by(_unchecked))
    without_retries = replace(rules, limits=replace(limits, max_retries_per_step=0))
    add("retry nudges", "corrects a reply without a usable call", without_retries)
    without_errors = replace(rules, limits=replace(limits, max_tool_errors=0))
    add("tool error nudges", "lets the model try again after an error", without_errors)
    for name, does in REPLY_CHECKS.items():
        add(name, does, replace(rules, without=rules.without | {name}))
    for name in workflow.guards:
        others = {other: guard for other, guard in workflow.guards.items() if other != name}
        add(name, "a guard", replace(workflow, guards=MappingProxyType(others)), "guard")
    uncompacted = replace(context, compactor=NoCompact(), summarize=False)
    add("compaction", "makes the prompt fit", replace(workflow, context=uncompacted), "prompt")
    for name, does in _NARROWINGS.items():
        add(name, does, workflow, "offer")
    return found


def _exact(check: Check) -> Check:
    """The check without coercion: values that need conversion do not match."""

    def judge(text: str, /) -> Fits | Misfit:
        judged = check(text)
        if isinstance(judged, Misfit) or not judged.repairs:
            return judged
        own = "the schema's own types"
        return Misfit(problems=tuple(Problem(path="", rule="type", expected=own, found=it) for it in judged.repairs))

    return judge


_members = msgspec.json.Decoder(dict[str, object])


def _unchecked(check: Check) -> Check:
    """The check, accepting every JSON object."""

    def judge(text: str, /) -> Fits | Misfit:
        judged, given = check(text), decode_or(_members, text, None)
        if isinstance(judged, Fits) or given is None:
            return judged
        return Fits(arguments=msgspec.json.encode(given).decode())

    return judge
