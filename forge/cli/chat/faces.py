"""Face: how a chat reaches the person; and one in plain lines, for pipes, dumb terminals, and who wants them."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Protocol

from forge.cli.chat.screen import Printed, Screen, Spelled
from forge.cli.layout import LabelledText
from forge.interpreters.threads import in_thread, unheard

# Face: how a chat reaches the person: a terminal with everything, or plain lines.


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


# A chat in plain lines: for pipes, dumb terminals, and people who want them; one row for each event.

_COLUMN = 9
_AT_ONCE = 65_536
"""Maximum bytes read at a time."""


class PlainFace:
    """Lines from standard input, rows on standard output."""

    steers = False

    def __init__(self) -> None:
        self._person = sys.stdin.isatty()
        self._read = b""

    async def line(self) -> str | None:
        """The next line of the input; a person is shown a prompt, of anything else the line is shown."""
        typed = await self._typed("> " if self._person else "")
        if typed is not None and not self._person:
            self.show(LabelledText("you", typed))
        return typed

    def show(self, *printed: Printed) -> None:
        """Print rows; the further lines of a text are indented like its first."""
        for one in printed:
            match one:
                case Spelled(markdown=text, suggestions=suggestions):
                    label = "answer"
                    lines = [*text.strip().splitlines(), *(f"- {answer}" for answer in suggestions)]
                case LabelledText(label=label, text=text):
                    lines = text.splitlines()
            for number, line in enumerate(lines or [""]):
                print(f"{'' if number else label:>{_COLUMN}}  {line}".rstrip())
        sys.stdout.flush()

    def working(self, screen: Screen | None) -> None:
        """Nothing: what is under way is told once it is done."""

    def size(self) -> tuple[int, int]:
        """As the terminal says."""
        size = shutil.get_terminal_size()
        return max(30, size.columns - _COLUMN - 3), max(5, size.lines - 4)

    async def answer(self, lines: Sequence[str], prompt: str, begun: str = "") -> str | None:
        """What the person types."""
        self.show(LabelledText("asks", "\n".join(filter(None, (*lines, begun, prompt)))))
        return await self._typed("? ")

    def propose(self, text: str) -> None:
        """Nothing: a plain line cannot be begun."""

    async def _typed(self, prompt: str) -> str | None:
        """The next line; what stands after the last end of a line is one too."""
        print(prompt, end="", flush=True)
        while b"\n" not in self._read:
            # Not `input`: a program cannot end while another thread is within that.
            more = await in_thread(lambda: os.read(sys.stdin.fileno(), _AT_ONCE), unheard)
            if not isinstance(more, bytes) or not more:
                break
            self._read += more
        if not self._read:
            return None
        line, _, self._read = self._read.partition(b"\n")
        return line.decode(sys.stdin.encoding, errors="replace").removesuffix("\r")
