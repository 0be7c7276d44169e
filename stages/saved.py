"""Saved states: everything that a run needs to continue, without the memo, which only makes it fast."""

from functools import cache
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages.decoding import decode, decode_or
from stages.message import History
from stages.options import checked
from stages.state import SCHEMA_VERSION, Memo, State


@checked
def save(state: State) -> bytes:
    """The state as JSON. A run loaded from it continues exactly as this one."""
    return msgspec.json.encode(without_memory(state))


@checked
def load(saved: bytes | str) -> State:
    """The state that was saved, without its memo, so the next request is encoded anew.

    ValueError, saying why, if this is not a saved state or is one of another version.
    """
    return _with_views(_read(saved))


class SavedParts(Struct, frozen=True, kw_only=True, gc=False):
    """A saved state with its messages apart, so that a store need only write the new ones. All parts are JSON."""

    rest: bytes
    messages: tuple[bytes, ...]


def save_parts(state: State) -> SavedParts:
    """The state in parts. A run loaded from them (`load_parts`) continues exactly as this one."""
    bare = without_memory(state)
    rest = msgspec.json.encode(replace(bare, history=()))
    return SavedParts(rest=rest, messages=tuple(map(msgspec.json.encode, bare.history)))


def load_parts(parts: SavedParts) -> State:
    """The state that was saved in parts, as from `load`, with the same ValueError."""
    rest = _read(parts.rest)
    try:
        history = decode(msgspec.json.Decoder(History), b"[" + b",".join(parts.messages) + b"]")
    except msgspec.DecodeError as error:
        raise ValueError(f"this is not a saved state: {error}") from None
    return _with_views(replace(rest, history=history))


def _read(saved: bytes | str) -> State:
    try:
        return current(decode(_reader(), saved))
    except msgspec.DecodeError as error:
        # What another version wrote may have fields of other types, and its number says more than the first of them.
        current(decode_or(_versions, saved, _Versioned()))
        raise ValueError(f"this is not a saved state: {error}") from None


class _Versioned(Struct, frozen=True):
    version: int = SCHEMA_VERSION


_versions = msgspec.json.Decoder(_Versioned)
_V = TypeVar("_V", State, _Versioned)


@cache
def _reader() -> msgspec.json.Decoder[State]:
    """Made when it is first needed: most programs load no state, and it takes a hundredth of `import forge`."""
    return msgspec.json.Decoder(State)


def without_memory(state: State) -> State:
    """The state without its memo, and without views that equal the history up to their length."""
    history = state.history
    prompts = tuple(
        replace(prompt, view=()) if prompt.length and prompt.view == history[: prompt.length] else prompt
        for prompt in state.prompts
    )
    return replace(state, prompts=prompts, memo=Memo())


def _with_views(state: State) -> State:
    """The loaded state with the views that `without_memory` left out."""
    history = state.history
    prompts = tuple(
        replace(prompt, view=history[: prompt.length]) if prompt.length and not prompt.view else prompt
        for prompt in state.prompts
    )
    return replace(state, prompts=prompts)


def current(state: _V) -> _V:
    """The state, if it has the current version; else ValueError."""
    if state.version == SCHEMA_VERSION:
        return state
    raise ValueError(f"the state is of version {state.version}, and this forge reads version {SCHEMA_VERSION}")
