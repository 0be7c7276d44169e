"""The probability of a choice: what the tokens say of the text that was written, among the texts that were offered."""

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from stages.confidence.token_probability import TokenProbability, written

_END = "\0"
"""What ends a number, or a word such as null, where JSON has a comma, a bracket or a blank."""
_ENDS = str.maketrans(dict.fromkeys(",]} \t\r\n", _END))


class Choice(Struct, frozen=True, kw_only=True, gc=False):
    """One of several texts that were offered, and their probabilities, which add up to 1.

    `argument` is the one that it is the value of; empty: the tool was chosen. The texts are JSON.
    """

    argument: str = ""
    chosen: str
    offered: tuple[str, ...]
    shares: tuple[float, ...]

    @property
    def probability(self) -> float:
        """How probable the chosen text was among those offered, from 0 to 1."""
        return self.shares[self.offered.index(self.chosen)]


def choice_at(
    tokens: Sequence[TokenProbability], start: int, offered: Sequence[str], argument: str = ""
) -> Choice | None:
    """The choice that begins at that character of the tokens' text; None where that is none of `offered`.

    Where its first tokens are those of several, the next one decides between them: the probability is the product of
    those decisions. Tokens that begin nothing that was offered do not count, however probable, nor do those that may
    still become either. What is not listed among the alternatives of a token is taken for as probable as it can be:
    the probability of what was chosen is never too high. Texts that begin with the same token share what that has.
    """
    text, ended = written(tokens), {_whole(one): one for one in offered}
    rest = _begun(text[start:])
    chosen = next((one for one in ended if rest.startswith(one)), None)
    if chosen is None:
        return None
    left, probability, shares = frozenset(ended), 1.0, dict.fromkeys(ended, 0.0)
    for said, lead, token in _covering(tokens, text, start):
        if len(left) == 1:
            break
        decided = _decision(token, said, lead, left)
        shares |= {other: probability * share for other, share in decided.others}
        left, probability = decided.left, probability * decided.share
    shares[chosen] = probability
    return Choice(argument=argument, chosen=ended[chosen], offered=tuple(ended.values()), shares=tuple(shares.values()))


def _covering(
    tokens: Sequence[TokenProbability], text: str, start: int
) -> Iterator[tuple[str, str | None, TokenProbability]]:
    """The tokens from there on, each after what was said of the choice; `lead`: what the first has of what precedes."""
    at = 0
    for token in tokens:
        begin, at = at, at + len(token.text)
        if at > start and token.text:
            yield text[start:begin], text[begin:start] if begin <= start else None, token


class _Decision(Struct, frozen=True, gc=False):
    """The texts that are left after a token, what they have together of those that were, and what each other has."""

    left: frozenset[str]
    share: float
    others: tuple[tuple[str, float], ...]


def _decision(token: TokenProbability, said: str, lead: str | None, left: frozenset[str]) -> _Decision:
    inside = _fitting(said, lead, token.text, left)
    meant, others = token.probability, dict.fromkeys(sorted(left - inside), 0.0)
    known = set(inside)
    for text, probability in token.alternatives:
        fits = _fitting(said, lead, text, left)
        if fits and fits <= inside:
            meant += probability
        elif fits and fits.isdisjoint(inside):
            known |= fits
            others |= {other: others[other] + probability / len(fits) for other in fits}
    unlisted = left - known
    others |= dict.fromkeys(unlisted, token.most_unlisted(len(unlisted)) / max(1, len(unlisted)))
    whole = meant + sum(others.values())
    if not whole:
        return _Decision(inside, 0.0, tuple((other, 1 / len(others)) for other in others))
    return _Decision(inside, meant / whole, tuple((other, share / whole) for other, share in others.items()))


def _fitting(said: str, lead: str | None, token: str, texts: Collection[str]) -> frozenset[str]:
    """The texts that may come of it, where the token follows."""
    if lead is not None:  # blanks before a value make no other value of it
        before = lead.rstrip()
        token = token[len(before) :].lstrip() if token.startswith(before) else ""
    if not token:
        return frozenset()
    begun = _begun(said + token)
    return frozenset(text for text in texts if text.startswith(begun) or begun.startswith(text))


def _whole(text: str) -> str:
    """An offered text with its end: a string has one, a number or a word needs it, so that 7 does not begin 70."""
    return text if text.startswith('"') else text + _END


def _begun(text: str) -> str:
    """What was written so far, ended likewise."""
    return text if text.startswith('"') else text.translate(_ENDS)
