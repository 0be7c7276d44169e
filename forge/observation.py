"""Observation: notifies telemetry about runs, model calls, tool calls and requests.

Observers are global to the process and see every run. An exception of an observer is logged once per place and
otherwise ignored. Without observers, all of this does nothing.
"""

import logging
import traceback
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from msgspec import Struct

from stages.effect import Effect, Outcome
from stages.events import Stamped
from stages.message import ToolCall
from stages.tool import ToolSpec
from stages.wire.deltas import Retry, Sampling

if TYPE_CHECKING:
    from forge.connection import Endpoint
    from forge.journal.redaction import Redact

_log = logging.getLogger("forge.telemetry")

_T = TypeVar("_T")


# Operations. Each ends with an outcome, or with the exception that it raised.


class RunBegins(Struct, frozen=True, kw_only=True):
    """A run, or a segment of a durable one. Ends with a RunFinished, RunHalted or RunFailed; None if it will continue.

    `talks`: text is an answer, so it is an agent. `traceparent` is the caller's in another process, `follows` that of
    the previous segment (both in the W3C's format).
    """

    run: str
    name: str
    talks: bool = False
    message: str = ""
    traceparent: str = ""
    follows: str = ""
    segment: int = 0


class ModelAsked(Struct, frozen=True, kw_only=True):
    """A model call; ends with a Replied or an Undelivered.

    `endpoint` is None for a model without a server.
    """

    model: str
    endpoint: "Endpoint | None" = None
    sampling: Sampling = Sampling()
    effect: Effect | None = None
    target: str = "main"
    streamed: bool = False
    writer: "Writer | None" = None


class ToolCalled(Struct, frozen=True, kw_only=True):
    """A tool call; ends with a CallResult."""

    call: ToolCall
    spec: ToolSpec
    writer: "Writer | None" = None


class Requested(Struct, frozen=True, kw_only=True):
    """A request to one of forge's own servers; ends with an Answered. Header names are in lower case."""

    method: str
    route: str
    headers: Mapping[bytes, bytes]


class Answered(Struct, frozen=True, kw_only=True):
    """The answer of the proxy or `forge serve` to a request; only the proxy sets more than the status."""

    status: int
    outcome: str = ""
    attempts: int = 1
    compacted: str = ""
    rescued: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class RunEnqueued(Struct, frozen=True, kw_only=True):
    """A durable run was queued for any free worker."""

    run: str
    name: str


class McpCalled(Struct, frozen=True, kw_only=True):
    """A call of an MCP server's tool, within the call of forge's tool."""

    tool: str
    protocol: str
    transport: str


Beginning = RunBegins | ModelAsked | ToolCalled | Requested | RunEnqueued | McpCalled

Write = Callable[[Struct, Effect | Outcome | None], bytes]
"""Encodes a part of a run as JSON, redacted as in a journal (`forge.journal.redaction.Redactor.written`)."""

Writer = Callable[["Redact | None"], Write]
"""Makes the encoder for one run, which redacts by the run's own rules and the given ones."""


class Ending(Protocol):
    """An operation in progress, as seen by one observer."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers to send with a request for this operation, such as `traceparent`."""
        ...

    def first(self) -> None:
        """The first part of a stream has arrived."""
        ...

    def end(self, outcome: object) -> None:
        """The operation has ended with that outcome or exception."""
        ...


class Observer(Protocol):
    """An observer of this process. Its methods must return at once, because runs wait for them."""

    def begin(self, what: Beginning) -> Ending | None:
        """An operation begins; returns None to ignore it."""
        ...

    def tell(self, what: Stamped | Retry) -> None:
        """Something has happened in the current run."""
        ...

    def headers(self) -> Mapping[str, str]:
        """Headers to send with a request from the current context, such as `traceparent`."""
        ...


_observers: tuple[Observer, ...] = ()

_NONE: Mapping[str, str] = {}

_reported: set[tuple[str, int]] = set()
"""Places where observers have failed, by file and line."""


def observe_with(observer: Observer) -> Callable[[], None]:
    """Add an observer; the returned function removes it."""
    global _observers  # noqa: PLW0603 - the process's own, like a logger
    _observers = (*_observers, observer)

    def undo() -> None:
        global _observers  # noqa: PLW0603
        _observers = tuple(one for one in _observers if one is not observer)

    return undo


def observing() -> bool:
    """Whether there are any observers."""
    return bool(_observers)


class Observed:
    """An operation, as a `with` block that sets `outcome`."""

    def __init__(self, what: Beginning) -> None:
        self._what = what
        self._endings: tuple[Ending, ...] = ()
        self.outcome: object = None

    def __enter__(self) -> Self:
        """Begin the operation."""
        if _observers:
            begun = (_safely(lambda one=one: one.begin(self._what), None) for one in _observers)  # type: ignore[misc]
            self._endings = tuple(filter(None, begun))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the operation."""
        outcome = self.outcome if error is None else error
        for ending in reversed(self._endings):
            _safely(lambda: ending.end(outcome), None)  # noqa: B023 - called here

    def first(self) -> None:
        """The first part of a stream has arrived."""
        for ending in self._endings:
            _safely(ending.first, None)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers to send with a request for this operation."""
        return tuple(pair for one in self._endings for pair in _safely(lambda: one.headers, _NONE).items())  # noqa: B023


def tell(what: Stamped | Retry) -> None:
    """Notify every observer."""
    for observer in _observers:
        _safely(lambda: observer.tell(what), None)  # noqa: B023 - called here


def outgoing() -> dict[str, str]:
    """Headers to send with a request from the current context."""
    return {name: text for one in _observers for name, text in _safely(one.headers, _NONE).items()}


def _safely(act: Callable[[], _T], otherwise: _T) -> _T:
    try:
        return act()
    except Exception as error:  # noqa: BLE001
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        place = frame.f_code.co_filename, line
        if place not in _reported:
            _reported.add(place)
            _log.exception("telemetry failed, and the work goes on without it; this is reported once")
        return otherwise
