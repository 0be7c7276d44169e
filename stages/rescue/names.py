"""The names of the tools, and matching a model's spelling to one of them."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Self

import msgspec
from msgspec import Struct

from stages._later import LazyPattern
from stages.repair.json_text import object_members
from stages.rescue.unescape import LOOK_ALIKES, unescape_letters

_DRESS = "*_`\"' \\\t\r\n"
"""Markdown and quotes that models put around a name."""

_PREFIX = LazyPattern(
    r"(?:functions?|default_api|tools?|api|namespace)(?:\.|::|:|/)|mcp__[\w-]{1,60}?__|call_[0-9a-f]{4,32}_",
    re.IGNORECASE,
)
_TOKEN = LazyPattern(r"<[^<>]{0,40}>")
_SUFFIX = LazyPattern(r"(?:[:#!@~]\d{1,6}|[:#_-]call[_-]\w{1,40}|\(\)|<[|\uff5c/].{0,40})$", re.DOTALL)
"""A call's number or id, empty parentheses, and the control token that gpt-oss leaves in a name."""

_JOINED = ("functions", "function", "call_")
"""A namespace without its dot or the token after it, and the first word of a call's id."""
_NUMBER = LazyPattern(r"_?\d{1,3}\Z")
"""After such a word, the call's number; otherwise, a number belongs to the name (`convert_v2`)."""

_NOT_A_LETTER = LazyPattern(r"[\W_]+")
_MAPPING = (dict, Mapping)
"""`dict` first: checking for Mapping takes longer than the rest of a look-up."""
LONGEST_NAME = 200
"""Maximum characters of a name that are read."""


class Names(Struct, frozen=True):
    """The known names; as a mapping, with the parameters of each tool in order."""

    known: Collection[str] | Mapping[str, tuple[str, ...]]
    spelt: Mapping[str, tuple[str, ...]] = {}
    """Names by their letters, if there are many; empty: all names are compared."""

    def within(self, text: str) -> Self:
        """The names that occur in this text, in any spelling. Reading it with these alone gives the same, faster."""
        # Thoughts are blanked out.
        if not 0 < len(self.spelt) <= _MOST or len(text) < _SHORT or len(text := text.lstrip()) < _SHORT:
            return self
        if ("\\u" in text or "&#" in text) and _ESCAPED.compiled.search(text):
            return self
        # In JSON, a name may have a line break.
        letters = text + text.replace("\\n", "") if "\\n" in text else text
        bare = letters.encode(errors="replace").translate(_LOWER, _NO_LETTERS).decode()
        spelt = {key: names for key, names in self.spelt.items() if key in bare or not key.isascii()}
        cut = _CUT.compiled.search(text, len(text) - _LONGEST_CUT)
        if cut and (begun := [name for name in self.known if name.startswith(cut[0])]):
            spelt.update({key: self.spelt[key] for key in map(spelling, begun)})
        names = [name for alike in spelt.values() for name in alike]
        known = {name: self.known[name] for name in names} if isinstance(self.known, _MAPPING) else names
        return type(self)(known, spelt)

    def find(self, written: str) -> tuple[str, ...]:
        """The known names that `written` can mean: one, none, or several if it is ambiguous."""
        if written in self.known:
            return (written,)
        if not self.known:
            return ()
        bare = bare_name(written)
        # A prefix may be part of the name: `mcp__db__query#1`.
        whole = bare if bare == written else _SUFFIX.compiled.sub("", written[:LONGEST_NAME].strip(_DRESS))
        leaf = bare[max(map(bare.rfind, "./:")) + 1 :]
        for one in (whole, bare, leaf, *(_numbered(written, bare) if written.startswith(_JOINED) else ())):
            if one in self.known:
                return (one,)
        alike = self._spelt_alike(whole)
        return alike if alike or bare == whole else self._spelt_alike(bare)

    def _spelt_alike(self, bare: str) -> tuple[str, ...]:
        """The known names with the same letters."""
        key = spelling(bare)
        if self.spelt or not key:
            return self.spelt.get(key, ()) if key else ()
        return tuple(name for name in self.known if spelling(name) == key)

    def knows(self, written: str) -> bool:
        """Whether `written` can mean at least one known name."""
        return written in self.known or bool(self.find(written))

    def parameters(self, written: str) -> tuple[str, ...]:
        """The parameters of the tool that `written` means; empty if they are not known."""
        found = self.find(written)
        return self.known[found[0]] if len(found) == 1 and isinstance(self.known, _MAPPING) else ()

    def respelt_keys(self, name: str, arguments: str) -> str | None:
        """The arguments of that tool with each key spelt like its parameter; None if they are already, or cannot be."""
        known = self.known[name] if isinstance(self.known, _MAPPING) else ()
        given = object_members(arguments) if known else None
        if not given or given.keys() <= set(known):
            return None
        free = [parameter for parameter in known if parameter not in given]
        spelt = {spelling(parameter): parameter for parameter in free}
        meant = {key: key if key in known else spelt.get(spelling(key), key) for key in given}
        # A key may have the letters of two parameters, and two keys those of the same one.
        if len(spelt) < len(free) or len({*meant.values()}) < len(meant) or [*meant] == [*meant.values()]:
            return None
        return msgspec.json.encode({meant[key]: raw for key, raw in given.items()}).decode()

    def takes_nothing(self, written: str) -> bool:
        """Whether `written` means a tool that is known to have no parameters."""
        return isinstance(self.known, _MAPPING) and self.knows(written) and not self.parameters(written)

    def takes(self, written: str, key: str) -> bool:
        """Whether the tool that `written` means may have this parameter, in any spelling."""
        known = self.parameters(written)
        if not known:
            return not self.takes_nothing(written)
        return key in known or spelling(key) in map(spelling, known)

    def begins(self, written: str) -> bool:
        """Whether `written` may be a known name that was cut off."""
        return any(name.startswith(written) for name in self.known)


