"""Marks: what stands in a journal for a secret, everywhere the same for the same one, and how it is put there."""

import re
from collections.abc import Iterator

import msgspec

from forge.errors import ForgeError
from stages.decoding import decode
from stages.schema.value import Json

MARK = re.compile(r"\[redacted(?: \d{1,9})?\]")

SHORTEST = 4
"""Characters from which on a secret is hidden wherever it stands; a shorter one only where it is a whole value."""

MOST = 2000
"""Secrets of one journal."""

_OF_MESSAGES = ("type", "id", "call_id", "tool_call_id", "tool_use_id", "role", "kind", "origin", "finish", "name")
_OF_HEADERS = (
    "status",
    "version",
    "mode",
    "model",
    "workflow",
    "forge",
    "started",
    "run",
    "form",
    "dialect",
    "redacted",
)
PROTOCOL = frozenset((*_OF_MESSAGES, *_OF_HEADERS))
"""The fields whose texts are forge's or a protocol's own; below `DATA` every name is the user's."""

DATA = frozenset(("arguments", "input", "value", "args"))


class Marks:
    """The secrets of a journal that are known so far, and their marks."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._finder: re.Pattern[str] | None = None

    def hide(self, secret: str) -> None:
        """From now on, a mark stands for this text."""
        secret = secret.strip()
        if not secret or secret in self._marks or MARK.fullmatch(secret):
            return
        if len(self._marks) >= MOST:
            raise ForgeError(
                f"redact: the rules hide more than {MOST} values in one run; hide fewer, or keep no journal"
            )
        self._marks[secret] = f"[redacted {len(self._marks) + 1}]"
        self._finder = None

    def hide_words(self, text: str) -> None:
        """From now on, marks stand for the words of a text that cannot be read as values."""
        for word in re.findall(r"\w{4,}", text):
            self.hide(word)

    def replace(self, old: str, new: str) -> None:
        """From now on, one whole text stands for another: the digest of what is hidden."""
        self._digests[old] = new

    def leaves(self, value: Json) -> Iterator[str]:
        """The texts and numbers in a value, as text."""
        match value:
            case str():
                yield value
            case bool() | None:
                pass
            case int() | float():
                yield msgspec.json.encode(value).decode()
            case list():
                for item in value:
                    yield from self.leaves(item)
            case dict():
                for item in value.values():
                    yield from self.leaves(item)

    def texts(self, tree: Json, *, data: bool = False) -> Iterator[str]:
        """The texts of a line that are data, those within JSON in a text as well."""
        match tree:
            case str():
                inner = _json(tree)
                yield from (tree,) if inner is None else self.texts(inner, data=True)
            case list():
                for item in tree:
                    yield from self.texts(item, data=data)
            case dict():
                for name, item in tree.items():
                    if data or name not in PROTOCOL or not isinstance(item, str):
                        yield from self.texts(item, data=data or name in DATA)
            case _:
                pass

    def hidden(self, tree: Json, *, data: bool = False) -> Json:
        """The line, or a value in it, with marks for all secrets."""
        match tree:
            case str():
                return self._text(tree)
            case bool() | None:
                return tree
            case int() | float():
                return self._marks.get(msgspec.json.encode(tree).decode(), tree) if data else tree
            case list():
                return [self.hidden(item, data=data) for item in tree]
            case dict():
                return {
                    (self._found(name) if data else name): (
                        item
                        if not data and name in PROTOCOL and isinstance(item, str)
                        else self.hidden(item, data=data or name in DATA)
                    )
                    for name, item in tree.items()
                }

    def _text(self, text: str) -> str:
        if text in self._digests:
            return self._digests[text]
        if text.strip() in self._marks:
            return self._marks[text.strip()]
        inner = _json(text)
        if inner is None:
            return self._found(text)
        hidden = self.hidden(inner, data=True)
        return text if hidden == inner else msgspec.json.encode(hidden).decode()

    def _found(self, text: str) -> str:
        """The text with every secret in it replaced, also as JSON writes it; all of it, where it is written oddly."""
        if self._finder is None:
            self._finder = _finder(self._marks)
        finder = self._finder
        if finder is None:
            return text
        shown = finder.sub(lambda match: self._mark(match, text), text)
        plain = _plain(shown)
        return "[redacted]" if plain != shown and finder.search(plain) else shown

    def _mark(self, match: re.Match[str], text: str) -> str:
        found = match[0]
        mark = self._marks.get(found) or next(m for secret, m in self._marks.items() if found in _spellings(secret))
        # A bare number in JSON that is not all of the text: what takes its place must be JSON too.
        bare = text[: match.start()].rstrip()[-1:] in (":", "[", ",") and text[match.end() :].lstrip()[:1] in (
            "]",
            "}",
            ",",
        )
        return f'"{mark}"' if bare and _NUMBER.fullmatch(found) else mark


NEAR = 8
"""Characters around a number in which the JSON that it stands in is looked for."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def _json(text: str) -> Json:
    """The object or array that the text is as JSON; None for any other."""
    if text[:1] not in {"{", "["}:
        return None
    try:
        return decode(_any, text)
    except msgspec.DecodeError:
        return None


def _spellings(secret: str) -> tuple[str, ...]:
    """How a secret is written in a text, in JSON in a text, and in JSON in that."""
    once = msgspec.json.encode(secret).decode()[1:-1]
    return (secret, once, msgspec.json.encode(once).decode()[1:-1])


def _finder(marks: dict[str, str]) -> re.Pattern[str] | None:
    """Finds the secrets that are long enough, the longest first."""
    long = sorted((s for s in marks if len(s) >= SHORTEST), key=len, reverse=True)
    spelled = dict.fromkeys(spelling for secret in long for spelling in _spellings(secret))
    return re.compile("|".join(map(re.escape, spelled))) if spelled else None


_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/]))')


def _plain(text: str) -> str:
    """The text with the escapes of JSON undone, as often as JSON may lie in JSON here."""
    for _ in range(3):
        text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], text)
    return text
