"""Bounds: labels of metrics, as few as there can be: each one is a series that somebody has to store."""

from stages.effect import Failed, InDoubt, NotRun, Paused, Refused, Succeeded, Unresolved


class Bounded:
    """Names as labels: the first ones as they are, all others as `other`, for a model or a client may make up any."""

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


def tool_outcome(outcome: object) -> str:
    """What became of a tool's call, as one word."""
    match outcome:
        case Succeeded():
            return "succeeded"
        case Unresolved():
            return "unresolved"
        case Failed():
            return "failed"
        case NotRun() | Refused():
            return "not_run"
        case InDoubt():
            return "in_doubt"
        case Paused():
            return "paused"
        case _:
            return "cancelled"
