"""Verdict: what a guard says of a batch of calls."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from stages.halt import Halt
from stages.message import Kind, ToolCall
from stages.state import State

Counter = Literal["premature", "prerequisite_violations", "retries", "tool_errors", "repetitions", "refusals"]
"""The fields of the ledger in which a `Block` may count. `repetitions` and `refusals` have no maximum."""


class Allow(Struct, frozen=True, tag="allow"):
    """Nothing against these calls."""


class Correction(Struct, frozen=True, kw_only=True):
    """What is said in answer to one call of a blocked batch. `beside`: there is nothing against this call by itself."""

    call_id: str
    text: str
    beside: bool = False


class Block(Struct, frozen=True, kw_only=True, tag="block"):
    """Run none of the calls; answer each with its own text and count one more mistake in `counter`."""

    kind: Kind
    counter: Counter
    corrections: tuple[Correction, ...]


class Stop(Struct, frozen=True, kw_only=True, tag="stop"):
    """End the run."""

    halt: Halt


Verdict = Allow | Block | Stop

Guard = Callable[[State, tuple[ToolCall, ...]], Verdict]
"""A guardrail: a pure function of the state before the batch and of the batch."""


def not_a_guard(given: Callable[..., object]) -> str | None:
    """Why a function is no guard, as a sentence: one that makes guards is often given where it should be called."""
    if getattr(given, "__annotations__", {}).get("return") not in (Guard, "Guard"):
        return None
    name = getattr(given, "__name__", type(given).__name__)
    return f"{name} makes a guard; call it, as in {name}(…)"
