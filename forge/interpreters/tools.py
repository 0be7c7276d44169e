"""Run tools: async ones on the loop, others in threads; whatever they return or raise becomes a value (D12, D13)."""

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Self

import msgspec
from msgspec import Raw, Struct

from forge.errors import ToolFailed, ToolResolutionError
from forge.signature import Convert, converter
from stages.effect import CallResult, Execute, Failed, HandOff, NeedsInput, Results, Succeeded, Unresolved
from stages.message import ToolCall, sound
from stages.tool import ToolSpec

RESULT_LIMIT = 20_000
"""Characters of one result that the model is shown."""

Function = Callable[..., object]


class Tools:
    """The interpreter of `Execute`: the calls of an effect run at the same time."""

    def __init__(self, functions: Mapping[str, Function], specs: tuple[ToolSpec, ...] = ()) -> None:
        self._functions = {name: _Prepared.of(function) for name, function in functions.items()}
        self._timeouts = {spec.name: spec.timeout for spec in specs}

    async def __call__(self, effect: Execute) -> Results:
        """The results, in the order of the calls; a tool's exception is a result too."""
        began = time.monotonic()
        # A call alone, the most frequent case by far, needs no task of its own.
        alone = len(effect.calls) == 1
        results = [await self._run(effect.calls[0])] if alone else await asyncio.gather(*map(self._run, effect.calls))
        return Results(results=tuple(results), seconds=time.monotonic() - began)

    async def _run(self, call: ToolCall) -> CallResult:
        timeout = self._timeouts.get(call.name)
        try:
            called = self._functions[call.name].call(call.arguments)
            if timeout is None:
                return succeeded(call.id, await called)
            async with asyncio.timeout(timeout):
                value = await called
            return succeeded(call.id, value)
        except TimeoutError as error:
            late = timeout is not None and not str(error)
            message = f"{call.name} took longer than its {timeout} seconds" if late else _words(error)
            return Failed(call_id=call.id, error="TimeoutError", message=message)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Failed(call_id=call.id, error="CancelledError", message="what the tool waited for was cancelled")
        # Whatever a user's tool raises is the model's to hear, never the run's end (D13).
        except Exception as error:  # noqa: BLE001
            return failed(call.id, error)


class _Prepared(Struct, frozen=True):
    """A function with what has to be found out about it only once."""

    function: Function
    convert: Convert
    is_async: bool

    @classmethod
    def of(cls, function: Function) -> Self:
        return cls(function, converter(function), _is_async(function))

    async def call(self, arguments: str) -> object:
        """What the function returns."""
        values = self.convert(arguments)
        if self.is_async:
            result = self.function(**values)
        else:
            result = await asyncio.to_thread(_in_thread, self.function, values)
        # A wrapper around an async function looks like a sync one until it is called.
        return await result if isinstance(result, Awaitable) else result


def _in_thread(function: Function, values: Mapping[str, object]) -> object:
    """The call; what no future can carry, and what would end the program, is an error like any other."""
    try:
        return function(**values)
    except (StopIteration, SystemExit) as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _words(error: Exception) -> str:
    """What the exception says, if it can say it."""
    try:
        return _cut(sound(str(error)))
    # An exception's own __str__ is a user's code too.
    except Exception:  # noqa: BLE001
        return "(its message cannot be shown)"


def _is_async(function: Function) -> bool:
    """Whether a call gives something to await: also for objects with an async `__call__` and partials (B34)."""
    if isinstance(function, functools.partial):
        return _is_async(function.func)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def failed(call_id: str, error: Exception) -> Unresolved | Failed:
    """What the model is told of a tool that raised, and whether it counts (D13)."""
    match error:
        case ToolResolutionError():
            return Unresolved(call_id=call_id, message=_words(error))
        case ToolFailed():
            return Failed(call_id=call_id, error="ToolFailed", message=_words(error), counted=False)
        case _:
            return Failed(call_id=call_id, error=type(error).__name__, message=_words(error))


def succeeded(call_id: str, value: object) -> Succeeded:
    """What the model is shown of what a tool returned, cut to size, and the same as JSON (D13)."""
    ends = value if isinstance(value, NeedsInput | HandOff) else None
    encoded = _json(value)
    return Succeeded(call_id=call_id, text=_cut(_text(encoded)), value=encoded, ends=ends)


def _text(value: Raw) -> str:
    """What the model is shown: a string as it is, anything else as JSON (D13, B2)."""
    text = bytes(value).decode()
    return msgspec.json.decode(value, type=str) if text.startswith('"') else text


def _json(value: object) -> Raw:
    """The value as JSON; what JSON cannot hold becomes a string."""
    try:
        return Raw(msgspec.json.encode(value, enc_hook=_plain))
    except (TypeError, ValueError, RecursionError):
        return Raw(msgspec.json.encode(sound(str(value))))


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


def _cut(text: str) -> str:
    if len(text) <= RESULT_LIMIT:
        return text
    return f"{text[:RESULT_LIMIT]}\n[Cut — {len(text) - RESULT_LIMIT} chars more]"
