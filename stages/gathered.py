"""Gathered: what was found in a history message by message, so that a turn reads only those that came since.

It is a copy of what the messages say: a saved state has none of it, and whoever asks reads the messages after it, too.
"""

from msgspec import Struct

from stages.message import History, Message

__all__ = ["Gathered", "Naming", "Shown", "Spoken", "known_messages"]


class Naming(Struct, frozen=True, kw_only=True, gc=False):
    """Which messages name a tool, so that a search for a call in them costs what came since the last one.

    `length` and `last` are the length of the history that was looked through, and its last message, `places` where
    it names a tool; `cut` and `cut_places` the same of what compaction cut. `names` is what was looked for.
    """

    names: str = ""
    length: int = 0
    last: Message | None = None
    places: tuple[int, ...] = ()
    cut: int = 0
    cut_places: tuple[int, ...] = ()


class Spoken(Struct, frozen=True, kw_only=True, gc=False):
    """Which of these `tools` were spoken of (`stages.policy.named_tools`), and how often the user said something.

    `length` and `last` as of `Naming`.
    """

    tools: tuple[str, ...] = ()
    length: int = 0
    last: Message | None = None
    named: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    asked: int = 0


class Shown(Struct, frozen=True, kw_only=True, gc=False):
    """What each message shows, written so that values can be searched for in it (`stages.grounding.sources`).

    One text a message, empty for one that gives nothing; `length` and `last` as of `Naming`. `nowhere` is in none of
    them, though it was looked for.
    """

    length: int = 0
    last: Message | None = None
    texts: tuple[str, ...] = ()
    nowhere: tuple[str, ...] = ()


class Gathered(Struct, frozen=True, kw_only=True, gc=False):
    """All that was found; of another history than that, nothing is known."""

    naming: Naming = Naming()
    spoken: Spoken = Spoken()
    shown: Shown = Shown()


def known_messages(history: History, length: int, last: Message | None) -> int:
    """How many messages at its beginning are those of the history of that length, with that last one; 0: another."""
    return length if 0 < length <= len(history) and history[length - 1] is last else 0
