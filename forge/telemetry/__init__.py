"""Telemetry: what happens in runs, for the tools that people have: OpenTelemetry and Prometheus.

Around an interpreter and from the events of a run: no stage knows of it. Nothing of either library is imported before
it is switched on.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from forge.errors import ForgeError, to_install
from forge.observation import observe_with

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from forge.journal.redaction import Redact

__all__ = ("instrument",)

_on = False


def instrument(
    *,
    tracer_provider: "TracerProvider | None" = None,
    meter_provider: "MeterProvider | None" = None,
    content: bool | None = None,
    redact: "Redact | None" = None,
) -> Callable[[], None]:
    """Make spans and metrics of OpenTelemetry of every run in this process, until what is returned is called.

    They go to these providers, by default to those that the program has set up, before or after. `content`: what is
    said to models and tools, and by them, is on the spans too; None: if the environment variable
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for it. Of that, what a run's own `redact` hides and what
    this `redact` hides is left out. ForgeError where OpenTelemetry is not installed, or is switched on already.
    """
    global _on  # noqa: PLW0603 - the process's own
    if find_spec("opentelemetry") is None:
        raise ForgeError(f"OpenTelemetry is not installed here; {to_install('otel')}")
    if _on:
        raise ForgeError("telemetry is switched on already; call what instrument() returned before you call it again")
    if redact is not None:
        redact.refuse_wrong_patterns()
    from importlib.metadata import version  # noqa: PLC0415 - slow to import, as what follows

    from forge.telemetry.tracing import Tracing, wants_content  # noqa: PLC0415

    shown = wants_content() if content is None else content
    tracing = Tracing(tracer_provider, meter_provider, version("forge-toolcalls"), content=shown, redact=redact)
    remove = observe_with(tracing)
    _on = True

    def undo() -> None:
        global _on  # noqa: PLW0603
        remove()
        _on = False

    return undo