def names_of(known: Collection[str] | Mapping[str, tuple[str, ...]] | Names) -> Names:
    """These names, indexed if there are many: a reply may have thousands of calls of unknown tools."""
    if isinstance(known, Names):
        return known
    return Names(known) if len(known) <= _FEW else indexed(known)


def indexed(known: Collection[str] | Mapping[str, tuple[str, ...]]) -> Names:
    """These names, indexed for use with many texts."""
    spelt: dict[str, tuple[str, ...]] = {}
    for name in known:
        key = spelling(name)
        spelt[key] = (*spelt.get(key, ()), name)
    return Names(known, spelt)


def _numbered(written: str, bare: str) -> Iterator[str]:
    """The names that follow such a word, with and without the call's number."""
    names = [bare.removeprefix(word).lstrip("_") for word in _JOINED if bare.startswith(word)]
    names += [bare] if written.startswith("functions.") else []
    yield from names
    yield from (_NUMBER.compiled.sub("", name) for name in names)


_FEW = 50
_MOST = 500
"""Maximum names that a text is searched for: each takes a pass, and 10,000 took 0.4 s for 100 kB."""
_SHORT = 500
"""Maximum characters of a text that is read with all names: searching for them takes as long as reading it."""
_LOWER = bytes(range(256)).lower()
_NO_LETTERS = bytes(sign for sign in range(256) if not (chr(sign).isascii() and chr(sign).isalnum()))
_ESCAPED = LazyPattern(r"\\u[0-9a-fA-F]{4}|&#(?!3[49];|x2[27];)")
"""An escape that may occur in a name."""
_LONGEST_CUT = 80
_CUT = LazyPattern(r"[\w.:-]+\Z")
"""What may be the beginning of a name at the end of a text."""


