"""Collapse: a history without attempts that a later success made irrelevant."""

from itertools import chain

from stages.compaction.history import exchanges, is_protected
from stages.message import Assistant, History, Kind, Tool, is_nudge


def collapsed(history: History, *, over: bool = False) -> History:
    """The history without attempts that a later success made irrelevant; pinned messages stay.

    Calls that never ran, and their corrections, are dropped after any success, and once the run is over; a call that
    raised is dropped once the same tool has succeeded. Final answers (no such data, a final failure, a person's
    rejection) stay.
    """
    kept: list[History] = []
    worked: set[str] = set()
    for start, end in reversed(exchanges(history)):
        part = history[start:end]
        if any(map(is_protected, part)) or not ((over or worked) and _failed(part, worked)):
            kept.append(part)
        results = (m for m in part if isinstance(m, Tool) and m.kind is Kind.TOOL_RESULT)
        worked.update(result.name for result in results if result.status == "succeeded")
    return tuple(chain.from_iterable(reversed(kept)))


def _failed(part: History, worked: set[str]) -> bool:
    """Whether the exchange brought only corrections, or errors of tools that succeeded later."""
    answers = [m for m in part if not isinstance(m, Assistant)]
    return bool(answers) and all(
        is_nudge(m) or (isinstance(m, Tool) and m.status == "failed" and m.name in worked) for m in answers
    )
