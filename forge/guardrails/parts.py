"""Parts of Guardrails for single use: the validator of replies, the steps of a task, the count of mistakes."""

from collections.abc import Collection, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from forge.errors import DefinitionError, checked_options
from forge.guardrails.actions import Call, Nudge, reply_of
from forge.guardrails.guardrails import PATIENT, nudges_of
from forge.guardrails.tools import AnyTool, tools_of
from forge.tools.definition import Tool, prerequisites_of, tool
from stages.guards import prerequisites, required_steps
from stages.message import ToolCall
from stages.objection import Guard, Stop, mistake_of, refusals, render, with_mistakes
from stages.options import Count
from stages.rules import Calls, Limits, Rules, completed, pending
from stages.state import Answered, State, Success, Vetted, mistake_count
from stages.tool import Prerequisite, ToolSpec
from stages.validate import validate

# ErrorTracker: consecutive mistakes.


class ErrorTracker:
    """Counts consecutive mistakes; more than the limit are too many."""

    @checked_options
    def __init__(self, *, max_retries: Count = 3, max_tool_errors: Count = 2) -> None:
        self.max_retries, self.max_tool_errors = max_retries, max_tool_errors
        self.retries = self.tool_errors = 0

    def record_retry(self) -> None:
        """Note a reply without a usable call."""
        self.retries += 1

    def reset_retries(self) -> None:
        """Note a reply with a usable call."""
        self.retries = 0

    def record_result(self, *, success: bool, is_soft_error: bool = False) -> None:
        """Note a batch of calls. A soft error (`ToolResolutionError`) is not counted; a success resets nothing."""
        if not success and not is_soft_error:
            self.tool_errors += 1

    def reset_errors(self) -> None:
        """Note that a whole batch succeeded."""
        self.tool_errors = 0

    @property
    def retries_exhausted(self) -> bool:
        """Whether there were more retries in a row than allowed."""
        return self.retries > self.max_retries

    @property
    def tool_errors_exhausted(self) -> bool:
        """Whether there were more errors in a row than allowed."""
        return self.tool_errors > self.max_tool_errors


# ResponseValidator: judges a single reply, using the stage `validate`.


class _Nudged(Struct, frozen=True, kw_only=True):
    nudges: tuple[Nudge, ...] = ()

    @property
    def nudge(self) -> Nudge | None:
        """The first nudge; None if there is none."""
        return self.nudges[0] if self.nudges else None


class ValidationResult(_Nudged, frozen=True, kw_only=True):
    """The valid calls, or nudges: one for each invalid call, or one for a reply without a call."""

    tool_calls: tuple[Call, ...] = ()

    @property
    def needs_retry(self) -> bool:
        """Whether the model must be called again."""
        return not self.tool_calls


class ResponseValidator:
    """Finds the calls of a response, also in its text, and checks names and arguments. It is stateless."""

    @checked_options
    def __init__(self, tools: Sequence[AnyTool], *, rescue_enabled: bool = True) -> None:
        made = [one if isinstance(one, Tool) else tool(one) for one in tools_of(tools)]
        if problems := tuple(problem for one in made for problem in one.problems):
            raise DefinitionError(problems)
        rules = Rules(
            tools=tuple(one.spec for one in made),
            calls=Calls(rescue_enabled=rescue_enabled),
            limits=Limits(max_retries_per_step=PATIENT, max_tool_errors=PATIENT),
        )
        self._stage = validate(rules)

    def validate(self, response: object) -> ValidationResult:
        """The result for this response; `reply_of` lists the accepted types."""
        state: State = self._stage(State(history=()).to(Answered(reply=reply_of(response)))).unwrap()
        if not isinstance(state.phase, Vetted):
            return ValidationResult(nudges=nudges_of(state.history, state.ledger, {}))
        return ValidationResult(
            tool_calls=tuple(Call(id=c.id, name=c.name, text=c.arguments) for c in state.phase.calls)
        )


# StepEnforcer: steps and prerequisites of a task, using the guards.


