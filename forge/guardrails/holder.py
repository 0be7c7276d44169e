"""Guardrails: forge's rules for a loop of your own. It asks the model and runs the tools; this says what is next."""

from collections.abc import Collection, Mapping, Sequence
from typing import TypedDict, TypeVar, Unpack

import msgspec
from msgspec.structs import replace

from forge.errors import DefinitionError, ForgeError
from forge.guardrails.actions import Action, RunCalls, plain
from forge.guardrails.judge import VERSION, Checkpoint, answered, awaited, begin, heard, judge_of, next_action, replied
from forge.guardrails.replies import reply_of
from forge.guardrails.tools import AnyTool, optional_steps, tools_of
from forge.interpreters.tool_results import failed, succeeded
from forge.outcome import Finished
from forge.runtime.options import checked_options
from forge.runtime.saved_state import accepted
from forge.workflow.checks import OnText
from forge.workflow.workflow import Workflow
from stages.effect import Approved, Ask, CallResult, Execute, Failed, Outcome, Rejected, Replied, Results, Send
from stages.message import ToolCall
from stages.objection import Guard
from stages.repair.decoding import decode, sound
from stages.rescue import Family
from stages.rules import RepairLimits
from stages.saved import without_memory
from stages.state import State
from stages.wire.anthropic import messages as anthropic
from stages.wire.openai import chat as openai

UNBOUNDED = 2**31
"""Model calls that a task may take where your own loop counts them."""

NO_CALCULATION = (
    "arguments are calculated in forge's own loop only, which gives the model their schemas and runs the tools; leave "
    "`calculated` out, or use forge.run"
)

E = TypeVar("E", Send, Execute, Ask)


_checkpoint = msgspec.json.Decoder(Checkpoint)


class Limits(TypedDict, total=False):
    """Options of `Workflow` that concern replies and calls."""

    terminal_tool: str | Sequence[str]
    required_steps: str | Sequence[str]
    optional_steps: str | Sequence[str]
    max_iterations: int
    max_retries_per_step: int
    max_tool_errors: int
    on_text: OnText
    rescue_enabled: bool
    repair_limits: RepairLimits
    guards: Sequence[Guard]
    families: Sequence[Family]


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
        **limits: Unpack[Limits],
    ) -> None:
        if workflow is not None and (tools or limits):
            raise TypeError("give Guardrails a workflow, or tools and options, not both: a workflow has its own")
        limits.setdefault("max_iterations", UNBOUNDED)
        limits["optional_steps"] = optional_steps(limits.get("optional_steps", ()), tools)
        self._workflow = workflow or Workflow("guardrails", tools=tools_of(tools), **limits)
        if calculating := [spec.name for spec in self._workflow.rules.tools if spec.calculated]:
            raise DefinitionError((f"{', '.join(calculating)}: {NO_CALCULATION}",))
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
        given = {**(results or {}), **(failures or {})}
        self._refuse_strangers(given.keys())
        if lacking := [name for name in names.values() if name not in given]:
            raise ValueError(f"what became of {', '.join(lacking)}? Each call is a key of results or of failures")
        outcomes = tuple(_result(call, names[call.id], results or {}, failures or {}) for call in effect.calls)
        action = self._go(Results(results=outcomes))
        return self._rest(action, given.keys() - {*names.values()}, results or {}, failures or {})

    def _refuse_strangers(self, given: Collection[str]) -> None:
        """ValueError, before anything is recorded, for a call that is none of the reply's."""
        now = self.action
        known = {call.id for call in (*now.calls, *now.rest)} if isinstance(now, RunCalls) else set()
        if strangers := sorted({*given} - known):
            raise ValueError(f"{', '.join(strangers)}: these calls were not to be run; the action now is {now!r:.300}")

    def _rest(
        self,
        action: Action,
        left: set[str],
        results: Mapping[str, object],
        failures: Mapping[str, Exception | str],
    ) -> Action:
        """What to do after the results that belong to later calls of the same reply, if there are any."""
        if not left:
            return action
        if isinstance(action, RunCalls) and {call.id for call in action.calls} <= left:
            return self.record(
                {name: value for name, value in results.items() if name in left},
                {name: value for name, value in failures.items() if name in left},
            )
        raise ValueError(
            f"{', '.join(sorted(left))}: these calls were not to be run; the action now is {action!r:.300}"
        )

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
