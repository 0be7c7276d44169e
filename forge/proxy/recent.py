"""Recent: the latest of many texts, for whatever is remembered by names that clients choose."""


class Recent:
    """The latest `most` distinct texts; older ones are forgotten."""

    def __init__(self, most: int) -> None:
        self._known: dict[str, None] = {}
        self._most = most

    def __contains__(self, text: str) -> bool:
        return text in self._known

    def add(self, text: str) -> bool:
        """Remember the text. Returns whether it was new."""
        if text in self._known:
            return False
        self._known[text] = None
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return True
