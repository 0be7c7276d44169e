"""StepEnforcer: steps and prerequisites of a task: a thin face over the guards."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from forge.guardrails.actions import Call, Nudge
from stages.guards import prerequisites, required_steps
from stages.message import ToolCall
from stages.nudges import refusals, render
from stages.objection import Guard, Stop, mistake_of, with_mistakes
from stages.rules import Rules, completed, pending
from stages.state import Ledger, State, Success, mistake_count
from stages.tool import Prerequisite, ToolSpec

PATIENT = 2**31
"""A limit that is never reached: here the caller looks at the counts."""


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
        if isinstance(verdict, Stop) or not verdict:
            return StepCheck()
        self._state = replace(self._state, ledger=with_mistakes(self._ledger, verdict))
        tier = mistake_count(self._ledger, mistake_of(verdict[0].wrong).counter)
        answers = zip(calls, refusals(verdict, made, render, whole=True), strict=True)
        return StepCheck(
            nudges=tuple(
                Nudge(role="tool", content=a.text, kind=a.kind, tier=tier, call_id=a.call_id, tool=call.name)
                for call, a in answers
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
