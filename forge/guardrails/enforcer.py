"""Guardrails: the rules of a workflow, asked by a loop of the user's own."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar, Unpack

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from forge.errors import DefinitionError, ForgeError, checked_options
from forge.guardrails.judge import (
    PATIENT,
    VERSION,
    Action,
    Call,
    Checkpoint,
    Nudge,
    RunCalls,
    answered,
    awaited,
    begin,
    heard,
    judge_of,
    next_action,
    nudges_of,
    plain,
    replied,
    reply_of,
)
from forge.guardrails.tools import AnyTool, optional_steps, tools_of
from forge.interpreters.tools import failed, succeeded
from forge.outcome import Finished
from forge.runtime.runs import accepted
from forge.tools.definition import Tool, tool
from forge.workflow.checks import OnText
from forge.workflow.workflow import StepOptions, Workflow
from stages.effect import Approved, Ask, CallResult, Execute, Failed, Outcome, Rejected, Replied, Results, Send
from stages.guards import prerequisites, required_steps
from stages.message import ToolCall
from stages.nudges import refusals, render
from stages.objection import Guard, Stop, mistake_of, with_mistakes
from stages.repair.decoding import decode, sound
from stages.rules import Calls, Limits, Rules, completed, pending
from stages.saved import without_memory
from stages.state import Answered, Ledger, State, Success, Vetted, mistake_count
from stages.tool import Prerequisite, ToolSpec
from stages.validate import validate
from stages.wire.anthropic import messages as anthropic
from stages.wire.openai import chat as openai

# Guardrails: forge's rules for a loop of your own. It asks the model and runs the tools; this says what is next.

_NO_CALCULATION = (
    "arguments are calculated in forge's own loop only, which gives the model their schemas and runs the tools; leave "
    "`calculated` out, or use forge.run"
)

E = TypeVar("E", Send, Execute, Ask)


_checkpoint = msgspec.json.Decoder(Checkpoint)


class Guardrails:
    """The state of one task in a loop of yours. All decisions are those of `forge.run` with the same workflow.

    `check` is given each reply of the model, `record` what became of the calls; both answer with what to do next:
    `RunCalls`, `AskPerson`, `CallModel`, `Finished` or `Halted`. Give it a `Workflow`, or `tools` and options of one:
    tools are functions (decorated or not), tools as the OpenAI or Anthropic API takes them, or names; arguments of a
    mere name are not checked. `message` is what the user asks for: guards may look at it. Without `max_iterations`
    your own loop counts the model calls.

    Raises DefinitionError, with every mistake at once.
    """

    @checked_options
    def __init__(
        self,
        workflow: Workflow | None = None,
        *,
        tools: Sequence[AnyTool] = (),
        message: str = "",
        on_text: OnText = "nudge",
        **options: Unpack[StepOptions],
    ) -> None:
        if workflow is not None and (tools or options or on_text != "nudge"):
            raise TypeError("give Guardrails a workflow, or tools and options, not both: a workflow has its own")
        options["optional_steps"] = optional_steps(options.get("optional_steps", ()), tools)
        self._workflow = workflow or Workflow("guardrails", tools=tools_of(tools), on_text=on_text, **options)
        if calculating := [spec.name for spec in self._workflow.rules.tools if spec.calculated]:
            raise DefinitionError((f"{', '.join(calculating)}: {_NO_CALCULATION}",))
        self._turn = judge_of(self._workflow)
        self.reset(message)

    def reset(self, message: str = "") -> None:
        """Begin another task: nothing is done, nothing is counted."""
        self._now = begin(self._turn, self._workflow, message)

    @property
    def state(self) -> State:
        """The task so far, as the value that forge's stages work on; its ledger has every count."""
        return self._now.state

    @property
    def action(self) -> Action:
        """What is to be done now, once more. ForgeError when the task was halted."""
        return self._typed(next_action(self._now))

    def hear(self, message: str) -> None:
        """The user said something more. To be told before the model is called; guards may look at it."""
        self._awaited(Send, "hear is for the time before a model call")
        self._now = heard(self._now, message)

    def check(self, response: object) -> Action:
        """What to do about this response of the model: see `reply_of` for what it may be."""
        self._awaited(Send, "check is for the model's replies")
        reply = reply_of(response)
        self._now = replied(self._now, reply)
        return self._go(Replied(reply=reply))

    def record(
        self,
        results: Mapping[str, object] | None = None,
        failures: Mapping[str, Exception | str] | None = None,
    ) -> Action:
        """What to do after the calls have run: `results` are what they returned, `failures` what they raised, by id.

        A failure is the tool's exception (`ToolResolutionError` and `ToolFailed` are not counted) or a text. Without
        either, all calls of the last action succeeded. ValueError for a call that is in neither or was not to be run.
        """
        effect = self._awaited(Execute, "record is for the results of RunCalls")
        names = {call.id: self._now.ids.get(call.id, call.id) for call in effect.calls}
        if results is None and failures is None:
            results = dict.fromkeys(names.values())
        results, failures = results or {}, failures or {}
        given = {**results, **failures}
        now = self.action
        known = {call.id for call in (*now.calls, *now.rest)} if isinstance(now, RunCalls) else set()
        if strangers := given.keys() - known:  # before anything is recorded
            raise _not_to_run(strangers, now)
        if lacking := [name for name in names.values() if name not in given]:
            raise ValueError(f"what became of {', '.join(lacking)}? Each call is a key of results or of failures")
        outcomes = tuple(_result(call, names[call.id], results, failures) for call in effect.calls)
        action, left = self._go(Results(results=outcomes)), given.keys() - {*names.values()}
        if not left:
            return action
        # The rest of what is given belongs to later calls of the same reply.
        if isinstance(action, RunCalls) and {call.id for call in action.calls} <= left:
            return self.record(
                {name: value for name, value in results.items() if name in left},
                {name: value for name, value in failures.items() if name in left},
            )
        raise _not_to_run(left, action)

    def approve(self, arguments: Mapping[str, object] | None = None) -> Action:
        """A person said yes to the call of `AskPerson`, with arguments of their own if they changed them."""
        ask = self._awaited(Ask, "approve is for the call of AskPerson")
        edited = None if arguments is None else msgspec.json.encode(arguments).decode()
        return self._go(Approved(digest=ask.digest, edited=edited))

    def reject(self, reason: str) -> Action:
        """A person said no to it."""
        ask = self._awaited(Ask, "reject is for the call of AskPerson")
        return self._go(Rejected(digest=ask.digest, reason=reason))

    def openai_tools(self) -> list[dict[str, object]]:
        """The tools as the `tools` of a chat completion."""
        return plain(openai.encode_tools(self._workflow.rules.tools))

    def anthropic_tools(self) -> list[dict[str, object]]:
        """The tools as the `tools` of Anthropic's Messages API."""
        return plain(anthropic.encode_tools(self._workflow.rules.tools))

    def to_json(self) -> bytes:
        """The state of the task as JSON: what `from_json` takes."""
        return msgspec.json.encode(replace(self._now, state=without_memory(self._now.state)))

    def from_json(self, saved: bytes | str) -> None:
        """Go on from what `to_json` gave, in another process if you like, with the same rules.

        ForgeError for what is no saved state of this version, or does not fit the rules.
        """
        try:
            found = decode(_checkpoint, saved)
        except msgspec.DecodeError as error:
            raise ForgeError(f"this is no state of Guardrails: {error}") from error
        if found.version != VERSION:
            raise ForgeError(f"this state of Guardrails has version {found.version}, and only {VERSION} is known")
        self._now = replace(found, state=accepted(self._workflow, found.state))

    def _awaited(self, kind: type[E], what: str) -> E:
        effect = awaited(self._now)
        if isinstance(effect, kind):
            return effect
        now = "the task is over; begin the next with reset()" if effect is None else f"now: {_ADVICE[type(effect)]}"
        raise ForgeError(f"{what}; {now}", self.state)

    def _go(self, outcome: Outcome) -> Action:
        self._now, action = answered(self._turn, self._now, outcome)
        return self._typed(action)

    def _typed(self, action: Action) -> Action:
        return self._workflow.typed(action) if isinstance(action, Finished) else action


