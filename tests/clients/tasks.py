"""Tasks: small real jobs for a coding agent, each with the check of the files that it left and of what it said."""

import re
from collections.abc import Callable, Mapping

from msgspec import Struct

LIMIT = 300.0
"""Seconds of a run: an agent that is not done by then has not finished."""


class Task(Struct, frozen=True):
    """`files` of the folder at the start; `done` looks at those at the end and at what the agent said."""

    name: str
    files: Mapping[str, str]
    ask: str
    done: Callable[[Mapping[str, str], str], bool]


_NOTES = "Monday: paint the shed.\nTuesday: the ferry leaves from Halden at nine.\nWednesday: call the bank.\n"
_CONFIG = "[server]\nhost = 127.0.0.1\nport = 8080\nworkers = 2\n"
_SCRIPT = 'n=$(wc -l < names.txt)\necho done >> runs.log\necho "total: $((n * 157 + 4))"\n'
_NAMES = "Ada\nBo\nCleo\n"


def _read(left: Mapping[str, str], said: str) -> bool:
    return "Halden" in said and left.get("notes.txt") == _NOTES


def _changed(left: Mapping[str, str], _: str) -> bool:
    return left.get("server.ini", "").rstrip("\n") == _CONFIG.replace("8080", "9090").rstrip("\n")


def _ran(left: Mapping[str, str], said: str) -> bool:
    """The number stands in no file: only who has run the script knows it."""
    return "runs.log" in left and re.search(r"\b475\b", said) is not None


TASKS = (
    Task("read", {"notes.txt": _NOTES}, "Read the file notes.txt and tell me from which town the ferry leaves.", _read),
    Task(
        "change",
        {"server.ini": _CONFIG},
        "In the file server.ini change the port from 8080 to 9090. Leave the other lines as they are.",
        _changed,
    ),
    Task(
        "run",
        {"count.sh": _SCRIPT, "names.txt": _NAMES},
        "Run the command `sh count.sh` and tell me the total that it prints.",
        _ran,
    ),
)
