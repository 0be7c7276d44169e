"""ResponseValidator: a reply judged by itself: a thin face over the stage `validate`."""

from collections.abc import Sequence

from msgspec import Struct

from forge.errors import DefinitionError
from forge.guardrails.actions import Call, Nudge
from forge.guardrails.judge import nudges_of
from forge.guardrails.replies import reply_of
from forge.guardrails.tools import AnyTool, tools_of
from forge.tools.decorator import Tool, tool
from stages.rules import Rules
from stages.state import Answered, State, Vetted
from stages.validate import validate

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