def bare_name(written: str) -> str:
    """The name without markdown, quotes, namespace and call number."""
    bare = written[:LONGEST_NAME].strip(_DRESS)
    if bare.startswith("<"):
        bare = _TOKEN.compiled.sub("", bare, count=1)
    prefix = _PREFIX.compiled.match(bare)
    return _SUFFIX.compiled.sub("", bare[prefix.end() :] if prefix else bare).strip(_DRESS)


def name_before(text: str, end: int) -> str:
    """The name that ends at `end`, ignoring blanks; empty if something else ends there."""
    while end > 0 and text[end - 1].isspace():
        end -= 1
    start = end
    while start > max(0, end - LONGEST_NAME) and (text[start - 1].isalnum() or text[start - 1] in "_.:/-"):
        start -= 1
    return text[start:end]


def spelling(name: str) -> str:
    """A name without case, separators and look-alike letters: `getWeather` and `get-weather` share it."""
    letters = _NOT_A_LETTER.compiled.sub("", name)
    return (letters if letters.isascii() else letters.translate(LOOK_ALIKES)).lower()


def name_pattern(name: str, *, glued: bool = False) -> re.Pattern[str]:
    """A pattern for the name as a separate word, in any spelling; it may follow an escaped character.

    `glued`: also behind a namespace without a dot, and before a number.
    """
    before, after = ("|(?<=functions)|(?<=function)", r"(?:_?\d{1,3})?") if glued else ("", "")
    before = rf"(?<![^\W_])|(?<=\\[bfnrt])|(?<=\\u00[0-7][0-9a-f]){before}"
    return re.compile(rf"(?:{before}){_spelt(name)}{after}(?![^\W_])", re.IGNORECASE)


class NameSearch(Struct, frozen=True):
    """Finds any of some names in a text, in any spelling. A pattern of ten thousand takes a second to compile.

    `letters` are the names without case and separators, `signs` those without letters; `begun` are `letters` by their
    first characters, if there are many.
    """

    letters: tuple[str, ...]
    signs: tuple[str, ...]
    begun: Mapping[str, tuple[str, ...]] = {}

    def finds(self, text: str) -> bool:
        """Whether one of the names is in the text, escaped or not."""
        text = unescape_letters(text)
        if "\\" in text or "&#" in text:  # escapes of what is no letter may stand within a name
            text = f"{text}\n{_BETWEEN.compiled.sub('', text)}"
        bare = _folded(text)
        if self.begun:
            length = len(next(iter(self.begun)))
            places = ((at, self.begun.get(bare[at : at + length], ())) for at in range(len(bare)))
            return any(bare.startswith(names, at) for at, names in places if names)
        return any(name in bare for name in self.letters) or any(name in text for name in self.signs)


def name_search(known: Collection[str]) -> NameSearch:
    """A search for these names."""
    known = tuple(map(unescape_letters, known))
    letters = tuple(filter(None, map(_folded, known)))
    signs = tuple(name for name in known if name and not _folded(name))
    if len(letters) <= _MANY or signs:
        return NameSearch(letters, signs)
    begun: dict[str, list[str]] = {}
    length = min(map(len, letters))
    for name in letters:
        begun.setdefault(name[:length], []).append(name)
    return NameSearch(letters, signs, {first: tuple(names) for first, names in begun.items()})


_MANY = 200
"""From this number of names on, each place of a text is looked up instead of each name."""


def _folded(text: str) -> str:
    return _NOT_A_LETTER.compiled.sub("", text).casefold()


def _spelt(name: str) -> str:
    letters = _NOT_A_LETTER.compiled.sub("", name)
    return rf"(?:{_SEPARATOR}|[\W_])*+".join(map(re.escape, letters)) if letters else re.escape(name)


_SEPARATOR = r"\\{1,8}(?:[bfnrt]|[ux]?(?:00)?[0-7][0-9a-fA-F])|&(?:amp;){0,3}#[xX]?[0-9a-fA-F]{1,7};?"
"""An escaped character that is no letter (`unescape_letters`): any may stand between the letters of a name."""
_BETWEEN = LazyPattern(_SEPARATOR)
