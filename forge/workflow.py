"""Workflow: from functions and rules to the state that a run begins with and the pipeline that drives it."""

import copy
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Self

from msgspec.structs import replace

from forge.connection import Connection
from forge.definition import OnText, compaction_mistakes, mistakes, view_mistakes, warning_mistakes
from forge.errors import DefinitionError
from forge.guard_definition import grounded_specs, guard_mistakes
from forge.interpreters.tools import Tools
from forge.kinds import refuse_foreign
from forge.loop import Finished
from forge.nudging import Nudges, nudge_mistakes, rewords
from forge.opening import following, opening
from forge.result import RESULT, result_of, result_tool
from forge.tool import Grounds, Tool, respond_tool, tool
from stages import Stage, compact, enforce, execute, fold, pipeline, rescue, send, serialize, validate
from stages.compaction import Compactor, ContextBudget, TieredCompact
from stages.fold import FailedAttempts, Reasoning
from stages.guards import CompletionCheck, completion, guards_of, tool_calls
from stages.guesses import kept
from stages.message import History
from stages.order import Use
from stages.pipeline import falling_back
from stages.reading import Read, reader
from stages.recall import RECALL
from stages.rescue import Family
from stages.rescue.template import Markers, template_family
from stages.reword import reword
from stages.rules import BatchPolicy, InDoubtPolicy, Ladder, OnViolation, RepairLimits, Rules
from stages.schema import Check, checker
from stages.serialize import Mode, overhead
from stages.state import Budget, Completed, Price, Ready, State
from stages.summary import Summarize, summarize
from stages.verdict import Guard
from stages.warnings import ContextWarning, warn_of_calls, warn_of_context
from stages.wire import strict
from stages.wire.prompted import JSON, Form


