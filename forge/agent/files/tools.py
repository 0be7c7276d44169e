"""The file tools: read, list, search, write, edit, run commands."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from forge.agent.files.commands import Ran, run_process
from forge.agent.files.editing import Unfound, edit, ending, lines_of, lines_with, numbered, one_line, unfenced
from forge.agent.files.root import Entry, Parts, Root, is_machinery, shown, walked
from forge.errors import ToolResolutionError, checked_options, quantity
from forge.tools.definition import tool
from stages.options import AtLeastOne, Seconds, did_you_mean

# Tools that read: `read_file`, `list_files`, `search_files`.

_LISTED, _MATCHES, _SEARCHED = 200, 50, 2_000
"""Maximum entries in a list, matches of a search, and files to search."""

_NAMED = 20
"""Maximum files to name if the requested one does not exist."""

_From1 = Annotated[int, Meta(ge=1)]


def _read_tools(root: Root, shown_chars: int) -> tuple[Callable[..., object], ...]:
    """The tools that read; `shown_chars` is the maximum to show of a file at once."""

    @tool(effect="read")
    def read_file(path: str, first_line: _From1 = 1) -> str:
        """Read a text file. Each line is shown with its number and a bar, which are not part of the file.

        Args:
            path: The path of the file.
            first_line: The line to begin with, for a file that is too long to be shown at once.
        """
        parts = root.resolved(path)
        if not root.exists(parts):
            raise ToolResolutionError(f"there is no file {shown(*parts)}.{_meant(root, parts)}")
        lines = lines_of(root.read(parts))
        if not lines:
            return f"{shown(*parts)} is empty"
        # A higher number is probably a line of something else, such as a test's output.
        first = first_line if first_line <= len(lines) else 1
        told, end = numbered(lines, first, len(lines), shown_chars)
        more = f"\n[more: read_file with first_line={end + 1}]" if end < len(lines) else ""
        return f"{shown(*parts)}, lines {first} to {end} of {len(lines)}:\n{told}{more}"

    @tool(effect="read")
    def list_files(folder: str = ".") -> str:
        """List the files of a folder and of the folders in it.

        Args:
            folder: The folder; without it, all that there is.
        """
        found = list(islice(walked(root, root.resolved(folder)), _LISTED + 1))
        lines = [_named(entry) for entry in found[:_LISTED]]
        if len(found) > _LISTED:
            lines.append(f"[more than {_LISTED}; name a folder to list what is in it]")
        return "\n".join(lines) or "the folder is empty"

    @tool(effect="read")
    def search_files(text: str, folder: str = ".", ignore_case: bool = False) -> str:
        """Find the lines of files that contain a text. The text is taken as it is: no pattern, no wildcards.

        Args:
            text: The text to find, within one line.
            folder: The folder to search; without it, all.
            ignore_case: Whether upper and lower case are the same.
        """
        start = root.resolved(folder)
        if not text or "\n" in text:
            raise ToolResolutionError("give a text within one line; it cannot be empty")
        files = [start] if root.is_file(start) else [e.parts for e in walked(root, start) if e.kind == "file"]
        found = list(islice(_matches(root, files[:_SEARCHED], text, ignore_case=ignore_case), _MATCHES + 1))
        lines = found[:_MATCHES] or [f"no line contains {one_line(text)!r}"]
        if len(found) > _MATCHES:
            lines.append(f"[more than {_MATCHES} lines; search for a longer text or in one folder]")
        if len(files) > _SEARCHED:
            lines.append(f"[only {_SEARCHED} of {len(files)} files were searched; name a folder]")
        return "\n".join(lines)

    return read_file, list_files, search_files


def _meant(root: Root, parts: Parts) -> str:
    """A suggestion for a missing file: one with the same or a similar name, otherwise a list of files."""
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


def _matches(root: Root, files: list[Parts], text: str, *, ignore_case: bool) -> Iterator[str]:
    for parts in files:
        try:
            content = root.read(parts)
        except ToolResolutionError:
            continue  # binary, too large or unreadable
        for number, line in lines_with(content, text, ignore_case=ignore_case):
            yield f"{shown(*parts)}:{number}: {one_line(line)}"


# Tools that write: `write_file`, `edit_file`.
#
# Small models are better at rewriting a short file than at copying the lines to change.
_WRITE = "Write a whole file: a new one, or in place of what was in it. The best way to change a short one."
_EDIT_LONG = "Change a few lines of a long file."

_WRITE_NEW = "Write a new file."
_EDIT = "Change a few lines of a file."


def _write_tools(root: Root, shown_chars: int, *, approval: bool, overwrite: bool) -> tuple[Callable[..., object], ...]:
    """The tools that write. `approval`: ask a person first; `overwrite`: existing files may be replaced."""

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
        before = ""
        if root.exists(parts):
            try:
                before = quantity(len(lines_of(root.read(parts))), "line")
            except ToolResolutionError:  # a binary or large file cannot be shown, but may be replaced
                before = "no readable text"
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


# Tools that run commands: `run_command`, and `read_output` for the parts of the output that were not shown.

_REMEMBERED = 10
"""Maximum number of outputs to keep for `read_output`."""

_Words = Annotated[list[str], Meta(min_length=1, max_length=200)]


def _command_tools(
    folder: Path, shown_chars: int, timeout: float, environment: Mapping[str, str], *, approval: bool
) -> tuple[Callable[..., object], ...]:
    """The tools for commands. `approval`: ask a person first. Outputs are kept as long as the tools exist."""
    outputs: dict[int, list[str]] = {}

    def keep(ran: Ran) -> int:
        number = max(outputs, default=0) + 1
        outputs[number] = lines_of(ran.output)
        outputs.pop(number - _REMEMBERED, None)
        return number

    @tool(effect="write", approval=approval)
    async def run_command(command: _Words) -> str:
        """Run a program in the folder, such as the tests. There is no shell: no pipes, no redirection, no wildcards.

        Args:
            command: The program and its arguments, each by itself, such as ["python", "-m", "pytest", "-q"].
        """
        ran = await run_process(command, folder, timeout, environment)
        number, lines = keep(ran), lines_of(ran.output)
        # Programs report errors at the end of their output.
        told, first = ending(lines, shown_chars)
        if not lines:
            return f"{_ended(ran, timeout)}, without any output"
        if first == 1:
            return f"{_ended(ran, timeout)}:\n{told}"
        rest = f"the rest can be had with read_output, number={number}"
        return f"{_ended(ran, timeout)}. This is the end of its output, lines {first} to {len(lines)}; {rest}:\n{told}"

    @tool(effect="read", prerequisites="run_command")
    def read_output(number: _From1, first_line: _From1 = 1) -> str:
        """Read on in the output of an earlier command that was too long to be shown whole.

        Args:
            number: The number of the output.
            first_line: The first line to read.
        """
        if number not in outputs:
            known = ", ".join(map(str, outputs)) or "none"
            raise ToolResolutionError(
                f"there is no output {number} any more; there are: {known}. Run the command again"
            )
        lines = outputs[number]
        if first_line > len(lines):
            raise ToolResolutionError(f"output {number} has {len(lines)} lines; there is no line {first_line}")
        told, end = numbered(lines, first_line, len(lines), shown_chars)
        more = f"\n[more: read_output with number={number}, first_line={end + 1}]" if end < len(lines) else ""
        return f"output {number}, lines {first_line} to {end} of {len(lines)}:\n{told}{more}"

    return run_command, read_output


def _ended(ran: Ran, timeout: float) -> str:
    if ran.code is None:
        return f"the command was ended because it had not finished after {quantity(timeout, 'second')}"
    if ran.code < 0:
        # Real-time signals have no names.
        name = next((one.name for one in signal.Signals if one == -ran.code), -ran.code)
        return f"the command was ended by the signal {name}"
    return f"exit code {ran.code}{' (success)' if ran.code == 0 else ''}"


# All tools of a folder.


@checked_options
def file_tools(
    folder: str | os.PathLike[str],
    *,
    write: bool = True,
    commands: bool = True,
    approval: bool = True,
    follow_links: bool = True,
    overwrite: bool = True,
    timeout: Seconds = 120.0,
    shown_chars: AtLeastOne = 8_000,
    environment: Mapping[str, str] | None = None,
) -> tuple[Callable[..., object], ...]:
    """Tools for an agent or a workflow that works in `folder`, and nowhere else.

    `read_file`, `list_files` and `search_files`; with `write` also `write_file` and `edit_file`; with `commands` also
    `run_command` and `read_output`. Each write and each command asks a person first, unless `approval` is False.
    `follow_links`: follow symbolic links whose target is in the folder. `overwrite`: `write_file` may replace existing
    files. Commands end after `timeout` seconds; they get the environment variables that programs need, without any that
    may hold secrets, and `environment`. `shown_chars`: maximum characters of a file or an output to show at once.
    DefinitionError if `folder` is not a folder, or the system cannot open files relative to a folder (Windows).
    """
    root = Root(folder, follow_links=follow_links)
    return (
        *_read_tools(root, shown_chars),
        *(_write_tools(root, shown_chars, approval=approval, overwrite=overwrite) if write else ()),
        *(_command_tools(root.path, shown_chars, timeout, environment or {}, approval=approval) if commands else ()),
    )
