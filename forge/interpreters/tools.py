"""Run tools: async ones on the loop, others in threads; whatever they return or raise becomes a value."""

import asyncio
import functools
import inspect
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from types import CoroutineType
from typing import Self

from msgspec import Raw, Struct
from msgspec.structs import replace

from forge.errors import ForgeError, ToolFailed, ToolOutcomeUnknown, ToolResolutionError
from forge.interpreters import Asker
from forge.interpreters.threads import Hear, in_thread, unheard
from forge.interpreters.time_limits import Overdue, TimeLimit
from forge.interpreters.tool_results import failed, progress_text, succeeded
from forge.tools.caller import Caller
from forge.tools.parameters import IdempotencyKey, caller_parameters, key_parameters
from forge.tools.signature import Convert, Returned, converter
from stages import nudges
from stages.arithmetic import with_results
from stages.effect import Budget, CallResult, Execute, Failed, InDoubt, Paused, Results, Spending
from stages.events import ToolProgressed
from stages.execution import idempotency_key
from stages.message import ToolCall
from stages.retry import share_of, sum_of
from stages.tool import ToolSpec

_PROGRESS_LIMIT = 2_000
"""Characters of one piece of progress that an observer is told."""

_Function = Callable[..., object]

Raised = Callable[[ToolCall, Exception], None]
"""Told of each exception of a tool that the tool did not raise for the model to hear."""


def _untold(call: ToolCall, error: Exception) -> None:
    """For those who want to hear of none."""


class Tools:
    """The interpreter of `Execute`: the calls of an effect run at the same time."""

    def __init__(self, functions: Mapping[str, _Function], specs: tuple[ToolSpec, ...] = ()) -> None:
        known = {spec.name: spec for spec in specs}
        self._tools = {name: _Prepared.of(function, known.get(name)) for name, function in functions.items()}

    async def __call__(
        self,
        effect: Execute,
        heard: Callable[[ToolProgressed], None] = unheard,
        *,
        raised: Raised = _untold,
        ask: Asker | None = None,
        journal: str | None = None,
    ) -> Results:
        """The results, in the order of the calls; a tool's exception is a result too. `heard` is told of progress.

        `raised` is told of unexpected ones. `ask` and `journal` are the run's own, for tools that take a `Caller`.
        """
        if not effect.run and (keyed := [call.name for call in effect.calls if self._tools[call.name].keyed]):
            raise ForgeError(
                f"{keyed[0]} wants an idempotency key, and the run has no id; give its first State a `run`"
            )
        began = time.monotonic()
        spent: list[Spending] = []
        caller = self._caller(effect, spent, ask, journal)
        calls = [self._run(call, effect.run, heard, raised, caller) for call in effect.calls]
        # A call alone, the most frequent case by far, needs no task of its own.
        results = [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)
        return Results(results=tuple(results), seconds=time.monotonic() - began, spent=sum_of(spent))

    def _caller(self, effect: Execute, spent: list[Spending], ask: Asker | None, journal: str | None) -> Caller | None:
        """What those of the calls are told that spend of the run's budget; None: none does."""
        delegating = sum(bool(self._tools[call.name].calling) for call in effect.calls)
        if not delegating:
            return None
        share = share_of(effect.budget or Budget(calls=0), delegating)
        again = effect.continued
        return Caller(call_id="", budget=share, spend=spent.append, continued=again, ask=ask, journal=journal)

    async def _run(
        self,
        call: ToolCall,
        run: str,
        heard: Callable[[ToolProgressed], None],
        raised: Raised,
        caller: Caller | None,
    ) -> CallResult:
        tool = self._tools[call.name]
        limit = TimeLimit(tool.spec) if tool.limited else None

        def hear(value: object) -> None:
            if limit is not None:
                limit.renew()
            heard(ToolProgressed(call_id=call.id, name=call.name, text=progress_text(value, _PROGRESS_LIMIT)))

        try:
            running = tool.call(call, run, hear, caller)
            value = await (running if limit is None else limit.bound(running))
            if isinstance(value, Paused):
                return replace(value, call_id=call.id)
            return succeeded(call.id, value, tool.spec.result_limit, tool=call.name)
        except Overdue as overdue:
            return _overdue(call, tool, overdue)
        except ToolOutcomeUnknown as unknown:
            return _lost(call, tool, unknown)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Failed(call_id=call.id, error="CancelledError", message="what the tool waited for was cancelled")
        # Whatever a user's tool raises is the model's to hear, never the run's end.
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, ToolResolutionError | ToolFailed):
                raised(call, error)
            return failed(call.id, error, tool.spec.result_limit)


