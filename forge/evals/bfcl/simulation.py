"""BFCL's simulated functions, each run or judged in a process of its own that the operating system bounds."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from forge.errors import ForgeError

_SECONDS = 60.0
"""What the process is given by the clock, on a busy machine; it bounds its processor time itself, to less."""

SimulatedCall = Mapping[str, object]
"""A call: its `name` and its `arguments`."""


class Simulation(Struct, frozen=True, kw_only=True):
    """A conversation's simulated classes. `entry` is it as the package has it, `names` are the functions offered.

    It holds no state: each time a new process makes all calls so far again, which takes no longer than its start.
    """

    package: Path
    entry: Mapping[str, Any]
    names: tuple[str, ...]

    def last_result(self, calls: Sequence[SimulatedCall]) -> str:
        """What the last of these calls returns, as text. ForgeError if it takes too long, or too much memory."""
        return self._ask([calls], None)

    def wrong(self, turns: Sequence[Sequence[SimulatedCall]], answer: object) -> str:
        """What is wrong with the calls for each message; empty: nothing."""
        return self._ask(turns, answer)

    def _ask(self, turns: Sequence[Sequence[SimulatedCall]], answer: object) -> str:
        program = Path(__file__).with_name("simulation_program.py")
        # -I: nothing of the user's environment is imported in place of the package
        command = [sys.executable, "-I", str(program), str(self.package.parent)]
        question = json.dumps({"entry": self.entry, "names": self.names, "turns": turns, "answer": answer})
        run = partial(subprocess.run, capture_output=True, text=True, timeout=_SECONDS, check=True)
        try:
            return str(json.loads(run(command, input=question).stdout))
        except subprocess.TimeoutExpired:
            raise ForgeError(f"BFCL's functions were stopped after {_SECONDS:g} s") from None
        except subprocess.CalledProcessError as error:
            if error.returncode < 0:
                raise ForgeError(f"BFCL's functions were stopped by signal {-error.returncode}") from None
            said = error.stderr.strip()[-300:]
            raise ForgeError(f"BFCL's functions ended with exit code {error.returncode}: {said}") from None
