"""Changes: which file a call of the file tools changes, and how many lines of it, told from its arguments alone."""

import posixpath
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from forge.agent.files.editing import kept_lines
from forge.agent.files.texts import lines_of
from stages.schema.value import cut_text

_LONGEST, _SHOWN = 4096, 300
"""Maximum characters of a path that is looked at; of one that is shown."""

Path = tuple[str, ...]
"""The names of a path below the root."""


class Change(Struct, frozen=True, kw_only=True):
    """What a call changes. `path` is None outside the root; `lines` are those added and those taken away."""

    written: str
    path: Path | None
    lines: int


class Changes(Struct, frozen=True, kw_only=True):
    """What was changed so far."""

    files: frozenset[Path] = frozenset()
    lines: int = 0

    def with_more(self, change: Change) -> "Changes":
        """These and one more."""
        more = frozenset() if change.path is None else frozenset({change.path})
        return Changes(files=self.files | more, lines=self.lines + change.lines)


class _Write(Struct):
    path: str
    content: str


class _Edit(Struct):
    path: str
    old_snippet: str
    new_snippet: str


def change_of(tool: str, arguments: str, root: str) -> Change | None:
    """The change that a call makes; None for a tool that changes no file.

    It counts a file that is written as new: where lines are counted, `write_file` replaces none (`overwrite=False`).
    """
    match tool:
        case "write_file":
            write = msgspec.json.decode(arguments, type=_Write)
            return Change(
                written=cut_text(write.path, _SHOWN), path=below(root, write.path), lines=len(lines_of(write.content))
            )
        case "edit_file":
            edit = msgspec.json.decode(arguments, type=_Edit)
            old, new = lines_of(edit.old_snippet), lines_of(edit.new_snippet)
            lines = len(old) + len(new) - 2 * sum(kept_lines(old, new))
            return Change(written=cut_text(edit.path, _SHOWN), path=below(root, edit.path), lines=lines)
        case _:
            return None


def changes_of(calls: Iterable[tuple[str, str]], root: str) -> Changes:
    """What these calls, name and arguments, have changed."""
    total = Changes()
    for name, arguments in calls:
        if change := change_of(name, arguments, root):
            total = total.with_more(change)
    return total


def below(root: str, path: str) -> Path | None:
    """The names of the path below the root; None if it leads out of it, or is too long. No link is followed."""
    if len(path) > _LONGEST:
        return None
    whole = posixpath.normpath(posixpath.join(root, path))
    rest = posixpath.relpath(whole, root).split("/")
    return None if rest[0] == ".." else tuple(name for name in rest if name != ".")
