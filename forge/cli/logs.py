"""Logging and telemetry of a command: a log on standard error, and OpenTelemetry."""

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


def add_telemetry(parser: argparse.ArgumentParser) -> None:
    """Options for logging and telemetry, which `told` reads."""
    add = parser.add_argument_group("logging and telemetry").add_argument
    add(
        "--otel",
        action="store_true",
        help="export spans and metrics with OpenTelemetry, as configured or by OTLP over HTTP (docs/telemetry.md)",
    )
    add(
        "--log-format",
        choices=("text", "json"),
        help="log each turn and request on standard error, names and sizes only; json: one JSON object per line",
    )


@contextmanager
def told(options: argparse.Namespace) -> Iterator[None]:
    """Set up logging and telemetry from the command line's options for the duration of the block."""
    with ExitStack() as stack:
        if getattr(options, "log_format", None):
            stack.enter_context(_logged(options.log_format))
        if getattr(options, "otel", False):
            from forge.telemetry.exporting import exporting  # noqa: PLC0415 - most commands are not asked for it

            stack.enter_context(exporting())
        yield


@contextmanager
def _logged(how: str) -> Iterator[None]:
    from forge.runtime.log import JsonFormatter, escaped  # noqa: PLC0415

    log, handler = logging.getLogger("forge"), logging.StreamHandler(sys.stderr)
    handler.addFilter(escaped)
    handler.setFormatter(JsonFormatter() if how == "json" else logging.Formatter("%(asctime)s %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
