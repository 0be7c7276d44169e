"""The tools that every agent may end its turn with: complete the task, ask the user, talk to the user."""

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Literal, get_args

from msgspec import Meta

from forge.tools.decorator import Tool, tool
from forge.workflow.checks import OnText
from stages.effect import NeedsInput, Said

BuiltIn = Literal["task_completion", "ask_question", "converse"]

_Suggestions = Annotated[list[str], Meta(max_length=4)]


def task_completion(result: str) -> str:
    """Finish: everything that the user asked for is done.

    Args:
        result: The complete result for the user, in clear words; no question, no offer.
    """
    return _given(result, "result")


def ask_question(question: str, suggestions: _Suggestions = []) -> NeedsInput:  # noqa: B006 - never changed
    """Ask the user for something that only the user knows.

    Args:
        question: The question.
        suggestions: Up to 4 answers to choose from.
    """
    return NeedsInput(question=_given(question, "question"), suggestions=tuple(suggestions))


def converse(message: str) -> Said:
    """Answer the user in words: to chat, to explain, to greet.

    Args:
        message: What the user is told.
    """
    return Said(text=_given(message, "message"))


def _given(text: str, name: str) -> str:
    """The text. ValueError, which the model is told, if it is empty."""
    if not text.strip():
        raise ValueError(f"{name} is empty; write it out")
    return text


_FUNCTIONS: Mapping[BuiltIn, Callable[..., object]] = {
    "task_completion": task_completion,
    "ask_question": ask_question,
    "converse": converse,
}

NAMES: tuple[BuiltIn, ...] = get_args(BuiltIn)


def built_in_names(on_text: OnText, *, result: bool) -> tuple[BuiltIn, ...]:
    """Those that an agent has unless it says otherwise.

    Without `converse` where a reply in words is an answer or is to be corrected anyway, and without `task_completion`
    where the task is completed with a `result` of a type.
    """
    needless = {"task_completion": result, "converse": on_text != "respond"}
    return tuple(name for name in NAMES if not needless.get(name, False))


def built_in_tools(names: Collection[BuiltIn]) -> tuple[Tool[..., object], ...]:
    """The tools of these names, in forge's own order."""
    return tuple(tool(effect="terminal", idempotent=True)(_FUNCTIONS[name]) for name in NAMES if name in names)
