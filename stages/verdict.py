"""Verdict: what a guard returns for a batch of calls."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from stages.halt import Halt
from stages.message import ToolCall
from stages.objection import Objection
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
    if getattr(given, "__annotations__", {}).get("return") not in (Guard, "Guard"):
        return None
    name = getattr(given, "__name__", type(given).__name__)
    return f"{name} makes a guard; call it, as in {name}(…)"


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
    return None
