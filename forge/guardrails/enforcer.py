"""Guardrails: the rules of a workflow for the user's own loop."""

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
from stages.objection import Guard, Stop, mistake_of, refusals, render, with_mistakes
from stages.repair.decoding import decode, sound
from stages.rules import Calls, Limits, Rules, completed, pending
from stages.saved import without_memory
from stages.state import Answered, Ledger, State, Success, Vetted, mistake_count
from stages.tool import Prerequisite, ToolSpec
from stages.validate import validate
from stages.wire.anthropic import messages as anthropic
from stages.wire.openai import chat as openai

# Guardrails: forge's rules for your own loop, which calls the model and runs the tools.

_NO_CALCULATION = (
    "arguments are calculated only in forge's own loop, which gives the model their schemas and runs the tools; leave "
    "`calculated` out, or use forge.run"
)

E = TypeVar("E", Send, Execute, Ask)


_checkpoint = msgspec.json.Decoder(Checkpoint)


class Guardrails:
    """The state of one task in your own loop. It decides as `forge.run` does with the same workflow.

    Pass each reply of the model to `check`, and the results of calls to `record`; both return the next action:
    `RunCalls`, `AskPerson`, `CallModel`, `Finished` or `Halted`. Create it with a `Workflow`, or with `tools` and
    options of one: tools are functions (decorated or not), tools in the form of the OpenAI or Anthropic API, or names,
    whose arguments are not checked. `message` is the user's message; guards may look at it. Without `max_iterations`,
    your own loop must limit the model calls.

    Raises DefinitionError listing all mistakes.
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
            raise TypeError("pass Guardrails a workflow, or tools and options, not both: a workflow has its own")
        options["optional_steps"] = optional_steps(options.get("optional_steps", ()), tools)
        self._workflow = workflow or Workflow("guardrails", tools=tools_of(tools), on_text=on_text, **options)
        if calculating := [spec.name for spec in self._workflow.rules.tools if spec.calculated]:
            raise DefinitionError((f"{', '.join(calculating)}: {_NO_CALCULATION}",))
        self._turn = judge_of(self._workflow)
        self.reset(message)

    def reset(self, message: str = "") -> None:
        """Start a new task, with nothing done and nothing counted."""
        self._now = begin(self._turn, self._workflow, message)

    @property
    def state(self) -> State:
        """The state of the task, as forge's stages use it; its ledger has all counts."""
        return self._now.state

    @property
    def action(self) -> Action:
        """The current action again. ForgeError after the task was halted."""
        return self._typed(next_action(self._now))

    def hear(self, message: str) -> None:
        """Add a user message. Call it before the model is called; guards may look at the message."""
        self._awaited(Send, "hear can only be called before a model call")
        self._now = heard(self._now, message)

    def check(self, response: object) -> Action:
        """The next action after this response of the model; `reply_of` lists the accepted types."""
        self._awaited(Send, "check can only be called when a reply is due")
        reply = reply_of(response)
        self._now = replied(self._now, reply)
        return self._go(Replied(reply=reply))

    def record(
        self,
        results: Mapping[str, object] | None = None,
        failures: Mapping[str, Exception | str] | None = None,
    ) -> Action:
        """The next action after the calls have run; `results` are returned values, `failures` exceptions, by call id.

        A failure is the tool's exception (`ToolResolutionError` and `ToolFailed` are not counted) or a text. Without
        arguments, all calls of the last action succeeded. ValueError for a call that is missing or was not to be run.
        """
        effect = self._awaited(Execute, "record can only be called after RunCalls")
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
            raise ValueError(f"no result for {', '.join(lacking)}: each call must be a key of results or failures")
        outcomes = tuple(_result(call, names[call.id], results, failures) for call in effect.calls)
        action, left = self._go(Results(results=outcomes)), given.keys() - {*names.values()}
        if not left:
            return action
        # The remaining results belong to later calls of the same reply.
        if isinstance(action, RunCalls) and {call.id for call in action.calls} <= left:
            return self.record(
                {name: value for name, value in results.items() if name in left},
                {name: value for name, value in failures.items() if name in left},
            )
        raise _not_to_run(left, action)

    def approve(self, arguments: Mapping[str, object] | None = None) -> Action:
        """A person approved the call of `AskPerson`; pass `arguments` if they edited them."""
        ask = self._awaited(Ask, "approve can only be called after AskPerson")
        edited = None if arguments is None else msgspec.json.encode(arguments).decode()
        return self._go(Approved(digest=ask.digest, edited=edited))

    def reject(self, reason: str) -> Action:
        """A person rejected the call of `AskPerson`."""
        ask = self._awaited(Ask, "reject can only be called after AskPerson")
        return self._go(Rejected(digest=ask.digest, reason=reason))

    def openai_tools(self) -> list[dict[str, object]]:
        """The tools as `tools` of a chat completion request."""
        return plain(openai.encode_tools(self._workflow.rules.tools))

    def anthropic_tools(self) -> list[dict[str, object]]:
        """The tools as `tools` of a request to Anthropic's Messages API."""
        return plain(anthropic.encode_tools(self._workflow.rules.tools))

    def to_json(self) -> bytes:
        """The state of the task as JSON, for `from_json`."""
        return msgspec.json.encode(replace(self._now, state=without_memory(self._now.state)))

    def from_json(self, saved: bytes | str) -> None:
        """Continue from the result of `to_json`, possibly in another process, with the same rules.

        ForgeError for data that is not a saved state of this version, or does not match the rules.
        """
        try:
            found = decode(_checkpoint, saved)
        except msgspec.DecodeError as error:
            raise ForgeError(f"this is not a saved state of Guardrails: {error}") from error
        if found.version != VERSION:
            raise ForgeError(
                f"this state of Guardrails has version {found.version}; only version {VERSION} is supported"
            )
        self._now = replace(found, state=accepted(self._workflow, found.state))

    def _awaited(self, kind: type[E], what: str) -> E:
        effect = awaited(self._now)
        if isinstance(effect, kind):
            return effect
        now = "the task is over; start another with reset()" if effect is None else f"now: {_ADVICE[type(effect)]}"
        raise ForgeError(f"{what}; {now}", self.state)

    def _go(self, outcome: Outcome) -> Action:
        self._now, action = answered(self._turn, self._now, outcome)
        return self._typed(action)

    def _typed(self, action: Action) -> Action:
        return self._workflow.typed(action) if isinstance(action, Finished) else action


