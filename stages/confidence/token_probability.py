"""Tokens with their probabilities, as a server gives them, cut down to what a choice may depend on."""

from collections.abc import Iterable, Sequence
from math import exp, isfinite, log

from msgspec import Struct

ALTERNATIVES = 20
"""Maximum number of alternatives of a token that are asked for and kept: OpenAI's and vLLM's own maximum."""

_CERTAIN = log(0.999)
"""Log-probability from which on a token's alternatives are not kept: most tokens of a call, in a journal of each."""


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


def token_probability(text: str, logprob: float, others: Iterable[tuple[str, float]]) -> TokenProbability:
    """The token as it is kept; what is no logarithm of a probability counts as the nearest that is one."""
    known = _logarithm(logprob)
    if known >= _CERTAIN:
        return TokenProbability(text, known)
    likeliest = sorted(((other, _logarithm(value)) for other, value in others), key=lambda one: -one[1])
    return TokenProbability(text, known, tuple(likeliest[:ALTERNATIVES]))


_IMPOSSIBLE = -1e4
"""Servers write -inf, -9999 or the least number of their own for a probability of 0; JSON has no infinity."""


def _logarithm(given: float) -> float:
    return min(0.0, max(_IMPOSSIBLE, given)) if isfinite(given) else _IMPOSSIBLE


def written(tokens: Sequence[TokenProbability]) -> str:
    """The text of the tokens: the whole reply, with what its server took away from it."""
    return "".join(token.text for token in tokens)
