"""Guardrails: the rules of a workflow for the user's own loop."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeVar, Unpack

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from returns.result import Success

from forge.errors import DefinitionError, ForgeError, checked_options
from forge.guardrails.actions import Action, AskPerson, Call, CallModel, Nudge, RunCalls, plain, reply_of
from forge.guardrails.tools import AnyTool, optional_steps, tools_of
from forge.interpreters.tools import failed_result, succeeded
from forge.outcome import Finished, Halted
from forge.runtime.runs import accepted
from forge.tools.definition import converter
from forge.workflow.checks import OnText
from forge.workflow.result_type import RESULT
from forge.workflow.turn import advanced, judging
from forge.workflow.workflow import StepOptions, Workflow
from stages import on, pipeline
from stages.decoding import decode, sound
from stages.deliver import deliver
from stages.effect import Approved, Ask, CallResult, Execute, Failed, Outcome, Rejected, Replied, Request, Results, Send
from stages.execution import unanswered_calls
from stages.message import Assistant, History, Message, Tool, ToolCall, User, call_id, is_nudge
from stages.saved import without_memory
from stages.state import COUNTERS, Awaiting, Counter, Done, Ledger, Prepared, Ready, State, mistake_count
from stages.wire.anthropic import messages as anthropic
from stages.wire.openai import chat as openai

# Guardrails: forge's rules for your own loop, which calls the model and runs the tools.

_OWN_LOOP = "only forge's own loop writes the requests; leave it out, or use forge.run"
"""Why an option is refused."""

E = TypeVar("E", Send, Execute, Ask)


PATIENT: Final = 2**31
"""A limit that is never reached: where the caller's own loop counts, or looks at the counts."""

_VERSION: Final = 1
"""The version of a checkpoint's JSON; readers refuse others."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    """The whole state of the middleware. `told` is the number of messages that the caller already has.

    `ids` maps forge's call ids to the server's, for the calls of the last reply. `mistakes` counts the consecutive
    mistakes of each kind before that reply.
    """

    state: State
    told: int = 0
    ids: Mapping[str, str] = {}
    mistakes: Mapping[Counter, int] = {}
    version: int = _VERSION


@on(Ready)
def _written(state: State, _: Ready) -> State:
    """Write no request: the caller has its own."""
    return state.to(Prepared(request=Request()))


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
        made = self._workflow
        calculating = [f"tool {spec.name}: calculated: {_OWN_LOOP}" for spec in made.rules.tools if spec.calculated]
        if problems := (*calculating, *([f"unsure: {_OWN_LOOP}"] if made.unsure else [])):
            raise DefinitionError(problems)
        # Forge's own tools, which the caller's loop does not have.
        added = {"respond": made.on_text == "respond", RESULT: made.result is not None}
        self._own = {name: made.functions[name] for name, there in added.items() if there}
        # Forge's own pipeline from the reply on, with the caller's loop instead of interpreters.
        self._turn = pipeline(_written, *judging(self._workflow.compiled).values())
        self.reset(message)

    def reset(self, message: str = "") -> None:
        """Start a new task, with nothing done and nothing counted."""
        asked = (User(text=sound(message)),) if message else ()
        state = State(history=asked, ledger=Ledger(budget=self._workflow.limits.budget(PATIENT)))
        self._now = Checkpoint(state=state, told=len(asked))
        self._advance()

    @property
    def state(self) -> State:
        """The state of the task, as forge's stages use it; its ledger has all counts."""
        return self._now.state

    @property
    def action(self) -> Action:
        """The current action again. ForgeError after the task was halted."""
        state, ids = self.state, self._now.ids
        match state.phase:
            case Awaiting(effect=Send()):
                added = tuple(_renamed(message, ids) for message in state.history[self._now.told :])
                return CallModel(added=added, nudges=nudges_of(added, state.ledger, self._now.mistakes))
            case Awaiting(effect=Execute(calls=calls), batch=batch):
                later = [c for c in unanswered_calls(batch) if c not in calls and c.name not in self._own]
                return RunCalls(calls=_calls(calls, ids), rest=_calls(later, ids))
            case Awaiting(effect=Ask(call=call, problem=problem)):
                return AskPerson(call=_calls([call], ids)[0], problem=problem)
            case Done(outcome=outcome):
                return self._workflow.typed(Finished(outcome=outcome, state=state))
            case _:
                raise ForgeError("the task is over; start another with reset()", state)

    def hear(self, message: str) -> None:
        """Add a user message. Call it before the model is called; guards may look at the message."""
        self._awaited(Send, "hear can only be called before a model call")
        said = User(text=sound(message), turn=self.state.ledger.turn)
        self._now = replace(self._now, state=self.state.say(said), told=self._now.told + 1)

    def check(self, response: object) -> Action:
        """The next action after this response of the model; `reply_of` lists the accepted types."""
        self._awaited(Send, "check can only be called when a reply is due")
        reply = reply_of(response)
        # The server's ids, if they are distinct. Forge numbers calls in the order of the reply, so its n-th new id is
        # that of the n-th call.
        given, ledger = [call.id for call in reply.calls], self.state.ledger
        named = given if all(given) and len({*given}) == len(given) else []
        ids = {call_id(number): name for number, name in enumerate(named, start=ledger.ids + 1)}
        self._now = replace(self._now, told=len(self.state.history), ids=ids, mistakes=_mistakes(ledger))
        return self._go(Replied(reply=reply))

    @checked_options
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
        outcomes: list[CallResult] = []
        for call in effect.calls:
            match failures.get(name := names[call.id]):
                case None:
                    outcomes.append(succeeded(call.id, results[name], tool=call.name))
                case str(text):
                    outcomes.append(Failed(call_id=call.id, error="Error", message=sound(text)))
                case error:
                    outcomes.append(failed_result(call.id, error))
        action, left = self._go(Results(results=tuple(outcomes))), given.keys() - {*names.values()}
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
        if found.version != _VERSION:
            raise ForgeError(
                f"this state of Guardrails has version {found.version}; only version {_VERSION} is supported"
            )
        self._now = replace(found, state=accepted(self._workflow, found.state))

    def _awaited(self, kind: type[E], what: str) -> E:
        phase = self.state.phase
        effect = phase.effect if isinstance(phase, Awaiting) else None
        if isinstance(effect, kind):
            return effect
        now = "the task is over; start another with reset()" if effect is None else f"now: {_ADVICE[type(effect)]}"
        raise ForgeError(f"{what}; {now}", self.state)

    def _go(self, outcome: Outcome) -> Action:
        delivered = deliver(self.state, outcome)
        if not isinstance(delivered, Success):
            return Halted(halt=delivered.failure(), state=self.state)
        self._now = replace(self._now, state=delivered.unwrap())
        return self._advance()

    def _advance(self) -> Action:
        """Run the pipeline until it needs the caller; a turn that is over is followed by the next."""
        while True:
            moved = advanced(self._turn, self.state)
            if not isinstance(moved, Success):
                return Halted(halt=moved.failure(), state=self.state)
            self._now = replace(self._now, state=moved.unwrap())
            match self.state.phase:
                case Ready():
                    pass
                case Awaiting(effect=Execute(calls=(call,))) if call.name in self._own:
                    return self._go(Results(results=(self._answer(call),)))
                case _:
                    return self.action

    def _answer(self, call: ToolCall) -> CallResult:
        """The result of a tool of forge's own."""
        function = self._own[call.name]
        try:
            return succeeded(call.id, function(**converter(function)(call.arguments)))
        except ValueError as error:
            return failed_result(call.id, error)


