"""Memories for the tests: a conversation in one file, and one that fails."""

from pathlib import Path

from forge.errors import ForgeError
from stages.saved import load, save
from stages.state import State


class FileKeeper:
    """A conversation in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.saves = 0

    async def load(self) -> State | None:
        return load(self.path.read_bytes()) if self.path.exists() else None

    async def save(self, state: State) -> None:
        self.saves += 1
        whole = self.path.with_suffix(".new")
        whole.write_bytes(save(state))
        whole.replace(self.path)


class FullKeeper(FileKeeper):
    """One that has room for so many saves."""

    def __init__(self, path: Path, room: int) -> None:
        super().__init__(path)
        self._room = room

    async def save(self, state: State) -> None:
        if self.saves == self._room:
            raise ForgeError("no space is left")
        await super().save(state)
