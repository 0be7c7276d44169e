"""The guardrails one by one, under the seeds' names: thin faces over the stages and guards that `forge.run` uses."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct

from forge.errors import DefinitionError
from forge.guardrails.actions import Call, Nudge
from forge.guardrails.judge import nudges_of
from forge.guardrails.replies import reply_of
from forge.guardrails.tools import AnyTool, tools_of
from forge.tool import Tool, tool
from stages.guards import prerequisites, required_steps
from stages.message import ToolCall
from stages.rules import Rules, completed, pending
from stages.state import Answered, Ledger, State, Success, Vetted
from stages.tool import Prerequisite, ToolSpec
from stages.validate import validate
from stages.verdict import Block, Guard

PATIENT = 2**31
"""A limit that is never reached: here the caller looks at the counts."""


class ValidationResult(Struct, frozen=True, kw_only=True):
    """Calls that are right, or the nudges for those that are not, one a call; one alone for a reply without a call."""

    tool_calls: tuple[Call, ...] = ()
    nudges: tuple[Nudge, ...] = ()

    @property
    def needs_retry(self) -> bool:
        """Whether the model is to be asked again."""
        return not self.tool_calls

    @property
    def nudge(self) -> Nudge | None:
        """The first nudge, None where all is right."""
        return self.nudges[0] if self.nudges else None


class ResponseValidator:
    """Finds the calls of a response, in its text too, and checks names and arguments. It remembers nothing."""

    def __init__(self, tools: Sequence[AnyTool], *, rescue_enabled: bool = True) -> None:
        made = [one if isinstance(one, Tool) else tool(one) for one in tools_of(tools)]
        if problems := tuple(problem for one in made for problem in one.problems):
            raise DefinitionError(problems)
        rules = Rules(
            tools=tuple(one.spec for one in made), rescue=rescue_enabled, max_retries=PATIENT, max_tool_errors=PATIENT
        )
        self._stage = validate(rules)

    def validate(self, response: object) -> ValidationResult:
        """What is to be done with it; for what it may be, see `reply_of`."""
        state: State = self._stage(State(history=()).to(Answered(reply=reply_of(response)))).unwrap()
        if not isinstance(state.phase, Vetted):
            return ValidationResult(nudges=nudges_of(state.history, state.ledger))
        return ValidationResult(
            tool_calls=tuple(Call(id=c.id, name=c.name, text=c.arguments) for c in state.phase.calls)
        )


class StepCheck(Struct, frozen=True, kw_only=True):
    """The nudges for calls that may not run yet, one a call; none: they may."""

    nudges: tuple[Nudge, ...] = ()

    @property
    def needs_nudge(self) -> bool:
        """Whether the calls are refused."""
        return bool(self.nudges)

    @property
    def nudge(self) -> Nudge | None:
        """The first nudge, None where the calls may run."""
        return self.nudges[0] if self.nudges else None


class StepEnforcer:
    """Required steps and prerequisites of one task: what was done, and what may be called now."""

    def __init__(
        self,
        required_steps: Sequence[str],
        terminal_tools: Iterable[str],
        tool_prerequisites: Mapping[str, Sequence[str | Prerequisite]] | None = None,
        *,
        max_premature_attempts: int = 3,
        max_prereq_violations: int = 2,
    ) -> None:
        needed = tool_prerequisites or {}
        ends = dict.fromkeys(terminal_tools)
        names = dict.fromkeys((*required_steps, *needed, *ends))
        self._rules = Rules(
            tools=tuple(_spec(name, needed.get(name, ()), terminal=name in ends) for name in names),
            required=tuple(required_steps),
            max_premature=PATIENT,
            max_prerequisite_violations=PATIENT,
        )
        self._limits = (max_premature_attempts, max_prereq_violations)
        self._state = State(history=())

    def check(self, calls: Sequence[Call]) -> StepCheck:
        """Whether a terminal tool is called too early; each time in a row is a mistake more, and a sterner nudge."""
        return self._ask(required_steps(self._rules), calls)

    def check_prerequisites(self, calls: Sequence[Call]) -> StepCheck:
        """Whether a call lacks its prerequisites, judged before any of these calls has run."""
        return self._ask(prerequisites(self._rules), calls)

    def _ask(self, guard: Guard, calls: Sequence[Call]) -> StepCheck:
        made = tuple(ToolCall(id=call.id, name=call.name, arguments=call.text) for call in calls)
        verdict = guard(self._state, made)
        if not isinstance(verdict, Block):
            return StepCheck()
        count: int = getattr(self._state.ledger, verdict.counter) + 1
        self._state = self._state.note(**{verdict.counter: count})
        names = {call.id: call.name for call in calls}
        return StepCheck(
            nudges=tuple(
                Nudge(
                    role="tool", content=c.text, kind=verdict.kind, tier=count, call_id=c.call_id, tool=names[c.call_id]
                )
                for c in verdict.corrections
            )
        )

    def record(self, tool_name: str, args: Mapping[str, object] | None = None) -> None:
        """The tool has succeeded with these arguments."""
        done = Success(name=tool_name, arguments=msgspec.json.encode(args or {}).decode())
        self._state = self._state.note(successes=(*self._ledger.successes, done))

    def reset_premature(self) -> None:
        """Forget how often a terminal tool was called too early."""
        self._state = self._state.note(premature=0)

    def reset_prereq_violations(self) -> None:
        """Forget how often prerequisites were lacking."""
        self._state = self._state.note(prerequisite_violations=0)

    @property
    def _ledger(self) -> Ledger:
        return self._state.ledger

    @property
    def premature_attempts(self) -> int:
        """How often in a row a terminal tool was called too early."""
        return self._ledger.premature

    @property
    def premature_exhausted(self) -> bool:
        """Whether that is more than the limit."""
        return self._ledger.premature > self._limits[0]

    @property
    def prereq_violations(self) -> int:
        """How often in a row prerequisites were lacking."""
        return self._ledger.prerequisite_violations

    @property
    def prereq_exhausted(self) -> bool:
        """Whether that is more than the limit."""
        return self._ledger.prerequisite_violations > self._limits[1]

    @property
    def completed_steps(self) -> tuple[str, ...]:
        """The tools that have succeeded, each once, in the order of their first success."""
        return completed(self._ledger)

    def pending(self) -> tuple[str, ...]:
        """The required steps that have not succeeded yet."""
        return pending(self._rules, self._ledger)

    def is_satisfied(self) -> bool:
        """Whether none is left."""
        return not self.pending()


def _spec(name: str, needed: Sequence[str | Prerequisite], *, terminal: bool) -> ToolSpec:
    return ToolSpec(
        name=name,
        description="",
        parameters=Raw(b'{"type":"object"}'),
        effect="terminal" if terminal else "write",
        prerequisites=tuple(Prerequisite(tool=one) if isinstance(one, str) else one for one in needed),
    )


class ErrorTracker(Struct, kw_only=True):
    """Counts mistakes in a row, and says when they are too many: one more than the limit."""

    max_retries: int = 3
    max_tool_errors: int = 2
    retries: int = 0
    tool_errors: int = 0

    def record_retry(self) -> None:
        """A reply had no usable call."""
        self.retries += 1

    def reset_retries(self) -> None:
        """A reply had one."""
        self.retries = 0

    def record_result(self, *, success: bool, is_soft_error: bool = False) -> None:
        """A batch of calls ran. A soft error (`ToolResolutionError`) is not counted; a success sets nothing back."""
        if not success and not is_soft_error:
            self.tool_errors += 1

    def reset_errors(self) -> None:
        """A whole batch went well."""
        self.tool_errors = 0

    @property
    def retries_exhausted(self) -> bool:
        """Whether there were more retries in a row than allowed."""
        return self.retries > self.max_retries

    @property
    def tool_errors_exhausted(self) -> bool:
        """Whether there were more errors in a row than allowed."""
        return self.tool_errors > self.max_tool_errors
