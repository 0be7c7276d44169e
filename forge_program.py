"""The program `forge`, in a file of its own: Ctrl-C while forge is being imported ends it without a traceback."""

import os
import signal
from types import FrameType


def _end(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)  # nothing has begun yet that would have to be put in order


def end_quietly() -> None:
    """Have Ctrl-C and SIGTERM end the program at once, for as long as nothing has begun."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def main() -> int:
    """Run `forge` by the words of the command line, and give its exit code."""
    end_quietly()
    from forge.cli import main as command  # noqa: PLC0415 - what takes its time

    return command()
