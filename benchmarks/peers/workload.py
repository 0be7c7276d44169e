"""The one workload of every peer: N model replies, N-1 of them calls of three tools in rotation, the last `finish`.

Under the names that the shared bench gives its own, so that an adapter runs in either. Standard library only:
each peer has an environment of its own.
"""

import itertools
import json
import os
from collections.abc import Callable

SYSTEM = "You are a careful assistant. Take one step at a time and use the tools."
USER = "Go through every item on the list, then give the result."
FINAL_TEXT = "Every item is done; the result is 42."
_FILL = ("A result has the size of a paragraph, so that histories grow as they do in practice. " * 6)[:484]


class Count:
    """How many tool bodies ran: the worker checks it after each run."""

    tools = 0


def _result(head: str) -> str:
    Count.tools += 1
    return head[:15].ljust(16, ".") + _FILL


def search(query: str, limit: int) -> str:
    """Search the catalogue.

    Args:
        query: What to look for.
        limit: How many results at most.
    """
    return _result(f"search {query} {limit}")


def fetch(doc_id: int, section: str) -> str:
    """Fetch one section of a document.

    Args:
        doc_id: The number of the document.
        section: The name of the section.
    """
    return _result(f"fetch {doc_id} {section}")


def compute(a: float, b: float, op: str) -> str:
    """Do one step of arithmetic.

    Args:
        a: The left operand.
        b: The right operand.
        op: The name of the operation.
    """
    return _result(f"compute {a} {op} {b}")


def finish(answer: str) -> str:
    """Finish with the answer.

    Args:
        answer: The answer.
    """
    return answer


TOOLS: dict[str, Callable[..., str]] = {"search": search, "fetch": fetch, "compute": compute}
TOOL_NAMES = tuple(TOOLS)
_TYPES = {
    "search": {"query": "string", "limit": "integer"},
    "fetch": {"doc_id": "integer", "section": "string"},
    "compute": {"a": "number", "b": "number", "op": "string"},
    "finish": {"answer": "string"},
}
DESCRIPTIONS = {
    "search": "Search the catalogue.",
    "fetch": "Fetch one section of a document.",
    "compute": "Do one step of arithmetic.",
    "finish": "Finish with the answer.",
}
SCHEMAS: dict[str, dict[str, object]] = {
    name: {
        "type": "object",
        "properties": {key: {"type": kind, "description": f"The {key}."} for key, kind in types.items()},
        "required": list(types),
    }
    for name, types in _TYPES.items()
}


def openai_tools(*names: str) -> list[dict[str, object]]:
    """The `tools` of a request in the OpenAI protocol."""
    return [
        {
            "type": "function",
            "function": {"name": name, "description": DESCRIPTIONS[name], "parameters": SCHEMAS[name]},
        }
        for name in names
    ]


def step_name(step: int) -> str:
    """The tool that the model calls in that step, from 0."""
    return TOOL_NAMES[step % 3]


def step_args(step: int) -> dict[str, object]:
    """The arguments of that call."""
    match step_name(step):
        case "search":
            return {"query": f"item {step}", "limit": 5}
        case "fetch":
            return {"doc_id": step, "section": "summary"}
        case _:
            return {"a": step + 0.5, "b": 2.0, "op": "mul"}


def step_args_json(step: int) -> str:
    """The same as a model writes them."""
    return json.dumps(step_args(step))


_runs = itertools.count(1)


def model_name(turns: int, terminal: str) -> str:
    """The model that plays this script, for one run: the server needs to be told nothing else."""
    return f"script-{turns}-{terminal}-{os.getpid()}x{next(_runs)}"
