"""Fitting: compacting a client's conversation to a context size; the rest of the request stays unchanged. Pure."""

from collections.abc import Iterator

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from forge.connection import Setup
from stages.compaction import ContextBudget, Meter, estimate
from stages.compaction.conversation import CompactedConversation, Placed, compacted_conversation
from stages.decoding import decode
from stages.message import History, System, Tool, User
from stages.rules import Rules
from stages.serialize import overhead
from stages.tokens import STARTING_RATE
from stages.wire.faults import Overflow
from stages.wire.sampling import DEFAULT_MAX_TOKENS
from stages.wire.server.request import ServerRequest, as_sent, fields
from stages.wire.target import Target
from stages.wire.valid import alternating_history
from stages.wire.wires import wire

_object = msgspec.json.Decoder(dict[str, Raw])

_STEP = 1.25
"""Factor by which a corrected rate rises or falls.

The prompts of a conversation have slightly different rates. In steps this large they get the same one, and so the same
cut; a rate that followed each prompt would compact each one anew.
"""

_THRESHOLD = 0.95
"""Fraction of the budget at which a conversation is compacted.

Later than in a run (0.75), which must leave room for what the next turns add. Here only the estimate's error counts:
whatever a client adds comes in its next request, which is measured anew.
"""


class Fitted(Struct, frozen=True):
    """The compacted request, and how many of the client's messages were left out or shortened."""

    request: ServerRequest
    cut: int


def fitted(request: ServerRequest, setup: Setup, tokens: int, *, same: bool, rate: float | None = None) -> Fitted:
    """The request compacted to that many tokens, reply included; unchanged if it fits or cannot be made to.

    `same`: the body goes to a backend of its protocol, so the messages in it are rewritten. `rate` is tokens per
    character; the default was measured once with the server's tokenizer. A rate learned from replies would cut the same
    history differently in the next turn.
    """
    history = request.history
    match compacted_conversation(history, _budget(request, setup, tokens, rate)):
        case CompactedConversation(compactions=0):
            return Fitted(request, 0)
        case CompactedConversation(kept=kept) as shorter:
            left = sum(each.at >= 0 and each.message is history[each.at] for each in kept)
            body = _body(request, kept, setup) if same else request.body
            made = replace(request, body=body, history=shorter.history) if body else request
            return Fitted(made, len(history) - left if body else 0)
        case _:
            return Fitted(request, 0)


def refitted(
    given: ServerRequest, sent: ServerRequest, setup: Setup, overflow: Overflow, limit: int, *, same: bool
) -> Fitted | None:
    """The client's request compacted again after `sent` overflowed; None if that does not shorten it.

    `limit` is the policy's maximum, 0: none. The server's count corrects forge's estimate; a lower bound can only raise
    it.
    """
    known = tuple(filter(None, (overflow.maximum or setup.context_tokens, limit)))
    if not known:
        return None
    budget = _budget(sent, setup, max(known), None)
    rate = budget.meter.tokens_per_character
    characters = budget.meter.overhead + budget.count(sent.history)
    while rate < 1 and characters * rate < overflow.tokens:
        rate *= _STEP
    while 0 < overflow.tokens < characters * rate / _STEP and not overflow.at_least:
        rate /= _STEP
    made = fitted(given, setup, min(known), same=same, rate=rate)
    return made if made.cut and made.request.history != sent.history else None


def fits(request: ServerRequest, setup: Setup, tokens: int) -> bool:
    """Whether request and reply fit into that many tokens, by forge's estimate."""
    budget = _budget(request, setup, tokens, None)
    return estimate(request.history, budget) <= budget.tokens


def _budget(request: ServerRequest, setup: Setup, tokens: int, rate: float | None) -> ContextBudget:
    """The budget of the conversation, beside the tools and a reply.

    A reply reserves its limit, but at most a quarter of the context: clients ask for limits larger than that.
    """
    wanted = request.sampling.max_tokens
    reply = min(DEFAULT_MAX_TOKENS if wanted is UNSET else wanted, tokens // 4)
    beside = overhead(Rules(tools=request.specs), Target(mode=setup.mode, wire=wire(setup.dialect)))
    rate = rate or setup.tokens_per_character or STARTING_RATE
    meter = Meter(overhead=beside, tokens_per_character=rate)
    return ContextBudget(tokens=max(1, tokens - reply), threshold=_THRESHOLD, meter=meter)


def _body(request: ServerRequest, kept: tuple[Placed, ...], setup: Setup) -> bytes:
    """The client's body with these messages, its own ones unchanged; empty if something would be lost."""
    spoken, sent = wire(setup.dialect), as_sent(request)
    history = tuple(each.message for each in kept)
    foreign = any(each.fate != "dropped" for each in request.foreign)
    if request.protocol == "chat" and (foreign or not setup.alternating):
        return replace(sent, messages=tuple(_as_sent(kept, request, sent.messages, setup))).body
    if foreign:
        return b""
    if request.protocol == "chat":
        return replace(sent, messages=spoken.messages(alternating_history(history))).body
    return replace(sent, messages=spoken.messages(_after_system(request, history))).body


def _as_sent(
    kept: tuple[Placed, ...], request: ServerRequest, messages: tuple[Raw, ...], setup: Setup
) -> Iterator[Raw]:
    """The client's own messages, unchanged except for the text of shortened results."""
    for each in kept:
        if each.at < 0:
            yield from wire(setup.dialect).messages((each.message,))
        elif each.message is request.history[each.at] or not isinstance(each.message, Tool):
            yield messages[each.at]
        else:
            text = Raw(msgspec.json.encode(each.message.text))
            yield Raw(msgspec.json.encode(decode(_object, bytes(messages[each.at])) | {"content": text}))


def _after_system(request: ServerRequest, history: History) -> History:
    """The messages after the field `system`; later system messages become user messages."""
    held = "system" in fields(request) and bool(history) and isinstance(history[0], System)
    return tuple(User(text=m.text) if isinstance(m, System) else m for m in history[held:])


# Growing context: the context size requested from servers that allocate it on request, such as Ollama.


class GrowingContext:
    """Requests enough context for each request, doubling up to a limit and never shrinking.

    Ollama reloads the model when the size changes, so it should change rarely.
    """

    def __init__(self, tokens: int, limit: int) -> None:
        self.tokens, self.limit = tokens, limit

    def setup_for(self, setup: Setup, request: ServerRequest) -> Setup:
        """The setup with enough context for the request."""
        while self.tokens < self.limit and not fits(request, setup, self.tokens):
            self.tokens = min(self.limit, 2 * self.tokens)
        dialect = replace(setup.dialect, context_tokens=self.tokens)
        return replace(setup, context_tokens=self.tokens, dialect=dialect)
