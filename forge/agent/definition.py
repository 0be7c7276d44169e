"""What an agent is made of: its options, its built-in tools and the workflow that follows from them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Generic, Literal, TypedDict, get_args

from msgspec import Meta

from forge.errors import DefinitionError
from forge.outcome import R_co
from forge.tools.definition import Calculations, Grounds, Tool, tool
from forge.workflow.checks import Nudges, OnText, literal
from forge.workflow.workflow import StageName, Workflow
from stages import Stage
from stages.compaction import Compactor
from stages.confidence.measure import WhenUnsure
from stages.effect import NeedsInput, Price, Said
from stages.fold import FailedAttempts, Reasoning
from stages.guards import no_echoes
from stages.nudges import how_to_end
from stages.objection import Guard
from stages.rescue import Family
from stages.rules import BatchPolicy, CompletionCheck, Escalation, InDoubtPolicy, OnViolation, RepairLimits, Use
from stages.view.notes import ContextWarning, Section, joined, sections_of
from stages.view.summary import Summarize

if TYPE_CHECKING:
    from typing import _SpecialForm  # what a type checker takes Annotated[…] and Literal[…] for


# The options that an agent has in common with a workflow, and what an agent makes of them.

MAX_ITERATIONS = 20
"""Maximum number of model calls for one message, unless the agent says otherwise."""


class AgentOptions(TypedDict, total=False):
    """Options of `forge.Workflow`, by the same names, for each turn of an agent."""

    terminal_tool: str | Sequence[str]
    required_steps: str | Sequence[str]
    optional_steps: str | Sequence[str]
    max_iterations: int
    max_tool_calls: int | None
    max_tokens: int | None
    max_seconds: float | None
    max_cost: float | None
    price: Price | None
    max_retries_per_step: int
    max_tool_errors: int
    max_repeats: int | None
    value_checks: bool
    iteration_warning: int
    progress_notes: bool
    rescue_enabled: bool
    repair_limits: RepairLimits | None
    families: Sequence[Family]
    nudges: Nudges | None
    escalation: Escalation | None
    without: Collection[str]
    stages: Sequence[StageName | Stage]
    guards: Sequence[Guard]
    grounded: Mapping[str, Grounds] | None
    calculated: Mapping[str, Calculations] | None
    order: Sequence[Use]
    completion_checks: Mapping[str, CompletionCheck] | None
    unsure: WhenUnsure | None
    batch: BatchPolicy
    on_violation: OnViolation
    max_parallel: int
    max_calls_per_reply: int
    in_doubt: InDoubtPolicy
    compactor: Compactor | None
    compact_at: float
    compact_to: float
    recall: bool
    summarize: bool | Summarize
    reasoning_replay: Reasoning
    failed_attempts: FailedAttempts
    context_thresholds: Sequence[float]
    on_context_threshold: ContextWarning | None


def with_defaults(options: AgentOptions) -> AgentOptions:
    """The options, bounded: 20 model calls a message, and a warning when a fifth of them is left.

    In a conversation an answer in words costs one model call, so none is asked about (`without=["ask_once"]`).
    """
    most = options.get("max_iterations", MAX_ITERATIONS)
    warning = max(1, most // 5) if isinstance(most, int) else 0  # of anything else the workflow says what is wrong
    return {
        "max_iterations": MAX_ITERATIONS,
        "iteration_warning": warning,
        "without": ("ask_once",),
        **options,
    }


# The tools that every agent may end its turn with: complete the task, ask the user, talk to the user.

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


# An agent's definition: the workflow that it runs for each message, and the sections of its system prompt.

AnyTool = Tool[..., object] | Callable[..., object]


@dataclass(frozen=True)
class Definition(Generic[R_co]):
    """What an agent is made of. The options are those of `forge.agent.Agent`."""

    name: str
    _: KW_ONLY
    tools: tuple[AnyTool, ...]
    instructions: str
    background: str
    on_text: OnText
    built_in_tools: Sequence[BuiltIn] | None
    result: "type[R_co] | _SpecialForm | None"
    options: AgentOptions

    @cached_property
    def built_in(self) -> tuple[BuiltIn, ...]:
        """The names of its built-in tools. A conversation without other tools needs none."""
        if self.built_in_tools is not None:
            return tuple(name for name in NAMES if name in self.built_in_tools)
        only_talks = self.on_text == "accept" and not self.tools and self.result is None
        return () if only_talks else built_in_names(self.on_text, result=self.result is not None)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The sections of its system prompt."""
        guidance = how_to_end(self.built_in, words=self.on_text == "accept")
        return sections_of({"instructions": self.instructions, "background": self.background, "guidance": guidance})

    @cached_property
    def workflow(self) -> Workflow[R_co]:
        """What it runs for each message. DefinitionError, with every mistake, for a wrong definition."""
        own = tuple(made if isinstance(made, Tool) else tool(made) for made in self.tools)
        if taken := sorted({made.name for made in own} & {*self.built_in}):
            raise DefinitionError(tuple(_RESERVED.format(name=name) for name in taken))
        echoes = (no_echoes("ask_question", "question"),) if "ask_question" in self.built_in else ()
        options: AgentOptions = {**self.options, "guards": (*echoes, *self.options.get("guards", ()))}
        return Workflow(
            self.name,
            tools=(*own, *built_in_tools(self.built_in)),
            system_prompt=literal(joined(self.sections)),
            # A tool for words is built in; the workflow adds none of its own.
            on_text="nudge" if self.on_text == "respond" else self.on_text,
            result=self.result,
            **with_defaults(options),
        )


_RESERVED = (
    "tools: {name} is the name of a built-in tool; rename yours, or leave that one out with built_in_tools=[…], the "
    "names of those to keep"
)