class StepCheck(_Nudged, frozen=True, kw_only=True):
    """One nudge for each call that may not run yet; empty if all may."""

    @property
    def needs_nudge(self) -> bool:
        """Whether the calls are refused."""
        return bool(self.nudges)


class StepEnforcer:
    """The required steps and prerequisites of one task: which are done, and which calls are allowed now."""

    @checked_options
    def __init__(
        self,
        required_steps: Sequence[str],
        terminal_tools: Collection[str],
        tool_prerequisites: Mapping[str, str | Sequence[str | Prerequisite]] | None = None,
        *,
        max_premature_attempts: Count = 3,
        max_prereq_violations: Count = 2,
    ) -> None:
        needed = tool_prerequisites or {}
        ends = dict.fromkeys(terminal_tools)
        names = dict.fromkeys((*required_steps, *needed, *ends))
        self._rules = Rules(
            tools=tuple(
                ToolSpec(
                    name=name,
                    description="",
                    parameters=Raw(b'{"type":"object"}'),
                    effect="terminal" if name in ends else "write",
                    prerequisites=prerequisites_of(needed.get(name, ())),
                )
                for name in names
            ),
            required=tuple(required_steps),
            limits=Limits(max_premature_attempts=PATIENT, max_prereq_violations=PATIENT),
        )
        self._limits = (max_premature_attempts, max_prereq_violations)
        self._state = State(history=())

    def check(self, calls: Sequence[Call]) -> StepCheck:
        """Check for premature calls of terminal tools. Each repetition counts, and makes the nudge sterner."""
        return self._ask(required_steps(self._rules), calls)

    def check_prerequisites(self, calls: Sequence[Call]) -> StepCheck:
        """Check for missing prerequisites, before any of these calls has run."""
        return self._ask(prerequisites(self._rules), calls)

    def _ask(self, guard: Guard, calls: Sequence[Call]) -> StepCheck:
        made = tuple(ToolCall(id=call.id, name=call.name, arguments=call.text) for call in calls)
        verdict = guard(self._state, made)
        if isinstance(verdict, Stop) or not verdict:
            return StepCheck()
        self._state = replace(self._state, ledger=with_mistakes(self._state.ledger, verdict))
        tier = mistake_count(self._state.ledger, mistake_of(verdict[0].wrong).counter)
        answers = zip(calls, refusals(verdict, made, render, whole=True), strict=True)
        return StepCheck(
            nudges=tuple(
                Nudge(role="tool", content=a.text, kind=a.kind, tier=tier, call_id=a.call_id, tool=call.name)
                for call, a in answers
            )
        )

    def record(self, tool_name: str, args: Mapping[str, object] | None = None) -> None:
        """Note that the tool succeeded with these arguments."""
        done = Success(name=tool_name, arguments=msgspec.json.encode(args or {}).decode())
        self._state = self._state.note(successes=(*self._state.ledger.successes, done))

    def reset_premature(self) -> None:
        """Reset the count of premature terminal calls."""
        self._state = self._state.note(premature=0)

    def reset_prereq_violations(self) -> None:
        """Reset the count of missing prerequisites."""
        self._state = self._state.note(prerequisite_violations=0)

    @property
    def premature_attempts(self) -> int:
        """How often in a row a terminal tool was called prematurely."""
        return self._state.ledger.premature

    @property
    def premature_exhausted(self) -> bool:
        """Whether that is more than the limit."""
        return self._state.ledger.premature > self._limits[0]

    @property
    def prereq_violations(self) -> int:
        """How often in a row prerequisites were missing."""
        return self._state.ledger.prerequisite_violations

    @property
    def prereq_exhausted(self) -> bool:
        """Whether that is more than the limit."""
        return self._state.ledger.prerequisite_violations > self._limits[1]

    @property
    def completed_steps(self) -> tuple[str, ...]:
        """The tools that have succeeded, without duplicates, in the order of their first success."""
        return completed(self._state.ledger)

    def pending(self) -> tuple[str, ...]:
        """The required steps that have not succeeded yet."""
        return pending(self._rules, self._state.ledger)

    def is_satisfied(self) -> bool:
        """Whether all required steps have succeeded."""
        return not self.pending()
