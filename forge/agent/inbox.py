"""Inbox: what the user says while an agent works."""

from collections import deque

from forge.errors import DefinitionError


class Inbox:
    """Messages that nobody has read yet, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._waiting)

    def put(self, message: str) -> None:
        """Add a message. DefinitionError for an empty one."""
        if not message.strip():
            raise DefinitionError(("the message is empty; say what the agent should do",))
        self._waiting.append(message)

    def take(self) -> tuple[str, ...]:
        """All of them, which are then read."""
        taken = tuple(self._waiting)
        self._waiting.clear()
        return taken
