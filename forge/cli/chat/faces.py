"""Face: the connection of a chat to the person; and one with plain lines, for pipes and dumb terminals."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from forge.cli.chat.screen import Printed, Spelled
from forge.cli.console import LABEL_WIDTH, LabelledText
from forge.cli.status import Screen
from forge.interpreters.threads import in_thread, unheard

if TYPE_CHECKING:
    from forge.cli.chat.terminal_face import TerminalFace

Face: TypeAlias = "PlainFace | TerminalFace"
"""What a chat shows to the person, and where they type. `steers`: they can type while the agent works."""

# Plain lines, for pipes, dumb terminals, and people who want them; one row per event.

_AT_ONCE = 65_536
"""Maximum bytes to read at a time."""


class PlainFace:
    """Reads lines from standard input and prints rows to standard output."""

    steers = False

    def __init__(self) -> None:
        self._person = sys.stdin.isatty()
        self._read = b""

    async def line(self) -> str | None:
        """The next line of input; a person gets a prompt, other input is echoed."""
        typed = await self._typed("> " if self._person else "")
        if typed is not None and not self._person:
            self.show(LabelledText("you", typed))
        return typed

    def show(self, *printed: Printed) -> None:
        """Print rows."""
        for one in printed:
            match one:
                case LabelledText():
                    row = one
                case Spelled(markdown=text, suggestions=suggestions):
                    row = LabelledText("answer", "\n".join((text.strip(), *(f"- {each}" for each in suggestions))))
            print("\n".join(row.plain()))
        sys.stdout.flush()

    def working(self, screen: Screen | None) -> None:
        """Do nothing: results are shown when they are complete."""

    def size(self) -> tuple[int, int]:
        """The size of the terminal, without margins."""
        size = shutil.get_terminal_size()
        return max(30, size.columns - LABEL_WIDTH - 3), max(5, size.lines - 4)

    async def answer(self, lines: Sequence[str], prompt: str, begun: str = "") -> str | None:
        """What the person types; None if nobody is there. `begun` is an answer to edit."""
        self.show(LabelledText("asks", "\n".join(filter(None, (*lines, begun, prompt)))))
        return await self._typed("? ")

    def propose(self, text: str) -> None:
        """Do nothing: a plain line cannot be prefilled."""

    async def _typed(self, prompt: str) -> str | None:
        """The next line, including an unterminated last one."""
        print(prompt, end="", flush=True)
        while b"\n" not in self._read:
            # Not `input`: the program could not exit while another thread is in it.
            more = await in_thread(lambda: os.read(sys.stdin.fileno(), _AT_ONCE), unheard)
            if not isinstance(more, bytes) or not more:
                break
            self._read += more
        if not self._read:
            return None
        line, _, self._read = self._read.partition(b"\n")
        return line.decode(sys.stdin.encoding, errors="replace").removesuffix("\r")
