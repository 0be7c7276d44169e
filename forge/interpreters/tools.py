"""The interpreter of `Execute`: runs tools, renders their results, limits their time."""

import asyncio
import functools
import inspect
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from types import CoroutineType
from typing import Self, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace
from returns.result import Failure, Success

from forge.callbacks import Asker
from forge.errors import ForgeError, ToolFailed, ToolOutcomeUnknown, ToolResolutionError, quantity
from forge.interpreters.threads import Hear, in_thread, unheard
from forge.observation import Observed
from forge.outcome import Finished
from forge.tools.definition import (
    Caller,
    Convert,
    IdempotencyKey,
    Returned,
    converter,
    parameters_of,
)
from stages import nudges
from stages.arithmetic import with_results
from stages.budget import share_of
from stages.decoding import nested, sound
from stages.effect import (
    Budget,
    CallResult,
    Execute,
    Failed,
    HandOff,
    NeedsInput,
    Paused,
    Results,
    Said,
    Spending,
    Succeeded,
    Unresolved,
)
from stages.events import ToolProgressed
from stages.execution import idempotency_key, unknown_result
from stages.message import ToolCall
from stages.tool import RESULT_LIMIT, ToolSpec

# Results and exceptions of tools as values, rendered safely and truncated.

_DEEPEST = 100
"""Maximum nesting of a result: less than the decoders' limit, because journals add levels around it."""


class _UnshownResultError(TypeError):
    """A tool ran, and returned a value that cannot be shown: neither text nor JSON, without a working `__str__`."""


def failed_result(call_id: str, error: Exception, limit: int = RESULT_LIMIT) -> Unresolved | Failed:
    """The result for a tool that raised: its message of at most `limit` characters, and whether it counts."""
    words = error_words(error, limit)
    match error:
        case ToolResolutionError():
            return Unresolved(call_id=call_id, message=words)
        case ToolFailed():
            return Failed(call_id=call_id, error="ToolFailed", message=words, counted=False)
        case _:
            return Failed(call_id=call_id, error=type(error).__name__, message=words)


def succeeded(call_id: str, value: object, limit: int = RESULT_LIMIT, *, tool: str = "the tool") -> Succeeded:
    """The result for a returned value: at most `limit` characters for the model, and the whole value as JSON.

    Raises _UnshownResultError for an object that would be shown as its name and address.
    """
    # The call's arguments are in the history, so what ended the run is not repeated.
    ends = value if isinstance(value, NeedsInput | HandOff | Said) else None
    try:
        encoded = _json(value)
    except _UnshownResultError as error:
        raise _UnshownResultError(f"{tool} ran, but {error}") from None
    except Exception as error:  # a value's __str__ is user code
        told = f"{type(error).__name__}: {error_words(error, limit)}"
        raise _UnshownResultError(f"{tool} ran, but its result cannot be shown ({told})") from error
    if ends is not None:
        return Succeeded(call_id=call_id, text=nudges.ended(ends), value=encoded, ends=ends)
    # ASCII text is its own result; other values are read back, because not everything may be valid JSON.
    text = value if type(value) is str and value.isascii() else _text(encoded)
    return Succeeded(call_id=call_id, text=_cut(text, limit), value=encoded, ends=ends)


def _progress_text(value: object, limit: int) -> str:
    """The value as text for observers, at most `limit` characters."""
    try:
        return _cut(_text(_json(value)), limit)
    # A value's __str__ is user code; its failure must not end the tool.
    except Exception:  # noqa: BLE001
        return f"(a {type(value).__name__} that cannot be shown)"


def error_words(error: BaseException, limit: int) -> str:
    """The exception's message, if it can be rendered."""
    try:
        return _cut(sound(str(error)), limit)
    # An exception's __str__ is user code, too.
    except Exception:  # noqa: BLE001
        return "(its message cannot be shown)"


def _text(value: Raw) -> str:
    """A string unchanged, any other value as JSON."""
    text = bytes(value).decode()
    return msgspec.json.decode(value, type=str) if text.startswith('"') else text


