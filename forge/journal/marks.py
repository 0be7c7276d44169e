"""Marks: what replaces a secret in a journal, always the same for the same secret."""

import re
from collections.abc import Iterator

import msgspec

from forge.errors import ForgeError
from forge.journal.json_members import Members, members, repeats
from forge.masking.secret_forms import HEAD_LENGTH, end_of_form, spellings, undone
from stages.repair.decoding import decode
from stages.schema.value import Json

MARK = re.compile(r"\[redacted(?: \d{1,9})?\]")

_SHORTEST = 4
"""Minimum length to hide a secret wherever it occurs; a shorter one is hidden only as a complete value."""

_MOST = 2000
"""Maximum number of secrets in one journal."""

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
"""Fields whose texts are forge's or a protocol's own; below `_DATA` every name is the user's."""

_FOREIGN = frozenset(("id", "call_id", "tool_call_id", "tool_use_id", "name", "finish", "model", "workflow"))
"""Those fields in which a server or a user may have put anything."""

_OWN_ID = re.compile(r"call_\d{9}")
_FINISHES = frozenset(("", "stop", "length", "tool_calls", "tool_use", "end_turn", "max_tokens", "content_filter"))

_DATA = frozenset(("arguments", "input", "value", "args"))


class Marks:
    """The known secrets of a journal and their marks. `own` are names that are never replaced."""

    def __init__(self, own: frozenset[str] = frozenset()) -> None:
        self._own = own | _FINISHES
        self._marks: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._forms: dict[str, str] = {}
        """Each spelling of a long enough secret, and the secret's mark."""
        self._heads: dict[str, list[str]] = {}
        """The first characters of longer spellings, and those spellings."""

    def hide(self, secret: str) -> None:
        """Replace this text with a mark from now on."""
        secret = secret.strip()
        if not secret or secret in self._marks or MARK.fullmatch(secret):
            return
        if len(self._marks) >= _MOST:
            raise ForgeError(
                f"redact: the rules hide more than {_MOST} values in one run; hide fewer, or keep no journal"
            )
        mark = self._marks[secret] = f"[redacted {len(self._marks) + 1}]"
        for form in spellings(secret) if len(secret) >= _SHORTEST else ():
            self._forms.setdefault(form, mark)
            if len(form) >= 2 * HEAD_LENGTH:
                self._heads.setdefault(form[:HEAD_LENGTH], []).append(form)

    def hide_words(self, text: str) -> None:
        """Replace the words of a text that cannot be read as values from now on."""
        for word in re.findall(r"\w{4,}", text):
            self.hide(word)

    def replace(self, old: str, new: str) -> None:
        """Replace a complete text with another from now on: the digest of what is hidden."""
        self._digests[old] = new

    def leaves(self, value: object) -> Iterator[str]:
        """The strings and numbers in a value, as text."""
        match value:
            case str():
                yield value
            case bool() | None:
                pass
            case int() | float():
                yield msgspec.json.encode(value).decode()
            case Members():
                for _, item in value:
                    yield from self.leaves(item)
            case list():
                for item in value:
                    yield from self.leaves(item)
            case dict():
                for item in value.values():
                    yield from self.leaves(item)
            case _:
                pass

    def texts(self, tree: Json, *, data: bool = False) -> Iterator[str]:
        """The texts of a line that are data, including those in JSON within a text."""
        match tree:
            case str():
                inner = _json(tree)
                yield from (tree,) if inner is None else self.texts(inner, data=True)
            case list():
                for item in tree:
                    yield from self.texts(item, data=data)
            case dict():
                for name, item in tree.items():
                    if data or name not in PROTOCOL or not self._stays(name, item):
                        yield from self.texts(item, data=data or name in _DATA)
            case _:
                pass

    def hidden(self, tree: Json, *, data: bool = False) -> Json:
        """The line, or a value in it, with all secrets replaced by marks."""
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
                if data:
                    return {self._found(name): self.hidden(item, data=True) for name, item in tree.items()}
                return {name: self._field(name, item) for name, item in tree.items()}

    def _field(self, name: str, value: Json) -> Json:
        """A field of a line or of a protocol, with secrets replaced."""
        if name in PROTOCOL and self._stays(name, value):
            return value
        hidden = self.hidden(value, data=name in _DATA)
        # With brackets it would not be a valid name, and a replay would take the call for text.
        return MARK.sub(_as_name, hidden) if name == "name" and isinstance(hidden, str) else hidden

    def _stays(self, field: str, value: Json) -> bool:
        """Whether a protocol's field stays unchanged: a server may put anything into an id, a name or a reason."""
        if not isinstance(value, str):
            return False
        return field not in _FOREIGN or value in self._own or _OWN_ID.fullmatch(value) is not None

    def _text(self, text: str) -> str:
        if text in self._digests:
            return self._digests[text]
        if text.strip() in self._marks:
            return self._marks[text.strip()]
        inner = _json(text)
        if inner is None:
            return self._found(text)
        hidden = self.hidden(inner, data=True)
        if hidden != inner and not repeats(text):
            return msgspec.json.encode(hidden).decode()
        # Parsing drops duplicate members; keep the text, because it may have been refused for them.
        found = self._found(text)
        left = self.leaves(members(found)) if found != text or hidden != inner else ()
        return "[redacted]" if any(leaf in self._marks for leaf in left) else found

    def _found(self, text: str) -> str:
        """The text with every secret replaced, in any spelling, including the beginning of a truncated one."""
        shown = self._replaced(text)
        plain = undone(shown)
        mixed = plain != shown and any(form in plain for form in self._forms)
        return "[redacted]" if mixed or any(form in shown for form in self._forms if form in text) else shown

    def _replaced(self, text: str) -> str:
        # Most spellings occur in no text, and a substring search is quick.
        known = [form for form in (*self._forms, *self._heads) if form in text]
        if not known:
            return text
        finder = re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True))))
        parts, at = [], 0
        for match in finder.finditer(text):
            begin, found = match.start(), match[0]
            if begin < at:
                continue
            end = match.end()
            if found not in self._forms:
                form = max(self._heads[found], key=lambda one: end_of_form(one, text, begin))
                end, found = end_of_form(form, text, begin), form
            parts += [text[at:begin], _as_json(self._forms[found], found, text[at:begin], text[end : end + _NEAR])]
            at = end
        return "".join((*parts, text[at:]))


def _as_name(mark: re.Match[str]) -> str:
    return re.sub(r"\W+", "_", mark[0]).strip("_")


def _as_json(mark: str, found: str, before: str, after: str) -> str:
    """The mark, quoted if it replaces a bare number in JSON, so that the text stays valid JSON."""
    bare = before.rstrip()[-1:] in (":", "[", ",") and after.lstrip()[:1] in ("]", "}", ",")
    return f'"{mark}"' if bare and _NUMBER.fullmatch(found) else mark


_NEAR = 8
"""Characters around a number that are checked for JSON."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def _json(text: str) -> Json:
    """The object or array, if the text is JSON of one; None otherwise."""
    if text[:1] not in {"{", "["}:
        return None
    try:
        return decode(_any, text)
    except msgspec.DecodeError:
        return None
