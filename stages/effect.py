"""Effects, what the loop wants done, and outcomes, what became of it: values on both sides.

A stage never does anything to the world. It puts an effect into the state; the driver has an interpreter
perform it and hands the outcome to `stages.deliver`. So a run can be saved, replayed and resumed.
"""

from typing import Literal

from msgspec import Raw, Struct

from stages.message import Kind, ToolCall


class Request(Struct, frozen=True, kw_only=True):
    """A request as JSON in parts, so that a turn adds its own messages and copies nothing of what came before.

    `head` and `tail` are objects: the fields that stand before `messages`, and those that stand after.
    """

    head: Raw = Raw(b"{}")
    messages: tuple[Raw, ...] = ()
    tail: Raw = Raw(b"{}")

    @property
    def body(self) -> bytes:
        """The request as one JSON object, ready for the wire."""
        head, tail = bytes(self.head)[:-1], bytes(self.tail)[1:]
        messages = (b'"messages":[', b",".join(self.messages), b"]")
        return b"".join((head, b"," * (len(head) > 1), *messages, b"," * (len(tail) > 1), tail))


class Send(Struct, frozen=True, kw_only=True, tag="send"):
    """Post the request to the model."""

    request: Request
    turn: int


class Execute(Struct, frozen=True, kw_only=True, tag="execute"):
    """Run these calls at the same time: several reads, or one call alone.

    `run` is the id of the run they belong to. `retriable`: where nobody knows whether they took effect, they may
    simply be made again, as they only read or are declared idempotent.
    """

    calls: tuple[ToolCall, ...]
    run: str = ""
    retriable: bool = False


class Ask(Struct, frozen=True, kw_only=True, tag="ask"):
    """Ask a person whether this very call may run; `digest` binds the answer to it.

    `in_doubt`: a call of the same tool, often this very one, that was begun before, and nobody knows whether it took
    effect; who knows answers with `Settled`, and a yes runs this call all the same. `problem`: what is wrong with the
    arguments that it was approved with a moment ago; to answer so again is a no.
    """

    call: ToolCall
    digest: str
    in_doubt: ToolCall | None = None
    problem: str = ""


Effect = Send | Execute | Ask


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens as the server counted them."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


class RawCall(Struct, frozen=True, kw_only=True):
    """A tool call as the server gave it: nothing about it is checked yet."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class Reply(Struct, frozen=True, kw_only=True):
    """What a model said, as its wire's codec read it. `finish` is the server's own word (stop, length …).

    `sealed` is what the server wants back just as it gave it: JSON that only its own wire reads.
    """

    text: str = ""
    reasoning: str = ""
    sealed: str = ""
    calls: tuple[RawCall, ...] = ()
    finish: str = "stop"
    usage: Usage | None = None


class Replied(Struct, frozen=True, kw_only=True, tag="replied"):
    """The model answered, after so many seconds."""

    reply: Reply
    seconds: float = 0.0


FaultKind = Literal[
    "unreachable", "tls", "timeout", "interrupted", "status", "reported", "malformed", "too_large", "no_tools"
]
"""What went wrong: nobody there; no trust between the two ends; no byte, or no end, in time; a connection that broke;
a status of refusal; an error under status 200 or in the middle of a stream; an answer that is none; one too large;
a model or a server that takes no tools, or no schema of their calls, where the prompt can name them instead."""


class Fault(Struct, frozen=True, kw_only=True):
    """What the transport did. `body` is the server's answer, cut to size; never shown to a model."""

    kind: FaultKind
    detail: str
    status: int | None = None
    body: str = ""
    retry_after: float | None = None
    """Seconds that the server asked to wait."""
    retriable: bool | None = None
    """What the server says itself of trying again; None: nothing."""


class Undelivered(Struct, frozen=True, kw_only=True, tag="undelivered"):
    """No reply came, and the retry policy has given up after `attempts`."""

    fault: Fault
    attempts: int = 1
    seconds: float = 0.0


class NeedsInput(Struct, frozen=True, kw_only=True, tag="needs_input"):
    """The run ended with a question to the user. A terminal tool returns this value to ask."""

    question: str
    suggestions: tuple[str, ...] = ()


class HandOff(Struct, frozen=True, kw_only=True, tag="hand_off"):
    """The run ended by passing the work on. A terminal tool returns this value to hand over."""

    to: str
    payload: str = ""


class Succeeded(Struct, frozen=True, kw_only=True, tag="succeeded"):
    """The tool returned. `text` is what the model is shown, `value` the same as JSON."""

    call_id: str
    text: str
    value: Raw = Raw(b"null")
    ends: NeedsInput | HandOff | None = None


class Unresolved(Struct, frozen=True, kw_only=True, tag="unresolved"):
    """`ToolResolutionError`: the arguments were fine, the data was not there. Not counted."""

    call_id: str
    message: str


class Failed(Struct, frozen=True, kw_only=True, tag="failed"):
    """The tool raised. `counted` is False for `ToolFailed`, the tool's own final word."""

    call_id: str
    error: str
    message: str
    counted: bool = True


class NotRun(Struct, frozen=True, kw_only=True, tag="not_run"):
    """The call was not run; `reason` is a sentence for the model."""

    call_id: str
    reason: str


class InDoubt(Struct, frozen=True, kw_only=True, tag="in_doubt"):
    """The call was begun, and nobody knows whether it took effect; `reason` is a sentence for the model."""

    call_id: str
    reason: str


class Refused(Struct, frozen=True, kw_only=True, tag="refused"):
    """A guard was against the call; `text` is the correction, `kind` its kind. No interpreter answers so."""

    call_id: str
    text: str
    kind: Kind = Kind.RETRY_NUDGE


CallResult = Succeeded | Unresolved | Failed | NotRun | InDoubt | Refused


class Results(Struct, frozen=True, kw_only=True, tag="results"):
    """What became of the calls of one `Execute`, in their order."""

    results: tuple[CallResult, ...]
    seconds: float = 0.0


class Approved(Struct, frozen=True, kw_only=True, tag="approved"):
    """The call that `digest` names may run, with the person's own arguments (JSON text) if there are any.

    These are held to what the model's are: the tool's schema, and the guards (`stages.execution.approvals`).
    """

    digest: str
    edited: str | None = None


class Rejected(Struct, frozen=True, kw_only=True, tag="rejected"):
    """The call may not run, because of `reason`."""

    digest: str
    reason: str


class Settled(Struct, frozen=True, kw_only=True, tag="settled"):
    """Whether the call that `Ask.in_doubt` names took effect, and `result`, what it returned, if that is known.

    If it did, the call that is asked about does not run. If not, it does, where nothing else is against it.
    """

    digest: str
    happened: bool
    result: str = ""


class Unanswered(Struct, frozen=True, kw_only=True, tag="unanswered"):
    """Nobody is there to ask, or nobody answered in time: the run ends, and asks again when it is resumed."""

    digest: str
    reason: str


Outcome = Replied | Undelivered | Results | Approved | Rejected | Settled | Unanswered
