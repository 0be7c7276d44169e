"""Observation: runs, model calls, tool calls and requests as they begin and end, for telemetry that is switched on.

Observers are the process's own: what is switched on once sees every run. One that raises is logged once for each place
where it does, and nothing else comes of it. Where none is switched on, all of this does nothing.
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


# What begins. Each ends with an outcome, or with the exception that it raised.


class RunBegins(Struct, frozen=True, kw_only=True):
    """A run, or a segment of a durable one. It ends with a RunFinished, RunHalted or RunFailed; None: it goes on later.

    `talks`: words are an answer, so it is an agent. `traceparent` is what asked for it in another process, `follows`
    the segment before it (both as the W3C writes them).
    """

    run: str
    name: str
    talks: bool = False
    message: str = ""
    traceparent: str = ""
    follows: str = ""
    segment: int = 0


class ModelAsked(Struct, frozen=True, kw_only=True):
    """A model call; it ends with a Replied or an Undelivered.

    `endpoint` is None for a model that is no server.
    """

    model: str
    endpoint: "Endpoint | None" = None
    sampling: Sampling = Sampling()
    effect: Effect | None = None
    target: str = "main"
    streamed: bool = False
    writer: "Writer | None" = None


class ToolCalled(Struct, frozen=True, kw_only=True):
    """A call of a tool; it ends with a CallResult."""

    call: ToolCall
    spec: ToolSpec
    writer: "Writer | None" = None


class Requested(Struct, frozen=True, kw_only=True):
    """A request to one of forge's own servers; it ends with an Answered. Header names are in lower case."""

    method: str
    route: str
    headers: Mapping[bytes, bytes]


class Answered(Struct, frozen=True, kw_only=True):
    """How a request to the proxy or `forge serve` was answered; the rest is the proxy's."""

    status: int
    outcome: str = ""
    attempts: int = 1
    compacted: str = ""
    rescued: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class RunEnqueued(Struct, frozen=True, kw_only=True):
    """A durable run, started for whichever process has room for it."""

    run: str
    name: str


class McpCalled(Struct, frozen=True, kw_only=True):
    """A call of an MCP server's tool, within the call of the tool that it is here."""

    tool: str
    protocol: str
    transport: str


Beginning = RunBegins | ModelAsked | ToolCalled | Requested | RunEnqueued | McpCalled

Write = Callable[[Struct, Effect | Outcome | None], bytes]
"""Writes a part of a run as JSON, redacted as in a journal (`forge.journal.redaction.Redactor.written`)."""

Writer = Callable[["Redact | None"], Write]
"""What writes the parts of one run: by the run's own `redact` and the given one."""


class Ending(Protocol):
    """An operation that has begun, as one observer follows it."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What goes with a request on its behalf, `traceparent` for one."""
        ...

    def first(self) -> None:
        """The first of a stream has come."""
        ...

    def end(self, outcome: object) -> None:
        """It is over, with that outcome or exception."""
        ...


class Observer(Protocol):
    """Told of what happens in this process. It must return at once: runs wait for it."""

    def begin(self, what: Beginning) -> Ending | None:
        """Something begins; None: of no interest."""
        ...

    def tell(self, what: Stamped | Retry) -> None:
        """Something has happened in the run that is under way here."""
        ...

    def headers(self) -> Mapping[str, str]:
        """What goes with a request that is sent from here, `traceparent` for one."""
        ...


_observers: tuple[Observer, ...] = ()

_NONE: Mapping[str, str] = {}

_reported: set[tuple[str, int]] = set()
"""Where observers have failed, by file and line."""


def observe_with(observer: Observer) -> Callable[[], None]:
    """Tell the observer of everything from now on; what is returned undoes it."""
    global _observers  # noqa: PLW0603 - the process's own, like a logger
    _observers = (*_observers, observer)

    def undo() -> None:
        global _observers  # noqa: PLW0603
        _observers = tuple(one for one in _observers if one is not observer)

    return undo


def observing() -> bool:
    """Whether anybody is told."""
    return bool(_observers)


class Observed:
    """An operation from its beginning to its end, as a `with` block. `outcome` is set in the block."""

    def __init__(self, what: Beginning) -> None:
        self._what = what
        self._endings: tuple[Ending, ...] = ()
        self.outcome: object = None

    def __enter__(self) -> Self:
        """It begins."""
        if _observers:
            begun = (_safely(lambda one=one: one.begin(self._what), None) for one in _observers)  # type: ignore[misc]
            self._endings = tuple(filter(None, begun))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """It ends."""
        outcome = self.outcome if error is None else error
        for ending in reversed(self._endings):
            _safely(lambda: ending.end(outcome), None)  # noqa: B023 - called here

    def first(self) -> None:
        """The first of a stream has come."""
        for ending in self._endings:
            _safely(ending.first, None)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """What goes with a request on its behalf."""
        return tuple(pair for one in self._endings for pair in _safely(lambda: one.headers, _NONE).items())  # noqa: B023


def tell(what: Stamped | Retry) -> None:
    """Tell every observer."""
    for observer in _observers:
        _safely(lambda: observer.tell(what), None)  # noqa: B023 - called here


def outgoing() -> dict[str, str]:
    """The headers that go with a request which is sent from here."""
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
