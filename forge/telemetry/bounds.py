"""Bounds: a limited number of metric labels, as each is a series that must be stored."""

from stages.effect import Failed, InDoubt, NotRun, Paused, Refused, Succeeded, Unresolved


class Bounded:
    """Labels for names: the first `most` as they are, others as `other`: models and clients may invent names."""

    def __init__(self, most: int = 128) -> None:
        self._known: set[str] = set()
        self._most = most

    def __call__(self, name: str) -> str:
        """The label."""
        if name in self._known:
            return name
        if len(self._known) >= self._most or len(name) > 128:
            return "other"
        self._known.add(name)
        return name


_OUTCOMES: dict[type[object], str] = {
    Succeeded: "succeeded",
    Unresolved: "unresolved",
    Failed: "failed",
    NotRun: "not_run",
    Refused: "not_run",
    InDoubt: "in_doubt",
    Paused: "paused",
}


def tool_outcome(outcome: object) -> str:
    """A tool call's outcome in one word."""
    return _OUTCOMES.get(type(outcome), "cancelled")
