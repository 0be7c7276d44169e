"""Shaping: what a policy says of the requests to a model, beside the rules for its calls."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from stages.wire.served import ServerRequest

OVERFLOW = {"chat": "compact", "responses": "refuse", "messages": "refuse"}
"""What is done about a prompt that is too long where the policy does not say it, by the client's protocol.

Codex and Claude Code compact by the error, better than forge could; clients of chat completions mostly give up.
"""


class Shaping(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How requests are shaped. What is not written leaves a request as it came.

    `context_tokens`: the conversation is compacted to a context of so many tokens, reply included. `overflow`: whether
    a prompt that the backend finds too long is compacted and sent once more, or refused.
    `hide_tools`: tools that the model is not offered, with `*` for anything. `respond`: it is offered one more, to
    answer with, whose calls its client gets as text.
    `sampling`: options that the model's makers recommend. `thinking`: whether it is asked to reason first. Both only
    where the client says nothing of it. Reasoning may be dropped from the history, and stripped from replies.
    `volatile`: lines of system messages that are new in each request are made the same in all.
    `early_arguments`: arguments of calls are streamed as they come, and the stream ends with an error if they are then
    refused.
    """

    context_tokens: Annotated[int, Meta(ge=512)] | None = None
    overflow: Literal["compact", "refuse"] | None = None
    hide_tools: str | tuple[str, ...] = ()
    respond: bool = False
    sampling: Literal["recommended"] | None = None
    thinking: Literal["on", "off"] | None = None
    reasoning_in_history: Literal["pass", "drop"] = "pass"
    reasoning_in_replies: Literal["pass", "strip"] = "pass"
    volatile: Literal["keep", "normalise"] = "keep"
    early_arguments: bool = False

    def compacts_overflow(self, request: ServerRequest) -> bool:
        """Whether a prompt that is too long is compacted and sent once more."""
        return (self.overflow or OVERFLOW[request.protocol]) == "compact"
