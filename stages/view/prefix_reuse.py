"""Prefix reuse: how much of the last prompt the next one begins with, and which stage changed the rest.

A server can reuse its evaluation of the last prompt as far as the next prompt begins in the same way. That is the
prompt as the model's chat template renders it: the tools first, then the messages, without call ids, JSON escapes and
the request's options. So reuse is measured in messages and in characters (`message.size`), not in bytes of JSON, which
may differ although the prompt is the same. (A template that places the tools or earlier reasoning relative to the last
user message may reuse less; requests do not show that.)
"""

from typing import Literal, TypeVar

from msgspec import Struct

from stages.message import Assistant, History, Kind, Message, User, size
from stages.state import Prompt, State
from stages.tokens import length, whole_rate

Cause = Literal["compact", "fold", "serialize", "history"]
"""The stage that changed the beginning of the prompt; `history`: the driver reshaped it between turns."""


class Loss(Struct, frozen=True, kw_only=True):
    """Tokens of the last prompt that the server can keep, and those that it cannot."""

    kept_tokens: int
    lost_tokens: int
    cause: Cause


_S = TypeVar("_S", str, bytes, History)


def common_length(before: _S, after: _S) -> int:
    """The length of the common prefix of two texts or histories. Linear."""
    shorter = min(len(before), len(after))
    if before[:shorter] == after[:shorter]:
        return shorter  # most prompts continue the last one, however long it is
    return next(n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)


def common_size(before: History, after: History) -> int:
    """Size of the common prefix of two views, in characters by `message.size`."""
    count = common_length(before, after)
    characters = sum(map(size, before[:count]))
    if count < len(before) and count < len(after) and type(old := before[count]) is type(new := after[count]):
        # Of the first messages that differ, the beginning of the text; texts come before calls.
        characters += length(old.text[: common_length(old.text, new.text)])
    return characters


def prefix_loss(before: State, after: State) -> Loss | None:
    """How much of the previous prompt of the same model the request of `after` cannot reuse; None if it reuses all.

    Tokens are estimated at the ledger's rate. The tools, which come before all messages, are reused unless they change.
    """
    sent = after.prompt
    last = next((prompt for prompt in before.prompts if prompt.target == sent.target), Prompt())
    count = common_length(last.view, sent.view)
    # The first message is compared, too, because it contains the tools in all modes but native.
    rewritten = bool(last.view) and (last.tools != sent.tools or bool(count and last.first != sent.first))
    if not rewritten and count == len(last.view):
        return None
    ratio = whole_rate(after.ledger.tokens_per_character, after.ledger.report)
    tools = last.whole - last.size
    # Messages are measured only if something was lost: most requests continue the last one, and measuring all messages
    # for each would make a run quadratic.
    kept = 0 if rewritten else tools + common_size(last.view, sent.view)
    kept_tokens = int(kept * ratio)
    lost_tokens = int(last.whole * ratio) - kept_tokens
    cause = "serialize" if rewritten else _cause(before, after, last.view[count])
    return Loss(kept_tokens=kept_tokens, lost_tokens=lost_tokens, cause=cause)


def _cause(before: State, after: State, lost: Message) -> Cause:
    done = after.ledger.compactions
    # A summary shortens the history when it is delivered; the other tiers do so when the next request is made.
    shortened: Cause = "compact" if done and done[-1].turn >= before.ledger.turn else "history"
    if isinstance(lost, User) and lost.kind is Kind.SUMMARY and lost not in before.history:
        return "fold"
    if not before.known():
        return shortened
    origin = next((m for m in before.history if _same(m, lost)), None)
    return "fold" if origin is None or origin in after.history else shortened


def _same(recorded: Message, shown: Message) -> bool:
    """Whether the shown message is this one of the history; a shown reply may have its reasoning in its text."""
    if isinstance(recorded, Assistant) and isinstance(shown, Assistant):
        return recorded.turn == shown.turn
    return recorded == shown
