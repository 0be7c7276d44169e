"""BFCL's data: the package, its questions, its functions as tools."""

import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock
from msgspec import Struct

from benchmarks.bfcl.checker import Checker
from forge.backends.servers.download import cache_folder, fetch_wheel
from forge.backends.servers.models import Wheel
from forge.errors import ForgeError
from forge.evals.scenario import Trajectory, World
from forge.tools.definition import Tool, ToolDef
from forge.workflow.workflow import Workflow
from stages.rules import Calls

# The package `bfcl-eval` and what its simulated functions need, fetched by hash into the user's cache folder.

BFCL = Wheel(
    distribution="bfcl-eval",
    version="2026.3.23",
    sha256="3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
)
"""Apache-2.0. Its version is a part of what is measured: questions and answers have been corrected between versions."""

_MPMATH = Wheel(
    distribution="mpmath",
    version="1.3.0",
    sha256="a0b2b9fe80bbcd81a6647ff13108738cfb482d481d826cc0e02f5b35e5c88d2c",
)
"""The one package that the simulated functions import, in the version that bfcl-eval asks for. BSD."""


def ensure_package() -> Path:
    """The folder of the unpacked package, beside mpmath's; both fetched (3 MB) if they are not there.

    ModelUnavailable if they cannot be had.
    """
    home = cache_folder().with_name("bfcl")
    place = home / f"{BFCL.version}-{BFCL.sha256[:8]}-{_MPMATH.sha256[:8]}"
    if not place.exists():
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / ".lock"), tempfile.TemporaryDirectory(dir=home) as folder:
            if not place.exists():
                unpacked = Path(folder) / "unpacked"
                for wheel in (BFCL, _MPMATH):
                    fetched = Path(folder) / wheel.distribution
                    fetched.mkdir()
                    file = fetch_wheel("the data of BFCL", wheel, fetched, lambda _: None)
                    with zipfile.ZipFile(file) as archive:
                        archive.extractall(unpacked)
                shutil.move(unpacked, place)
    return place / "bfcl_eval"


# BFCL's functions as tools of forge: their names without points, their parameters as JSON Schema.


def function_tool(described: Mapping[str, Any], function: Callable[..., object]) -> Tool[..., object]:
    """The tool of a function as BFCL describes it."""
    return ToolDef(
        name=tool_name(str(described["name"])),
        description=str(described.get("description", "")),
        parameters=_json_schema(described["parameters"]),
        function=function,
    )


def tool_name(function: str) -> str:
    """The name without points, which no protocol of tool calls allows."""
    return function.replace(".", "_")


_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
"""Types of BFCL that JSON Schema names otherwise."""


def _json_schema(schema: Any) -> Any:
    match schema:
        case dict():
            made = {key: _json_schema(value) for key, value in schema.items() if key != "optional"}
            kind = made.get("type")
            if isinstance(kind, str) and kind in _TYPES:
                made |= {"type": _TYPES[kind]}
                if made["type"] is None:
                    del made["type"]
            return made
        case list():
            return [_json_schema(one) for one in schema]
        case _:
            return schema


# BFCL's questions of one turn as scenarios: the functions are not run, the calls of one reply are judged.


class _Message(Struct, frozen=True):
    """A message of a question."""

    role: str
    content: str


class _Question(Struct, frozen=True):
    """A question: its conversation, and the functions that are offered."""

    question: tuple[tuple[_Message, ...], ...]
    function: tuple[dict[str, Any], ...]


def question_world(checker: Checker, category: str, entry: Mapping[str, Any], answer: object) -> World:
    """The world of an entry of that category, judged by the package's checker."""
    question = msgspec.convert(entry, _Question)
    (said,) = question.question
    system = "\n\n".join(one.content for one in said if one.role == "system")
    # Five of 3,500 questions hold an earlier exchange; it is told in the message.
    message = "\n\n".join(one.content for one in said if one.role != "system")

    def right(trajectory: Trajectory) -> str:
        calls = [{call.tool: call.arguments} for call in trajectory.calls]
        if "irrelevance" in category:
            return f"it called {', '.join(call.tool for call in trajectory.calls)}" if calls else ""
        if "relevance" in category:
            return "" if calls else "it called nothing"
        return checker.wrong(category, question.function, calls, answer)

    def not_run(**_: object) -> None:
        raise ForgeError("functions of BFCL's questions of one turn are not run")

    workflow: Workflow[Any] = Workflow(
        "bfcl",
        tools=[function_tool(described, not_run) for described in question.function],
        on_text="accept",
        calls=Calls(batch="all"),  # one reply is judged: no call can wait for the results of others
        system_prompt=re.sub(r"\{(\w+)\}", r"{{\1}}", system),  # no placeholders
    )
    return World(workflow=workflow, messages=(message,), right=right)
