"""What to do when a model is unsure of its calls: think, vote, ask a larger model or a person, or stop."""

from collections import Counter
from collections.abc import Mapping
from typing import Literal, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.confidence.measure import (
    CONSTRAINTS,
    LARGER,
    AskLarger,
    AskPerson,
    MeasuredCall,
    StopRun,
    ThinkFirst,
    UnsureStep,
    Vote,
    WhenUnsure,
    measured_calls,
    measures_of,
    offer_of,
)
from stages.decoding import decode
from stages.effect import NeedsInput
from stages.halt import Halt, Unsure
from stages.kept import Kept
from stages.message import Assistant, Kind, ToolCall, User
from stages.nudges import CALL_AFTER_THINKING, THINK_BEFORE_CALLING
from stages.pipeline import Stage, on
from stages.reasoning import split_reasoning
from stages.schema.canonical_json import canonical
from stages.schema.value import raw_members
from stages.state import MAIN, Answered, Asked, Done, Folded, Prepared, Ready, State, Vetted
from stages.tool import ToolSpec

# What is kept about unsure decisions between turns.


class Escalation(Struct, frozen=True, kw_only=True, gc=False):
    """How far an unsure decision has gone: its step in `WhenUnsure.then`, and the answers so far.

    `asks` is what the next request asks for: the calls again, a `thought` before them, or the larger model's calls.
    `votes` are the answers of a vote so far. `length` is the length of the history when the decision was postponed;
    once the history has another, the escalation is over.
    """

    step: int
    length: int
    asks: Literal["calls", "thought", "larger"] = "calls"
    thought: str = ""
    votes: tuple[Vetted, ...] = ()


class Doubts(Struct, frozen=True, kw_only=True):
    """What a run keeps about the confidence in its calls.

    `escalation` is the open one (see `open_escalation`), `calls` the number of model calls spent on all of them.
    `heard` are the calls found in the tokens of the last reply, `measured` the choices of calls by their ids, until
    their decision is settled.
    """

    escalation: Escalation | None = None
    calls: int = 0
    heard: tuple[MeasuredCall, ...] = ()
    measured: Mapping[str, MeasuredCall] = {}


DOUBTS = Kept("unsure", Doubts, Doubts())
_CONFIDENCES = Kept("confidence", dict[str, float], {})


def confidences(state: State) -> Mapping[str, float]:
    """The confidence of each call that passed, by call id, from 0 to 1; calls whose confidence is unknown are missing.

    It is the probability of the call's tool and values among those that were offered, or the share of a vote.
    """
    return _CONFIDENCES.get(state)


def open_escalation(state: State) -> Escalation | None:
    """The escalation of the decision being repeated; None if there is none, or if the history continued without it."""
    escalation = DOUBTS.get(state).escalation
    return escalation if escalation and escalation.length == len(state.history) else None


# The question to a person about unsure calls.

_SUGGESTED = 8
"""Maximum number of suggestions in a question: a tool may have hundreds of possible values."""


def _question_about(calls: tuple[ToolCall, ...], measured: Mapping[str, MeasuredCall]) -> NeedsInput:
    """The question which tool or value is meant, about the least probable choice; the chosen one is suggested first.

    If no choice is known, it asks whether the calls are meant.
    """
    known = (measured[call.id] for call in calls if call.id in measured)
    choices = [(call.tool, choice) for call in known for choice in call.choices]
    if not choices:
        said = ", ".join(f"{call.name} {call.arguments}" for call in calls)
        return NeedsInput(question=f"Is this what is meant: {said}?", suggestions=("yes", "no"))
    tool, choice = min(choices, key=lambda one: one[1].probability)
    others = [text for text in choice.offered if text != choice.chosen]
    shown = (choice.chosen, *others)[:_SUGGESTED]
    suggestions = tuple(value if isinstance(value := msgspec.json.decode(text), str) else text for text in shown)
    what = f"Which {choice.argument} is meant for {tool}" if choice.argument else "What is meant"
    return NeedsInput(question=f"{what}: {' or '.join(suggestions)}?", suggestions=suggestions)


# The request for a decision that is repeated: the same as before, except for what its step changes.

_Fields = dict[str, Raw]


