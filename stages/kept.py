"""Kept: what a feature keeps in the state between turns, under a name of its own, read by its own stages alone."""

from typing import Generic, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.repair.decoding import decode
from stages.state import State

T = TypeVar("T")


class KeptError(ValueError):
    """What a state keeps under a name is not what the stage that reads it has kept."""


class Kept(Generic[T]):
    """What stages keep under that name: a value of that type, `start` before any was put.

    It is saved with the run and lives as long as that, whatever compaction does to the history. A value that is put is
    written as JSON, so it is of a type that msgspec can write and read: a number, a dict, a frozen Struct.
    """

    def __init__(self, name: str, kind: type[T], start: T) -> None:
        self.name, self.start = name, start
        self._decoder, self._encoded = msgspec.json.Decoder(kind), Raw(msgspec.json.encode(start))

    def __repr__(self) -> str:
        """Its name."""
        return f"Kept({self.name!r})"

    def get(self, state: State) -> T:
        """The value that was put last. KeptError, in words, for what cannot be read as one."""
        # `start` is read anew each time, too: whoever changes a dict that was got has changed a copy.
        kept = next((value for name, value in state.kept if name == self.name), self._encoded)
        try:
            return decode(self._decoder, bytes(kept))
        except msgspec.DecodeError as error:
            raise KeptError(
                f"what the state keeps as {self.name!r} cannot be read: {error}; another version of the stages that "
                "keep it has written it, or other stages use the same name"
            ) from None

    def put(self, state: State, value: T) -> State:
        """The state that keeps this value from now on; `start` is kept by keeping nothing."""
        others = tuple(one for one in state.kept if one[0] != self.name)
        new = () if value == self.start else ((self.name, Raw(msgspec.json.encode(value))),)
        return state if not others and not new and not state.kept else replace(state, kept=(*others, *new))
