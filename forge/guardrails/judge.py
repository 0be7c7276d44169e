"""Judging replies for a foreign loop: the actions, and the pipeline that decides on them."""

import json
from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from returns.result import Success

from forge.errors import BackendError, ForgeError
from forge.outcome import Finished, Halted
from forge.workflow.turn import advanced, judging
from forge.workflow.workflow import Workflow
from stages import Stage, on, pipeline
from stages.deliver import deliver
from stages.effect import Ask, Execute, Fault, Outcome, RawCall, Reply, Request, Send
from stages.execution import unanswered_calls
from stages.message import Assistant, History, Kind, Message, Tool, ToolCall, User, call_id, is_nudge
from stages.repair.decoding import nested, sound
from stages.state import COUNTERS, Awaiting, Counter, Done, Ledger, Prepared, Ready, State, mistake_count
from stages.wire import valid
from stages.wire.anthropic import messages as anthropic
from stages.wire.ollama import chat as ollama
from stages.wire.openai import chat as openai

# ErrorTracker: consecutive mistakes.


class ErrorTracker(Struct, kw_only=True):
    """Counts consecutive mistakes; more than the limit are too many."""

    max_retries: int = 3
    max_tool_errors: int = 2
    retries: int = 0
    tool_errors: int = 0

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


# Actions: what a foreign loop does next, and its messages to the model.


class Call(Struct, frozen=True, kw_only=True):
    """A call that may run. `id` is the server's own if it gave one; `text` is the arguments as JSON."""

    id: str
    name: str
    text: str

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments, checked against the tool's schema: `function(**call.arguments)`."""
        return msgspec.json.decode(self.text, type=dict[str, object])


class RunCalls(Struct, frozen=True, kw_only=True):
    """Run `calls`, concurrently if you like, and `record` their results.

    `rest` are the later calls of the same reply; the next action says whether to run them. A loop that runs a whole
    reply at once runs both, in this order, and records both.
    """

    calls: tuple[Call, ...]
    rest: tuple[Call, ...] = ()


class AskPerson(Struct, frozen=True, kw_only=True):
    """A tool needs a person's approval: ask, then `approve` or `reject`.

    `problem`: what was wrong with the edited arguments of the last approval; invalid ones again count as a rejection.
    """

    call: Call
    problem: str = ""


class Nudge(Struct, frozen=True, kw_only=True):
    """A corrective message for the model.

    `role` is `tool` for an answer to the call `call_id` of `tool`, `user` if there was no call. `tier` is the number of
    consecutive mistakes of this kind.
    """

    role: Literal["user", "tool"]
    content: str
    kind: Kind
    tier: int = 0
    call_id: str = ""
    tool: str = ""


class CallModel(Struct, frozen=True, kw_only=True):
    """Append these messages, the model's last reply and the answers to it, and call the model again.

    `nudges` are the corrective ones among the answers; empty if there was no mistake.
    """

    added: History
    nudges: tuple[Nudge, ...] = ()

    def openai(self) -> list[dict[str, object]]:
        """`added` as messages of OpenAI's chat completions, to append to your request's."""
        return plain(openai.encode_history(valid.valid_history(self.added)))

    def anthropic(self) -> list[dict[str, object]]:
        """`added` as messages of Anthropic's Messages API, to append to your request's."""
        return plain(anthropic.encode_history(self.added))


def plain(encoded: object) -> list[dict[str, object]]:
    """Wire structs as dicts and lists, for client libraries."""
    return msgspec.json.decode(msgspec.json.encode(encoded), type=list[dict[str, object]])


Action = RunCalls | AskPerson | CallModel | Finished | Halted
"""The next action. `Finished`: the task is done, `value` is the answer. `Halted`: it has failed, `halt` says why."""


# Replies of foreign clients: plain text, dicts and SDK objects of several protocols, as a `Reply`.


def reply_of(response: object) -> Reply:
    """The reply in a response.

    A response is text, a `Reply`, or, as a dict or an SDK object with `model_dump`, a chat completion or its assistant
    message, a message of Anthropic's API, an answer of Ollama, or a LangChain `AIMessage`. TypeError for anything else,
    BackendError for a damaged one.
    """
    if isinstance(response, Reply):
        return response
    if isinstance(response, str):
        return Reply(text=sound(response))
    try:
        dump = getattr(response, "model_dump", None)
        fields = dump() if callable(dump) else response
        if not isinstance(fields, Mapping):
            raise _unknown(response)
        found = _decoded(fields)
    except (ValueError, RecursionError) as error:
        found = Fault(kind="malformed", detail=f"the reply is not valid JSON: {error}")
    if isinstance(found, Fault):
        raise BackendError(found.detail, fault=found)
    return found


def _decoded(fields: Mapping[str, object]) -> Reply | Fault:
    kind = fields.get("type")
    if "choices" in fields:
        return _read(openai.decode_reply, fields)
    if kind == "ai":
        content = fields.get("content")
        blocks = content if isinstance(content, list) else [content]
        texts = [b.get("text") if isinstance(b, Mapping) else b for b in blocks]
        # LangChain keeps calls that it could not parse, with their damaged text.
        given = [fields.get(key) for key in ("tool_calls", "invalid_tool_calls")]
        calls = [call for some in given if isinstance(some, list) for call in some if isinstance(call, Mapping)]
        text = sound("\n\n".join(text for text in texts if isinstance(text, str)))
        return Reply(text=text, calls=tuple(map(_langchain_call, calls)))
    if kind == "message" or isinstance(fields.get("content"), list):
        return _read(anthropic.decode_reply, fields)
    if "message" in fields and "done" in fields:
        return _read(ollama.decode_reply, fields)
    if fields.get("role") == "assistant":
        return _read(openai.decode_reply, {"choices": [{"message": fields}]})
    raise _unknown(fields)


