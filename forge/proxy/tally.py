"""Tally: the counts of /metrics, of the requests that are over."""

from collections import Counter

from forge.proxy.passage import Passage


class Tally:
    """What was served since the proxy began."""

    def __init__(self) -> None:
        self._statuses: Counter[tuple[str, int]] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._retries = 0

    def count(self, passage: Passage) -> None:
        """Note a request that is over."""
        self._statuses[_known(passage.path), passage.status] += 1
        if passage.notes.outcome:
            self._outcomes[passage.notes.outcome] += 1
        self._retries += passage.notes.attempts - 1

    def metrics(self, waiting: int, working: int) -> str:
        """The counts in the text format of Prometheus."""
        lines = ["# TYPE forge_requests_total counter"]
        lines += [
            f'forge_requests_total{{path="{path}",status="{status}"}} {number}'
            for (path, status), number in sorted(self._statuses.items())
        ]
        lines += ["# TYPE forge_outcomes_total counter"]
        lines += [f'forge_outcomes_total{{outcome="{name}"}} {n}' for name, n in sorted(self._outcomes.items())]
        lines += ["# TYPE forge_retries_total counter", f"forge_retries_total {self._retries}"]
        lines += ["# TYPE forge_requests_waiting gauge", f"forge_requests_waiting {waiting}"]
        lines += ["# TYPE forge_requests_working gauge", f"forge_requests_working {working}"]
        return "\n".join((*lines, ""))


_PATHS = frozenset({"/chat/completions", "/responses", "/messages", "/messages/count_tokens", "/models"})


def _known(path: str) -> str:
    """The path as a label: of those that clients make up there would be no end."""
    return path if path in _PATHS else "other"
