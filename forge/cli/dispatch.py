"""One command, run to its exit code."""

import os
import sys

from forge.cli.commands import parse
from forge.cli.console import Console, bear_any_text, readable
from forge.cli.signals import SIGPIPE, Interrupted, handling, raise_interrupted
from forge.errors import ForgeError


def run_command(arguments: list[str] | None = None) -> int:
    """Run one command and give its exit code. Mistakes are told in a sentence on standard error."""
    bear_any_text()
    try:
        with handling(raise_interrupted):
            options = parse(arguments)
            code: int = options.command(options)
            sys.stdout.flush()
    except ForgeError as error:
        told = readable(f"forge: {error}")
        Console(stderr=True).print(told, style="red", markup=False, highlight=False, soft_wrap=True)
        return 2
    except Interrupted as interrupted:
        return interrupted.code
    except BrokenPipeError:
        # Whoever read what is printed, `head` say, has seen enough; Python would complain when it flushes the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + SIGPIPE
    return code
