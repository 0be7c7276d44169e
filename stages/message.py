"""Messages: what was said, by whom, and how soon compaction may cut it.

A message is one of four frozen structs, one for each role of the chat protocol. Its `kind` refines the role: a tool
message may hold a tool's result or the correction of a refused call. Kinds are never sent to a model; they decide what
compaction cuts first.

Messages hold nothing mutable, so they cannot be part of a reference cycle: the garbage collector need not walk through
a long history (`gc=False`).
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Literal, get_args

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
    CONTEXT_WARNING = "context_warning"
    ITERATION_WARNING = "iteration_warning"
    PROGRESS_NOTE = "progress_note"
    THINK_FIRST = "think_first"
    SUMMARY = "summary"
    REMEMBERED = "remembered"


NUDGES = frozenset({Kind.STEP_NUDGE, Kind.PREREQUISITE_NUDGE, Kind.RETRY_NUDGE, Kind.PROVENANCE_NUDGE})
"""Kinds that correct the model: of no use any more once it got it right."""

WARNINGS = frozenset({Kind.CONTEXT_WARNING, Kind.ITERATION_WARNING, Kind.PROGRESS_NOTE, Kind.THINK_FIRST})
"""Kinds that tell the model where the run stands (`stages.view.notes`), or to think: at the end of one prompt."""

CUT_PHASE: dict[Kind, Literal[1, 2, 3]] = {
    Kind.STEP_NUDGE: 1,
    Kind.PREREQUISITE_NUDGE: 1,
    Kind.RETRY_NUDGE: 1,
    Kind.PROVENANCE_NUDGE: 1,
    Kind.CONTEXT_WARNING: 1,
    Kind.ITERATION_WARNING: 1,
    Kind.PROGRESS_NOTE: 1,
    Kind.REMEMBERED: 1,
    Kind.THINK_FIRST: 1,
    Kind.TOOL_RESULT: 2,
    Kind.REASONING: 3,
    Kind.TEXT_RESPONSE: 3,
}
"""The compaction phase that drops a kind (tool results are truncated in phase 1); the other kinds stay."""


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


def call_id(number: int) -> str:
    """Forge's own id of a run's n-th call, from 1."""
    return f"call_{number:09d}"


class System(Struct, frozen=True, kw_only=True, gc=False, tag="system"):
    """The system prompt."""

    text: str


class User(Struct, frozen=True, kw_only=True, gc=False, tag="user"):
    """What the user said, or what forge says in the user's place: a nudge, a warning, a summary."""

    text: str
    kind: Kind = Kind.USER_INPUT
    turn: int = 0
    pinned: bool = False


class Assistant(Struct, frozen=True, kw_only=True, gc=False, tag="assistant"):
    """A reply of the model: text, the reasoning before it, and the calls that it made.

    `sealed` is what its server wants back unchanged (`effect.Reply`); what it takes in the prompt is up to the server,
    so it is not counted.
    """

    text: str = ""
    reasoning: str = ""
    sealed: str = ""
    calls: tuple[ToolCall, ...] = ()
    turn: int = 0
    pinned: bool = False

    @property
    def kind(self) -> Kind:
        """`tool_call` where there is a call, else `text_response`."""
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
"""What a chat template adds to a message (`<|im_start|>role\\n…<|im_end|>\\n`), by `tokens.length`: five tokens."""

_AROUND_CALL = 40
"""What it adds to a call: `<tool_call>\\n{"name": "…", "arguments": …}\\n</tool_call>`."""

AROUND_RESULT = 20
"""What it adds to a result beside that: `<tool_response>\\n…\\n</tool_response>`."""


def size(message: Message) -> int:
    """Size of the message in the prompt, in characters as `tokens.length` counts: everything that is sent."""
    # The two kinds that make up a long history come first: this runs for every message.
    if isinstance(message, Tool):
        return AROUND_MESSAGE + AROUND_RESULT + length(message.name + message.text)
    if isinstance(message, Assistant) and message.calls:
        # Join first: one call beats several.
        said = [part for call in message.calls for part in (call.name, call.arguments)]
        return AROUND_MESSAGE + _AROUND_CALL * len(message.calls) + length("".join((message.text, *said)))
    return AROUND_MESSAGE + length(message.text)


def with_calls(history: History) -> Iterator[tuple[Message, ToolCall | None]]:
    """Each message; with an answer, the call that it answers, if there is one.

    Of several calls with one id, which clients may send, the first answer is the first call's.
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
    """The model call that the message belongs to; 0 for what was there before the first."""
    return 0 if isinstance(message, System) else message.turn


def is_nudge(message: Message) -> bool:
    """Whether the message corrects the model."""
    return isinstance(message, User | Tool) and message.kind in NUDGES


_STATUSES: dict[str, Status] = {
    "ToolResolutionError": "unresolved",
    "ToolError": "failed",
    "ToolFailed": "final",
    "InDoubt": "in_doubt",
}


Prefix = Literal[
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
"""What forge's answers to calls that it did not run begin with, in brackets."""


_MARK = re.compile(rf"\[(?:{'|'.join((*_STATUSES, *get_args(Prefix), 'ContextWarning', 'IterationWarning'))})\]")


_MARKED = re.compile(rf"\[({'|'.join((*_STATUSES, *get_args(Prefix)))})\] ")


def status_of(text: str) -> Status:
    """The outcome by the mark of forge's at the start of an answer: only for what a client of the proxy sends back.

    Inside a run, the outcome is the message's own `status`: any tool may return a text that begins with a mark.
    """
    marked = _MARKED.match(text)
    return _STATUSES.get(marked[1], "not_run") if marked else "succeeded"


def mark_of(text: str) -> str:
    """The mark of forge's that a text begins with, such as `[ToolError]`; empty: none."""
    found = _MARK.match(text)
    return found[0] if found else ""
