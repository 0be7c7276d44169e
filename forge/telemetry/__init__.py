"""Telemetry: spans and metrics of runs, by OpenTelemetry and for Prometheus.

It observes interpreters and a run's events; the stages do not know of it. Neither library is imported until it is
enabled.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from forge._installation import VERSION
from forge.errors import ForgeError, to_install
from forge.observation import observe_with

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from forge.masking import Redact

__all__ = ("instrument",)

_on = False


def instrument(
    *,
    tracer_provider: "TracerProvider | None" = None,
    meter_provider: "MeterProvider | None" = None,
    content: bool | None = None,
    redact: "Redact | None" = None,
) -> Callable[[], None]:
    """Record OpenTelemetry spans and metrics of every run in this process. Call the returned function to stop.

    They go to these providers, or to the program's global ones, whenever those are set. `content`: also record
    messages, arguments and results on spans; None: if the environment variable
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says so. Content is redacted by the run's own `redact` and by
    this one. ForgeError if OpenTelemetry is not installed, or telemetry is already enabled.
    """
    global _on  # noqa: PLW0603 - the process's own
    if find_spec("opentelemetry") is None:
        raise ForgeError(f"OpenTelemetry is not installed; {to_install('otel')}")
    if _on:
        raise ForgeError("telemetry is already enabled; call the function that instrument() returned first")
    if redact is not None:
        redact.refuse_wrong_patterns()
    from forge.telemetry.tracing import Tracing, wants_content  # noqa: PLC0415 - slow to import

    shown = wants_content() if content is None else content
    tracing = Tracing(tracer_provider, meter_provider, VERSION, content=shown, redact=redact)
    remove = observe_with(tracing)
    _on = True

    def undo() -> None:
        global _on  # noqa: PLW0603
        remove()
        _on = False

    return undo