def _overdue(call: ToolCall, tool: "_Prepared", overdue: Overdue) -> Failed | InDoubt:
    """What becomes of a call that took too long: an error, or an unknown outcome where a write could not be stopped."""
    if overdue.stopped and tool.is_async:
        return Failed(call_id=call.id, error="TimeoutError", message=f"{call.name} {overdue}")
    why = f"{overdue}; it cannot be stopped and may still be running"
    if tool.spec.retriable:
        return Failed(call_id=call.id, error="TimeoutError", message=f"{call.name} {why}")
    return InDoubt(call_id=call.id, reason=nudges.in_doubt(call.name, f"it {why}"))


def _lost(call: ToolCall, tool: "_Prepared", unknown: ToolOutcomeUnknown) -> CallResult:
    """What becomes of a call whose outcome the tool itself does not know."""
    told = failed(call.id, unknown, tool.spec.result_limit)
    if tool.spec.retriable:
        return told
    return InDoubt(call_id=call.id, reason=nudges.in_doubt(call.name, told.message))


class _Prepared(Struct, frozen=True):
    """A function with what has to be found out about it only once."""

    function: _Function
    spec: ToolSpec
    convert: Convert
    keyed: tuple[str, ...]
    calling: tuple[str, ...]
    is_async: bool
    limited: bool

    @classmethod
    def of(cls, function: _Function, spec: ToolSpec | None) -> Self:
        spec = spec or ToolSpec(name="", description="", parameters=Raw(b"{}"))
        limited = spec.timeout is not None or spec.idle_timeout is not None
        keyed, calling = key_parameters(function), caller_parameters(function)
        return cls(function, spec, converter(function), keyed, calling, _is_async(function), limited)

    async def call(self, call: ToolCall, run: str, hear: Hear, caller: Caller | None) -> object:
        """What the function returns; of a generator, what it yields last, all of which is heard."""
        calculating = self.spec.calculated
        values = self.convert(with_results(call.arguments, self.spec) if calculating else call.arguments)
        if self.keyed:
            values |= dict.fromkeys(self.keyed, IdempotencyKey(idempotency_key(run, call)))
        if self.calling and caller is not None:
            values |= dict.fromkeys(self.calling, replace(caller, call_id=call.id))
        if self.is_async:
            result = self.function(**values)
            if isinstance(result, CoroutineType):
                result = await result
        else:
            result = await in_thread(functools.partial(self.function, **values), hear)
        # A wrapper around an async function looks like a sync one until it is called; an async one may forget to await.
        if isinstance(result, AsyncGenerator):
            return await _last_of(result, hear)
        return await result if isinstance(result, Awaitable) else result


async def _last_of(values: AsyncGenerator[object, None], hear: Hear) -> object:
    last: object = None
    async with aclosing(values):
        async for value in values:
            if isinstance(value, Returned):
                return value.value
            hear(value)
            last = value
    return last


def _is_async(function: _Function) -> bool:
    """Whether a call gives something to await or to iterate over: async `__call__`s and partials too."""
    if isinstance(function, functools.partial):
        return _is_async(function.func)
    own = type(function).__call__
    return any(kind(f) for kind in (inspect.iscoroutinefunction, inspect.isasyncgenfunction) for f in (function, own))
