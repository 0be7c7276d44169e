"""Ablation: what a recorded run would have decided without each of its guardrails, reply by reply, without a model.

Each decision is repeated from the state that the run was really in, so it is exact for that step. What the model
would have said after a different decision is unknown, so nothing is followed beyond the first difference.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from returns.result import Success

from forge.journal.records import Journal, read_journal
from forge.journal.replaying import Decision, Step, as_recorded, decision, offer, states
from forge.runtime.loop import advanced, checked_options
from forge.workflow.turn import turn_of
from forge.workflow.workflow import CompiledWorkflow, Workflow
from stages.compaction import NoCompact
from stages.confidence.measure import argument_schemas
from stages.offer import NARROWINGS, offered_tools
from stages.pipeline import Stage
from stages.repair.decoding import decode
from stages.rules import RepairLimits, Rules
from stages.schema import Check, Fits, Misfit, Problem
from stages.state import Answered, Awaiting, Edited, Executed, Ready

Where = Literal["reply", "prompt", "offer", "values"]
"""What a guardrail acts on: the model's reply and its consequences, the prompt, the tools that a constraint offers, or
the values that it lets their arguments have."""


class Acted(Struct, frozen=True, kw_only=True):
    """A turn in which a guardrail made a difference: what the run did, and what it would have done without it.

    `turn` is the number of the model call, `step` the state that was decided on, as `states` counts. `ends`:
    without the guardrail the run would have ended here.
    """

    turn: int
    step: int
    did: Decision
    without: Decision
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
    turns = {name: turn_of(variant.workflow, record.header.setup) for name, variant in variants.items()}
    acted: dict[str, list[Acted]] = {name: [] for name in variants}
    # One pass for all: keeping all states of a run would take memory quadratic in its length.
    for before, after in pairwise(states(record, workflow)):
        for name, variant in variants.items():
            if variant.where == "offer":
                acted[name].extend(_offered(before, after, compiled.rules, variant.workflow.rules))
            elif variant.where == "values":
                acted[name].extend(_limited(before, after, turns[name]))
            else:
                acted[name].extend(_acted(before, after, turns[name], variant.where))
    return tuple(
        Ablated(guardrail=name, does=variant.does, acted=tuple(acted[name])) for name, variant in variants.items()
    )


def _acted(before: Step, after: Step, turn: Stage, where: Where) -> Iterator[Acted]:
    """What this pipeline does instead, if it decides differently on the state `before` than the run did."""
    if after.outcome is not None or (where == "prompt") != isinstance(before.state.phase, Ready):
        return
    if not isinstance(before.state.phase, Ready | Answered | Edited | Executed):
        return
    did = decision(before.state, after.halt or after.state)
    moved = advanced(turn, before.state)
    without = decision(before.state, moved.unwrap() if isinstance(moved, Success) else moved.failure())
    if did != without:
        over = without.kind in {"halts", "ends"} and did.kind not in {"halts", "ends"}
        number = before.state.ledger.turn + (where == "prompt")
        yield Acted(turn=number, step=before.number, did=did, without=without, ends=over)


def _offered(before: Step, after: Step, rules: Rules, other: Rules) -> Iterator[Acted]:
    """What a constraint would have offered under other rules, if that is not what it offered the model."""
    sent = after.state
    if not _constrains(before, after):
        return
    seen = replace(before.state, history=sent.prompt.view, cleared=())
    did, without = offer(offered_tools(rules, seen)), offer(offered_tools(other, seen))
    if did != without:
        yield Acted(turn=sent.ledger.turn, step=before.number, did=did, without=without, ends=False)


def _limited(before: Step, after: Step, turn: Stage) -> Iterator[Acted]:
    """The arguments that a constraint held to other values than if this pipeline had written it."""
    moved = advanced(turn, before.state) if _constrains(before, after) else None
    if not isinstance(moved, Success):
        return
    sent, other = argument_schemas(after.state.asked.tail), argument_schemas(moved.unwrap().asked.tail)
    limited = [f"{t}.{name}" for (t, name), kind in sent.items() if other.get((t, name), kind) != kind]
    if limited:
        names = ", ".join(limited)
        did = Decision(kind="offers", detail=f"the values that were seen for {names}")
        without = Decision(kind="offers", detail=f"any value for {names}")
        yield Acted(turn=after.state.ledger.turn, step=before.number, did=did, without=without, ends=False)


def _constrains(before: Step, after: Step) -> bool:
    """Whether the step between them asked for a reply under a constraint, of calls."""
    sent = after.state
    if after.halt or not isinstance(before.state.phase, Ready) or not isinstance(sent.phase, Awaiting):
        return False
    return sent.phase.asked.mode == "constrained" and not sent.phase.summary


def _variants(workflow: CompiledWorkflow) -> Mapping[str, _Variant]:
    """The workflow without each of its guardrails, by the guardrail's name."""
    rules = workflow.rules
    unguessing = replace(rules.calls, repair_limits=RepairLimits(read=0, write=0, terminal=0))
    rescue = "finds calls in text and repairs damaged ones"
    guesses = "repairs what is ambiguous, within the limits"
    tool_errors = "lets the model try again after an error"
    of_replies = {
        "rescue": (rescue, workflow.under(replace(rules, calls=replace(rules.calls, rescue_enabled=False)))),
        "guesses": (guesses, workflow.under(replace(rules, calls=unguessing))),
        "coercion": ("converts values to the schema's type", workflow.checked_by(_exact)),
        "schema": ("refuses arguments that do not match", workflow.checked_by(_unchecked)),
        "retry nudges": (
            "corrects a reply without a usable call",
            workflow.under(replace(rules, limits=replace(rules.limits, max_retries_per_step=0))),
        ),
        "tool error nudges": (
            tool_errors,
            workflow.under(replace(rules, limits=replace(rules.limits, max_tool_errors=0))),
        ),
        "ask_once": (
            "asks once about an answer in words, where a call was possible",
            workflow.under(replace(rules, without=rules.without | {"ask_once"})),
        ),
        **{name: ("a guard", workflow.without(name)) for name in workflow.guards},
    }
    uncompacted = replace(workflow, context=replace(workflow.context, compactor=NoCompact(), summarize=False))
    compaction = _Variant(does="makes the prompt fit", where="prompt", workflow=uncompacted)
    judging = {name: _Variant(does=does, where="reply", workflow=other) for name, (does, other) in of_replies.items()}
    return {**judging, "compaction": compaction, **_offers(workflow)}