_ADVICE: dict[type, str] = {
    Send: "call the model and check its reply",
    Execute: "record the results of the calls",
    Ask: "approve or reject the call that a person was asked about",
}


def _not_to_run(calls: Collection[str], now: Action) -> ValueError:
    return ValueError(f"{', '.join(sorted(calls))}: these calls were not to be run; the action now is {now!r:.300}")


def _calls(calls: tuple[ToolCall, ...] | list[ToolCall], ids: Mapping[str, str]) -> tuple[Call, ...]:
    return tuple(Call(id=ids.get(call.id, call.id), name=call.name, text=call.arguments) for call in calls)


def _renamed(message: Message, ids: Mapping[str, str]) -> Message:
    match message:
        case Assistant(calls=calls) if calls:
            return replace(message, calls=tuple(replace(call, id=ids.get(call.id, call.id)) for call in calls))
        case Tool(call_id=call_id):
            return replace(message, call_id=ids.get(call_id, call_id))
        case _:
            return message


def _mistakes(ledger: Ledger) -> dict[Counter, int]:
    return {counter: mistake_count(ledger, counter) for counter in COUNTERS}


def nudges_of(added: History, ledger: Ledger, before: Mapping[Counter, int]) -> tuple[Nudge, ...]:
    """The corrective messages among these; `before` counts the consecutive mistakes before them."""
    now = _mistakes(ledger)
    # A usable reply sets `retries` to zero before a guard objects to its calls, so that a count may end where it was.
    changed = [count for counter, count in now.items() if count != before.get(counter, 0)]
    tier = max(filter(None, changed), default=max(now.values()))
    found = []
    for one in (message for message in added if is_nudge(message)):
        match one:
            case User(text=text, kind=kind):
                found.append(Nudge(role="user", content=text, kind=kind, tier=tier))
            case Tool(text=text, kind=kind, call_id=answers, name=name):
                found.append(Nudge(role="tool", content=text, kind=kind, tier=tier, call_id=answers, tool=name))
            case _:
                pass
    return tuple(found)
