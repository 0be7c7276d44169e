"""Prefix reuse: how much of the last prompt the next one begins with, and which stage changed the rest.

A server keeps what it has evaluated of a prompt as long as the next prompt begins the same. What counts is the prompt
as the model's chat template renders it: the tools first, then the messages; call ids, escapes and the request's options
are not in it. So kept and lost are measured in messages and in the characters that `message.size` counts, not in bytes
of JSON, which change where no prompt does. (A template that places the tools or earlier reasoning relative to the last
user message may keep less; no request shows that.)
"""

from typing import Literal, TypeVar

from msgspec import Struct

from stages.message import Assistant, History, Kind, Message, User, size
from stages.state import Prompt, State
from stages.tokens import length, whole_rate

Cause = Literal["compact", "fold", "serialize", "history"]
"""The stage that changed the beginning of the prompt; `history`: the driver reshaped it between turns."""


class Prefix(Struct, frozen=True, kw_only=True):
    """The common prefix of two views: whole messages, and characters, including those of the next message's text."""

    messages: int
    characters: int


class Loss(Struct, frozen=True, kw_only=True):
    """Tokens of the last prompt that the server can keep, and those that it cannot."""

    kept_tokens: int
    lost_tokens: int
    cause: Cause


_S = TypeVar("_S", str, bytes, History)


def common_length(before: _S, after: _S) -> int:
    """The length of the common prefix of two texts or histories. Linear, comparing slices at C speed."""
    low, high = 0, min(len(before), len(after))
    if before[:high] == after[:high]:
        return high
    # Between the marks is the first difference; what lies below `low` is equal, so each half is compared once.
    while high - low > 1:
        middle = (low + high) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle
    return low


def common_prefix(before: History, after: History) -> Prefix:
    """The common prefix of two views, in messages and characters by `message.size`."""
    count = common_length(before, after)
    characters = sum(map(size, before[:count]))
    if count < len(before) and count < len(after):
        characters += _alike(before[count], after[count])
    return Prefix(messages=count, characters=characters)


def _alike(before: Message, after: Message) -> int:
    """Characters that two messages begin with alike: texts of the same role, before the calls."""
    if type(before) is not type(after):
        return 0
    return length(before.text[: common_length(before.text, after.text)])


def prefix_loss(before: State, after: State) -> Loss | None:
    """What the request of `after` loses of the previous prompt; None: nothing.

    It is compared with the last one of the same model. Tokens are by the ledger's rate. The tools, which come before
    all messages, are kept unless they change.
    """
    sent = after.prompt
    last = next((prompt for prompt in before.prompts if prompt.target == sent.target), Prompt())
    count = common_length(last.view, sent.view)
    # The first message counts if both have it: in other modes than native the tools are in it.
    rewritten = bool(last.view) and (last.tools != sent.tools or bool(count and last.first != sent.first))
    if not rewritten and count == len(last.view):
        return None
    ratio = whole_rate(after.ledger.tokens_per_character, after.ledger.report)
    tools = last.whole - last.size
    # Measured only where something was lost: most requests go on from the last one, and a run must not measure all of
    # its messages again for each.
    kept = 0 if rewritten else tools + common_prefix(last.view, sent.view).characters
    kept_tokens = int(kept * ratio)
    lost_tokens = int(last.whole * ratio) - kept_tokens
    cause = "serialize" if rewritten else _cause(before, after, last.view[count])
    return Loss(kept_tokens=kept_tokens, lost_tokens=lost_tokens, cause=cause)


def _cause(before: State, after: State, lost: Message) -> Cause:
    done = after.ledger.compactions
    # A summary shortens the history when it is delivered; the other tiers do it as the next request is made.
    shortened: Cause = "compact" if done and done[-1].turn >= before.ledger.turn else "history"
    if isinstance(lost, User) and lost.kind is Kind.SUMMARY and lost not in before.history:
        return "fold"
    if not before.known():
        return shortened
    origin = next((m for m in before.history if _same(m, lost)), None)
    return "fold" if origin is None or origin in after.history else shortened


def _same(recorded: Message, shown: Message) -> bool:
    """Whether the view shows this message of the record; a reply may have its reasoning in its text."""
    if isinstance(recorded, Assistant) and isinstance(shown, Assistant):
        return recorded.turn == shown.turn
    return recorded == shown
