"""The nouns of rescue: what a family of grammars is, or a format as data, and what it reads in a text."""

import re
from collections.abc import Callable, Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from stages.options import OptionError, Options
from stages.rescue.names import Names
from stages.rescue.patterns import by_first_character


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
    """A call as it was written: its name has not been looked up yet. OptionError unless the arguments are a string."""

    name: str
    arguments: str
    repairs: tuple[str, ...] = ()
    cost: int = 0

    def __post_init__(self) -> None:
        # Not `Options`, which looks at every field: replies are read often.
        if type(self.name) is type(self.arguments) is str:
            return
        given: dict[str, object] = {"name": self.name, "arguments": self.arguments}
        if wrong := [name for name, value in given.items() if not isinstance(value, str)]:
            must = {"name": "a string", "arguments": "the JSON text of an object"}
            raise OptionError(tuple(f"Claim: {n} is {given[n]!r:.200}; it must be {must[n]}" for n in wrong))

    def guessed(self, *repairs: str) -> "Claim":
        """The claim with a higher cost, as a guess: before it runs a tool that writes, the model is asked."""
        return replace(self, repairs=(*self.repairs, *repairs), cost=self.cost + 1)


class Read(Struct, frozen=True, kw_only=True):
    """What a family read from `start` to `end`.

    With `claims` or `damage` it is a call, or was meant as one; with neither, something that must not run. `keep` is
    the part of it that stays in the rest of the text; None: all of it, because it is not markup. `looked` is how far
    the family read, if further than `end`; it counts as cost. An empty reading, with `end` at `start`, reports only
    that: the other families are asked as if there were no reading.
    """

    start: int
    end: int
    claims: tuple[Claim, ...] = ()
    damage: str | None = None
    keep: str | None = None
    looked: int = 0


class Family(Options, frozen=True, kw_only=True, tag="family"):
    """A grammar of calls.

    `opener` is the source of a regular expression for where a call may begin: cheap, without capturing groups, each
    alternative beginning with a literal character. `first` has these characters. `read` is asked at each match, as
    `read(text, position, names)`; None: not a call of this family. OptionError, when it is made, for anything else.
    `own_tag`: its calls are tags that bear a known name exactly, so others are passed over without being asked.
    `whole`: it is asked once, about a reply in which no other family found a call. `words`, in lower case: one of them
    is in every text in which it reads more than calls of known tools; None: in any text it may.
    """

    name: str
    first: str
    opener: str
    read: Callable[[str, int, Names], Read | None]
    own_tag: bool = False
    whole: bool = False
    words: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse an opener that cannot be combined with those of other families."""
        super().__post_init__()
        if wrong := (*_opener_mistakes(self.opener, self.first),):
            raise OptionError(tuple(f"Family {self.name!r}: {said}" for said in wrong))


def _opener_mistakes(opener: str, first: str) -> Iterator[str]:
    """What is wrong with an opener and its first characters, one sentence each."""
    try:
        compiled = re.compile(opener)
    except (re.error, OverflowError) as error:
        yield f"opener {opener!r} is not a regular expression: {error}"
        return
    if compiled.groups:
        yield f"opener {opener!r} has a capturing group; write (?:…) instead of (…)"
    if compiled.flags != re.UNICODE:
        yield f"opener {opener!r} sets flags for the whole expression, which also holds those of other families"
    begun = by_first_character(opener)
    literal = {key[-1] for key in begun if re.fullmatch(r"[^^]|\\.", key, re.DOTALL)}
    if len(literal) < len(begun):
        yield f"opener {opener!r} must begin with a literal character, and so must each of its alternatives"
    elif literal != {*first}:
        begins = "".join(sorted(literal))
        yield f"first is {first!r}, but opener {opener!r} begins with {begins!r}; first must have these"


PLACES = re.compile(r"\{(?:name|json|arguments|key|value)\}")
"""The placeholders in the examples of a format."""


class Format(Options, frozen=True, kw_only=True, tag="format"):
    """A format of calls, given as an example. OptionError if a placeholder is missing.

    `call` has markup, `{name}`, then `{json}` or `{arguments}`; `argument`, for the latter, `{key}`, then `{value}`.
    Blanks match any blanks or none, quotes are optional, and bars may be look-alikes. `source` says where the format is
    from.
    """

    name: str
    call: str
    argument: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse an example without its placeholders."""
        super().__post_init__()
        call, argument = PLACES.findall(self.call), PLACES.findall(self.argument)
        wrong: list[str] = []
        if call not in (["{name}", "{json}"], ["{name}", "{arguments}"]) or self.call.startswith("{name}"):
            wrong.append(f"call is {self.call!r}; it must be markup, then {{name}}, then {{json}} or {{arguments}}")
        elif argument != (["{key}", "{value}"] if "{arguments}" in call else []):
            must = "have {key}, then {value}" if "{arguments}" in call else "be empty, because call has {json}"
            wrong.append(f"argument is {self.argument!r}; it must {must}")
        elif self.argument and (self.argument.startswith("{key}") or not PLACES.split(self.argument)[-1].strip()):
            wrong.append(f"argument is {self.argument!r}; it must have markup before {{key}} and after {{value}}")
        if wrong:
            raise OptionError(tuple(f"Format {self.name!r}: {said}" for said in wrong))


class Markers(Struct, frozen=True, kw_only=True):
    """How a template writes a call: `opening`, then JSON with the name in it; or name, `between`, JSON arguments."""

    opening: str
    between: str | None = None


class Rescued(Struct, frozen=True, kw_only=True):
    """The tool calls in a text.

    `calls` in order of appearance, all of known names. `unknown`: names that were called but are not known. `damage`:
    what is wrong with text that was clearly meant as a call, as a sentence for the model; `damaged_at`: where that text
    begins. `rest`: the text outside the calls, without their markup; `after`: the part of it after the first call.
    """

    calls: tuple[FoundCall, ...] = ()
    unknown: tuple[str, ...] = ()
    damage: str | None = None
    damaged_at: int = -1
    rest: str = ""
    after: str = ""


Rescue = Callable[[str, Collection[str] | Names], Rescued]
"""From a text and the names of the tools, prepared for many texts or not (`names.indexed`), to the calls in it."""
