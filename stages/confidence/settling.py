"""Settling: calls that the model is sure of go on; the others are decided again, by a person, or not at all.

All of it are transitions of the run's own loop: what is asked again is asked by the next turn, with the same history,
and every model call is paid for out of the run's budget.
"""

from collections import Counter
from typing import assert_never

from msgspec.structs import replace
from returns.result import Result

from stages.confidence.decision import Decision
from stages.confidence.question import question_about
from stages.confidence.unsure import AskLarger, AskPerson, StopRun, ThinkFirst, Vote, WhenUnsure
from stages.effect import Reply
from stages.halt import Halt, Unsure
from stages.message import Assistant, Kind, User
from stages.nudges.thinking import call_after_thinking, think_before_calling
from stages.pipeline import Stage, on
from stages.reasoning import split_reasoning
from stages.schema.canonical_json import canonical
from stages.state import Done, Folded, Ready, State, Vetted
from stages.view.prefix_reuse import written_anew

_THOUGHT = 8_000
"""Maximum characters of a thought that is shown again."""


def settle(when: WhenUnsure) -> Stage:
    """Hand on a Vetted state whose calls are sure enough; for the others take the next step of `when`.

    Ends in Ready where the model is asked again, in Done with `NeedsInput` where the person is; halts with `Unsure`.
    It runs after `enforce`, so that each answer is one that may run.
    """

    @on(Vetted)
    def stage(state: State, phase: Vetted) -> State | Halt:
        if not phase.allowed:
            return state
        decision = state.open_decision
        step = when.steps[decision.step] if decision else None
        if decision is None or not isinstance(step, Vote):
            return _judged(state, phase, confidence_of(phase), decision, when)
        votes = (*decision.votes, phase)
        if len(votes) < step.samples and _affordable(state, when, 1):
            return _again(state, replace(decision, votes=votes))
        chosen, share = majority(votes)
        return _judged(state, _with_confidence(chosen, share), share, decision, when)

    return stage


def confidence_of(phase: Vetted) -> float | None:
    """How sure the least sure call of a reply is; None: of one, nothing is known."""
    known = [call.confidence for call in phase.calls]
    return None if None in known else min(confidence for confidence in known if confidence is not None)


def majority(votes: tuple[Vetted, ...]) -> tuple[Vetted, float]:
    """The first of the most frequent answers, and its share of them all."""
    said = [tuple((call.name, canonical(call.arguments)) for call in vote.calls) for vote in votes]
    most, count = Counter(said).most_common(1)[0]
    return votes[said.index(most)], count / len(votes)


def _with_confidence(phase: Vetted, share: float) -> Vetted:
    calls = tuple(replace(call, confidence=share) for call in phase.calls)
    return replace(phase, said=replace(phase.said, calls=calls))


def _judged(
    state: State, phase: Vetted, sure: float | None, decision: Decision | None, when: WhenUnsure
) -> State | Halt:
    larger = decision is not None and decision.asks == "larger"
    if (sure is None and (larger or not when.below)) or (sure is not None and sure >= when.below):
        return _settled(state, phase)
    first = 0 if decision is None else decision.step + 1
    for number, step in enumerate(when.steps[first:], start=first):
        match step:
            case StopRun():
                call = min(phase.calls, key=lambda call: call.confidence or 0.0)
                return Unsure(tool=call.name, arguments=call.arguments, confidence=sure, below=when.below)
            case AskPerson():
                asked = question_about(phase)
                return replace(state, decision=None).say(Assistant(text=asked.question)).to(Done(outcome=asked))
            case ThinkFirst() | Vote() | AskLarger():
                if _affordable(state, when, _cost(step)):
                    return _again(state, _begun(step, number, len(state.history), phase, decision))
            case _:
                assert_never(step)
    return _settled(state, phase)


def _settled(state: State, phase: Vetted) -> State:
    return replace(state, decision=None, phase=phase)


def _cost(step: ThinkFirst | Vote | AskLarger) -> int:
    """The model calls that the step takes."""
    match step:
        case ThinkFirst():
            return 2
        case Vote(samples=samples):
            return samples - 1
        case AskLarger():
            return 1
        case _:
            assert_never(step)


def _affordable(state: State, when: WhenUnsure, calls: int) -> bool:
    ledger = state.ledger
    return ledger.unsure_calls + calls <= when.max_calls and calls <= ledger.budget.calls


def _begun(
    step: ThinkFirst | Vote | AskLarger, number: int, length: int, phase: Vetted, before: Decision | None
) -> Decision:
    begun = Decision(step=number, length=length, thought=before.thought if before else "")
    match step:
        case ThinkFirst():
            return replace(begun, asks="thought", thought="")
        case Vote():
            return replace(begun, votes=(phase,))
        case AskLarger():
            return replace(begun, asks="larger")
        case _:
            assert_never(step)


def _again(state: State, decision: Decision) -> State:
    """The same turn once more: what is asked, and what rules count by turns, is as it was before."""
    ledger = state.ledger
    spent = replace(ledger, turn=ledger.turn - 1, unsure_calls=ledger.unsure_calls + 1)
    return replace(state, ledger=spent, decision=decision, phase=Ready())


def with_thought(state: State, decision: Decision, reply: Reply) -> State:
    """The state after the thought that was asked for: the calls are asked for next."""
    inside, beside = split_reasoning(reply.text)
    thought = beside or inside or reply.reasoning.strip()  # a model that reasons may say it all there
    return _again(state, replace(decision, asks="calls", thought=thought[:_THOUGHT]))


def think_first() -> Stage:
    """Ask for the thought in a Folded state, or show it before the calls are asked for; for this prompt alone."""

    @on(Folded)
    def stage(state: State, phase: Folded) -> State | Halt:
        decision = state.open_decision
        if decision is None or phase.summary or not (decision.asks == "thought" or decision.thought):
            return state
        notes = [User(text=think_before_calling(), kind=Kind.THINK_FIRST)]
        shown = (Assistant(text=decision.thought), User(text=call_after_thinking(), kind=Kind.THINK_FIRST))
        said = (*phase.notes, *notes, *(shown if decision.asks != "thought" else ()))
        return state.to(replace(phase, notes=said))

    return stage


def for_larger(stage: Stage, other: Stage) -> Stage:
    """The stage, and the other instead of it while the larger model is asked; not for a summary.

    What the other writes begins anew, and the next request of the stage's own does not go on from it.
    """
    anew = written_anew(other)

    def chosen(state: State) -> Result[State, Halt]:
        phase = state.phase
        if not state.asks_larger or (isinstance(phase, Folded) and phase.summary):
            return stage(state)
        return (anew if isinstance(phase, Folded) else other)(state)

    return chosen
