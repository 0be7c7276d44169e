"""Observation: tells telemetry when runs, model calls, tool calls and requests begin and end.

Observers are global to the process: once added, they see every run. An exception in an observer is logged once for each
place that raises it, and has no other effect. Without observers, all of this does nothing.
"""

import logging
import traceback
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Literal, Protocol, Self, TypeVar

from msgspec import Struct

from forge.connection import Endpoint
from forge.masking import Redact
from stages.effect import Effect, Outcome, Usage
from stages.events import Stamped
from stages.message import ToolCall
from stages.tool import ToolSpec
from stages.wire.deltas import Retry
from stages.wire.sampling import Sampling

_log = logging.getLogger("forge.telemetry")

_T = TypeVar("_T")


# Operations. Each ends with an outcome, or with the exception that it raised.


class RunBegins(Struct, frozen=True, kw_only=True):
    """A run or a segment of one. It ends with a RunFinished, RunHalted or RunFailed, or continues later (None).

    `talks`: text is an answer, so it is an agent. `traceparent` is the span that started the run in another process,
    `follows` that of the previous segment (both in the W3C's format).
    """

    run: str
    name: str
    talks: bool = False
    traceparent: str = ""
    follows: str = ""
    segment: int = 0


class ModelAsked(Struct, frozen=True, kw_only=True):
    """A model call. It ends with a Replied or an Undelivered. `endpoint` is None unless the model is on a server."""

    model: str
    endpoint: Endpoint | None = None
    sampling: Sampling = Sampling()
    effect: Effect | None = None
    target: str = "main"
    streamed: bool = False
    writer: "Writer | None" = None


class ToolCalled(Struct, frozen=True, kw_only=True):
    """A tool call. It ends with a CallResult."""

    call: ToolCall
    spec: ToolSpec
    writer: "Writer | None" = None


class Requested(Struct, frozen=True, kw_only=True):
    """A request to the proxy or `forge serve`. It ends with a Responded. Header names are in lower case."""

    method: str
    route: str
    headers: Mapping[bytes, bytes]


RequestOutcome = Literal["", "passed", "clean", "repaired", "retried", "exhausted", "error", "disconnected", "aborted"]
"""The outcome of a request (docs/proxy.md); empty: the model was not called."""


class Notes(Struct):
    """Notes on a request to the proxy while it is served. `rescued` and `refused` name calls, never their arguments.

    `compacted` says how the history was cut, as in the header; `left_out` are the kinds of content that the backend was
    not sent. `too_long`: it exceeds the policy's `context_tokens`, and cannot be compacted to that. `problem` says why
    the client got an error.
    """

    outcome: RequestOutcome = ""
    attempts: int = 1
    model: str = ""
    usage: Usage | None = None
    compacted: str = ""
    too_long: bool = False
    left_out: tuple[str, ...] = ()
    rescued: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    problem: str = ""


class Responded(Struct, frozen=True, kw_only=True):
    """How a request to the proxy or `forge serve` was answered. Only the proxy has notes."""

    status: int
    notes: Notes | None = None


class RunEnqueued(Struct, frozen=True, kw_only=True):
    """A durable run was started; any worker may perform it."""

    run: str
    name: str


class McpCalled(Struct, frozen=True, kw_only=True):
    """A call of an MCP server's tool, within the tool call that it belongs to."""

    protocol: str
    transport: str


Beginning = RunBegins | ModelAsked | ToolCalled | Requested | RunEnqueued | McpCalled

Write = Callable[[Struct, Effect | Outcome | None], bytes]
"""Writes a part of a run as JSON, redacted as in a journal (`forge.journal.redaction.Redactor.written`)."""

Writer = Callable[[Redact | None], Write]
"""Makes a Write for one run, which redacts by the run's own `redact` and the given one."""


class OperationSpan(Protocol):
    """One observer's view of an operation in progress."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers for requests made on its behalf, such as `traceparent`."""
        ...

    def first(self) -> None:
        """The first chunk of a stream has arrived."""
        ...

    def end(self, outcome: object) -> None:
        """The operation has ended with that outcome or exception."""
        ...


class Observer(Protocol):
    """Observes this process. Its methods must return quickly: runs wait for them."""

    def begin(self, what: Beginning) -> OperationSpan | None:
        """An operation begins. None to ignore it."""
        ...

    def tell(self, what: Stamped | Retry) -> None:
        """An event of the current run."""
        ...

    def headers(self) -> Mapping[str, str]:
        """Headers for any request sent from the current context, such as `traceparent`."""
        ...


_observers: tuple[Observer, ...] = ()

_NONE: Mapping[str, str] = {}

_reported: set[tuple[str, int]] = set()
"""Places where observers and listeners have failed, by file and line."""

_TELEMETRY = "telemetry failed"


def observe_with(observer: Observer) -> Callable[[], None]:
    """Add the observer. Call the returned function to remove it."""
    global _observers  # noqa: PLW0603 - the process's own, like a logger
    _observers = (*_observers, observer)

    def undo() -> None:
        global _observers  # noqa: PLW0603
        _observers = tuple(one for one in _observers if one is not observer)

    return undo


def observing() -> bool:
    """Whether there are observers."""
    return bool(_observers)


class Observed:
    """A `with` block around an operation. Set `outcome` in the block."""

    def __init__(self, what: Beginning) -> None:
        self._what = what
        self._endings: tuple[OperationSpan, ...] = ()
        self.outcome: object = None

    def __enter__(self) -> Self:
        """Tell the observers that it begins."""
        if _observers:
            begun = (quietly(lambda one=one: one.begin(self._what), None, _TELEMETRY) for one in _observers)  # type: ignore[misc]
            self._endings = tuple(filter(None, begun))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell them that it has ended."""
        outcome = self.outcome if error is None else error
        for ending in reversed(self._endings):
            quietly(lambda: ending.end(outcome), None, _TELEMETRY)  # noqa: B023 - called here

    def first(self) -> None:
        """The first chunk of a stream has arrived."""
        for ending in self._endings:
            quietly(ending.first, None, _TELEMETRY)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers for requests made on its behalf."""
        return tuple(pair for one in self._endings for pair in quietly(lambda: one.headers, _NONE, _TELEMETRY).items())  # noqa: B023


def tell(what: Stamped | Retry) -> None:
    """Tell every observer."""
    for observer in _observers:
        quietly(lambda: observer.tell(what), None, _TELEMETRY)  # noqa: B023 - called here


def outgoing() -> dict[str, str]:
    """Headers for any request sent from the current context."""
    return {name: text for one in _observers for name, text in quietly(one.headers, _NONE, _TELEMETRY).items()}


def quietly(act: Callable[[], _T], otherwise: _T, told: str, log: logging.Logger = _log) -> _T:
    """What the act returns; `otherwise` if it raises. That is logged once for each place, with its traceback."""
    try:
        return act()
    except Exception as error:
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        place = frame.f_code.co_filename, line
        if place not in _reported:
            _reported.add(place)
            log.exception("%s, and the work goes on without it; this is reported once", told)
        return otherwise
