"""Kept values: data that a feature's stages keep in the state between turns, under a name of their own."""

from typing import Generic, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.decoding import decode
from stages.state import State

_T = TypeVar("_T")


class KeptError(ValueError):
    """The value that a state keeps under a name is not of the type that the stage expects."""


class Kept(Generic[_T]):
    """A value of a type, kept in the state under a name; `start` until a stage puts another.

    It is saved with the run and lives as long as the run, whatever compaction does to the history. It is stored as
    JSON, so its type must be one that msgspec can encode and decode: a number, a dict, a frozen Struct.
    """

    def __init__(self, name: str, kind: type[_T], start: _T) -> None:
        self.name, self.start = name, start
        self._decoder = msgspec.json.Decoder(kind)
        self._encoded = self._as_json(start)

    def __repr__(self) -> str:
        """Its name."""
        return f"Kept({self.name!r})"

    def get(self, state: State) -> _T:
        """The value that was put last. KeptError, saying why, if it cannot be decoded."""
        # `start` is decoded each time, too, so that every caller gets a copy that it may change.
        kept = next((value for name, value in state.kept if name == self.name), self._encoded)
        try:
            return decode(self._decoder, bytes(kept))
        except msgspec.DecodeError as error:
            raise KeptError(
                f"what the state keeps as {self.name!r} cannot be read: {error}; another version of the stages that "
                "keep it has written it, or other stages use the same name"
            ) from None

    def put(self, state: State, value: _T) -> State:
        """The state with this value; putting `start` removes the entry. KeptError if `get` could not read it."""
        others = tuple(one for one in state.kept if one[0] != self.name)
        new = () if value == self.start else ((self.name, self._as_json(value)),)
        return state if not others and not new and not state.kept else replace(state, kept=(*others, *new))

    def _as_json(self, value: _T) -> Raw:
        try:
            written = msgspec.json.encode(value)
            decode(self._decoder, written)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            raise KeptError(
                f"{value!r:.100} cannot be kept as {self.name!r}: {error}; keep a value of the type that its Kept was "
                "made with, and make it with a type that msgspec can write as JSON"
            ) from None
        return Raw(written)
