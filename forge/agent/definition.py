"""The definition of an agent: its options, its built-in tools and the resulting workflow."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from msgspec import Meta
from msgspec.structs import replace

from forge.errors import DefinitionError
from forge.outcome import R_co
from forge.tools.definition import Tool, tool
from forge.workflow.checks import OnText, literal
from forge.workflow.workflow import Context, TurnOptions, Workflow
from stages.effect import NeedsInput, Said
from stages.guards import no_echoes
from stages.nudges import how_to_end
from stages.rules import Limits
from stages.view.prompt import Section, joined, sections_of

if TYPE_CHECKING:
    from typing import _SpecialForm  # the type that checkers give Annotated[…] and Literal[…]


_MAX_ITERATIONS = 20
"""Maximum model calls per message, unless the agent sets another limit."""


# Built-in tools that end a turn: complete the task, ask the user, talk to the user.

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
    return NeedsInput(question=question, suggestions=tuple(suggestions))


def converse(message: str) -> Said:
    """Answer the user in words: to chat, to explain, to greet.

    Args:
        message: What the user is told.
    """
    return Said(text=_given(message, "message"))


def _given(text: str, name: str) -> str:
    """The text. ValueError, shown to the model, if it is empty."""
    if not text.strip():
        raise ValueError(f"{name} is empty; write it out")
    return text


_FUNCTIONS: Mapping[BuiltIn, Callable[..., object]] = {
    "task_completion": task_completion,
    "ask_question": ask_question,
    "converse": converse,
}

NAMES: tuple[BuiltIn, ...] = get_args(BuiltIn)


# The definition: the workflow for each message, and the sections of its system prompt.

AnyTool = Tool[..., object] | Callable[..., object]


def agent_workflow(
    name: str,
    *,
    tools: Sequence[AnyTool],
    instructions: str,
    background: str,
    on_text: OnText,
    built_in_tools: Sequence[BuiltIn] | None,
    result: "type[R_co] | _SpecialForm | None",
    options: TurnOptions,
) -> tuple[Workflow[R_co], tuple[Section, ...]]:
    """The workflow for each message of an agent, and the sections of its system prompt.

    DefinitionError, with every mistake, for an invalid definition.
    """
    if built_in_tools is not None:
        built_in = tuple(one for one in NAMES if one in built_in_tools)
    elif on_text == "accept" and not tools and result is None:
        built_in = ()  # a conversation without other tools needs none
    else:
        # No `converse` if a text reply is an answer or will be corrected anyway, no `task_completion` if the task ends
        # with a typed `result`.
        needless = {"task_completion": result is not None, "converse": on_text != "respond"}
        built_in = tuple(one for one in NAMES if not needless.get(one, False))
    own = tuple(made if isinstance(made, Tool) else tool(made) for made in tools)
    if taken := sorted({made.name for made in own} & {*built_in}):
        problem = (
            "tools: {} is the name of a built-in tool; rename yours, or leave that one out with built_in_tools=[…], "
            "the names of those to keep"
        )
        raise DefinitionError(tuple(map(problem.format, taken)))
    guidance = how_to_end(built_in, words=on_text == "accept")
    sections = sections_of({"instructions": instructions, "background": background, "guidance": guidance})
    echoes = (no_echoes("ask_question", "question"),) if "ask_question" in built_in else ()
    # At most 20 model calls per message, with a warning when a fifth is left. In a conversation, a text answer is
    # expected, so forge does not ask whether a call was meant.
    limits, context = options.get("limits", Limits()), options.get("context", Context())
    without = options.get("without", ())
    most = limits.max_iterations or _MAX_ITERATIONS
    warning = max(1, most // 5) if context.iteration_warning is None else context.iteration_warning
    completed: TurnOptions = {
        **options,
        "guards": (*echoes, *options.get("guards", ())),
        "without": {"ask_once", *((without,) if isinstance(without, str) else without)},
        "limits": replace(limits, max_iterations=most),
        "context": replace(context, iteration_warning=warning),
    }
    ends = (tool(effect="terminal", idempotent=True)(_FUNCTIONS[one]) for one in built_in)
    workflow = Workflow(
        name,
        tools=(*own, *ends),
        system_prompt=literal(joined(sections)),
        # The tool for text answers is built in; the workflow must not add its own.
        on_text="nudge" if on_text == "respond" else on_text,
        result=result,
        **completed,
    )
    return workflow, sections
