"""Log-probabilities of chat completions, as OpenAI, llama.cpp and vLLM give them: asked for and read.

https://platform.openai.com/docs/api-reference/chat/object, `choices[].logprobs`. llama.cpp's are the model's own,
before sampling and before the grammar of a schema; vLLM's are after the grammar: -9999 for a token that it forbids.
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from msgspec import Raw, Struct

from stages.confidence.token_probability import ALTERNATIVES, TokenProbability, token_probability
from stages.repair.decoding import decode

LOGPROBS_FIELDS: Mapping[str, object] = MappingProxyType({"logprobs": True, "top_logprobs": ALTERNATIVES})
"""The fields of a request that ask for them."""

TOKENS_LIMIT = 4096
"""Maximum tokens of a reply whose probabilities are kept; of a longer one none are."""


class _Alternative(Struct):
    token: str
    logprob: float


class _Token(Struct):
    token: str
    logprob: float
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(Struct):
    content: list[_Token] | None = None


_logprobs = msgspec.json.Decoder(_Logprobs | None)


def tokens_of(given: Raw, before: tuple[TokenProbability, ...] | None = ()) -> tuple[TokenProbability, ...] | None:
    """The tokens of the field `logprobs`, after those before it; None for a field in another form, or for too many.

    A reply without them is a reply all the same: nothing is known of how sure it was.
    """
    if before is None or bytes(given) == b"null":
        return before
    try:
        found = decode(_logprobs, bytes(given))
    except msgspec.DecodeError:
        return None
    content = (found.content if found else None) or []
    if len(before) + len(content) > TOKENS_LIMIT:
        return None
    return (*before, *(_kept(token) for token in content))


def _kept(token: _Token) -> TokenProbability:
    others = ((other.token, other.logprob) for other in token.top_logprobs or ())
    return token_probability(token.token, token.logprob, others)
