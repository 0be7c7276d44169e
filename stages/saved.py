"""Saved states: what decides how a run goes on, without what it remembers only to be fast."""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages.message import History
from stages.repair.decoding import decode
from stages.state import SCHEMA_VERSION, Memo, State


def save(state: State) -> bytes:
    """The state as JSON. What `load` makes of it goes on as this one does."""
    return msgspec.json.encode(without_memory(state))


def load(saved: bytes | str) -> State:
    """The state that `save` was given, as the run goes on from it: the next request is written from its beginning.

    ValueError, in words, for what is no saved state, or one that this forge cannot go on from.
    """
    try:
        state = decode(_STATE, saved)
    except msgspec.DecodeError as error:
        raise ValueError(f"this is no saved state: {error}") from None
    return _with_views(current(state))


class SavedParts(Struct, frozen=True, kw_only=True, gc=False):
    """A saved state whose messages stand apart, so that a store writes only those that are new. All of it is JSON."""

    rest: bytes
    messages: tuple[bytes, ...]


def save_parts(state: State) -> SavedParts:
    """The state in parts: what `load_parts` makes of them goes on as this one does."""
    bare = without_memory(state)
    rest = msgspec.json.encode(replace(bare, history=()))
    return SavedParts(rest=rest, messages=tuple(map(msgspec.json.encode, bare.history)))


def load_parts(parts: SavedParts) -> State:
    """As `load`. ValueError, in words, for what is no saved state, or one that this forge cannot go on from."""
    try:
        rest = decode(_STATE, parts.rest)
        history = decode(_HISTORY, b"[" + b",".join(parts.messages) + b"]")
    except msgspec.DecodeError as error:
        raise ValueError(f"this is no saved state: {error}") from None
    return _with_views(current(replace(rest, history=history)))


_STATE = msgspec.json.Decoder(State)
_HISTORY = msgspec.json.Decoder(History)


def without_memory(state: State) -> State:
    """The state as it is saved: without its memo, and with the views only where they are not the history as it was."""
    history = state.history
    prompts = tuple(
        replace(prompt, view=()) if prompt.length and prompt.view == history[: prompt.length] else prompt
        for prompt in state.prompts
    )
    return replace(state, prompts=prompts, memo=Memo())


def _with_views(state: State) -> State:
    """The loaded state with what its prompts showed."""
    history = state.history
    prompts = tuple(
        replace(prompt, view=history[: prompt.length]) if prompt.length and not prompt.view else prompt
        for prompt in state.prompts
    )
    return replace(state, prompts=prompts)


def current(state: State) -> State:
    """The state, if it is of today's version. ValueError, in words, for one that this forge cannot go on from."""
    if state.version == SCHEMA_VERSION:
        return state
    raise ValueError(f"the state is of version {state.version}, and this forge reads version {SCHEMA_VERSION}")
