"""The categories of BFCL as scenarios: one question a seed, in an order that a seed does not choose."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from forge.errors import ForgeError
from forge.evals.bfcl.checker import Checker
from forge.evals.scenario import Scenario, Trajectory, World
from forge.tools.decorator import Tool
from forge.tools.definition import ToolDef
from forge.workflow.workflow import Workflow

CATEGORIES: Mapping[str, str] = MappingProxyType(
    {
        "simple_python": "one function, one call",
        "multiple": "several functions, one call of the right one",
        "parallel": "one function, several calls in one reply",
        "parallel_multiple": "several functions, several calls in one reply",
        "irrelevance": "no function fits: no call",
        "live_simple": "as simple, asked by users",
        "live_multiple": "as multiple, asked by users",
        "live_parallel": "as parallel, asked by users",
        "live_parallel_multiple": "as parallel_multiple, asked by users",
        "live_irrelevance": "as irrelevance, asked by users",
        "live_relevance": "a function fits: at least one call, whichever",
    }
)


class _Message(Struct, frozen=True):
    """A message of a question."""

    role: str
    content: str


class Question(Struct, frozen=True):
    """A question: its conversation, and the functions that are offered."""

    id: str
    question: tuple[tuple[_Message, ...], ...]
    function: tuple[dict[str, Any], ...]


class _Answer(Struct, frozen=True):
    id: str
    ground_truth: Any


def scenarios(package: Path, checker: Checker, categories: Iterable[str]) -> tuple[Scenario, ...]:
    """These categories; a seed from 1 on is the number of a question."""
    return tuple(_scenario(package, checker, name) for name in categories)


def _scenario(package: Path, checker: Checker, name: str) -> Scenario:
    questions, answers = _questions(package, name), _answers(package, name)

    def world(seed: int) -> World:
        question = questions[seed - 1]
        return _world(question, name, partial(checker.wrong, name, question.function), answers.get(question.id))

    return Scenario(
        name=f"bfcl/{name}",
        about=CATEGORIES[name],
        world=world,
        ideal_calls=1,
        tags=frozenset({"bfcl"}),
        seeds=len(questions),
    )


def _questions(package: Path, category: str) -> list[Question]:
    """The questions in the order of a hash, so that the first hundred are a fair sample."""
    file = package / "data" / f"BFCL_v4_{category}.json"
    questions = [msgspec.json.decode(line, type=Question) for line in file.read_bytes().splitlines()]
    return sorted(questions, key=lambda question: hashlib.sha256(question.id.encode()).digest())


def _answers(package: Path, category: str) -> Mapping[str, object]:
    file = package / "data" / "possible_answer" / f"BFCL_v4_{category}.json"
    if not file.exists():
        return {}
    answers = (msgspec.json.decode(line, type=_Answer) for line in file.read_bytes().splitlines())
    return {answer.id: answer.ground_truth for answer in answers}


def _world(
    question: Question, category: str, wrong: Callable[[Sequence[Mapping[str, object]], object], str], answer: object
) -> World:
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
        return wrong(calls, answer)

    return World(workflow=_workflow(question, system), messages=(message,), right=right)


def _workflow(question: Question, system: str) -> Workflow[Any]:
    """The functions as tools that are not run: what is judged is one reply."""
    return Workflow(
        "bfcl",
        tools=[_tool(function) for function in question.function],
        on_text="accept",
        system_prompt=re.sub(r"\{(\w+)\}", r"{{\1}}", system),  # no placeholders
    )


def _tool(function: Mapping[str, Any]) -> Tool[..., object]:
    return ToolDef(
        name=tool_name(str(function["name"])),
        description=str(function.get("description", "")),
        parameters=_json_schema(function["parameters"]),
        function=_not_run,
    )


def tool_name(function: str) -> str:
    """The name without points, which no protocol of tool calls allows."""
    return function.replace(".", "_")


def _not_run(**_: object) -> None:
    raise ForgeError("functions of BFCL are not run")


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