class Workflow:
    """Tools, the steps that are required, and the tool that ends the run.

    Every mistake in the definition is reported at once, as a DefinitionError, before anything runs.

    `on_text` is what bare text means (D3): `nudge`, a mistake; `accept`, the answer; `respond`, a mistake too, but the
    model is given one more terminal tool, `respond`, to answer in words with.
    `compact_at` is the fraction of the context from which on the history is compacted, `compact_to` the part of it,
    beside the tools and the user's request, that compaction then aims at.
    `recall` gives the model one more tool, with which it reads again what compaction cut.
    `summarize` asks the model for a summary where the compactor's own tiers do not make room enough: True, or a policy.
    `max_iterations` bounds the model calls of a run (retries too), `max_tool_calls` its tool calls, `max_tokens`,
    `max_seconds` and `max_cost` what it takes; the latter by `price`, of a million tokens (D2).
    `context_thresholds` are fractions of the context at which the model is warned, each once; what it is told is
    `on_context_threshold`: a text, or a pure function of the `ContextUse` (None or empty: nothing).
    `grounded` names, for a tool, the arguments whose values must have been seen (see `tool`).
    `order` are rules of order and number (see `Use`). `completion_checks` has, by tool, a pure function of the
    arguments: what it says is wrong with them, the model is told, and the call is not run.
    `batch` says which calls of one reply are run, `on_violation` what one that is refused does to the others.
    `ladder` says what a reply is offered after others that brought nothing new; a call that was answered the same
    `max_repeats` times is not run again (None: it is), unless its tool is `repeatable`.
    `nudges` are your own words for forge's corrections, by kind: a text with placeholders or a function of the
    `Correction` (see `stages.reword`).
    `result` is a type: the model is given one more terminal tool, which takes its fields, and the run's value is an
    instance of it.
    `iteration_warning` is the number of model calls left from which on it is told so; 0: never.

    `max_parallel` reads run at the same time, at most; of one reply `max_calls_per_reply` calls are run, at most.
    `in_doubt` is what is done about a call that a crash left in doubt: `report` it to the model, or `ask` a person.

    Attributes: `rules` (the core's form of it), `functions` and `checks` of arguments (both by tool name), `execute`
    (the interpreter that runs the functions), `name`.
    """

    def __init__(
        self,
        name: str,
        *,
        tools: Sequence[Tool[..., object] | Callable[..., object]],
        terminal_tool: str | Sequence[str] = (),
        required_steps: str | Sequence[str] = (),
        system_prompt: str = "",
        max_iterations: int = 10,
        max_retries_per_step: int = 3,
        max_tool_errors: int = 2,
        max_parallel: int = 4,
        max_calls_per_reply: int = 32,
        in_doubt: InDoubtPolicy = "report",
        max_tool_calls: int | None = None,
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        max_cost: float | None = None,
        price: Price | None = None,
        on_text: OnText = "nudge",
        rescue_enabled: bool = True,
        repair_limits: RepairLimits | None = None,
        compactor: Compactor | None = None,
        compact_at: float = 0.75,
        compact_to: float = 0.5,
        recall: bool = False,
        summarize: bool | Summarize = False,
        reasoning_replay: Reasoning = "none",
        failed_attempts: FailedAttempts = "keep",
        context_thresholds: Sequence[float] = (),
        on_context_threshold: ContextWarning | None = None,
        iteration_warning: int = 0,
        guards: Sequence[Guard] = (),
        grounded: Mapping[str, Grounds] | None = None,
        order: Sequence[Use] = (),
        completion_checks: Mapping[str, CompletionCheck] | None = None,
        batch: BatchPolicy = "auto",
        on_violation: OnViolation = "block_all",
        ladder: Ladder | None = None,
        max_repeats: int | None = 2,
        families: Sequence[Family] = (),
        nudges: Nudges | None = None,
        result: object = None,
    ) -> None:
        refuse_foreign(
            {
                "tools": tools,
                "compactor": compactor,
                "guards": guards,
                "ladder": ladder,
                "repair_limits": repair_limits,
                "summarize": summarize,
                "order": order,
                "families": families,
                "context_thresholds": context_thresholds,
            }
        )
        self.name = name
        self.system_prompt = system_prompt
        self.budget = Budget(
            calls=max_iterations,
            tool_calls=max_tool_calls,
            tokens=max_tokens,
            seconds=max_seconds,
            cost=max_cost,
            price=price or Price(),
        )
        self._compactor = compactor or TieredCompact()
        self._compact_at, self._compact_to = compact_at, compact_to
        self._summarize = Summarize() if summarize is True else summarize or None
        self._reasoning: Reasoning = reasoning_replay
        self._failed_attempts: FailedAttempts = failed_attempts
        self._context_thresholds = tuple(context_thresholds)
        self._context_warning = on_context_threshold
        self._iteration_warning = iteration_warning
        self._guards = (*((completion(completion_checks),) if completion_checks else ()), *guards)
        self._without: frozenset[str] = frozenset()
        self._families = tuple(families)
        synthetic: list[Callable[..., object]] = [respond_tool()] if on_text == "respond" else []
        synthetic += [] if result is None else [result_tool(result)]
        made = [t if isinstance(t, Tool) else tool(t) for t in (*tools, *synthetic)]
        ends = {terminal_tool} if isinstance(terminal_tool, str) else set(terminal_tool)
        specs = tuple(replace(t.spec, effect="terminal") if t.name in ends else t.spec for t in made)
        specs = grounded_specs(specs, grounded or {})
        self.rules = Rules(
            tools=(*specs, RECALL) if recall else specs,
            required=(required_steps,) if isinstance(required_steps, str) else tuple(required_steps),
            on_text="nudge" if on_text == "respond" else on_text,
            rescue=rescue_enabled,
            repair_limits=repair_limits or RepairLimits(),
            max_retries=max_retries_per_step,
            max_tool_errors=max_tool_errors,
            max_repeats=max_repeats,
            ladder=ladder or Ladder(),
            order=tuple(order),
            batch=batch,
            on_violation=on_violation,
            max_parallel=max_parallel,
            max_calls=max_calls_per_reply,
            in_doubt=in_doubt,
        )
        wrong = (problem for t in made for problem in t.problems)
        if problems := (
            *wrong,
            *mistakes(self.rules, self.budget, ends),
            *warning_mistakes(context_thresholds, iteration_warning),
            *compaction_mistakes(compact_at, compact_to),
            *view_mistakes(reasoning_replay, failed_attempts),
            *nudge_mistakes(nudges or {}),
            *guard_mistakes(self.rules, grounded or {}, completion_checks or {}),
        ):
            raise DefinitionError(problems)
        self._nudges = rewords(nudges or {})
        self._result = None if result is None else result_of(result)
        self.functions = {t.name: t.function for t in made}
        self.execute = Tools(self.functions, self.rules.tools)
        self._validates: dict[tuple[bool, Markers | None, Form], Stage] = {}
        self.checks = {spec.name: checker(spec.parameters) for spec in self.rules.tools}

    def start(
        self, message: str, prompt_vars: Mapping[str, str] | None = None, initial_messages: History = ()
    ) -> State:
        """The state of a run of this workflow for that message, after an earlier conversation if there is one.

        Raises DefinitionError for a system prompt whose `{placeholder}` is not among `prompt_vars`.
        """
        return opening(self.budget, self.system_prompt, message, prompt_vars or {}, initial_messages)

    def follow(self, before: State, message: str) -> State:
        """The state of a run for the next message of a conversation, whose last run ended in the state `before`."""
        return following(self.budget, before, message)

    def typed(self, finished: Finished) -> Finished:
        """The end of a run of this workflow, with its value as an instance of the type `result` if it has one."""
        ending = finished.outcome
        if self._result is None or not isinstance(ending, Completed) or ending.tool != RESULT:
            return finished
        return replace(finished, result=self._result(ending.value))

    def pipeline(self, connection: Connection) -> Stage:
        """One turn: its stages composed."""
        return pipeline(*self.stages(connection).values())

    def stages(self, connection: Connection) -> dict[str, Stage]:
        """The stages by name, in running order, set up for this workflow on that model: the seven, and its warnings."""
        rules, mode, wire, form = self.rules, _mode(self.rules, connection), connection.wire, connection.form
        _tell_what_is_loose(rules, connection)
        thinks = self._reasoning != "none"
        room = max(0, connection.context_tokens - connection.sampling.limit)
        recall = RECALL in rules.tools
        budget = ContextBudget(
            tokens=room,
            threshold=self._compact_at,
            low=self._compact_to,
            overhead=overhead(rules, mode, wire, form),
            reasoning=thinks,
            recall=recall,
            record=any(spec.grounded for spec in rules.tools),
        )
        judging = self.judging(connection.markers, connection.form, in_text=mode != "native" or connection.falls_back)
        return {
            **({"summarize": summarize(self._summarize, self._compactor, budget)} if self._summarize else {}),
            "compact": compact(self._compactor, budget),
            "fold": fold(self._reasoning, self._failed_attempts),
            **self._warnings(budget),
            "serialize": self._serialize(connection),
            **judging,
        }

    def judging(self, markers: Markers | None = None, form: Form = JSON, *, in_text: bool = False) -> dict[str, Stage]:
        """The stages that judge a reply and have its calls run, whoever asked the model: from `send` to `execute`.

        `markers` and `form` are those of the connection; `in_text`: calls were asked for as text.
        """
        rules = self.rules
        return {
            "send": send(rules),
            "validate": self._validate(markers, form, in_text=in_text),
            "enforce": enforce(*self.guards().values(), on_violation=rules.on_violation, keep=partial(kept, rules)),
            "execute": execute(rules),
            **({"reword": reword(rules, self._nudges)} if self._nudges else {}),
        }

    def guards(self) -> dict[str, Guard]:
        """The guards by name, in the order in which they are asked: that of the function, or of what it was made by."""
        limit = () if self.budget.tool_calls is None else (tool_calls(self.rules),)
        all_of_them = [*guards_of(self.rules), *limit, *self._guards]
        names = [_name(guard) for guard in all_of_them]
        numbered = [f"{n} {names[: i + 1].count(n)}" if names.count(n) > 1 else n for i, n in enumerate(names)]
        named = zip(numbered, all_of_them, strict=True)
        return {name: guard for name, guard in named if name not in self._without}

    def changed(
        self,
        *,
        rules: Rules | None = None,
        checks: Mapping[str, Check] | None = None,
        compactor: Compactor | None = None,
        without: Collection[str] = (),
    ) -> Self:
        """The same workflow with these in the place of its own, and without the guards of these names: to compare."""
        other = copy.copy(self)
        vars(other).update(
            rules=rules or self.rules,
            checks=dict(checks or self.checks),
            _compactor=compactor or self._compactor,
            _summarize=None if compactor else self._summarize,
            _without=self._without | {*without},
            _validates={},
        )
        return other

    def reader(self, connection: Connection) -> Read:
        """The function that finds the calls in a reply, as the stage `validate` does on that model."""
        in_text = _mode(self.rules, connection) != "native"
        grammars = self._grammars(connection.markers)
        return reader(self.rules, in_text=in_text, families=grammars, checks=self.checks, form=connection.form)

    def _validate(self, markers: Markers | None, form: Form, *, in_text: bool) -> Stage:
        """The stage that reads replies, kept from run to run: its grammars take longer to compile than a turn takes."""
        key = (in_text, markers, form)
        if key not in self._validates:
            self._validates[key] = validate(
                self.rules,
                in_text=in_text,
                families=self._grammars(markers),
                checks=self.checks,
                form=form,
            )
        return self._validates[key]

    def written(self, state: State, connection: Connection) -> State:
        """The state with the request that its history makes as it is, for a look at it: what it takes, say."""
        write = pipeline(fold(self._reasoning, self._failed_attempts), self._serialize(connection))
        return write(state.to(Ready())).unwrap()

    def _serialize(self, connection: Connection) -> Stage:
        def write(mode: Mode) -> Stage:
            return serialize(
                self.rules,
                mode,
                connection.model,
                connection.sampling,
                wire=connection.wire,
                form=connection.form,
                alternating=connection.alternating,
            )

        written = write(_mode(self.rules, connection))
        return falling_back(written, write("prompted")) if connection.falls_back else written

    def _warnings(self, budget: ContextBudget) -> dict[str, Stage]:
        """What the model is told of the run's own limits, where the workflow wants it."""
        context = warn_of_context(self._context_thresholds, budget, self._context_warning)
        calls = warn_of_calls(self.rules, self._iteration_warning)
        return {
            **({"warn_of_context": context} if self._context_thresholds else {}),
            **({"warn_of_calls": calls} if self._iteration_warning else {}),
        }

    def _grammars(self, markers: Markers | None) -> tuple[Family, ...]:
        """The user's own, then the model's as its template has it, then all that are known: models mix them up."""
        derived = (template_family(markers),) if markers else ()
        return (*self._families, *derived, *rescue.FAMILIES)


def _mode(rules: Rules, connection: Connection) -> Mode:
    """The connection's mode. A constraint allows nothing but calls: where words are welcome, the prompt has to do."""
    if connection.mode == "constrained" and rules.on_text == "accept":
        logging.getLogger("forge").info("on_text='accept' leaves no room for a constraint; the mode is prompted")
        return "prompted"
    return connection.mode


def _tell_what_is_loose(rules: Rules, connection: Connection) -> None:
    if connection.wire.dialect.constrain == "strict" and connection.mode != "prompted":
        for sentence in strict.refused(rules.tools):
            logging.getLogger("forge").warning("%s; its arguments are checked after the reply alone", sentence)


def _name(guard: Guard) -> str:
    *makers, own = getattr(guard, "__qualname__", type(guard).__name__).split(".<locals>.")
    return makers[-1] if makers and own == "guard" else own
