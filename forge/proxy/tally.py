"""Tally: the counts of /metrics, of the requests that are over and of the model calls that they took."""

from forge.proxy.passage import Passage
from forge.telemetry.prometheus import Metrics


class Tally:
    """What was served since the proxy began. `series` observes the model calls (`forge.observation`)."""

    def __init__(self) -> None:
        self.series = Metrics()

    def count(self, passage: Passage) -> None:
        """Note a request that is over."""
        series, notes = self.series, passage.notes
        series.requests.labels(_known(passage.path), str(passage.status)).inc()
        if notes.outcome:
            series.outcomes.labels(notes.outcome).inc()
        again = notes.attempts - 1
        series.retries.inc(again)
        if again:
            series.repairs.labels("corrected").inc(again)
        if notes.rescued:
            series.repairs.labels("rescued").inc(len(notes.rescued))
        if notes.compacted:
            series.compactions.inc()

    def metrics(self, waiting: int, working: int) -> str:
        """The counts in the text format of Prometheus."""
        self.series.waiting.set(waiting)
        self.series.queue_depth.set(waiting)
        self.series.working.set(working)
        return self.series.text().decode()


_PATHS = frozenset({"/chat/completions", "/responses", "/messages", "/messages/count_tokens", "/models"})


def _known(path: str) -> str:
    """The path as a label: of those that clients make up there would be no end."""
    return path if path in _PATHS else "other"
