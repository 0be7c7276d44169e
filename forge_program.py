"""The program `forge`, in a file of its own: Ctrl-C while forge is being imported ends it without a traceback."""

import atexit
import os
import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _end(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)  # nothing has begun yet that would have to be put in order


def _ignore() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def end_quietly() -> None:
    """Have Ctrl-C and SIGTERM end the program at once, before anything has begun and after all has been done.

    In its very last moments Python gives up its handlers, and a signal would take the place of the exit code.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    atexit.register(_ignore)


def main() -> int:
    """Run `forge` by the words of the command line, and give its exit code."""
    end_quietly()
    from forge.cli import main as command  # noqa: PLC0415 - what takes its time

    return command()
