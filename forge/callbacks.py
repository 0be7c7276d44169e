"""Users' callbacks: guards, checks, stages, watchers and askers, and the errors that name one that fails."""

import inspect
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from returns.result import Result

from forge.errors import CallbackError, WatcherError
from forge.masking import NOTHING, Hidden, MaskedPieces
from stages import reasoning
from stages.effect import Approved, Ask, Fault, Rejected, Settled, Unanswered
from stages.halt import Halt
from stages.message import ToolCall
from stages.objection import Guard, Verdict, not_a_verdict
from stages.pipeline import Acting, Stage, StageError, as_result, name_of
from stages.state import Executed, State
from stages.wire.deltas import Delta, Piece, Retry, watched_deltas

# Callbacks: users' functions that a run calls; if one fails, the error names it and where it was passed.

_P = ParamSpec("_P")
_R = TypeVar("_R")

_Place = str
"""Where a function was passed, such as `guards[0]` or `completion_checks['refund']`."""


def placed(function: Callable[_P, _R], place: _Place, *kinds: type) -> Callable[_P, _R]:
    """The function, raising CallbackError if it raises or returns something of none of these kinds."""

    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            returned = function(*args, **kwargs)
        # A user's function may raise anything, and they need to know which one it was.
        except Exception as error:
            raise failed(function, place, error) from error
        if not isinstance(returned, kinds):
            wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
            sentence = f"returned {repr(returned)[:200]}; it must return {wanted}"
            raise CallbackError(f"{_named(function, place)} {sentence}. {ADVICE}", place)
        return returned

    called.__qualname__ = _own_name(function)
    return called


def placed_guard(guard: Guard, place: _Place) -> Guard:
    """The guard, raising CallbackError if it raises or does not return a valid verdict."""
    ask = placed(guard, place, object)

    def called(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        verdict = ask(state, calls)
        if wrong := not_a_verdict(verdict, calls):
            raise CallbackError(f"{_named(guard, place)} {wrong}. {ADVICE}", place)
        return verdict

    called.__qualname__ = _own_name(guard)
    return called


def placed_stage(stage: Stage, place: _Place) -> Stage:
    """The stage, raising CallbackError if it raises, returns neither a State nor a Halt, or drops a result."""

    def called(state: State) -> Result[State, Halt]:
        try:
            made = as_result(stage(state), stage)
        except StageError as error:
            raise CallbackError(f"{place}: {error}. {ADVICE}", place) from error
        except Exception as error:
            raise failed(stage, place, error) from error
        after = made.map(lambda new: new.phase).value_or(None)
        if isinstance(state.phase, Executed) and isinstance(after, Executed):
            # A call without its result would run again, without end.
            kept = {result.call_id for result in after.batch.results}
            if lost := {result.call_id for result in state.phase.batch.results} - kept:
                sentence = f"dropped the result of {min(lost)}; change a result instead"
                raise CallbackError(f"{_named(stage, place)} {sentence}. {ADVICE}", place)
        return made

    called.__qualname__ = name_of(stage)
    return called


ADVICE = "Fix it, then resume the run from this error's `state` (forge.resume)."


def failed(function: Callable[..., object], place: _Place, error: Exception) -> CallbackError:
    """The error for a function of the user's that raised."""
    sentence = f"raised {type(error).__name__}: {error}{_line(error.__traceback__)}"
    return CallbackError(f"{_named(function, place)} {sentence}. {ADVICE}", place)


def _named(function: Callable[..., object], place: _Place) -> str:
    return f"{place}, {_own_name(function)},"


def _own_name(function: Callable[..., object]) -> str:
    if isinstance(function, Acting):
        return _own_name(function.act)
    return str(getattr(function, "__qualname__", None) or name_of(function))


_OURS = ("stages.pipeline", "forge.callbacks", "toolz.functoolz", "returns.result")
"""Modules that call users' functions on behalf of others."""


def _line(trace: TracebackType | None) -> str:
    """The file and line in the user's own function, not in a library that it calls."""
    if trace is None or trace.tb_next is None:
        return ""
    own = trace.tb_next
    while own.tb_next is not None and own.tb_frame.f_globals.get("__name__") in _OURS:
        own = own.tb_next
    return f" ({own.tb_frame.f_code.co_filename.rpartition('/')[2]}, line {own.tb_lineno})"


# Watcher: passes the deltas of a reply to `on_chunk` as they arrive.

OnChunk = Callable[[Delta], Awaitable[None] | None]
"""A plain or async function, called with each delta; the stream waits for it."""


class Watcher:
    """Passes the deltas of one request, over all its attempts, to `on_chunk`, with the `hidden` secrets masked."""

    def __init__(self, on_chunk: OnChunk, hidden: Hidden = NOTHING) -> None:
        self._on_chunk, self._hidden = on_chunk, hidden
        self._split, self._masked = reasoning.Split(), MaskedPieces(hidden)

    async def see(self, piece: Piece) -> None:
        """Pass on a piece of the reply. WatcherError if `on_chunk` fails."""
        for shown in self._masked.shown(piece) if self._hidden else (piece,):
            self._split, deltas = watched_deltas(self._split, shown)
            for delta in deltas:
                await self._tell(delta)

    async def forget(self, fault: Fault, attempt: int, seconds: float) -> None:
        """Announce that this attempt is void, and that the next one starts after that many seconds."""
        self._split, self._masked = reasoning.Split(), MaskedPieces(self._hidden)
        await self._tell(Retry(fault=fault, attempt=attempt, seconds=seconds))

    async def _tell(self, delta: Delta) -> None:
        try:
            told = self._on_chunk(delta)
            if inspect.isawaitable(told):
                await told
        # Without this, a time-out in `on_chunk` would look like one of the transport.
        except Exception as error:
            raise WatcherError(f"on_chunk failed at a {type(delta).__name__}: {error!r}") from error


# Asker: asks a person about a call that needs approval, or whose outcome is unknown.

Answer = Approved | Rejected | Settled | Unanswered
"""A person's answer; `Settled` only if the outcome of a call is unknown."""

Asker = Callable[[Ask], Awaitable[Answer]]
