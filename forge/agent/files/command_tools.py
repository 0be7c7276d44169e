"""Tools that run commands in a folder: `run_command`, and `read_output` for what was not shown of their output."""

import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from forge.agent.files.commands import Ran, run_process
from forge.agent.files.texts import ending, lines_of, numbered
from forge.errors import ToolResolutionError
from forge.tools.decorator import tool

_REMEMBERED = 10
"""Maximum number of outputs that are kept to be read on."""

_Words = Annotated[list[str], Meta(min_length=1, max_length=200)]
_From1 = Annotated[int, Meta(ge=1)]


def command_tools(
    folder: Path, shown_chars: int, timeout: float, environment: Mapping[str, str], *, approval: bool
) -> tuple[Callable[..., object], ...]:
    """The tools for commands; `approval`: a person is asked first. Outputs are kept as long as the tools are."""
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
        return _told(ran, timeout, keep(ran), shown_chars)

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


def _told(ran: Ran, timeout: float, number: int, shown_chars: int) -> str:
    """How the command ended, and the end of its output, where programs say what went wrong."""
    lines = lines_of(ran.output)
    told, first = ending(lines, shown_chars)
    if not lines:
        return f"{_ended(ran, timeout)}, without any output"
    if first == 1:
        return f"{_ended(ran, timeout)}:\n{told}"
    return (
        f"{_ended(ran, timeout)}. This is the end of its output, lines {first} to {len(lines)}; the rest can be had "
        f"with read_output, number={number}:\n{told}"
    )


def _ended(ran: Ran, timeout: float) -> str:
    if ran.code is None:
        return f"the command was ended because it had not finished after {timeout:g} seconds"
    if ran.code < 0:
        return f"the command was ended by the signal {signal.Signals(-ran.code).name}"
    return f"exit code {ran.code}{' (success)' if ran.code == 0 else ''}"
