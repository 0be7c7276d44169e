"""When to try a request again: a pure policy over transport faults (D24)."""

from collections.abc import Callable

from msgspec import Struct

from stages.effect import Fault

RetryPolicy = Callable[[int, Fault], float | None]
"""From the attempt that failed (1, 2 …) and its fault to the seconds to wait, None to give up."""

TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that may be different next time."""

RETRY_AFTER_LIMIT = 60.0
"""Seconds; a server that asks for more is not waited for."""


class Backoff(Struct, frozen=True, kw_only=True):
    """Wait `first` seconds, then twice as long each time up to `longest`; a server's Retry-After goes before."""

    attempts: int = 4
    first: float = 0.5
    longest: float = 8.0

    def __call__(self, attempt: int, fault: Fault) -> float | None:
        if attempt >= self.attempts or not _may_pass(fault):
            return None
        if fault.retry_after is not None:
            return fault.retry_after if fault.retry_after <= RETRY_AFTER_LIMIT else None
        return min(self.first * 2.0 ** (attempt - 1), self.longest)


def _may_pass(fault: Fault) -> bool:
    match fault.kind:
        case "status":
            # llama.cpp answers 500 for good to a history that its template cannot render; trying twice is enough.
            return fault.status in TRANSIENT
        case "unreachable" | "interrupted":
            return True
        case "timeout" | "malformed" | "too_large":
            return False
