"""The tools of a folder, as one tuple."""

import os
from collections.abc import Callable, Mapping

from forge.agent.files.command_tools import command_tools
from forge.agent.files.read_tools import read_tools
from forge.agent.files.root import Root
from forge.agent.files.write_tools import write_tools
from forge.errors import DefinitionError


def file_tools(
    folder: str | os.PathLike[str],
    *,
    write: bool = True,
    commands: bool = True,
    approval: bool = True,
    follow_links: bool = True,
    overwrite: bool = True,
    timeout: float = 120.0,
    shown_chars: int = 8_000,
    environment: Mapping[str, str] | None = None,
) -> tuple[Callable[..., object], ...]:
    """Tools for an agent or a workflow that works on the files of `folder`, and on no others.

    `read_file`, `list_files` and `search_files`; with `write` also `write_file` and `edit_file`; with `commands` also
    `run_command` and `read_output`. Each write and each command asks a person first, unless `approval` is False.
    `follow_links`: symbolic links whose target is in the folder are followed; False: none is. `overwrite`: `write_file`
    may replace files; False: it only makes new ones. A command is ended after `timeout` seconds; it is given the
    environment variables that programs need, none that may hold secrets, and `environment` besides. `shown_chars`:
    maximum characters of a file or an output that the model is shown at once.
    DefinitionError for what is no folder, and where the system cannot open files relative to a folder (Windows).
    """
    if timeout <= 0 or shown_chars < 1:
        raise DefinitionError(("file_tools: timeout and shown_chars must be more than 0",))
    root = Root(folder, follow_links=follow_links)
    return (
        *read_tools(root, shown_chars),
        *(write_tools(root, shown_chars, approval=approval, overwrite=overwrite) if write else ()),
        *(command_tools(root.path, shown_chars, timeout, environment or {}, approval=approval) if commands else ()),
    )
