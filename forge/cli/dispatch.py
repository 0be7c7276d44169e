"""Runs one command and returns its exit code."""

import os
import sys
from typing import TextIO

from forge.cli.commands import parse
from forge.cli.console import Console, bear_any_text, readable
from forge.cli.logs import told
from forge.cli.signals import SIGPIPE, Interrupted, handling, raise_interrupted
from forge.errors import ForgeError


def run_command(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code. Errors are one sentence on standard error."""
    bear_any_text()
    try:
        with handling(raise_interrupted):
            options = parse(arguments)
            with told(options):
                code: int = options.command(options)
            sys.stdout.flush()
    except ForgeError as error:
        said = readable(f"forge: {error}")
        Console(stderr=True).say(said, "red")
        return 2
    except Interrupted as interrupted:
        return interrupted.code
    except BrokenPipeError:  # the reader of the output, such as `head`, has closed the pipe
        _discard(sys.stdout)
        return 128 + SIGPIPE
    try:
        sys.stderr.flush()
    except BrokenPipeError:  # nobody reads the progress of unattended work
        _discard(sys.stderr)
    return code


def _discard(stream: TextIO) -> None:
    """Send what is left in its buffer nowhere: Python would complain at exit, and return 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
