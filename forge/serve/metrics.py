"""Metrics of the server, in the text format of Prometheus: the one place that says which there are."""

from collections import Counter


class Metrics:
    """Counts since the server began. No label is of a run or a caller."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self.streams = 0

    def count(self, operation: str, status: int) -> None:
        """A request that is over."""
        self._requests[operation, status] += 1

    def text(self) -> bytes:
        """All of them."""
        lines = ["# TYPE forge_requests_total counter"]
        lines += [
            f'forge_requests_total{{operation="{operation}",status="{status}"}} {number}'
            for (operation, status), number in sorted(self._requests.items())
        ]
        lines += ["# TYPE forge_streams gauge", f"forge_streams {self.streams}"]
        return "\n".join((*lines, "")).encode()