def _json(value: object) -> Raw:
    """The value as JSON; values that JSON cannot represent, or that are nested too deeply, become a string."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=_plain)
    except _UnshownResultError:
        raise
    except (TypeError, ValueError, RecursionError):
        return Raw(msgspec.json.encode(sound(str(value))))
    return Raw(msgspec.json.encode(sound(str(value))) if nested(encoded, _DEEPEST) else encoded)


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    kind = type(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        name = f"{kind.__module__}.{kind.__qualname__}"
        raise _UnshownResultError(
            f"its result has a value of the type {name}, which is neither text nor JSON and has no __str__ of its own; "
            f"return a str, a number, a dict, a list or a dataclass, or give {kind.__name__} a __str__"
        )
    return str(value)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[Cut — {len(text) - limit} chars more]"


# Time limits of tool calls, in total and without progress; the run continues even if a tool cannot be cancelled.

_GRACE = 1.0
"""Seconds that a timed-out call has to end after its cancellation."""

_T = TypeVar("_T")

_log = logging.getLogger("forge")

_left_behind: set[object] = set()
"""Calls that did not end when cancelled; without a reference a task may be garbage-collected while it runs."""


class _Overdue(Exception):  # noqa: N818 - nothing is wrong with it but the time
    """A call exceeded a time limit, which the message names: its tool's or the run's. `stopped`: it has ended since.

    Its cause is what the tool raised when it was cancelled.
    """

    def __init__(self, why: str, *, stopped: bool) -> None:
        super().__init__(why)
        self.stopped = stopped


class _TimeLimit:
    """The time limits of one call, in total and between signs of progress, starting now.

    `left`: the seconds that its run has left, if they limit the call.
    """

    def __init__(self, spec: ToolSpec, left: float | None = None) -> None:
        self._spec = spec
        self._now = asyncio.get_running_loop().time
        self._of_run = left is not None and (spec.timeout is None or left <= spec.timeout)
        seconds = left if self._of_run else spec.timeout
        self._end = None if seconds is None else self._now() + seconds
        self._heard = self._now()

    def renew(self) -> None:
        """Note progress."""
        self._heard = self._now()

    async def bound(self, call: Coroutine[None, None, object], raised: Callable[[Exception], None]) -> object:
        """The result of the call. _Overdue if it takes too long, even if it cannot be stopped.

        A result that it returns while being cancelled counts. `raised` is called with what it raises after that.
        """
        task = asyncio.create_task(call, name=f"forge tool {self._spec.name}")
        try:
            await asyncio.sleep(0)  # it begins, even if the loop was busy until its time was over
            while not task.done() and (left := self._next() - self._now()) > 0:
                await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError:
            task.cancel()
            leave(task)  # the canceller decides how long to wait
            await asyncio.wait({task})
            if task.cancelled():
                raise
        if task.done():
            return task.result()
        ended = self._end is not None and self._next() == self._end
        why = f"gave no sign of life for {quantity(self._spec.idle_timeout or 0, 'second')}"
        if ended:
            why = f"took longer than its {quantity(self._spec.timeout or 0, 'second')}"
        if ended and self._of_run:
            why = "had not ended when the time of the run was spent"
        task.cancel()
        await asyncio.wait({task}, timeout=_GRACE)
        if not task.done():
            _log.warning("%s %s and cannot be cancelled; the run continues without it", self._spec.name, why)
            leave(task, raised)
            raise _Overdue(why, stopped=False)
        broken = None if task.cancelled() else task.exception()
        # A tool may turn its cancellation into another exception; unless that says what it did, nobody knows.
        if task.cancelled() or (
            broken and not isinstance(broken, ToolFailed | ToolResolutionError | ToolOutcomeUnknown)
        ):
            raise _Overdue(why, stopped=True) from broken
        return task.result()

    def _next(self) -> float:
        """When the time is up, unless there is progress."""
        silent = None if self._spec.idle_timeout is None else self._heard + self._spec.idle_timeout
        return min(when for when in (silent, self._end, float("inf")) if when is not None)


def leave(task: asyncio.Future[_T], raised: Callable[[Exception], None] = unheard) -> None:
    """Abandon the task, which `asyncio.run` would otherwise wait for at the end. It runs as long as the loop does."""

    def gone(task: asyncio.Task[_T]) -> None:
        _left_behind.discard(task)
        # An exception that nobody retrieves would be logged by asyncio, with the values in it.
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            raised(error)

    if isinstance(task, asyncio.Task) and not task.done():
        _left_behind.add(task)
        asyncio.tasks._unregister_task(task)  # noqa: SLF001 - named so, and documented: docs.python.org, "Extending"
        task.add_done_callback(gone)


# Running tools: async ones on the loop, others in threads; results and exceptions become values.

_PROGRESS_LIMIT = 2_000
"""Maximum characters of a progress message."""

_Function = Callable[..., object]

_Raised = Callable[[ToolCall, Exception], None]
"""Called with each unexpected exception of a tool."""


_Around = Callable[[ToolCall, ToolSpec], Observed]
"""Observes a call of that tool."""


def _untold(call: ToolCall, error: Exception) -> None:
    """Ignore the exception."""


class Tools:
    """The interpreter of `Execute`: runs the calls of an effect concurrently."""

    def __init__(self, functions: Mapping[str, _Function], specs: tuple[ToolSpec, ...] = ()) -> None:
        known = {spec.name: spec for spec in specs}
        self._tools = {name: _Prepared.of(function, known.get(name)) for name, function in functions.items()}

    async def __call__(
        self,
        effect: Execute,
        heard: Callable[[ToolProgressed], None] = unheard,
        *,
        raised: _Raised = _untold,
        ask: Asker | None = None,
        journal: str | None = None,
        around: _Around | None = None,
    ) -> Results:
        """The results in the order of the calls; a tool's exception is a result, too.

        `heard` is called with progress, `raised` with unexpected exceptions. `ask` and `journal` are the run's own, for
        tools that take a `Caller`. `around` observes each call.
        """
        if not effect.run and (keyed := [call.name for call in effect.calls if self._tools[call.name].keyed]):
            raise ForgeError(
                f"{keyed[0]} needs an idempotency key, but the run has no id; set `run` in its first State"
            )
        began = time.monotonic()
        spent: list[Spending] = []
        # Calls that spend the run's budget share the rest of it.
        caller, delegating = None, len([call for call in effect.calls if self._tools[call.name].calling])
        if delegating:
            share = share_of(effect.budget or Budget(calls=0), delegating)
            again = effect.continued
            caller = Caller(call_id="", budget=share, spend=spent.append, continued=again, ask=ask, journal=journal)
        calls = [self._run(call, effect, heard, raised, caller) for call in effect.calls]
        if around is not None:
            observed = zip(calls, effect.calls, strict=True)
            calls = [_observed(running, around(call, self._tools[call.name].spec)) for running, call in observed]
        # A single call, by far the most frequent case, needs no task.
        results = [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)
        return Results(results=tuple(results), seconds=time.monotonic() - began, spent=sum(spent, Spending()))

    async def _run(
        self,
        call: ToolCall,
        effect: Execute,
        heard: Callable[[ToolProgressed], None],
        raised: _Raised,
        caller: Caller | None,
    ) -> CallResult:
        tool = self._tools[call.name]
        left = effect.budget.seconds if tool.bounded and effect.budget else None
        limit = _TimeLimit(tool.spec, left) if tool.limited or left is not None else None

        def hear(value: object) -> None:
            if limit is not None:
                limit.renew()
            heard(ToolProgressed(call_id=call.id, name=call.name, text=_progress_text(value, _PROGRESS_LIMIT)))

        try:
            running = tool.call(call, effect.run, hear, caller)
            value = await (running if limit is None else limit.bound(running, functools.partial(raised, call)))
            if isinstance(value, Paused):
                return replace(value, call_id=call.id)
            if isinstance(value, Failure):  # of a run within: it is no success of the tool
                return failed_result(call.id, ToolFailed(str(value.failure())), tool.spec.result_limit)
            value = value.unwrap() if isinstance(value, Success) else value
            value = value.value if isinstance(value, Finished) else value
            return succeeded(call.id, value, tool.spec.result_limit, tool=call.name)
        except _Overdue as overdue:
            if isinstance(broken := overdue.__cause__, Exception):
                raised(call, broken)
            stopped = overdue.stopped and tool.is_async
            why = str(overdue) if stopped else f"{overdue}; it cannot be stopped and may still be running"
            if tool.spec.retriable:
                return Failed(call_id=call.id, error="TimeoutError", message=f"{call.name} {why}")
            return unknown_result(call, f"it {why}")
        except ToolOutcomeUnknown as unknown:
            # The tool itself does not know the outcome.
            told = failed_result(call.id, unknown, tool.spec.result_limit)
            if tool.spec.retriable:
                return told
            return unknown_result(call, told.message)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Failed(call_id=call.id, error="CancelledError", message="what the tool waited for was cancelled")
        except _UnshownResultError as error:
            raised(call, error)
            # Told that it failed, the model would call it again, and what it changes would be changed twice.
            if not tool.spec.retriable:
                return succeeded(call.id, str(error), tool.spec.result_limit)
            return failed_result(call.id, error, tool.spec.result_limit)
        # Any exception of a user's tool is reported to the model and never ends the run.
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, ToolResolutionError | ToolFailed):
                raised(call, error)
            return failed_result(call.id, error, tool.spec.result_limit)


async def _observed(running: Coroutine[None, None, CallResult], around: Observed) -> CallResult:
    with around as observed:
        observed.outcome = result = await running
        return result


class _Prepared(Struct, frozen=True):
    """A function with its properties, determined once."""

    function: _Function
    spec: ToolSpec
    convert: Convert
    keyed: tuple[str, ...]
    calling: tuple[str, ...]
    is_async: bool
    limited: bool
    """It has a time limit of its own."""
    bounded: bool
    """The end of the run's time ends a call: it may be, because it can be repeated or has a timeout anyway."""

    @classmethod
    def of(cls, function: _Function, spec: ToolSpec | None) -> Self:
        spec = spec or ToolSpec(name="", description="", parameters=Raw(b"{}"))
        limited = spec.timeout is not None or spec.idle_timeout is not None
        keyed, calling = parameters_of(function, IdempotencyKey), parameters_of(function, Caller)
        # A tool with a Caller is given the budget, and keeps within it by itself.
        bounded = not calling and (spec.retriable or spec.timeout is not None)
        return cls(function, spec, converter(function), keyed, calling, returns_awaitable(function), limited, bounded)

    async def call(self, call: ToolCall, run: str, hear: Hear, caller: Caller | None) -> object:
        """The function's result; of a generator, its last value, with progress for each value."""
        calculating = self.spec.calculated
        values = self.convert(with_results(call.arguments, self.spec) if calculating else call.arguments)
        if self.keyed:
            values |= dict.fromkeys(self.keyed, IdempotencyKey(idempotency_key(run, call)))
        if self.calling and caller is not None:
            values |= dict.fromkeys(self.calling, replace(caller, call_id=call.id))
        return await invoked(self.function, values, hear, is_async=self.is_async)


async def invoked(function: _Function, values: Mapping[str, object], hear: Hear, *, is_async: bool) -> object:
    """The function's result; of a generator, its last value, with each value passed to `hear`."""
    if is_async:
        result = function(**values)
        if isinstance(result, CoroutineType):
            result = await result
    else:
        result = await in_thread(functools.partial(function, **values), hear)
    # A wrapper around an async function may look sync until it is called; an async one may forget to await.
    if isinstance(result, AsyncGenerator):
        last: object = None
        async with aclosing(result):
            async for value in result:
                if isinstance(value, Returned):
                    return value.value
                hear(value)
                last = value
        return last
    return await result if isinstance(result, Awaitable) else result


def returns_awaitable(function: _Function) -> bool:
    """Whether calling it returns an awaitable or async iterator, including async `__call__`s and partials."""
    if isinstance(function, functools.partial):
        return returns_awaitable(function.func)
    own = type(function).__call__
    return any(kind(f) for kind in (inspect.iscoroutinefunction, inspect.isasyncgenfunction) for f in (function, own))
