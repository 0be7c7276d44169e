"""Effects, what the loop wants done, and outcomes, what came of it: values on both sides.

A stage never does anything to the world. It puts an effect into the state; the driver has an interpreter perform it and
hands the outcome to `stages.deliver`. So a run can be saved, replayed and resumed.
"""

from math import exp
from typing import Literal

from msgspec import Raw, Struct, field

from stages.message import Kind, ToolCall
from stages.options import Options


class Price(Options, frozen=True, kw_only=True):
    """Prices of a million tokens, in any one currency.

    `cached`: of prompt tokens that the server had in its cache; None: same as the rest.
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
    """What the run may still spend; it only shrinks. None: no limit.

    Model calls, tool calls, tokens of prompts and replies, seconds, and `cost`, counted by `price`.
    """

    calls: int = 10
    tool_calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    price: Price = _FREE


class TokenProbability(Struct, frozen=True, gc=False, array_like=True):
    """A token of a reply, the natural logarithm of its probability, and the likeliest tokens in its place.

    `others` may hold the token itself. The probabilities are the model's own, or, on some servers, those that the
    grammar of a schema has left.
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
        """The other tokens in its place with their probabilities, as far as they are listed."""
        return tuple((text, exp(logprob)) for text, logprob in self.others if text != self.text)

    def most_unlisted(self, count: int) -> float:
        """The most that so many tokens can have together that are not listed: none has more than the least listed."""
        rest = 1.0 - self.probability - sum(probability for _, probability in self.alternatives)
        least = min((exp(logprob) for _, logprob in self.others), default=1.0)
        return max(0.0, min(count * least, rest))


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """A request as JSON in parts, so that a turn adds only its own messages.

    `head` and `tail` are objects: the fields before `messages`, and those after.
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
    """The run ended with a question to the user. A terminal tool returns this value to ask it."""

    question: str
    suggestions: tuple[str, ...] = ()


class Paused(Struct, frozen=True, kw_only=True, gc=False, tag="paused"):
    """The call has a question to the user: the run ends with it, and goes on with the call once it is answered.

    `saved` is what the call continues from, in a form of its tool's own. `answer`: what the user said; empty: nothing
    yet.
    """

    call_id: str
    asks: NeedsInput
    saved: str = ""
    answer: str = ""


class Execute(Struct, frozen=True, kw_only=True, gc=False, tag="execute"):
    """Run these calls concurrently: several reads, or one call alone.

    `run` is the id of their run. `retriable`: safe to retry where the outcome is unknown, as they only read or are
    idempotent. `budget` is what the run may still spend, for tools that spend it themselves (`ToolSpec.delegates`).
    `continued`: the call asked the user something, and goes on with the answer.
    """

    calls: tuple[ToolCall, ...]
    run: str = ""
    retriable: bool = False
    budget: Budget | None = None
    continued: Paused | None = None


class Ask(Struct, frozen=True, kw_only=True, gc=False, tag="ask"):
    """Ask a person whether this very call may run; `digest` binds the answer to it.

    `in_doubt`: an earlier call of the same tool, often the same call, whose outcome is unknown; the person answers with
    `Settled` if they know it, and a yes runs this call anyway. `problem`: what is wrong with the arguments that the
    person just approved the call with; wrong arguments again count as a no.
    """

    call: ToolCall
    digest: str
    in_doubt: ToolCall | None = None
    problem: str = ""


Effect = Send | Execute | Ask


class Usage(Struct, frozen=True, kw_only=True, gc=False):
    """Tokens as the server counted them."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


class RawCall(Struct, frozen=True, kw_only=True, gc=False):
    """A tool call as the server gave it, still unchecked."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class Reply(Struct, frozen=True, kw_only=True, gc=False):
    """A model's reply, as the codec of its wire read it.

    `finish` is the server's own word (stop, length …). `sealed` is what the server wants back unchanged: JSON that only
    its own wire reads. `tokens` are all that was generated, with their probabilities, where these were asked for.
    """

    text: str = ""
    reasoning: str = ""
    sealed: str = ""
    calls: tuple[RawCall, ...] = ()
    finish: str = "stop"
    usage: Usage | None = None
    tokens: tuple[TokenProbability, ...] = ()


class Replied(Struct, frozen=True, kw_only=True, gc=False, tag="replied"):
    """The model answered, at attempt number `attempts`; `seconds` is how long it took."""

    reply: Reply
    seconds: float = 0.0
    attempts: int = 1


FaultKind = Literal[
    "unreachable", "tls", "timeout", "interrupted", "status", "reported", "malformed", "too_large", "no_tools"
]
"""What went wrong.

