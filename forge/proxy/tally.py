"""Tally: a line in the log for each request, and the counts of /metrics. Neither holds a credential."""

import logging
from collections import Counter

from forge.proxy.asgi import Asked, Outlet

log = logging.getLogger("forge.proxy")


class Tally:
    """What was served since the proxy began."""

    def __init__(self) -> None:
        self._statuses: Counter[tuple[str, int]] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._retries = 0

    def count(self, asked: Asked, out: Outlet, seconds: float) -> None:
        """Note a request that is over."""
        outcome, attempts = out.notes.get("outcome", ""), int(out.notes.get("attempts", "1"))
        self._statuses[_known(asked.path), out.status] += 1
        if outcome:
            self._outcomes[outcome] += 1
        self._retries += attempts - 1
        if log.isEnabledFor(logging.INFO):
            told = [outcome] if outcome else []
            told += [f"{attempts - 1} retried"] if attempts > 1 else []
            told += [f"{out.notes['compacted']} compacted"] if "compacted" in out.notes else []
            said = f" ({', '.join(told)})" if told else ""
            path = asked.path[:200].encode("unicode_escape").decode()
            log.info("%s %s %d %.0f ms%s", asked.method[:20], path, out.status, seconds * 1000, said)

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
