"""Ranking: which facts belong to a query, by the words that they share, and in which order, in every store."""

import re
from collections.abc import Iterable
from math import log
from unicodedata import combining, normalize

from stages.memory.facts import Fact

QUERY_WORDS = 64
"""Maximum number of words of a query that are looked for: the first, each once."""

_ALONE = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Letters of Thai, Lao, kana and Chinese, which are written without spaces: each counts as a word."""

_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")


_STEM = 5
"""Letters of a word that are compared: so many serve as a stem in most languages, without rules of any."""


def words_of(text: str) -> list[str]:
    """The words of a text, in order, without case, accents and endings: `Drinks` and `drinking` are one word."""
    plain = "".join(one for one in normalize("NFKD", text.casefold()) if not combining(one))
    return [_stem(word) for word in _WORD.findall(plain)]


def _stem(word: str) -> str:
    if not word.isalpha():
        return word  # a number is another if it goes on
    stem = word[:_STEM]
    return stem.removesuffix("s") if len(stem) > 3 else stem


def query_words(query: str) -> list[str]:
    """The words by which a store searches for facts; empty: the query names none."""
    return list(dict.fromkeys(words_of(query)))[:QUERY_WORDS]


def ranked(found: Iterable[Fact], query: str, total: int, limit: int) -> tuple[Fact, ...]:
    """Up to `limit` of the facts that share a word with the query, the most relevant first.

    A shared word counts more, the fewer of the space's `total` facts have it; between equals, the newer fact is first.
    `found` are at least all facts that share a word. A query without words finds the newest.
    """
    wanted = query_words(query)
    facts = sorted(found, key=lambda fact: fact.id, reverse=True)
    if not wanted:
        return tuple(facts[:limit])
    having = {fact.id: {*wanted} & {*words_of(fact.text)} for fact in facts}
    weight = {word: log(1 + total / max(1, sum(word in has for has in having.values()))) for word in wanted}
    score = {fact: sum(weight[word] for word in wanted if word in has) for fact, has in having.items()}
    return tuple(sorted((f for f in facts if having[f.id]), key=lambda f: -score[f.id])[:limit])
