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
    `early_arguments`: arguments of calls are streamed as they come, and the stream ends with an error if they are then
    refused.
    """

    context_tokens: Annotated[int, Meta(ge=512)] | None = None
    overflow: Literal["compact", "refuse"] | None = None
    early_arguments: bool = False

    def compacts_overflow(self, request: ServerRequest) -> bool:
        """Whether a prompt that is too long is compacted and sent once more."""
        return (self.overflow or OVERFLOW[request.protocol]) == "compact"