_ADVICE: dict[type, str] = {
    Send: "call the model and check its reply",
    Execute: "record what became of the calls that were to be run",
    Ask: "approve or reject the call that a person was to be asked about",
}


def _not_to_run(calls: Collection[str], now: Action) -> ValueError:
    return ValueError(f"{', '.join(sorted(calls))}: these calls were not to be run; the action now is {now!r:.300}")


def _result(
    call: ToolCall, name: str, results: Mapping[str, object], failures: Mapping[str, Exception | str]
) -> CallResult:
    """What became of a call, which has this name at the caller's."""
    match failures.get(name):
        case None:
            return succeeded(call.id, results[name], tool=call.name)
        case str(text):
            return Failed(call_id=call.id, error="Error", message=sound(text))
        case error:
            return failed(call.id, error)


# ResponseValidator: a reply judged by itself: a thin face over the stage `validate`.


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
            tools=tuple(one.spec for one in made),
            calls=Calls(rescue_enabled=rescue_enabled),
            limits=Limits(max_retries_per_step=PATIENT, max_tool_errors=PATIENT),
        )
        self._stage = validate(rules)

    def validate(self, response: object) -> ValidationResult:
        """What is to be done with it; for what it may be, see `reply_of`."""
        state: State = self._stage(State(history=()).to(Answered(reply=reply_of(response)))).unwrap()
        if not isinstance(state.phase, Vetted):
            return ValidationResult(nudges=nudges_of(state.history, Checkpoint(state=state)))
        return ValidationResult(
            tool_calls=tuple(Call(id=c.id, name=c.name, text=c.arguments) for c in state.phase.calls)
        )


# StepEnforcer: steps and prerequisites of a task: a thin face over the guards.


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
            tools=tuple(
                ToolSpec(
                    name=name,
                    description="",
                    parameters=Raw(b'{"type":"object"}'),
                    effect="terminal" if name in ends else "write",
                    prerequisites=tuple(
                        Prerequisite(tool=one) if isinstance(one, str) else one for one in needed.get(name, ())
                    ),
                )
                for name in names
            ),
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