def ask_again(when: WhenUnsure, names: Mapping[str, str]) -> Stage:
    """Change the request of a Prepared state as the step of its open escalation requires.

    `names` are the backend's names for sampling options. A thought is requested without a schema, without
    probabilities, and with fewer tokens. Each vote has its own temperature and, if the request has a seed, its own
    seed: with the same one, every vote would repeat the first.
    """

    @on(Prepared)
    def stage(state: State, phase: Prepared) -> State | Halt:
        escalation = open_escalation(state)
        if escalation is None or phase.summary:
            return state
        head, tail = decode(raw_members, bytes(phase.request.head)), decode(raw_members, bytes(phase.request.tail))
        match _step(when, escalation):
            case ThinkFirst(tokens=tokens) if escalation.asks == "thought":
                name = names.get("max_tokens", "max_tokens")
                known = msgspec.json.decode(head.get(name, b"null"), type=int | None)
                head = {field: value for field, value in head.items() if field not in ("logprobs", "top_logprobs")}
                head[name] = _raw(tokens if known is None else min(known, tokens))
                tail = {field: value for field, value in tail.items() if field not in (*CONSTRAINTS, "tool_choice")}
            case Vote(temperature=temperature):
                named, seed = names.get("temperature", "temperature"), names.get("seed", "seed")
                head |= {named: _raw(temperature)} if named else {}
                if seed in head:
                    head[seed] = _raw(msgspec.json.decode(head[seed], type=int) + len(escalation.votes))
            case _:
                return state
        request = replace(phase.request, head=_raw(head), tail=_raw(tail))
        return state.to(replace(phase, request=request))

    return stage


def _step(when: WhenUnsure, escalation: Escalation) -> UnsureStep | None:
    """The step that the escalation has reached; None if the run was resumed with fewer steps than it began with."""
    return when.steps[escalation.step] if escalation.step < len(when.steps) else None


def _raw(value: float | _Fields) -> Raw:
    return Raw(msgspec.json.encode(value))


# Settling: calls that the model is sure of pass; the others are decided again, by a person, or not at all.
#
# These are ordinary transitions of the loop: a decision is repeated in the next turn with the same history, and every
# model call is charged to the run's budget.

_THOUGHT = 8_000
"""Maximum characters of a thought that is shown again."""


def hear(tools: tuple[ToolSpec, ...]) -> Stage:
    """Read the tokens of an Answered state before `validate`: the confidence of its calls, or the requested thought.

    After a thought, the next request asks for the calls. `tools` are the tools of prompts that list them as text.
    """

    @on(Answered)
    def stage(state: State, phase: Answered) -> State | Halt:
        escalation = open_escalation(state)
        if escalation is not None and escalation.asks == "thought":
            inside, beside = split_reasoning(phase.reply.text)
            thought = beside or inside or phase.reply.reasoning.strip()  # a reasoning model may reply with nothing else
            return _again(state, replace(escalation, asks="calls", thought=thought[:_THOUGHT]))
        heard = measured_calls(phase.reply.tokens, phase.reply.text, offer_of(phase.asked.tail, tools))
        return DOUBTS.put(state, replace(DOUBTS.get(state), heard=heard))

    return stage


@on(Vetted)
def weigh(state: State, phase: Vetted) -> State | Halt:
    """Record the confidence of the calls of a Vetted state, before the guards see them."""
    if phase.allowed:
        return state
    doubts = DOUBTS.get(state)
    of_calls = measures_of(doubts.heard, [call.name for call in phase.calls])
    measured = {call.id: known for call, known in zip(phase.calls, of_calls, strict=True) if known}
    return DOUBTS.put(state, replace(doubts, heard=(), measured={**doubts.measured, **measured}))


def settle(when: WhenUnsure) -> Stage:
    """Pass a Vetted state whose calls are sure enough; otherwise take the next step of `when`.

    The next phase is Ready if a model is asked again, or Done with `NeedsInput` if a person is; halts with `Unsure`.
    Runs after `enforce`, so that every answer counted here is one that may run.
    """

    @on(Vetted)
    def stage(state: State, phase: Vetted) -> State | Halt:
        if not phase.allowed:
            return state
        escalation, doubts = open_escalation(state), DOUBTS.get(state)
        if escalation and escalation.asks == "larger" and phase.asked.target != LARGER:
            escalation = None  # the run was interrupted before the larger model replied: this is a first answer again
        sure = {call.id: doubts.measured[call.id].confidence for call in phase.calls if call.id in doubts.measured}
        step = _step(when, escalation) if escalation else None
        if escalation is None or not isinstance(step, Vote):
            return _judged(state, phase, sure, escalation, when)
        votes = (*escalation.votes, replace(phase, asked=Asked()))
        if len(votes) < step.samples and _affordable(state, when, 1):
            return _again(state, replace(escalation, votes=votes))
        chosen, share = majority(votes)
        chosen = replace(chosen, asked=phase.asked)
        return _judged(state, chosen, dict.fromkeys((call.id for call in chosen.calls), share), escalation, when)

    return stage


