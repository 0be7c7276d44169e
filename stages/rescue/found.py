"""The nouns of rescue: what a family of grammars is, and what it reads in a text."""

from collections.abc import Callable, Collection

from msgspec import Struct

from stages.rescue.names import Names


class FoundCall(Struct, frozen=True, kw_only=True):
    """A tool call found in text.

    `name` is known; `arguments` is JSON text of an object, the original slice where it was valid. `origin` is the
    family that read it, `repairs` names each repair, and `cost` says how much was guessed: 0 for nothing. `span` is the
    call's place in the text, markup included.
    """

    name: str
    arguments: str
    origin: str
    repairs: tuple[str, ...] = ()
    cost: int = 0
    span: tuple[int, int] = (0, 0)


class Claim(Struct, frozen=True, kw_only=True):
    """A call as it was written: its name has not been looked up yet."""

    name: str
    arguments: str
    repairs: tuple[str, ...] = ()
    cost: int = 0


class Read(Struct, frozen=True, kw_only=True):
    """What a family read from `start` to `end`.

    With `claims` or `damage` it is a call, or was meant as one; with neither, something that must not run. `keep` is
    what stays of it in the rest of the text; None: all of it, because it is no markup. `looked` is how far the family
    read, where that is further than `end`: it counts as cost. An empty reading, `end` at `start`, only reports that:
    the other families are asked as if there were none.
    """

    start: int
    end: int
    claims: tuple[Claim, ...] = ()
    damage: str | None = None
    keep: str | None = None
    looked: int = 0


class Family(Struct, frozen=True, kw_only=True):
    """A grammar of calls.

    `opener` is the source of a regular expression for where a call may begin: cheap, without capturing groups, each
    alternative beginning with a literal character out of `first`. `read` is asked at each match, as `read(text,
    position, names)`; None: not a call of this family.
    """

    name: str
    first: str
    opener: str
    read: Callable[[str, int, Names], Read | None]


class Rescued(Struct, frozen=True, kw_only=True):
    """The tool calls in a text.

    `calls` in order of appearance, all of known names. `unknown`: names that were called but are not known. `damage`:
    what is wrong with text that was clearly meant as a call, as a sentence for the model; `damaged_at`: where that text
    begins. `rest`: the text outside the calls, without their markup.
    """

    calls: tuple[FoundCall, ...] = ()
    unknown: tuple[str, ...] = ()
    damage: str | None = None
    damaged_at: int = -1
    rest: str = ""


Rescue = Callable[[str, Collection[str]], Rescued]
"""From a text and the names of the tools to the calls in it."""
