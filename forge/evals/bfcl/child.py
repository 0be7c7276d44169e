"""Questions to BFCL's own code, each in a process of its own, which the operating system bounds."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Literal

from forge.errors import ForgeError

_SECONDS = 60.0
"""What the process is given by the clock, on a busy machine; it bounds its processor time itself, to less."""


def ask_child(package: Path, kind: Literal["prompt", "calls", "result", "conversation"], **question: object) -> str:
    """The answer of that kind; the members of the question are the parameters of its function in child_program.py.

    ForgeError if it takes too long or too much memory.
    """
    # -I: nothing of the user's environment is imported in place of the package
    command = [sys.executable, "-I", str(Path(__file__).with_name("child_program.py")), str(package.parent)]
    run = partial(subprocess.run, capture_output=True, text=True, timeout=_SECONDS, check=True)
    try:
        return str(json.loads(run(command, input=json.dumps({"kind": kind, **question})).stdout))
    except subprocess.TimeoutExpired:
        raise ForgeError(f"BFCL's code was stopped after {_SECONDS:g} s") from None
    except subprocess.CalledProcessError as error:
        if error.returncode < 0:
            raise ForgeError(f"BFCL's code was stopped by signal {-error.returncode}") from None
        said = error.stderr.strip()[-300:]
        raise ForgeError(f"BFCL's code ended with exit code {error.returncode}: {said}") from None