def majority(votes: tuple[Vetted, ...]) -> tuple[Vetted, float]:
    """The most frequent answer, the first of several, and its share of all answers."""
    said = [tuple((call.name, canonical(call.arguments)) for call in vote.calls) for vote in votes]
    most, count = Counter(said).most_common(1)[0]
    return votes[said.index(most)], count / len(votes)


def _judged(
    state: State, phase: Vetted, sure: Mapping[str, float], escalation: Escalation | None, when: WhenUnsure
) -> State | Halt:
    # If the confidence of one call is unknown, that of the reply is. An unknown confidence is accepted from the larger
    # model, whose server may return no probabilities, and if nothing is asked of it (`below` is 0).
    known = all(call.id in sure for call in phase.calls)
    least = min((sure[call.id] for call in phase.calls), default=None) if known else None
    larger = escalation is not None and escalation.asks == "larger"
    if (least is None and (larger or not when.below)) or (least is not None and least >= when.below):
        return _settled(state, phase, sure)
    first = 0 if escalation is None else escalation.step + 1
    thought = escalation.thought if escalation else ""
    for number, step in enumerate(when.steps[first:], start=first):
        begun = Escalation(step=number, length=len(state.history), thought=thought)
        match step:
            case StopRun():
                call = min(phase.calls, key=lambda call: sure.get(call.id, 0.0))
                return Unsure(tool=call.name, arguments=call.arguments, confidence=least, below=when.below)
            case AskPerson():
                asked = _question_about(phase.calls, DOUBTS.get(state).measured)
                return _undecided(state).say(Assistant(text=asked.question)).to(Done(outcome=asked))
            case ThinkFirst():
                calls, begun = 2, replace(begun, asks="thought", thought="")
            case Vote(samples=samples):
                calls, begun = samples - 1, replace(begun, votes=(replace(phase, asked=Asked()),))
            case AskLarger():
                calls, begun = 1, replace(begun, asks="larger")
            case _:
                assert_never(step)
        if _affordable(state, when, calls):
            return _again(state, begun)
    return _settled(state, phase, sure)


def _settled(state: State, phase: Vetted, sure: Mapping[str, float]) -> State:
    return _CONFIDENCES.put(_undecided(state), {**_CONFIDENCES.get(state), **sure}).to(phase)


def _undecided(state: State) -> State:
    return DOUBTS.put(state, Doubts(calls=DOUBTS.get(state).calls))


def _affordable(state: State, when: WhenUnsure, calls: int) -> bool:
    return DOUBTS.get(state).calls + calls <= when.max_calls and calls <= state.ledger.budget.calls


def _again(state: State, escalation: Escalation) -> State:
    """The same turn once more, with the same turn number, because rules count turns."""
    doubts = DOUBTS.get(state)
    kept = DOUBTS.put(state, replace(doubts, escalation=escalation, calls=doubts.calls + 1, heard=()))
    target = LARGER if escalation.asks == "larger" else MAIN
    return kept.note(turn=state.ledger.turn - 1).to(Ready(target=target))


def think_first() -> Stage:
    """Add the request for a thought to the notes of a Folded state, or the thought itself before the calls.

    Notes are shown in one prompt only.
    """

    @on(Folded)
    def stage(state: State, phase: Folded) -> State | Halt:
        escalation = open_escalation(state)
        if escalation is None or phase.summary or not (escalation.asks == "thought" or escalation.thought):
            return state
        notes = [User(text=THINK_BEFORE_CALLING, kind=Kind.THINK_FIRST)]
        shown = (Assistant(text=escalation.thought), User(text=CALL_AFTER_THINKING, kind=Kind.THINK_FIRST))
        said = (*phase.notes, *notes, *(shown if escalation.asks != "thought" else ()))
        return state.to(replace(phase, notes=said))

    return stage