_NARROWINGS = {name: (one.narrow.__doc__ or name).partition("\n")[0].rstrip(".") for name, one in NARROWINGS.items()}
"""What each narrowing of the offer does."""


def _offers(workflow: CompiledWorkflow) -> dict[str, _Variant]:
    """The workflow without each of the rules that decide what a constraint offers."""
    rules = workflow.rules
    ways = {
        "withheld writes": ("does not offer writes that nothing needs", replace(rules, withheld=())),
        "order of calls": ("offers what may come next", replace(rules, order=())),
        **{name: (does, replace(rules, without=rules.without | {name})) for name, does in _NARROWINGS.items()},
    }
    offers = {
        n: _Variant(does=does, where="offer", workflow=workflow.under(other)) for n, (does, other) in ways.items()
    }
    free = workflow.under(replace(rules, tools=tuple(replace(tool, grounded=()) for tool in rules.tools)))
    does = "holds grounded arguments to values that were seen"
    return {**offers, "seen values": _Variant(does=does, where="values", workflow=free)}


def _exact(check: Check) -> Check:
    """The check without coercion: values that need conversion do not match."""

    def judge(text: str, /) -> Fits | Misfit:
        judged = check(text)
        if isinstance(judged, Misfit) or not judged.repairs:
            return judged
        wrong = (
            Problem(path="", rule="type", expected="the schema's own types", found=repair) for repair in judged.repairs
        )
        return Misfit(problems=tuple(wrong))

    return judge


_members = msgspec.json.Decoder(dict[str, object])


def _unchecked(check: Check) -> Check:
    """The check, accepting every JSON object."""

    def judge(text: str, /) -> Fits | Misfit:
        judged = check(text)
        if isinstance(judged, Fits):
            return judged
        try:
            given = decode(_members, text)
        except msgspec.DecodeError:
            return judged
        return Fits(arguments=msgspec.json.encode(given).decode())

    return judge
