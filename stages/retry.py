"""Retries of model calls, fallback to another model, and hops between agents."""

import re
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import assert_never

from msgspec import Struct

from stages._later import LazyPattern
from stages.effect import Fault
from stages.halt import (
    ApprovalNeeded,
    BackendFailed,
    BadReplies,
    BudgetSpent,
    Cancelled,
    CannotFit,
    DeadEnd,
    Halt,
    JournalFailed,
    OutcomeUnknown,
    PrerequisitesSkipped,
    StepsSkipped,
    Stopped,
    ToolsFailing,
    Unsure,
)

# When to try a request again: a pure policy over transport faults.


class Tries(Struct, frozen=True, kw_only=True):
    """The attempts at a request so far: the fault of each, in order. There is at least one.

    `waited` is the seconds spent between attempts. `chance` is a random number from 0 to 1, drawn by the shell so
    that the policy stays a pure function.
    """

    faults: tuple[Fault, ...]
    waited: float = 0.0
    chance: float = 0.0


RetryPolicy = Callable[[Tries], float | None]
"""A function of the attempts so far that returns the seconds to wait before the next one; None: give up."""

_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that may change on a retry."""

_LOADING = LazyPattern(r"loading model", re.IGNORECASE)
_NUMBERED = LazyPattern(r'"code"\s{0,9}:\s{0,9}500\b')


class Backoff(Struct, frozen=True, kw_only=True):
    """Exponential backoff: wait `first` seconds, then twice as long each time up to `longest`, half of it at random.

    A server's own Retry-After takes precedence, up to `patience` seconds; if it asks for more, the policy gives up at
    once. If the server says whether to retry, it is believed.

    It gives up after `attempts` attempts or `total` seconds of waiting. A llama.cpp that is still loading its model is
    asked again without counting an attempt, for `loading` more seconds.
    """

    # The waits of the OpenAI and Anthropic client libraries: 0.5 s doubled up to 8 s with jitter, a server's own time
    # up to 60 s. `loading`: large models take minutes to load from a slow disk.
    attempts: int = 4
    first: float = 0.5
    longest: float = 8.0
    patience: float = 60.0
    total: float = 120.0
    loading: float = 300.0

    def __call__(self, tries: Tries) -> float | None:
        fault = tries.faults[-1]
        loads = sum(map(_is_loading, tries.faults))
        failed = len(tries.faults) - loads
        if not _is_loading(fault) and failed >= min(self.attempts, _max_attempts(tries.faults)):
            return None
        if fault.retry_after is None:
            step = self.first * 2.0 ** min(loads if _is_loading(fault) else failed - 1, 30)
            wait = min(step, self.longest) * (0.5 + tries.chance / 2)
        elif fault.retry_after > self.patience:
            return None
        else:
            # Clients that were told the same time should not all come back at once, and none too early.
            wait = max(0.0, fault.retry_after) + self.first * tries.chance
        return wait if tries.waited + wait <= self.total + (self.loading if loads else 0.0) else None


def _is_loading(fault: Fault) -> bool:
    """Whether a llama.cpp server says that it is still loading its model."""
    return fault.status == 503 and _LOADING.compiled.search(fault.body) is not None


def _max_attempts(faults: tuple[Fault, ...]) -> float:
    """Maximum number of attempts for this kind of fault; infinite if only the policy's own maximum applies."""
    fault = faults[-1]
    match fault.kind:
        case "unreachable" | "interrupted":
            return float("inf")
        case "status" if fault.retriable is not None:
            return float("inf") if fault.retriable else 1
        case "status" | "reported" if fault.status is not None:
            if fault.status not in _TRANSIENT or _repeats(faults):
                return 1
            return float("inf")
        case "malformed" | "reported" | "status":
            # An unreadable answer may be a proxy's passing error page; twice in a row it is final.
            return 2
        case "timeout" | "too_large" | "tls" | "no_tools":
            return 1
        case _:
            assert_never(fault.kind)


def _repeats(faults: tuple[Fault, ...]) -> bool:
    """Whether a self-hosted server failed twice with the same text.

    llama.cpp keeps answering 500 to a history that its template cannot render, and so does vLLM once its engine is
    dead; both write the status into the body. Hosted services answer 500 with a fixed text to anything, and recover.
    """
    before, last = faults[-2:] if len(faults) > 1 else (None, faults[-1])
    return (
        before is not None
        and last == before
        and last.status == 500
        and _NUMBERED.compiled.search(last.body) is not None
    )


# Fallback: whether another model may continue a run that this one could not finish.

FallBackOn = Callable[[Halt], bool]
"""A pure function of the Halt of a run: whether the next model should continue it."""


def another_model_may_help(halt: Halt) -> bool:
    """Whether the server failed, the model's replies were refused to the end, or its context is too small.

    A spent budget, a person who is needed or has cancelled, and rules that leave nothing to do are the same for every
    model.
    """
    match halt:
        case BackendFailed() | BadReplies() | ToolsFailing() | StepsSkipped() | PrerequisitesSkipped() | CannotFit():
            return True
        case BudgetSpent() | DeadEnd() | OutcomeUnknown() | ApprovalNeeded() | Unsure() | Stopped():
            return False
        case JournalFailed() | Cancelled():
            return False
        case _:
            assert_never(halt)


# Hops: whether an agent may hand a message over to another one.

MAX_HOPS = 5
"""Maximum number of hand-offs for one message."""


def refused_hop(path: Sequence[str], to: str, agents: Collection[str], most: int = MAX_HOPS) -> str:
    """Why the last agent of the path must not hand over to `to`, as a sentence; empty: it may.

    `path` are the agents that had the message so far, in order. Each pair of agents hands a message over at most once,
    so it never goes back and forth for long.
    """
    last, hops = path[-1], len(path) - 1
    if to == last:
        return f"{last} handed over to itself"
    if to not in agents:
        return f"{last} handed over to {to}, which is not one of the agents: {', '.join(agents)}"
    if hops >= most:
        return f"the message was handed over {'once' if hops == 1 else f'{hops} times'}, the maximum"
    if (last, to) in pairwise(path):
        return f"{last} handed over to {to} for the second time"
    return ""
