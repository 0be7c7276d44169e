"""Workflow: what a run may do."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, Self, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from forge.callbacks import placed, placed_guard
from forge.connection import Setup
from forge.errors import DefinitionError, checked_options
from forge.interpreters.tools import Tools
from forge.outcome import Finished, R_co
from forge.tools.definition import (
    Calculations,
    Grounds,
    Tool,
    calculated_mistakes,
    calculated_specs,
    respond_tool,
    several,
    tool,
)
from forge.workflow.checks import (
    Nudges,
    OnText,
    function_mistakes,
    grounded_specs,
    guard_mistakes,
    hint,
    mistakes,
    nudge_mistakes,
    own_checks,
    own_families,
    own_order,
    rewords,
    without_mistakes,
)
from forge.workflow.result_type import RESULT, Decode, result_of, result_tool
from forge.workflow.stage_list import STAGE_NAMES, stage_mistakes
from forge.workflow.start import initial_state, next_state
from stages import rescue
from stages.compaction import Compacted, Compactor, ContextBudget
from stages.confidence.measure import WhenUnsure
from stages.effect import Budget
from stages.fold import FailedAttempts, Reasoning
from stages.guards import CompletionCheck, guards_of, sees_results, tool_calls
from stages.halt import CannotFit
from stages.message import History
from stages.objection import Guard, NudgeKind, Reword
from stages.options import Count, Options, Share, wrong_options
from stages.order import Use
from stages.pipeline import Stage
from stages.reading.toolset import Toolset, toolset_of
from stages.rescue.markers import Grammars, Openers, openers
from stages.rules import Calls, Limits, Rules, required_tools, undeclared_writes, unneeded_writes
from stages.schema import Check
from stages.state import Completed, StageName, State
from stages.tool import RECALL, ToolSpec
from stages.view.summary import Summarize
from stages.wire.tool_schemas import ToolSchemas, compiled_schemas

if TYPE_CHECKING:
    from typing import _SpecialForm  # what a type checker takes Annotated[…] and Literal[…] for


# Context: what the model is shown of a run.


class Context(Options, frozen=True, kw_only=True):
    """What the model is shown of a run: how the history is made to fit, and which notes are added.

    `compact_at` is the fraction of the context at which the `compactor` shortens the history; `compact_to` is its
    target, the fraction left beside the tools and the user's request. `recall` adds a tool with which the model can
    read again what compaction cut. `summarize`: True, or a policy, asks the model for a summary when the compactor's
    own tiers free too little. `reasoning_replay`: how much of its earlier reasoning is shown again. `failed_attempts`:
    whether failed attempts are shown after a later success.

    `iteration_warning`: from this number of remaining model calls on, the model is told how many are left; 0: never;
    None: never in a workflow, for the last fifth in an agent. `progress_notes`: after successful calls that were no
    step, the model is told which steps are done.
    """

    compactor: Compactor | None = None
    compact_at: Share = 0.75
    compact_to: Share = 0.25
    recall: bool = False
    summarize: bool | Summarize = False
    reasoning_replay: Reasoning = "none"
    failed_attempts: FailedAttempts = "keep"
    iteration_warning: Count | None = None
    progress_notes: bool = True

    def contradictions(self, wrong: Collection[str]) -> Iterator[str]:
        """`compact_to` above `compact_at`."""
        if not {"compact_at", "compact_to"} & {*wrong} and self.compact_to > self.compact_at:
            yield f"compact_to is {self.compact_to}; it cannot be over compact_at, which is {self.compact_at}"

    @property
    def summary(self) -> Summarize | None:
        """When to ask the model for a summary; None: never."""
        return (Summarize() if self.summarize is True else self.summarize) or None


# A compiled workflow: what its runs share on all backends. Made once, never changed.


def _named_guards(rules: Rules, own: tuple[Guard, ...]) -> Mapping[str, Guard]:
    """The guards by name, in running order: those of the rules, `tool_calls` if calls are limited, the user's `own`.

    The name is that of the function, or of the function that made it; equal names are numbered.
    """
    limit = () if rules.limits.max_tool_calls is None else (tool_calls(rules),)
    guards, names = (*guards_of(rules), *limit, *own), list[str]()
    for guard in guards:
        *makers, name = getattr(guard, "__qualname__", type(guard).__name__).split(".<locals>.")
        names.append(makers[-1] if makers and name == "guard" else name)
    numbered = [f"{n} {names[: i + 1].count(n)}" if names.count(n) > 1 else n for i, n in enumerate(names)]
    return MappingProxyType(dict(zip(numbered, guards, strict=True)))


class CompiledWorkflow(Struct, frozen=True, kw_only=True):
    """What all turns of a workflow share; `forge.workflow.turn` adds what depends on the backend.

    `grammars` are those of calls in text: the user's, which are the first `own_families`, then forge's. `prompt` is the
    budget of a prompt, still without its tokens. The user's functions are wrapped, so that an error names the one that
    failed.
    """

    rules: Rules
    unsure: WhenUnsure | None
    tools: Toolset
    schemas: ToolSchemas
    grammars: Grammars
    own_families: int
    own_guards: tuple[Guard, ...]
    guards: Mapping[str, Guard]
    prompt: ContextBudget
    context: Context
    rewords: Mapping[NudgeKind, Reword]
    stages: tuple[StageName | Stage, ...]

    def under(self, rules: Rules) -> Self:
        """The same workflow under other rules for the same tools."""
        return replace(self, rules=rules, guards=_named_guards(rules, self.own_guards))

    def checked_by(self, other: Callable[[Check], Check]) -> Self:
        """The same workflow with each check of arguments replaced by `other(check)`."""
        checks = {name: other(check) for name, check in self.tools.checks.items()}
        return replace(self, tools=replace(self.tools, checks=MappingProxyType(checks)))


# Options that agents and Guardrails share with workflows, repeated here for type checkers.


class StepOptions(TypedDict, total=False):
    """Options for required and allowed calls, shared with agents and Guardrails."""

    terminal_tool: str | Sequence[str]
    required_steps: str | Sequence[str]
    optional_steps: str | Sequence[str]
    guards: Sequence[Guard]
    limits: Limits
    calls: Calls


class TurnOptions(StepOptions, total=False):
    """Options for a turn, shared with agents, where they apply to each message."""

    order: Sequence[Use]
    completion_checks: Mapping[str, CompletionCheck] | None
    grounded: Mapping[str, Grounds] | None
    calculated: Mapping[str, Calculations] | None
    nudges: Nudges | None
    without: str | Collection[str]
    unsure: WhenUnsure | None
    stages: Sequence[StageName | Stage]
    context: Context


# Workflow: what a run may do, from functions and rules.

_LIMITS, _CONTEXT, _CALLS = Limits(), Context(), Calls()


@dataclass(frozen=True, eq=False, repr=False)
class Workflow(Generic[R_co]):
    """Tools, the steps that are required, and the tool that ends the run.

    All mistakes in the definition are reported at once, as a DefinitionError, before anything runs.

    `optional_steps`: write tools that the model may use although no required step needs them. If there are required
    steps, other write tools that no option names are withheld: their calls are refused until the user or an error names
    them. Without required steps, all are offered, but the same call runs only once and its values must have been seen
    (docs/guards.md, Plain requests).
    `on_text`: what a reply without a call means. `nudge`: a mistake. `accept`: the answer. `respond`: also a mistake,
    but the model gets an extra terminal tool, `respond`, to answer with.
    `grounded`: by tool, the arguments whose values must have been seen. `calculated`: by tool, the numbers that the
    model writes as calculations (see `tool`).
    `order`: rules for the order and number of calls (see `Use`).
    `completion_checks`: by tool, a pure function of the arguments, or of the arguments and the successful calls
    (`stages.guards.PastCall`). If it returns a text, the call does not run, and the model is told that text.
    `without`: names of guards and narrowings of the offer to turn off (docs/guards.md).
    `nudges`: your own texts for forge's corrections, by kind: a text with placeholders, or a function of the
    `Correction` (see `stages.objection`).
    `result`: a type. The model gets an extra terminal tool that takes its fields, and the run's value is an instance.
    `stages`: the stages of a turn, in running order; a string names one of forge's, a function is your own.
    `unsure`: what to do about calls that the model is not sure of (docs/confidence.md). The backend must return
    log-probabilities.

    `limits` sets the budgets of a run, `context` what the model sees, and `calls` how the calls in a reply are found
    and run: see `Limits`, `Context`, `Calls`.

    Derived from these: `rules` (the form that stages read), `budget`, `functions` by tool name, `execute` (the
    interpreter that runs the tools), and `compiled`, which all runs of the workflow share. `forge.workflow.turn` makes
    the stages of a turn.
    """

    name: str
    _: KW_ONLY
    tools: Sequence[Tool[..., object] | Callable[..., object]]
    terminal_tool: str | Sequence[str] = ()
    required_steps: str | Sequence[str] = ()
    optional_steps: str | Sequence[str] = ()
    system_prompt: str = ""
    result: "type[R_co] | _SpecialForm | None" = None

    on_text: OnText = "nudge"
    order: Sequence[Use] = ()
    completion_checks: Mapping[str, CompletionCheck] | None = None
    guards: Sequence[Guard] = ()
    grounded: Mapping[str, Grounds] | None = None
    calculated: Mapping[str, Calculations] | None = None
    nudges: Nudges | None = None
    without: str | Collection[str] = ()
    unsure: WhenUnsure | None = None
    stages: Sequence[StageName | Stage] = STAGE_NAMES

    limits: Limits = _LIMITS
    context: Context = _CONTEXT
    calls: Calls = _CALLS

    def __post_init__(self) -> None:
        if problems := self.problems:
            raise DefinitionError(problems)
        self._hint()

    def _hint(self) -> None:
        """Log what the developer should know of the definition."""
        rules = self.rules
        hint("withheld", self.name, rules.withheld)
        if required_tools(rules):
            return
        # If no other rule decides when the run may end, a tool that ends it and was declared to write counts, too.
        effects = {} if self.order or self.guards else {made.name: made.spec.effect for made in self._tools}
        declared = (replace(spec, effect=effects.get(spec.name, spec.effect)) for spec in rules.tools)
        hint("unruled", self.name, unneeded_writes(replace(rules, tools=tuple(declared)), self._named))
        hint("undeclared", self.name, undeclared_writes(rules, self._named))

    @property
    def problems(self) -> tuple[str, ...]:
        """The mistakes in the definition, one sentence each; empty for a workflow that exists."""
        texts = {"name": self.name, "system_prompt": self.system_prompt}
        return (
            *chain(*wrong_options(texts, dict.fromkeys(texts, str)).values()),  # half a surrogate pair
            *(problem for made in self._tools for problem in made.problems),
            *mistakes(self.rules, self._ends, several(self.optional_steps)),
            *nudge_mistakes(self.nudges or {}),
            *function_mistakes(self.guards, self.completion_checks or {}),
            *stage_mistakes(self.stages),
            *calculated_mistakes(self._grounded, self.calculated or {}),
            *guard_mistakes(self.rules, self.grounded or {}, self.completion_checks or {}),
            *without_mistakes(several(self.without)),
        )

    @cached_property
    def _tools(self) -> tuple[Tool[..., object], ...]:
        """The user's tools, then those added for `on_text="respond"` and `result`."""
        synthetic: list[Callable[..., object]] = [respond_tool()] if self.on_text == "respond" else []
        synthetic += [] if self.result is None else [result_tool(self.result)]
        return tuple(made if isinstance(made, Tool) else tool(made) for made in (*self.tools, *synthetic))

    @property
    def _ends(self) -> set[str]:
        return {self.terminal_tool} if isinstance(self.terminal_tool, str) else {*self.terminal_tool}

    @property
    def _grounded(self) -> tuple[ToolSpec, ...]:
        named = (replace(t.spec, effect="terminal") if t.name in self._ends else t.spec for t in self._tools)
        return grounded_specs(named, self.grounded or {})

    @cached_property
    def rules(self) -> Rules:
        """The workflow as stages and guards read it."""
        specs = calculated_specs(self._grounded, self.calculated or {})
        stated = Rules(
            tools=(*specs, RECALL) if self.context.recall else specs,
            required=several(self.required_steps),
            on_text=self.on_text,
            limits=self.limits,
            calls=self.calls,
            checks=own_checks(self.completion_checks or {}),
            order=own_order(self.order),
            without=frozenset(several(self.without)),
        )
        writes = unneeded_writes(stated, self._named)
        if not required_tools(stated):
            return replace(stated, unruled=writes)
        return replace(stated, withheld=() if "withheld" in stated.without else writes)

    @property
    def _named(self) -> tuple[str, ...]:
        """The tools that an option says something of."""
        return (*several(self.optional_steps), *(self.completion_checks or {}))

    @cached_property
    def budget(self) -> Budget:
        """The budget of each run."""
        return self.limits.budget()

    @cached_property
    def functions(self) -> Mapping[str, Callable[..., object]]:
        """The functions of the tools, by tool name."""
        return MappingProxyType({made.name: made.function for made in self._tools})

    @cached_property
    def execute(self) -> Tools:
        """The interpreter that runs the tools."""
        return Tools(self.functions, self.rules.tools)

    @cached_property
    def compiled(self) -> CompiledWorkflow:
        """Data that all runs of the workflow share, made when the first run begins."""
        rules, context = self.rules, self.context
        compactor = context.compactor
        own = tuple(placed_guard(guard, f"guards[{i}]") for i, guard in enumerate(self.guards))
        return CompiledWorkflow(
            rules=rules,
            unsure=self.unsure,
            tools=toolset_of(rules.tools),
            schemas=compiled_schemas(rules.tools),
            grammars=lambda: self._openers,
            own_families=len(self.calls.families),
            own_guards=own,
            guards=_named_guards(rules, own),
            prompt=ContextBudget(
                tokens=0,
                threshold=context.compact_at,
                low=context.compact_to,
                reasoning=context.reasoning_replay != "none",
                recall=context.recall,
                # Grounding, calculations, checks that see results, guards and stages need past calls even after
                # compaction (`past_calls`).
                record=any(spec.grounded or spec.calculated for spec in rules.tools)
                or any(map(sees_results, (self.completion_checks or {}).values()))
                or bool(self.guards)
                or not all(isinstance(stage, str) for stage in self.stages),
            ),
            context=replace(
                context,
                compactor=compactor and placed(compactor, "context.compactor", Compacted, CannotFit),
                progress_notes=context.progress_notes and bool(required_tools(rules)),
            ),
            rewords=MappingProxyType(rewords(self.nudges or {})),
            stages=tuple(self.stages),
        )

    @cached_property
    def turns(self) -> list[tuple[Setup, Stage]]:
        """The last turn that was made, with the setup it was made for (`forge.workflow.turn.turn_on`)."""
        return []

    @cached_property
    def _openers(self) -> Openers:
        own = own_families(self.calls.families)
        return openers((*own, *rescue.FAMILIES)) if own else rescue.OPENERS

    @cached_property
    def _read_result(self) -> Decode | None:
        return None if self.result is None else result_of(self.result)

    def __repr__(self) -> str:
        """The name, the tools and what ends a run."""
        steps = self.rules.required
        said = {
            "tools": ", ".join(made.name for made in self._tools),
            "required_steps": ", ".join(steps),
            "withheld": ", ".join(self.rules.withheld),
            "terminal_tool": ", ".join(sorted(self._ends)),
            "result": getattr(self.result, "__name__", self.result) or "",
        }
        return f"Workflow({self.name!r}{''.join(f', {name}: {what}' for name, what in said.items() if what)})"

    def start(
        self, message: str, prompt_vars: Mapping[str, str] | None = None, initial_messages: History = ()
    ) -> State:
        """The state of a run for that message; `initial_messages` are an earlier conversation.

        DefinitionError for a `{placeholder}` of the system prompt that is not in `prompt_vars`.
        """
        return initial_state(self.budget, self.system_prompt, message, prompt_vars or {}, initial_messages)

    def follow(self, before: State, message: str) -> State:
        """The state of a run for the next message of a conversation whose last run ended in the state `before`."""
        return next_state(self.budget, before, message)

    def typed(self, finished: Finished) -> Finished[R_co]:
        """The end of a run, with its value as an instance of the type `result`, if there is one."""
        ending, read = finished.outcome, self._read_result
        if read is None or not isinstance(ending, Completed) or ending.tool != RESULT:
            return Finished(outcome=ending, state=finished.state)
        result = read(ending.value)
        return Finished(outcome=ending, state=finished.state, result=result)  # type: ignore[arg-type]  # by its decoder


Workflow.__init__ = checked_options(Workflow.__init__)  # type: ignore[method-assign]
