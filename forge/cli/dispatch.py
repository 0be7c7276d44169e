"""Runs one command and returns its exit code."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pkgutil import resolve_name
from typing import TextIO

from forge.cli.commands import parse
from forge.cli.console import Console, bear_any_text, readable
from forge.cli.signals import SIGPIPE, Interrupted, handling, raise_interrupted
from forge.errors import ForgeError
from stages.options import OptionError


def run_command(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code. Errors are one sentence on standard error."""
    bear_any_text()
    try:
        with ExitStack() as stack:
            stack.enter_context(handling(raise_interrupted))
            options = parse(arguments)
            if getattr(options, "log_format", None):
                stack.enter_context(_logged(options.log_format))
            if getattr(options, "otel", False):
                from forge.telemetry.exporting import exporting  # noqa: PLC0415 - most commands are not asked for it

                stack.enter_context(exporting())
            code: int = resolve_name(options.command)(options)
            sys.stdout.flush()
    except (ForgeError, OptionError) as error:
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


@contextmanager
def _logged(how: str) -> Iterator[None]:
    from forge.runtime.log import JsonFormatter, escape_record  # noqa: PLC0415

    log, handler = logging.getLogger("forge"), logging.StreamHandler(sys.stderr)
    handler.addFilter(escape_record)
    handler.setFormatter(JsonFormatter() if how == "json" else logging.Formatter("%(asctime)s %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
