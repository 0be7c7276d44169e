"""Face: how a chat reaches the person: a terminal with everything, or plain lines."""

from collections.abc import Sequence
from typing import Protocol

from forge.cli.chat.screen import Printed, Screen


class Face(Protocol):
    """What a chat asks of the terminal. `steers`: the person can type while the agent works."""

    steers: bool

    async def line(self) -> str | None:
        """The next line that the person enters; None: there will be none."""

    def show(self, *printed: Printed) -> None:
        """Print for good."""

    def working(self, screen: Screen | None) -> None:
        """Show what is under way; None: nothing is."""

    def size(self) -> tuple[int, int]:
        """The width and the height in cells that a question has room for."""

    async def answer(self, lines: Sequence[str], prompt: str, begun: str = "") -> str | None:
        """What the person answers, once these lines were shown; None: nobody is there.

        `begun` is the answer as it stands, to be edited.
        """

    def propose(self, text: str) -> None:
        """Have the person begin their next line with this text."""