- `unreachable`: no connection. `tls`: the two ends do not trust each other.
- `timeout`: no first byte, or no end, in time. `interrupted`: the connection broke.
- `status`: an error status. `reported`: an error under status 200 or within a stream.
- `malformed`: the answer cannot be read. `too_large`: it exceeds a limit.
- `no_tools`: the model or the server takes no tools, or no schema of their calls; the prompt can name them instead.
"""


class Fault(Struct, frozen=True, kw_only=True, gc=False):
    """What went wrong in the transport. `body` is the server's answer, cut to size; never shown to a model."""

    kind: FaultKind
    detail: str
    status: int | None = None
    body: str = ""
    retry_after: float | None = None
    """Seconds that the server asked to wait."""
    retriable: bool | None = None
    """Whether the server itself says that a retry may help; None: it does not say."""


class Undelivered(Struct, frozen=True, kw_only=True, gc=False, tag="undelivered"):
    """No reply came, and the retry policy gave up after `attempts` attempts."""

    fault: Fault
    attempts: int = 1
    seconds: float = 0.0


class HandOff(Struct, frozen=True, kw_only=True, gc=False, tag="hand_off"):
    """The run ended by passing the work on. A terminal tool returns this value to hand over."""

    to: str
    payload: str = ""


class Said(Struct, frozen=True, kw_only=True, gc=False, tag="said"):
    """The run ended with words to the user: the model's own reply, or what a terminal tool returned as this value."""

    text: str


class Listed(Struct, frozen=True, kw_only=True, gc=False):
    """Values that a tool has listed, and the tool that has to be called with each of them."""

    tool: str
    values: tuple[str, ...]


class Succeeded(Struct, frozen=True, kw_only=True, gc=False, tag="succeeded"):
    """The tool returned. `text` is what the model is shown, `value` the result as JSON.

    `listed` and `passed` are those of `state.Success`. The stage `execute` fills them in when the result has come,
    since a run that is cut short, by whoever it is, does not know the rules; None before that.
    """

    call_id: str
    text: str
    value: Raw = field(default_factory=lambda: Raw(b"null"))  # msgspec cannot write a Raw default into a schema
    ends: NeedsInput | HandOff | Said | None = None
    listed: tuple[Listed, ...] | None = None
    passed: bool = False


class Unresolved(Struct, frozen=True, kw_only=True, gc=False, tag="unresolved"):
    """The arguments were fine, the data was not there (`ToolResolutionError`). Not counted as a mistake."""

    call_id: str
    message: str


class Failed(Struct, frozen=True, kw_only=True, gc=False, tag="failed"):
    """The tool raised. `counted` is False for `ToolFailed`: retrying cannot help."""

    call_id: str
    error: str
    message: str
    counted: bool = True


class NotRun(Struct, frozen=True, kw_only=True, gc=False, tag="not_run"):
    """The call was not run; `reason` is a sentence for the model."""

    call_id: str
    reason: str


class InDoubt(Struct, frozen=True, kw_only=True, gc=False, tag="in_doubt"):
    """The call's outcome is unknown: it was started and may have taken effect; `reason` is a sentence for the model."""

    call_id: str
    reason: str


class Refused(Struct, frozen=True, kw_only=True, gc=False, tag="refused"):
    """A guard refused the call; `text` is the correction, `kind` its kind. Interpreters never return it."""

    call_id: str
    text: str
    kind: Kind = Kind.RETRY_NUDGE


CallResult = Succeeded | Unresolved | Failed | NotRun | InDoubt | Refused | Paused


class Spending(Struct, frozen=True, kw_only=True, gc=False):
    """What tools spent of the run's budget, beside the calls themselves: an agent's model calls, and so on."""

    calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class Results(Struct, frozen=True, kw_only=True, gc=False, tag="results"):
    """The results of the calls of one `Execute`, in their order.

    `heard` is what the user said while they ran: the model reads it after the results of the whole batch. `spent` is
    what they took of the run's budget.
    """

    results: tuple[CallResult, ...]
    seconds: float = 0.0
    heard: tuple[str, ...] = ()
    spent: Spending = Spending()


class Approved(Struct, frozen=True, kw_only=True, gc=False, tag="approved"):
    """The call that `digest` names may run, with the person's own arguments (JSON text) if there are any.

    Those are checked like the model's own: by the tool's schema and the guards (`stages.execution`).
    """

    digest: str
    edited: str | None = None


class Rejected(Struct, frozen=True, kw_only=True, gc=False, tag="rejected"):
    """The call may not run, because of `reason`."""

    digest: str
    reason: str


class Settled(Struct, frozen=True, kw_only=True, gc=False, tag="settled"):
    """Whether the call in `Ask.in_doubt` took effect, and `result`, what it returned, if that is known.

    If it did, the call that is asked about does not run. If not, it runs unless something else forbids it.
    """

    digest: str
    happened: bool
    result: str = ""


class Unanswered(Struct, frozen=True, kw_only=True, gc=False, tag="unanswered"):
    """Nobody could be asked, or nobody answered in time: the run ends, and asks again when it is resumed."""

    digest: str
    reason: str


Outcome = Replied | Undelivered | Results | Approved | Rejected | Settled | Unanswered
