"""Tools that read the files of a folder: `read_file`, `list_files`, `search_files`."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated

from msgspec import Meta

from forge.agent.files.root import Entry, Parts, Root, shown
from forge.agent.files.texts import lines_of, lines_with, numbered, one_line
from forge.agent.files.walk import is_machinery, walked
from forge.errors import ToolResolutionError
from forge.tools.decorator import tool
from forge.workflow.suggestions import did_you_mean

_LISTED, _MATCHES, _SEARCHED = 200, 50, 2_000
"""Maximum entries of a list, lines that a search finds, files that it reads."""

_NAMED = 20
"""Maximum files that are named where there is none of a name."""

_Line = Annotated[int, Meta(ge=1)]


def read_tools(root: Root, shown_chars: int) -> tuple[Callable[..., object], ...]:
    """The tools that read; `shown_chars` is the maximum of what is shown of a file at once."""

    @tool(effect="read")
    def read_file(path: str, first_line: _Line = 1) -> str:
        """Read a text file. Each line is shown with its number and a bar, which are not part of the file.

        Args:
            path: The path of the file.
            first_line: The line to begin with, for a file that is too long to be shown at once.
        """
        return _read(root, path, first_line, shown_chars)

    @tool(effect="read")
    def list_files(folder: str = ".") -> str:
        """List the files of a folder and of the folders in it.

        Args:
            folder: The folder; without it, all that there is.
        """
        found = list(islice(walked(root, root.resolved(folder)), _LISTED + 1))
        lines = [_named(entry) for entry in found[:_LISTED]]
        more = [f"[more than {_LISTED}; name a folder to list what is in it]"] if len(found) > _LISTED else []
        return "\n".join((*lines, *more)) or "the folder is empty"

    @tool(effect="read")
    def search_files(text: str, folder: str = ".", ignore_case: bool = False) -> str:
        """Find the lines of files that contain a text. The text is taken as it is: no pattern, no wildcards.

        Args:
            text: The text to find, within one line.
            folder: The folder to search; without it, all.
            ignore_case: Whether upper and lower case are the same.
        """
        return _searched(root, text, root.resolved(folder), ignore_case=ignore_case)

    return read_file, list_files, search_files


def _read(root: Root, path: str, first: int, most: int) -> str:
    """The lines of a file from the first one on, with their numbers, and where to read on."""
    parts = root.resolved(path)
    if not root.exists(parts):
        raise ToolResolutionError(f"there is no file {shown(*parts)}.{_meant(root, parts)}")
    lines = lines_of(root.read(parts))
    if not lines:
        return f"{shown(*parts)} is empty"
    first = first if first <= len(lines) else 1  # a number of a line elsewhere, in a test's output say
    told, end = numbered(lines, first, len(lines), most)
    more = f"\n[more: read_file with first_line={end + 1}]" if end < len(lines) else ""
    return f"{shown(*parts)}, lines {first} to {end} of {len(lines)}:\n{told}{more}"


def _meant(root: Root, parts: Parts) -> str:
    """A file that may have been meant, of the same name elsewhere or of a similar one; or else which ones there are."""
    files = [one.parts for one in islice(walked(root, ()), _SEARCHED) if one.kind == "file"]
    if same := [other for other in files if other[-1:] == parts[-1:]]:
        return f" Did you mean {shown(*same[0])}?"
    names = [shown(*other) for other in files]
    few = f" The files are: {', '.join(names)}." if 0 < len(names) <= _NAMED else ""
    return did_you_mean(shown(*parts), names) or few


def _named(entry: Entry) -> str:
    path = shown(*entry.parts)
    if entry.kind == "other":
        return f"{path} (a link, a pipe or a device)"
    if entry.kind == "file":
        return path
    return f"{path}/ (not shown)" if is_machinery(entry.parts[-1]) else f"{path}/"


def _searched(root: Root, text: str, start: Parts, *, ignore_case: bool) -> str:
    if not text or "\n" in text:
        raise ToolResolutionError("give a text within one line; it cannot be empty")
    files = [start] if root.is_file(start) else [e.parts for e in walked(root, start) if e.kind == "file"]
    found = list(islice(_matches(root, files[:_SEARCHED], text, ignore_case=ignore_case), _MATCHES + 1))
    notes = (
        [f"[more than {_MATCHES} lines; search for a longer text or in one folder]"] if len(found) > _MATCHES else []
    )
    notes += (
        [f"[only {_SEARCHED} of {len(files)} files were searched; name a folder]"] if len(files) > _SEARCHED else []
    )
    return "\n".join((*(found[:_MATCHES] or [f"no line contains {one_line(text)!r}"]), *notes))


def _matches(root: Root, files: list[Parts], text: str, *, ignore_case: bool) -> Iterator[str]:
    for parts in files:
        try:
            content = root.read(parts)
        except ToolResolutionError:
            continue  # binary, too large, not to be read: it has no lines to be shown
        for number, line in lines_with(content, text, ignore_case=ignore_case):
            yield f"{shown(*parts)}:{number}: {one_line(line)}"
