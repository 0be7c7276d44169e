"""Messages: what was said, by whom, and how soon compaction may cut it.

A message is one of four frozen structs, one for each role of the chat protocol. Its `kind` refines the role: a tool
message may hold a tool's result or the correction of a refused call. Kinds are never sent to a model; compaction uses
them to decide what to cut first.

Messages hold nothing mutable, so they cannot be part of a reference cycle: the garbage collector need not walk through
a long history (`gc=False`).
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Literal, TypeGuard, get_args

from msgspec import Struct

from stages.tokens import length


class Kind(StrEnum):
    """Why a message is in the history."""

    SYSTEM_PROMPT = "system_prompt"
    USER_INPUT = "user_input"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    REASONING = "reasoning"
    TEXT_RESPONSE = "text_response"
    STEP_NUDGE = "step_nudge"
    PREREQUISITE_NUDGE = "prerequisite_nudge"
    RETRY_NUDGE = "retry_nudge"
    PROVENANCE_NUDGE = "provenance_nudge"
    ITERATION_WARNING = "iteration_warning"
    PROGRESS_NOTE = "progress_note"
    THINK_FIRST = "think_first"
    SUMMARY = "summary"
    REMEMBERED = "remembered"


NUDGES = frozenset({Kind.STEP_NUDGE, Kind.PREREQUISITE_NUDGE, Kind.RETRY_NUDGE, Kind.PROVENANCE_NUDGE})
"""Kinds that correct the model. They are of no use once the model has got it right."""

WARNINGS = frozenset({Kind.ITERATION_WARNING, Kind.PROGRESS_NOTE, Kind.THINK_FIRST})
"""Kinds that are shown once, at the end of one prompt: how far the run is (`stages.view.notes`), or to think first."""


class ToolCall(Struct, frozen=True, kw_only=True, gc=False):
    """A tool call whose name is known and whose arguments are a JSON object that fits the schema.

    `arguments` is JSON text. `origin` says where the call was found: `native` (the server's own field) or the family of
    text grammar that it was rescued from; `repairs` names each repair that it took.
    """

    id: str
    name: str
    arguments: str
    origin: str = "native"
    repairs: tuple[str, ...] = ()


class UnknownCall(ToolCall, frozen=True, kw_only=True, gc=False):
    """A call that was started and may have taken effect. `why` says, for people, why its outcome is unknown."""

    why: str = ""


def call_id(number: int) -> str:
    """The id that forge gives to the n-th call of a run, counted from 1.

    Counted up rather than random, so that equal runs send equal requests.
    """
    return f"call_{number:09d}"


class System(Struct, frozen=True, kw_only=True, gc=False, tag="system"):
    """The system prompt."""

    text: str


class User(Struct, frozen=True, kw_only=True, gc=False, tag="user"):
    """What the user said, or what forge adds under the user's role: a nudge, a warning, a summary."""

    text: str
    kind: Kind = Kind.USER_INPUT
    turn: int = 0
    pinned: bool = False


class Assistant(Struct, frozen=True, kw_only=True, gc=False, tag="assistant"):
    """A reply of the model: text, the reasoning before it, and the calls that it made.

    `sealed` is data that the server wants back unchanged (`effect.Reply`). Its size is not counted, because the server
    decides how much of it goes into the prompt.
    """

    text: str = ""
    reasoning: str = ""
    sealed: str = ""
    calls: tuple[ToolCall, ...] = ()
    turn: int = 0
    pinned: bool = False

    @property
    def kind(self) -> Kind:
        """`tool_call` if there are calls, else `text_response`."""
        return Kind.TOOL_CALL if self.calls else Kind.TEXT_RESPONSE


Status = Literal["succeeded", "unresolved", "failed", "final", "not_run", "in_doubt"]
"""The outcome of an accepted call (`effect.CallResult`); `final` is a failure that no retry can help."""


class Tool(Struct, frozen=True, kw_only=True, gc=False, tag="tool"):
    """The answer to one call: a tool's result, or why the call was not run.

    `status` is the outcome behind the text; a correction (a `kind` of `NUDGES`) leaves it at its default.
    """

    call_id: str
    name: str
    text: str
    kind: Kind = Kind.TOOL_RESULT
    status: Status = "succeeded"
    turn: int = 0
    pinned: bool = False


Message = System | User | Assistant | Tool
History = tuple[Message, ...]

AROUND_MESSAGE = 24
"""Size, by `tokens.length`, of what a chat template adds to a message (`<|im_start|>role\\n…<|im_end|>\\n`): five
tokens."""

_AROUND_CALL = 40
"""Size of what it adds to a call: `<tool_call>\\n{"name": "…", "arguments": …}\\n</tool_call>`."""

AROUND_RESULT = 20
"""Size of what it adds to a result on top of that: `<tool_response>\\n…\\n</tool_response>`."""


def size(message: Message) -> int:
    """Size of everything that is sent of the message, in characters as `tokens.length` counts them."""
    # The two kinds that make up a long history come first: this runs for every message.
    if isinstance(message, Tool):
        return AROUND_MESSAGE + AROUND_RESULT + length(message.name + message.text)
    if isinstance(message, Assistant) and message.calls:
        # Join first: one call beats several.
        said = [part for call in message.calls for part in (call.name, call.arguments)]
        return AROUND_MESSAGE + _AROUND_CALL * len(message.calls) + length("".join((message.text, *said)))
    return AROUND_MESSAGE + length(message.text)


def messages_with_calls(history: History) -> Iterator[tuple[Message, ToolCall | None]]:
    """Each message, paired with the call that it answers, or None.

    Clients may send several calls with the same id; their answers are then matched in order.
    """
    made: dict[str, list[ToolCall]] = {}
    for message in history:
        call = None
        match message:
            case Assistant(calls=calls):
                made |= {one.id: [] for one in calls}
                for one in calls:
                    made[one.id].append(one)
            case Tool(call_id=call_id) if of_this_id := made.get(call_id):
                call = of_this_id.pop(0) if len(of_this_id) > 1 else of_this_id[0]
            case _:
                pass
        yield message, call


def turn_of(message: Message) -> int:
    """The number of the model call that the message belongs to; 0 for messages from before the first."""
    return 0 if isinstance(message, System) else message.turn


def is_user_input(message: Message) -> TypeGuard[User]:
    """Whether the user said it; forge's nudges, notes and summaries have the same role."""
    return isinstance(message, User) and message.kind is Kind.USER_INPUT


def is_nudge(message: Message) -> bool:
    """Whether the message corrects the model."""
    return isinstance(message, User | Tool) and message.kind in NUDGES


_STATUSES: dict[str, Status] = {
    "ToolResolutionError": "unresolved",
    "ToolError": "failed",
    "ToolFailed": "final",
    "InDoubt": "in_doubt",
}


Mark = Literal[
    "NotRun",
    "UnknownTool",
    "ToolArgValidationError",
    "StepEnforcementError",
    "PrereqError",
    "OrderError",
    "Placeholder",
    "UngroundedArgument",
    "Miscalculated",
    "Repeated",
    "Repeats",
    "Incomplete",
]
"""The marks, in brackets, that begin forge's answers to calls that it did not run."""


_MARK = re.compile(r"\[(\w{1,40})\]")
_OF_ANSWERS = frozenset((*_STATUSES, *get_args(Mark)))
_MARKS = _OF_ANSWERS | {"IterationWarning"}


FAILURES: frozenset[Status] = frozenset({"failed", "final", "unresolved"})
"""The outcomes of calls that ran and failed, those that no limit counts (`final`, `unresolved`) among them."""


def outcome_of(answer: Tool) -> Status:
    """The outcome of the call in a history from outside, such as a client's of the proxy.

    A client's protocol says at most that a call failed, so the mark that begins the text tells more. A tool may return
    a text that begins with a mark: whoever allows more because of an outcome must ask `status`, too.
    """
    if answer.kind is not Kind.TOOL_RESULT:
        return "not_run"
    found = _MARK.match(answer.text) if answer.status in ("succeeded", "failed") else None
    if found is None or found[1] not in _OF_ANSWERS or not answer.text.startswith(" ", found.end()):
        return answer.status
    return _STATUSES.get(found[1], "not_run")


def mark_of(text: str) -> str:
    """Forge's mark at the beginning of a text, such as `[ToolError]`; empty if there is none."""
    found = _MARK.match(text)
    return found[0] if found and found[1] in _MARKS else ""
