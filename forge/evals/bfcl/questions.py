"""BFCL's questions of one turn as scenarios: the functions are not run, the calls of one reply are judged."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from forge.errors import ForgeError
from forge.evals.bfcl.checker import Checker
from forge.evals.bfcl.functions import function_tool
from forge.evals.scenario import Trajectory, World
from forge.workflow.workflow import Workflow


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

    return World(workflow=_workflow(question, system), messages=(message,), right=right)


def _workflow(question: _Question, system: str) -> Workflow[Any]:
    return Workflow(
        "bfcl",
        tools=[function_tool(described, _not_run) for described in question.function],
        on_text="accept",
        batch="all",  # one reply is judged: no call can wait for the results of others
        system_prompt=re.sub(r"\{(\w+)\}", r"{{\1}}", system),  # no placeholders
    )


def _not_run(**_: object) -> None:
    raise ForgeError("functions of BFCL's questions of one turn are not run")
