"""The definition of an agent: its options, its built-in tools and the resulting workflow."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Generic, Literal, get_args

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
    return NeedsInput(question=_given(question, "question"), suggestions=tuple(suggestions))


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


def built_in_tools(names: Collection[BuiltIn]) -> tuple[Tool[..., object], ...]:
    """The tools with these names, in forge's order."""
    return tuple(tool(effect="terminal", idempotent=True)(_FUNCTIONS[name]) for name in NAMES if name in names)


# The definition: the workflow for each message, and the sections of its system prompt.

AnyTool = Tool[..., object] | Callable[..., object]


@dataclass(frozen=True)
class Definition(Generic[R_co]):
    """The options of `forge.agent.Agent`."""

    name: str
    _: KW_ONLY
    tools: tuple[AnyTool, ...]
    instructions: str
    background: str
    on_text: OnText
    built_in_tools: Sequence[BuiltIn] | None
    result: "type[R_co] | _SpecialForm | None"
    options: TurnOptions

    @cached_property
    def built_in(self) -> tuple[BuiltIn, ...]:
        """The names of the agent's built-in tools; a conversation without other tools needs none."""
        if self.built_in_tools is not None:
            return tuple(name for name in NAMES if name in self.built_in_tools)
        if self.on_text == "accept" and not self.tools and self.result is None:
            return ()
        # No `converse` if a text reply is an answer or will be corrected anyway, no `task_completion` if the task ends
        # with a typed `result`.
        needless = {"task_completion": self.result is not None, "converse": self.on_text != "respond"}
        return tuple(name for name in NAMES if not needless.get(name, False))

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The sections of the system prompt."""
        guidance = how_to_end(self.built_in, words=self.on_text == "accept")
        return sections_of({"instructions": self.instructions, "background": self.background, "guidance": guidance})

    @cached_property
    def workflow(self) -> Workflow[R_co]:
        """The workflow for each message. DefinitionError, with every mistake, for an invalid definition."""
        own = tuple(made if isinstance(made, Tool) else tool(made) for made in self.tools)
        if taken := sorted({made.name for made in own} & {*self.built_in}):
            raise DefinitionError(tuple(_RESERVED.format(name=name) for name in taken))
        echoes = (no_echoes("ask_question", "question"),) if "ask_question" in self.built_in else ()
        # At most 20 model calls per message, with a warning when a fifth is left. In a conversation, a text answer is
        # expected, so forge does not ask whether a call was meant.
        limits, context = self.options.get("limits", Limits()), self.options.get("context", Context())
        without = self.options.get("without", ())
        most = limits.max_iterations or _MAX_ITERATIONS
        warning = max(1, most // 5) if context.iteration_warning is None else context.iteration_warning
        options: TurnOptions = {
            **self.options,
            "guards": (*echoes, *self.options.get("guards", ())),
            "without": {"ask_once", *((without,) if isinstance(without, str) else without)},
            "limits": replace(limits, max_iterations=most),
            "context": replace(context, iteration_warning=warning),
        }
        return Workflow(
            self.name,
            tools=(*own, *built_in_tools(self.built_in)),
            system_prompt=literal(joined(self.sections)),
            # The tool for text answers is built in; the workflow must not add its own.
            on_text="nudge" if self.on_text == "respond" else self.on_text,
            result=self.result,
            **options,
        )


_RESERVED = (
    "tools: {name} is the name of a built-in tool; rename yours, or leave that one out with built_in_tools=[…], the "
    "names of those to keep"
)
