"""Suggestions: what somebody may have meant who wrote a name that there is not."""

from collections.abc import Iterable
from itertools import islice

_MOST = 200
"""Maximum number of known names that are compared."""

LONGEST = 80
"""Characters of a wrong name that are compared: the comparison takes time with their product."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that is written most like the word; None where none is near."""
    import difflib  # noqa: PLC0415 - only a mistake needs it

    by_lower, wrong = {name.lower(): name for name in islice(known, _MOST)}, word[:LONGEST].lower()
    swapped = [name for name in by_lower if sorted(name) == sorted(wrong)]
    beginnings = {name[: len(wrong) + 1]: name for name in by_lower}
    for names in ({name: name for name in by_lower}, beginnings):
        if close := swapped or difflib.get_close_matches(wrong, names, n=1):
            return by_lower[names.get(close[0], close[0])]
    return None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question to end a refusal with, ` Did you mean X?`; empty where no known name is near."""
    meant = nearest(word, known)
    return f" Did you mean {meant}?" if meant else ""
