"""The worker's end of the pipe: JSON lines from and to the runner, which has the tools and their world.

Only the standard library: workers import this in environments of their own.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN003, ANN201

import json
import sys

_out = sys.stdout
sys.stdout = sys.stderr  # what a framework prints must not get into the pipe


def orders():
    """Each task that is to be played: its user's messages, tools, rules, and the address of the model."""
    for line in sys.stdin:
        yield json.loads(line)


def tell(**said):
    """Tell the runner."""
    _out.write(json.dumps(said) + "\n")
    _out.flush()


def begin(message):
    """Tell the runner which of the user's messages is next, and wait until it is ready for what that leads to."""
    tell(message=message)
    sys.stdin.readline()


def run_tool(name, arguments):
    """What the runner says of a call: `text`, what the tool returned, or its `error`; `unresolved`: no such data.

    `ended`: the tool ends the run, and it did.
    """
    tell(call=name, arguments=arguments)
    return json.loads(sys.stdin.readline())
