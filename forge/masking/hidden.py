"""Mask secrets in what is shown, logged, raised or kept: texts, bodies, faults and replies, with `***` for each."""

from collections.abc import Iterable

from msgspec.structs import replace

from forge.masking.secret_forms import _FRAGMENT, spellings, undone
from stages.effect import Fault, RawCall, Reply

MASK = "***"

MINIMUM_LENGTH = 6
"""Minimum length of a secret to mask in errors and logs; a shorter value occurs in ordinary text."""

MINIMUM_IN_REPLIES = 12
"""Minimum length of a secret to mask in replies: `lm-studio`, the key of many a local server, may be meant there."""


class Hidden:
    """Secrets to mask, in whatever way they are written; those shorter than `minimum` are left alone."""

    def __init__(self, secrets: Iterable[str], *, minimum: int = MINIMUM_LENGTH) -> None:
        forms = {form for secret in {*secrets} if len(secret) >= minimum for form in spellings(secret)}
        self._forms = tuple(sorted(forms, key=len, reverse=True))

    def __contains__(self, text: str) -> bool:
        """Whether the text holds one of the secrets, in one of the ways of writing it."""
        return any(form in text for form in self._forms)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __repr__(self) -> str:
        return "Hidden(…)"

    def without(self, text: str) -> str:
        """The text with the secrets masked; all of it, where one is written in a mixture of ways."""
        for form in self._forms:
            text = text.replace(form, MASK)
        plain = undone(text)
        return MASK if plain != text and plain in self else text

    def without_end(self, text: str) -> str:
        """The same for a text that may have been cut off in the middle of a secret."""
        text = self.without(text)
        for form in self._forms:
            for length in range(min(len(form), len(text)), _FRAGMENT - 1, -1):
                if text.endswith(form[:length]):
                    return text[:-length] + MASK
        return text

    def without_bytes(self, body: bytes) -> bytes:
        """The same for the body of an answer; one that holds no secret is returned as it is."""
        text = body.decode(errors="replace") if self else ""
        shown = self.without_end(text)
        return body if shown == text else shown.encode()

    def cut_after(self, body: bytes, limit: int) -> bytes:
        """The first `limit` bytes of a body, masked before it is cut."""
        # What is looked at may itself end inside a secret, so its end is never shown.
        spare = 2 * max(map(len, self._forms), default=0)
        window = body[: 2 * limit + spare]
        shown = self.without(window.decode(errors="replace")).encode(errors="replace")
        return shown[: limit if len(window) == len(body) else min(limit, max(0, len(shown) - spare))]


NOTHING = Hidden(())
"""No secret at all."""


def masked_fault(fault: Fault, hidden: Hidden) -> Fault:
    """The fault without the secrets, or the beginning of one, that a server repeats in an error."""
    if not hidden:
        return fault
    return replace(fault, detail=hidden.without_end(fault.detail), body=hidden.without_end(fault.body))


def masked_reply(reply: Reply, hidden: Hidden) -> Reply:
    """The reply without the secrets that a server repeats in any field of it."""
    if not hidden:
        return reply
    calls = tuple(
        RawCall(id=hidden.without(c.id), name=hidden.without(c.name), arguments=hidden.without(c.arguments))
        for c in reply.calls
    )
    return replace(
        reply,
        text=hidden.without(reply.text),
        reasoning=hidden.without(reply.reasoning),
        sealed=hidden.without(reply.sealed),
        calls=calls,
        finish=hidden.without(reply.finish),
    )