_ADVICE: dict[type, str] = {
    Send: "call the model and check its reply",
    Execute: "record the results of the calls",
    Ask: "approve or reject the call that a person was asked about",
}


def _not_to_run(calls: Collection[str], now: Action) -> ValueError:
    return ValueError(f"{', '.join(sorted(calls))}: these calls were not to be run; the action now is {now!r:.300}")


def _result(
    call: ToolCall, name: str, results: Mapping[str, object], failures: Mapping[str, Exception | str]
) -> CallResult:
    """The result of a call, from the caller's dicts under its id there."""
    match failures.get(name):
        case None:
            return succeeded(call.id, results[name], tool=call.name)
        case str(text):
            return Failed(call_id=call.id, error="Error", message=sound(text))
        case error:
            return failed(call.id, error)


# ResponseValidator: judges a single reply, using the stage `validate`.


class ValidationResult(Struct, frozen=True, kw_only=True):
    """The valid calls, or nudges: one for each invalid call, or one for a reply without a call."""

    tool_calls: tuple[Call, ...] = ()
    nudges: tuple[Nudge, ...] = ()

    @property
    def needs_retry(self) -> bool:
        """Whether the model must be called again."""
        return not self.tool_calls

    @property
    def nudge(self) -> Nudge | None:
        """The first nudge; None if all calls are valid."""
        return self.nudges[0] if self.nudges else None


class ResponseValidator:
    """Finds the calls of a response, also in its text, and checks names and arguments. It is stateless."""

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
            return ValidationResult(nudges=nudges_of(state.history, Checkpoint(state=state)))
        return ValidationResult(
            tool_calls=tuple(Call(id=c.id, name=c.name, text=c.arguments) for c in state.phase.calls)
        )


# StepEnforcer: steps and prerequisites of a task, using the guards.


class StepCheck(Struct, frozen=True, kw_only=True):
    """One nudge for each call that may not run yet; empty if all may."""

    nudges: tuple[Nudge, ...] = ()

    @property
    def needs_nudge(self) -> bool:
        """Whether the calls are refused."""
        return bool(self.nudges)

    @property
    def nudge(self) -> Nudge | None:
        """The first nudge; None if the calls may run."""
        return self.nudges[0] if self.nudges else None


class StepEnforcer:
    """The required steps and prerequisites of one task: which are done, and which calls are allowed now."""

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
        """Note that the tool succeeded with these arguments."""
        done = Success(name=tool_name, arguments=msgspec.json.encode(args or {}).decode())
        self._state = self._state.note(successes=(*self._ledger.successes, done))

    def reset_premature(self) -> None:
        """Reset the count of premature terminal calls."""
        self._state = self._state.note(premature=0)

    def reset_prereq_violations(self) -> None:
        """Reset the count of missing prerequisites."""
        self._state = self._state.note(prerequisite_violations=0)

    @property
    def _ledger(self) -> Ledger:
        return self._state.ledger

    @property
    def premature_attempts(self) -> int:
        """How often in a row a terminal tool was called prematurely."""
        return self._ledger.premature

    @property
    def premature_exhausted(self) -> bool:
        """Whether that is more than the limit."""
        return self._ledger.premature > self._limits[0]

    @property
    def prereq_violations(self) -> int:
        """How often in a row prerequisites were missing."""
        return self._ledger.prerequisite_violations

    @property
    def prereq_exhausted(self) -> bool:
        """Whether that is more than the limit."""
        return self._ledger.prerequisite_violations > self._limits[1]

    @property
    def completed_steps(self) -> tuple[str, ...]:
        """The tools that have succeeded, without duplicates, in the order of their first success."""
        return completed(self._ledger)

    def pending(self) -> tuple[str, ...]:
        """The required steps that have not succeeded yet."""
        return pending(self._rules, self._ledger)

    def is_satisfied(self) -> bool:
        """Whether all required steps have succeeded."""
        return not self.pending()
