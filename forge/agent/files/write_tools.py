"""Tools that change the files of a folder: `write_file`, `edit_file`."""

from collections.abc import Callable

from forge.agent.files.editing import Unfound, edit
from forge.agent.files.root import Root, shown
from forge.agent.files.texts import lines_of, numbered, unfenced
from forge.errors import ToolResolutionError, quantity
from forge.tools.decorator import tool

# Small models write a short file anew better than they copy the lines to change.
_WRITE = "Write a whole file: a new one, or in place of what was in it. The best way to change a short one."
_EDIT_LONG = "Change a few lines of a long file."

_WRITE_NEW = "Write a new file."
_EDIT = "Change a few lines of a file."


def write_tools(root: Root, shown_chars: int, *, approval: bool, overwrite: bool) -> tuple[Callable[..., object], ...]:
    """The tools that write; `approval`: a person is asked first; `overwrite`: whole files may be replaced."""

    @tool(effect="write", approval=approval, idempotent=True, description=_WRITE if overwrite else _WRITE_NEW)
    def write_file(path: str, content: str) -> str:
        """Write a whole file.

        Args:
            path: The path of the file; folders that are not there are made.
            content: All of the text that the file is to have, also what stays as it was.
        """
        parts = root.resolved(path)
        if not overwrite and root.is_file(parts):
            raise ToolResolutionError(f"there is {shown(*parts)} already; change it with edit_file")
        content = unfenced(content, shown(*parts))
        before = quantity(len(lines_of(root.read(parts))), "line") if root.exists(parts) else ""
        root.write(parts, content)
        now = quantity(len(lines_of(content)), "line")
        return f"{shown(*parts)} has {now} now; before it had {before}" if before else f"{shown(*parts)} is new: {now}"

    @tool(effect="write", approval=approval, description=_EDIT_LONG if overwrite else _EDIT)
    def edit_file(path: str, old_snippet: str, new_snippet: str) -> str:
        """Change a few lines of a file.

        Args:
            path: The path of the file.
            old_snippet: The lines to change, copied exactly from the file, without line numbers.
            new_snippet: All of the lines that take their place, with their indentation.
        """
        parts = root.resolved(path)
        edited = edit(root.read(parts), old_snippet, new_snippet)
        if isinstance(edited, Unfound):
            raise ToolResolutionError(f"{shown(*parts)}: {edited.reason}")
        root.write(parts, edited.text)
        told, _ = numbered(lines_of(edited.text), max(1, edited.first - 1), edited.last + 1, shown_chars)
        return f"Done. The place in {shown(*parts)} is now:\n{told}"

    return write_file, edit_file
