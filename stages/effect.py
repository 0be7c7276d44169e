"""Effects, which the loop requests, and their outcomes; both are values.

A stage performs no I/O. It puts an effect into the state; the driver has an interpreter perform it and passes the
outcome to `stages.deliver`. This makes runs easy to save, replay and resume.
"""

from math import exp
from typing import Literal

from msgspec import Raw, Struct, field

from stages.message import Kind, ToolCall, UnknownCall
from stages.options import Options


class Price(Options, frozen=True, kw_only=True):
    """Prices per million tokens, in any one currency.

    `cached`: the price of prompt tokens that the server had in its cache; None: the same as `prompt`.
    """

    prompt: float = 0.0
    completion: float = 0.0
    cached: float | None = None

    def of(self, usage: "Usage") -> float:
        """The cost of one reply."""
        if self == _FREE:
            return 0.0
        kept = min(usage.cached, usage.prompt)
        cached = self.prompt if self.cached is None else self.cached
        return ((usage.prompt - kept) * self.prompt + kept * cached + usage.completion * self.completion) / 1e6


_FREE = Price()


class Budget(Options, frozen=True, kw_only=True):
    """The remaining budget of a run, which only shrinks. None: no limit.

    Counts model calls, tool calls, tokens of prompts and replies, seconds, and `cost` by `price`.
    """

    calls: int = 10
    tool_calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    price: Price = _FREE


class TokenProbability(Struct, frozen=True, gc=False, array_like=True):
    """A token of a reply, the natural logarithm of its probability, and the likeliest tokens in its place.

    `others` may include the token itself. The probabilities are the model's, or, on some servers, those after the
    grammar of a schema.
    """

    text: str
    logprob: float
    others: tuple[tuple[str, float], ...] = ()

    @property
    def probability(self) -> float:
        """From 0 to 1."""
        return exp(self.logprob)

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """The other listed tokens at this position, with their probabilities."""
        return tuple((text, exp(logprob)) for text, logprob in self.others if text != self.text)

    def most_unlisted(self, count: int) -> float:
        """The maximum total probability of `count` unlisted tokens, as none exceeds the least probable listed one."""
        rest = 1.0 - self.probability - sum(probability for _, probability in self.alternatives)
        least = min((exp(logprob) for _, logprob in self.others), default=1.0)
        return max(0.0, min(count * least, rest))


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """A request as JSON in parts, so that a turn adds only its own messages.

    `head` and `tail` are JSON objects with the fields before and after `messages`.
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


class Send(Struct, frozen=True, kw_only=True, gc=False, tag="send"):
    """Post the request to the model; `target` names it, for a backend that has several."""

    request: Request
    turn: int
    target: str = "main"


class NeedsInput(Struct, frozen=True, kw_only=True, gc=False, tag="needs_input"):
    """The run ended with a question to the user. A terminal tool returns this value to ask it.

    ValueError, which a model is told as its tool's error, for an empty question.
    """

    question: str
    suggestions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an empty question: nobody could answer it."""
        if not self.question.strip():
            raise ValueError("question is empty; write it out")


class Paused(Struct, frozen=True, kw_only=True, gc=False, tag="paused"):
    """The call asks the user a question. The run ends with it, and continues the call once the user has answered.

    `saved` is the data from which the call continues, in its tool's own format. `answer` is the user's answer, empty
    until there is one.
    """

    call_id: str
    asks: NeedsInput
    saved: str = ""
    answer: str = ""


class Execute(Struct, frozen=True, kw_only=True, gc=False, tag="execute"):
    """Run these calls concurrently: several reads, or one call alone.

    `run` is the ID of their run. `retriable`: safe to retry if the outcome is unknown, because they only read or are
    idempotent. `budget` is the run's remaining budget, for tools that spend it themselves (`ToolSpec.delegates`) and
    for the time that calls may take.
    `continued`: the call asked the user a question, and continues with the answer.
    """

    calls: tuple[ToolCall, ...]
    run: str = ""
    retriable: bool = False
    budget: Budget | None = None
    continued: Paused | None = None


class Ask(Struct, frozen=True, kw_only=True, gc=False, tag="ask"):
    """Ask a person whether this call may run; `digest` ties the answer to this question.

    `in_doubt`: an earlier call to the same tool, often the same call, whose outcome is unknown. A person who knows the
    outcome answers with `Settled`; an approval runs this call anyway. `problem`: what is wrong with the arguments that
    the person just entered; a second mistake counts as a rejection.
    """

    call: ToolCall
    digest: str
    in_doubt: UnknownCall | None = None
    problem: str = ""


Effect = Send | Execute | Ask


class Usage(Struct, frozen=True, kw_only=True, gc=False):
    """Token counts reported by the server."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


class RawCall(Struct, frozen=True, kw_only=True, gc=False):
    """A tool call as the server sent it, not yet checked."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class Reply(Struct, frozen=True, kw_only=True, gc=False):
    """A model's reply, as the codec of its wire read it.

    `finish` is the server's finish reason (stop, length …). `sealed` is data that the server wants back unchanged, as
    JSON that only its wire reads. `tokens` are all generated tokens with their probabilities, if requested.
    """

    text: str = ""
    reasoning: str = ""
    sealed: str = ""
    calls: tuple[RawCall, ...] = ()
    finish: str = "stop"
    usage: Usage | None = None
    tokens: tuple[TokenProbability, ...] = ()


