"""What follows where a model is not sure of its calls: think, vote, ask a larger model or a person, or stop."""

from collections import Counter
from collections.abc import Mapping
from typing import assert_never

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.confidence.measure import CONSTRAINTS, AskLarger, AskPerson, StopRun, ThinkFirst, Vote, WhenUnsure
from stages.effect import Choice, NeedsInput, Reply
from stages.halt import Halt, Unsure
from stages.message import Assistant, Kind, User
from stages.nudges import call_after_thinking, think_before_calling
from stages.pipeline import Stage, on
from stages.reasoning import split_reasoning
from stages.repair.decoding import decode
from stages.schema.canonical_json import canonical
from stages.state import MAIN, Decision, Done, Folded, Prepared, Ready, State, Vetted

# The question to a person about calls that the model is not sure of.

_SUGGESTED = 8


def question_about(phase: Vetted) -> NeedsInput:
    """The question which of the offered tools or values is meant, by the least sure choice, the chosen one first.

    Where nothing is known of the choices: whether the calls are meant.
    """
    choices = [(call.tool, choice) for call in phase.choices if call for choice in call.choices]
    if not choices:
        calls = ", ".join(f"{call.name} {call.arguments}" for call in phase.calls)
        return NeedsInput(question=f"Is this what is meant: {calls}?", suggestions=("yes", "no"))
    tool, choice = min(choices, key=lambda one: one[1].probability)
    suggestions = _offered(choice)
    what = f"Which {choice.argument} is meant for {tool}" if choice.argument else "What is meant"
    return NeedsInput(question=f"{what}: {' or '.join(suggestions)}?", suggestions=suggestions)


def _offered(choice: Choice) -> tuple[str, ...]:
    others = [text for text in choice.offered if text != choice.chosen]
    return tuple(map(_plain, (choice.chosen, *others)[:_SUGGESTED]))


def _plain(text: str) -> str:
    value: object = msgspec.json.decode(text)
    return value if isinstance(value, str) else text


# The request for a decision that is taken again: the same as before, but for what its step changes of it.

_Fields = dict[str, Raw]
_fields: msgspec.json.Decoder[_Fields] = msgspec.json.Decoder(dict[str, Raw])


def ask_again(when: WhenUnsure, names: Mapping[str, str]) -> Stage:
    """Change the request of a Prepared state as the step of its open decision says. `names` are the backend's options.

    A thought is asked for without a schema, without probabilities, and in fewer tokens. A vote has a temperature of its
    own, and a seed of its own where there is one: with the same one, all votes would be the first again.
    """

    @on(Prepared)
    def stage(state: State, phase: Prepared) -> State | Halt:
        decision = state.open_decision
        if decision is None or phase.summary:
            return state
        head, tail = decode(_fields, bytes(phase.request.head)), decode(_fields, bytes(phase.request.tail))
        match when.steps[decision.step]:
            case ThinkFirst(tokens=tokens) if decision.asks == "thought":
                head, tail = _shorter(head, names.get("max_tokens", "max_tokens"), tokens), _without_schema(tail)
            case Vote(temperature=temperature):
                head = _varied(head, decision, names, temperature)
            case _:
                return state
        request = replace(phase.request, head=_written(head), tail=_written(tail))
        return state.to(replace(phase, request=request))

    return stage


def _shorter(head: _Fields, name: str, tokens: int) -> _Fields:
    known = msgspec.json.decode(head.get(name, b"null"), type=int | None)
    fewer = {name: _raw(tokens if known is None else min(known, tokens))}
    return {field: value for field, value in head.items() if field not in ("logprobs", "top_logprobs")} | fewer


def _without_schema(tail: _Fields) -> _Fields:
    return {field: value for field, value in tail.items() if field not in (*CONSTRAINTS, "tool_choice")}


def _varied(head: _Fields, decision: Decision, names: Mapping[str, str], temperature: float) -> _Fields:
    warmth, seed = names.get("temperature", "temperature"), names.get("seed", "seed")
    varied = {**head, **({warmth: _raw(temperature)} if warmth else {})}
    if seed in head:
        varied[seed] = _raw(msgspec.json.decode(head[seed], type=int) + len(decision.votes))
    return varied


def _raw(value: float) -> Raw:
    return Raw(msgspec.json.encode(value))


def _written(fields: _Fields) -> Raw:
    return Raw(msgspec.json.encode(fields))


LARGER = "larger"
"""The target of a request that the larger model of the run's backend is asked."""

# Settling: calls that the model is sure of go on; the others are decided again, by a person, or not at all.
#
# All of it are transitions of the run's own loop: what is asked again is asked by the next turn, with the same
# history, and every model call is paid for out of the run's budget.

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
    return replace(
        state, ledger=spent, decision=decision, phase=Ready(target=LARGER if decision.asks == "larger" else MAIN)
    )


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
