"""The request for a decision that is taken again: the same as before, but for what its step changes of it."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.confidence.decision import Decision
from stages.confidence.offers import CONSTRAINTS
from stages.confidence.unsure import ThinkFirst, Vote, WhenUnsure
from stages.halt import Halt
from stages.pipeline import Stage, on
from stages.repair.decoding import decode
from stages.state import Prepared, State

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
