"""Gates of a headless task: commands that must succeed before it is done; the agent is told what failed."""

import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from forge.agent.files.commands import Ran, run_process
from forge.agent.files.editing import ending, lines_of
from forge.agent.headless.task import Gate
from forge.errors import ToolResolutionError, quantity

_SHOWN_OUTPUT = 4_000
"""Maximum characters of a failed gate's output, for the agent and the record."""


_NOT_STARTED = 127
"""A shell's exit code for a missing program."""


class GateResult(Struct, frozen=True, kw_only=True):
    """The result of a gate in the agent's `attempt`, counted from 1; 0: before it began.

    `code` is the exit code; None after a timeout, 127 if it could not be started, with the reason in `output`.
    """

    command: tuple[str, ...]
    attempt: int
    passed: bool
    code: int | None
    seconds: float
    output: str


class Gates:
    """The gates of a task; `made` counts the attempts so far, including those before an interruption."""

    def __init__(self, gates: Sequence[Gate], folder: Path, attempts: int) -> None:
        self.results: list[GateResult] = []
        self.made = 0
        self._gates, self._folder, self._attempts = gates, folder, attempts

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._gates)

    @property
    def passed(self) -> bool:
        """Whether all passed in the last attempt."""
        last = [result.passed for result in self.results if result.attempt == self.made]
        return len(last) == len(self._gates) and all(last)

    @property
    def spent(self) -> bool:
        """Whether no attempt is left."""
        return self.made >= self._attempts

    async def attempt(self) -> str:
        """Count an attempt and run the gates until one fails; returns what to tell the agent, empty if all passed."""
        self.made += 1
        return await self.failure()

    async def failure(self) -> str:
        """Run the gates until one fails; returns what to tell the agent, empty if all passed."""
        for gate in self._gates:
            result = await self._run(gate)
            self.results.append(result)
            if not result.passed:
                how = f"fails (exit code {result.code})"
                if result.code is None:
                    how = f"did not finish within {quantity(gate.seconds, 'second')}"
                return f"{' '.join(gate.command)} {how}. Its output ends with:\n{result.output}"
        return ""

    async def _run(self, gate: Gate) -> GateResult:
        began = time.monotonic()
        try:
            ran = await run_process(gate.command, self._folder, gate.seconds, {})
        except ToolResolutionError as error:  # it cannot be started
            ran = Ran(code=_NOT_STARTED, output=str(error))
        took = round(time.monotonic() - began, 3)
        output, _ = ending(lines_of(ran.output), _SHOWN_OUTPUT)
        passed = ran.code == 0
        return GateResult(
            command=gate.command, attempt=self.made, passed=passed, code=ran.code, seconds=took, output=output
        )
