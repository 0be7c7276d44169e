"""Walk: the files of a folder and of those below it, in a fixed order; bounded, and without folders of machinery."""

from collections import deque
from collections.abc import Iterator

from forge.agent.files.root import Entry, Parts, Root
from forge.errors import ToolResolutionError

_MACHINERY = frozenset({".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "node_modules", "__pycache__"})
_CACHE = "_cache"
_DEEPEST = 40


def is_machinery(name: str) -> bool:
    """Whether a folder of that name holds what programs keep for themselves."""
    return name in _MACHINERY or (name.startswith(".") and name.endswith(_CACHE))


def walked(root: Root, start: Parts) -> Iterator[Entry]:
    """What is in the folder and in those below it: what is nearer to it first. Folders of machinery are only named.

    ToolResolutionError if the first folder cannot be read; one below it that cannot is passed over.
    """
    waiting = deque((start,))
    while waiting:
        here = waiting.popleft()
        try:
            entries = root.entries(here)
        except ToolResolutionError:
            if here == start:
                raise
            continue
        yield from entries
        if len(here) < len(start) + _DEEPEST:
            waiting += (one.parts for one in entries if one.kind == "folder" and not is_machinery(one.parts[-1]))
