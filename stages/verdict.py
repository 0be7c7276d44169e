"""Verdict: what a guard returns for a batch of calls."""

from collections.abc import Callable, Sequence
from typing import get_args

from msgspec import Struct

from stages.halt import Halt
from stages.ledger import Counter
from stages.message import NUDGES, ToolCall
from stages.objection import Custom, Objection, Wrong
from stages.options.functions import unfit_function
from stages.state import State


class Stop(Struct, frozen=True, kw_only=True, tag="stop"):
    """End the run."""

    halt: Halt


Verdict = Sequence[Objection] | Stop
"""What is wrong with calls of the batch, nothing where they may run; or the end of the run."""

Guard = Callable[[State, tuple[ToolCall, ...]], Verdict]
"""A guardrail: a pure function of the state before the batch and of the batch."""


def not_a_guard(given: Callable[..., object]) -> str | None:
    """Why a function is no guard, as a sentence: one that makes guards is often given where it should be called."""
    if getattr(given, "__annotations__", {}).get("return") in (Guard, "Guard"):
        name = getattr(given, "__name__", type(given).__name__)
        return f"{name} makes a guard; call it, as in {name}(…)"
    return unfit_function(given, "state", "calls")


def not_a_verdict(given: object, calls: Sequence[ToolCall]) -> str | None:
    """Why that is no verdict on these calls, as a sentence."""
    if isinstance(given, Stop):
        return None
    if not isinstance(given, list | tuple):
        return f"returned {given!r:.200}; it must return a list of Objections, empty where there is none, or Stop(…)"
    if not given:
        return None
    ids = {call.id for call in calls}
    for one in given:
        if not isinstance(one, Objection):
            return f"objected with {one!r:.200}; write Objection(call=call, wrong=Custom(text=…))"
        if one.call is None or one.call.id not in ids:
            return f"objected to {one.call!r:.200}, which is no call of the batch; take each from the calls given"
        if unknown := _unknown(one.wrong):
            return f"objected with {unknown}"
    return None


def _unknown(wrong: object) -> str:
    """What forge does not know of what an objection says is wrong, with what may stand there; empty: nothing."""
    if not isinstance(wrong, get_args(Wrong)):
        return f"wrong={wrong!r:.200}; write Objection(call=call, wrong=Custom(text=…))"
    if not isinstance(wrong, Custom):
        return ""
    counters, kinds = get_args(Counter), sorted(NUDGES)
    if wrong.counter not in counters:
        return f"Custom(counter={wrong.counter!r:.200}); the counters are: {', '.join(counters)}"
    if wrong.kind not in kinds:
        return f"Custom(kind={wrong.kind!r:.200}); the kinds are: {', '.join(kinds)}"
    given: object = wrong.text
    return "" if isinstance(given, str) else f"Custom(text={given!r:.200}); it must be a string"