class Replied(Struct, frozen=True, kw_only=True, gc=False, tag="replied"):
    """The model replied, on attempt number `attempts`, after `seconds`."""

    reply: Reply
    seconds: float = 0.0
    attempts: int = 1


FaultKind = Literal[
    "unreachable", "tls", "timeout", "interrupted", "status", "reported", "malformed", "too_large", "no_tools"
]
"""What went wrong.

- `unreachable`: no connection. `tls`: no trusted TLS connection.
- `timeout`: no data, or no complete reply, in time. `interrupted`: the connection broke.
- `status`: an error status. `reported`: an error under status 200 or within a stream.
- `malformed`: the answer cannot be read. `too_large`: it exceeds a limit.
- `no_tools`: the model or the server refuses tools, or a schema of their calls; the prompt can list them instead.
"""


class Fault(Struct, frozen=True, kw_only=True, gc=False):
    """A transport error, never shown to a model. `body` is the server's answer, truncated."""

    kind: FaultKind
    detail: str
    status: int | None = None
    body: str = ""
    retry_after: float | None = None
    """Seconds that the server asked to wait."""
    retriable: bool | None = None
    """Whether the server says that a retry may help; None if it does not say."""


class Undelivered(Struct, frozen=True, kw_only=True, gc=False, tag="undelivered"):
    """No reply came, and the retry policy gave up after `attempts` attempts."""

    fault: Fault
    attempts: int = 1
    seconds: float = 0.0


class HandOff(Struct, frozen=True, kw_only=True, gc=False, tag="hand_off"):
    """The run ended with a hand-off to another agent. A terminal tool returns this value."""

    to: str
    payload: str = ""


class Said(Struct, frozen=True, kw_only=True, gc=False, tag="said"):
    """The run ended with a text for the user: the model's reply, or this value returned by a terminal tool."""

    text: str


class Succeeded(Struct, frozen=True, kw_only=True, gc=False, tag="succeeded"):
    """The tool returned. `text` is what the model sees, `value` the result as JSON."""

    call_id: str
    text: str
    value: Raw = field(default_factory=lambda: Raw(b"null"))  # msgspec cannot write a Raw default into a schema
    ends: NeedsInput | HandOff | Said | None = None


class Unresolved(Struct, frozen=True, kw_only=True, gc=False, tag="unresolved"):
    """The arguments were valid, but there was no data (`ToolResolutionError`). Not counted as a mistake."""

    call_id: str
    message: str


class Failed(Struct, frozen=True, kw_only=True, gc=False, tag="failed"):
    """The tool raised an exception. `counted` is False for `ToolFailed`, where a retry cannot help."""

    call_id: str
    error: str
    message: str
    counted: bool = True


class NotRun(Struct, frozen=True, kw_only=True, gc=False, tag="not_run"):
    """The call was not run; `reason` is a sentence for the model."""

    call_id: str
    reason: str


class InDoubt(Struct, frozen=True, kw_only=True, gc=False, tag="in_doubt"):
    """The call was started and may have taken effect; `reason` is a sentence for the model, `why` the cause in it."""

    call_id: str
    reason: str
    why: str = ""


class Refused(Struct, frozen=True, kw_only=True, gc=False, tag="refused"):
    """A guard refused the call; `text` is the correction, `kind` its kind. Interpreters never return it."""

    call_id: str
    text: str
    kind: Kind = Kind.RETRY_NUDGE


CallResult = Succeeded | Unresolved | Failed | NotRun | InDoubt | Refused | Paused


class Spending(Struct, frozen=True, kw_only=True, gc=False):
    """What tools spent of the run's budget besides the calls themselves, such as an agent's model calls."""

    calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: "Spending") -> "Spending":
        """Both together."""
        return Spending(
            calls=self.calls + other.calls,
            tool_calls=self.tool_calls + other.tool_calls,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
        )


class Results(Struct, frozen=True, kw_only=True, gc=False, tag="results"):
    """The results of the calls of one `Execute`, in their order.

    `heard` is what the user said while they ran; the model sees it after the results of the whole batch. `seconds` is
    the time that all the calls took together. `spent` is what the tools spent of the run's budget.
    """

    results: tuple[CallResult, ...]
    seconds: float = 0.0
    heard: tuple[str, ...] = ()
    spent: Spending = Spending()


class Approved(Struct, frozen=True, kw_only=True, gc=False, tag="approved"):
    """The call that was asked about may run, with the person's own arguments (JSON text) if `edited` is set.

    They are checked like the model's own: by the tool's schema and the guards (`stages.execution`).
    """

    digest: str
    edited: str | None = None


class Rejected(Struct, frozen=True, kw_only=True, gc=False, tag="rejected"):
    """The call must not run, because of `reason`."""

    digest: str
    reason: str


class Settled(Struct, frozen=True, kw_only=True, gc=False, tag="settled"):
    """Whether the call in `Ask.in_doubt` took effect, and its `result`, if known.

    If it did, the call in question does not run. If not, it runs, after another approval if its tool needs one.
    """

    digest: str
    happened: bool
    result: str = ""


class Unanswered(Struct, frozen=True, kw_only=True, gc=False, tag="unanswered"):
    """Nobody could be asked, or nobody answered in time. The run ends, and asks again when it is resumed."""

    digest: str
    reason: str


Outcome = Replied | Undelivered | Results | Approved | Rejected | Settled | Unanswered