def _unknown(response: object) -> TypeError:
    return TypeError(
        f"a reply cannot be read from {type(response).__name__}; pass the client's response (OpenAI, Anthropic, "
        "Ollama, LangChain; object or dict), its assistant message, or plain text"
    )


def _read(decode: Callable[[bytes], Reply | Fault], fields: Mapping[str, object]) -> Reply | Fault:
    body = json.dumps(fields, ensure_ascii=False, default=_omitted)
    # A client's own JSON parser may let lone surrogates through.
    return decode(sound(body).encode())


def _omitted(value: object) -> None:
    """Omit values such as dates, which clients add to their objects."""


def _langchain_call(call: Mapping[str, object]) -> RawCall:
    arguments = call.get("args")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, default=_omitted)
    if text is not arguments and nested(text):
        raise ValueError("a call is nested too deeply")
    return RawCall(id=str(call.get("id") or ""), name=sound(str(call.get("name") or "")), arguments=sound(text))


# The judge: forge's own pipeline from the reply on, with a foreign loop instead of interpreters. Pure.

PATIENT: Final = 2**31
"""A limit that is never reached: where the caller's own loop counts, or looks at the counts."""

VERSION: Final = 1
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
    version: int = VERSION


@on(Ready)
def _written(state: State, _: Ready) -> State:
    """Write no request: the caller has its own."""
    return state.to(Prepared(request=Request()))


def judge_of(workflow: Workflow) -> Stage:
    """The workflow's pipeline without the stages that make a request."""
    return pipeline(_written, *judging(workflow.compiled).values())


def begin(turn: Stage, workflow: Workflow, message: str) -> Checkpoint:
    """The start of a task; `message` is the user's, empty if unknown."""
    asked = (User(text=sound(message)),) if message else ()
    state = State(history=asked, ledger=Ledger(budget=workflow.limits.budget(PATIENT)))
    return _onward(turn, Checkpoint(state=state, told=len(asked)))[0]


def heard(before: Checkpoint, message: str) -> Checkpoint:
    """The checkpoint after another user message, which the caller already has."""
    said = User(text=sound(message), turn=before.state.ledger.turn)
    return replace(before, state=before.state.say(said), told=before.told + 1)


def replied(before: Checkpoint, reply: Reply) -> Checkpoint:
    """The checkpoint with the server's call ids of this reply, if they are distinct.

    Forge numbers calls in the order of the reply, so its n-th new id is that of the n-th call.
    """
    given = [call.id for call in reply.calls]
    named = given if all(given) and len({*given}) == len(given) else []
    first = before.state.ledger.ids + 1
    ids = {call_id(number): name for number, name in enumerate(named, start=first)}
    return replace(before, told=len(before.state.history), ids=ids, mistakes=_mistakes(before.state.ledger))


def _mistakes(ledger: Ledger) -> dict[Counter, int]:
    return {counter: mistake_count(ledger, counter) for counter in COUNTERS}


def answered(turn: Stage, before: Checkpoint, outcome: Outcome) -> tuple[Checkpoint, Action]:
    """The checkpoint after the awaited outcome, and the next action."""
    delivered = deliver(before.state, outcome)
    if not isinstance(delivered, Success):
        return before, Halted(halt=delivered.failure(), state=before.state)
    return _onward(turn, replace(before, state=delivered.unwrap()))


def _onward(turn: Stage, before: Checkpoint) -> tuple[Checkpoint, Action]:
    moved = advanced(turn, before.state)
    if not isinstance(moved, Success):
        return before, Halted(halt=moved.failure(), state=before.state)
    after = replace(before, state=moved.unwrap())
    if isinstance(after.state.phase, Ready):  # the turn is over, the next begins
        return _onward(turn, after)
    return after, next_action(after)


def awaited(checkpoint: Checkpoint) -> Send | Execute | Ask | None:
    """The effect that the task is waiting for; None once it is over."""
    phase = checkpoint.state.phase
    return phase.effect if isinstance(phase, Awaiting) else None


def next_action(checkpoint: Checkpoint) -> Action:
    """The action for the caller."""
    state = checkpoint.state
    match state.phase:
        case Awaiting(effect=Send()):
            added = tuple(_renamed(message, checkpoint.ids) for message in state.history[checkpoint.told :])
            return CallModel(added=added, nudges=nudges_of(added, checkpoint))
        case Awaiting(effect=Execute(calls=calls), batch=batch):
            later = [call for call in unanswered_calls(batch) if call not in calls]
            return RunCalls(calls=_calls(calls, checkpoint.ids), rest=_calls(later, checkpoint.ids))
        case Awaiting(effect=Ask(call=call, problem=problem)):
            return AskPerson(call=_calls([call], checkpoint.ids)[0], problem=problem)
        case Done(outcome=outcome):
            return Finished(outcome=outcome, state=state)
        case _:
            raise ForgeError("the task is over; start another with reset()", state)


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


def nudges_of(added: History, checkpoint: Checkpoint) -> tuple[Nudge, ...]:
    """The corrective messages among these."""
    before, now = checkpoint.mistakes, _mistakes(checkpoint.state.ledger)
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
