"""Masking of secrets in whatever is shown, logged or raised, and the rules of what a journal does not hold."""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Self, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.errors import DefinitionError, to_install
from stages._later import LazyPattern
from stages.decoding import sound
from stages.effect import Fault, RawCall, Reply
from stages.options import Options
from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, ReasoningDelta, TextDelta

# How a secret may be spelt in a text: plain, escaped, in a URL, in HTML, in base64. Any other transformation of it,
# such as another case, hexadecimal, reversed or a part alone, is not found.

HEAD_LENGTH = 12
"""Characters by which the beginning of a secret is recognised if a text was cut off inside it."""

_FRAGMENT = 4
"""Minimum characters to search for: of a secret in base64, and of one cut off at the end of a text."""

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def spellings(secret: str) -> tuple[str, ...]:
    """The secret as JSON, JSON within JSON, Python, shells, URLs, HTML and base64 spell it, longest first."""
    secret = sound(secret)  # as in the texts that are searched
    once = _escaped(secret)
    plus = _percent(secret, "").replace("%20", "+")
    escaped = {form for text in (secret, once, _escaped(once)) for form in (text, _ascii(text))}
    python = set(_python(secret))
    quoted = {_percent(secret, ""), _percent(secret, "/"), plus}
    html = "".join(_ENTITIES.get(c, c) for c in secret)
    found = (
        escaped
        | {form.replace("/", "\\/") for form in escaped}
        | quoted
        | {re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in quoted}
    )
    found |= {*python, *map(_escaped, python), secret.replace("'", "'\"'\"'")}  # the last as shlex.quote does
    found |= {html, html.replace("'", "&#x27;"), html.replace("'", "&#39;"), *_base64(secret)}
    return tuple(sorted(found, key=len, reverse=True))


def _escaped(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


def _ascii(text: str) -> str:
    """The text as JSON spells it in pure ASCII."""
    if text.isascii():
        return text
    pairs = ((c, c.encode("utf-16-be", "surrogatepass").hex()) for c in text)
    return "".join(c if c.isascii() else "".join(f"\\u{h[n : n + 4]}" for n in range(0, len(h), 4)) for c, h in pairs)


def _python(text: str) -> Iterator[str]:
    """The text as `repr` and `ascii` spell it, and `repr` of its bytes, within quotation marks of either kind."""
    both = f"{text}'\""  # with both kinds in it, the single ones are escaped
    for form in (repr(both), ascii(both), repr(both.encode(errors="surrogatepass"))[1:]):
        yield form[1:-4]
        yield form[1:-4].replace("\\'", "'")


def _percent(text: str, safe: str) -> str:
    kept = _UNRESERVED | frozenset(safe.encode())
    return "".join(chr(b) if b in kept else f"%{b:02X}" for b in text.encode(errors="surrogatepass"))


def _base64(secret: str) -> Iterable[str]:
    """The part of the base64 of any text around the secret that depends on the secret alone.

    There are three: base64 encodes groups of three bytes, and the secret may begin at any byte of a group.
    """
    data = secret.encode(errors="surrogatepass")
    for shift in range(3):
        whole = b64encode(b"\0" * shift + data).decode()
        inner = whole[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]
        if len(inner) >= _FRAGMENT:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")


_JSON = LazyPattern(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_URL = LazyPattern(r"(?:%[0-9a-fA-F]{2})+")
_HTML = LazyPattern(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(amp|lt|gt|quot|apos));", re.IGNORECASE)
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def undone(text: str) -> str:
    """The text with up to three layers of JSON, URL and HTML escapes undone."""
    for _ in range(3):
        before = text
        if "\\" in text:
            # JSON writes a rare character as a pair of surrogates.
            text = (
                _JSON.compiled.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[2]), text)
                .encode("utf-16-le", "surrogatepass")
                .decode("utf-16-le", "replace")
            )
        if "%" in text:
            text = _URL.compiled.sub(lambda m: bytes.fromhex(m[0].replace("%", "")).decode(errors="replace"), text)
        if "&" in text:
            text = _HTML.compiled.sub(_entity, text)
        if text == before:
            break
    return text


def _entity(match: re.Match[str]) -> str:
    if match[3]:
        return _NAMED[match[3].lower()]
    code = int(match[1], 16) if match[1] else int(match[2])
    return chr(code) if code < 0x110000 else match[0]


def end_of_form(form: str, text: str, at: int) -> int:
    """The end of the longest beginning of `form` that is in the text at `at`."""
    low, high = 0, min(len(form), len(text) - at)
    while low < high:
        middle = (low + high + 1) // 2
        if text.startswith(form[:middle], at):
            low = middle
        else:
            high = middle - 1
    return at + low


# Masking of texts, bodies, faults and replies: each secret becomes `***`.

MASK = "***"

MINIMUM_LENGTH = 6
"""Minimum length of a secret to mask in errors and logs; a shorter value occurs in ordinary text."""

MINIMUM_IN_REPLIES = 12
"""Minimum length of a secret to mask in replies: they may mention `lm-studio`, the key of many local servers."""


class Hidden:
    """Secrets to mask, in any spelling; those shorter than `minimum` are ignored."""

    def __init__(self, secrets: Iterable[str], *, minimum: int = MINIMUM_LENGTH) -> None:
        forms = {form for secret in {*secrets} if len(secret) >= minimum for form in spellings(secret)}
        self._forms = tuple(sorted(forms, key=len, reverse=True))

    def __contains__(self, text: str) -> bool:
        """Whether the text contains a secret in any spelling."""
        return any(form in text for form in self._forms)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __or__(self, other: Self) -> Self:
        """The secrets of both."""
        both = type(self)(())
        both._forms = tuple(sorted({*self._forms, *other._forms}, key=len, reverse=True))
        return both

    def __repr__(self) -> str:
        return "Hidden(…)"

    def without(self, text: str) -> str:
        """The text with its secrets masked. If one is spelt in a mixture of ways, the whole text is masked."""
        for form in self._forms:
            text = text.replace(form, MASK)
        # A secret may be escaped only in part, `a%62c`: no list of spellings has that.
        plain = undone(text)
        return MASK if plain != text and plain in self else text

    def without_end(self, text: str) -> str:
        """The same for a text that may be cut off inside a secret."""
        text = self.without(text)
        for form in self._forms:
            for length in range(min(len(form), len(text)), _FRAGMENT - 1, -1):
                if text.endswith(form[:length]):
                    return text[:-length] + MASK
        return text

    def beginning(self, text: str) -> int:
        """Where the beginning of a secret may start that the text is cut off in; the text's length if nowhere."""
        longest = max(map(len, self._forms), default=0)
        starts = range(max(0, len(text) - longest + 1), len(text))
        return next((at for at in starts if any(form.startswith(text[at:]) for form in self._forms)), len(text))

    def without_bytes(self, body: bytes) -> bytes:
        """The same for the body of an answer; a body without secrets is returned unchanged."""
        text = body.decode(errors="replace") if self else ""
        shown = self.without_end(text)
        return body if shown == text else shown.encode()

    def cut_after(self, body: bytes, limit: int) -> bytes:
        """The first `limit` bytes of a body, masked before the cut."""
        # The window itself may end inside a secret, so its end is never shown.
        spare = 2 * max(map(len, self._forms), default=0)
        window = body[: 2 * limit + spare]
        shown = self.without(window.decode(errors="replace")).encode(errors="replace")
        return shown[: limit if len(window) == len(body) else min(limit, max(0, len(shown) - spare))]


NOTHING = Hidden(())
"""No secrets."""


def masked_fault(fault: Fault, hidden: Hidden) -> Fault:
    """The fault with secrets masked, as servers may repeat one, whole or cut off, in an error."""
    if not hidden:
        return fault
    return replace(fault, detail=hidden.without_end(fault.detail), body=hidden.without_end(fault.body))


def masked_reply(reply: Reply, hidden: Hidden) -> Reply:
    """The reply with secrets masked in every field."""
    if not hidden:
        return reply
    calls = tuple(
        RawCall(id=hidden.without(c.id), name=hidden.without(c.name), arguments=hidden.without(c.arguments))
        for c in reply.calls
    )
    return replace(
        reply,
        text=hidden.without(reply.text),
        reasoning=hidden.without(reply.reasoning),
        sealed=hidden.without(reply.sealed),
        calls=calls,
        finish=hidden.without(reply.finish),
        tokens=() if "".join(token.text for token in reply.tokens) in hidden else reply.tokens,
    )


class MaskedPieces:
    """Masks a reply as it arrives, in pieces: what may be the beginning of a secret is held until more is there."""

    def __init__(self, hidden: Hidden) -> None:
        self._hidden = hidden
        self._held: dict[tuple[type[_Words], int], _Words] = {}
        """By the part of the reply that it belongs to: the arguments of several calls may arrive in turns."""

    def shown(self, piece: Piece) -> Iterator[Piece]:
        """What can be shown once this piece is there."""
        part = _part(piece) if isinstance(piece, _Words) else None
        for ended in [one for one in self._held if one != part and one[0] is not CallDelta]:
            yield self._held.pop(ended)
        match piece:
            case TextDelta() | ReasoningDelta() | CallDelta():
                held = self._held.pop(_part(piece), None)
                words = self._hidden.without((_words(held) if held else "") + _words(piece))
                cut = self._hidden.beginning(words)
                sealed = piece.sealed if isinstance(piece, ReasoningDelta) else ""
                if sealed:  # a whole thought, which says the words once more
                    yield replace(piece, text=words, sealed=self._hidden.without(sealed))
                    return
                if cut < len(words):
                    self._held[_part(piece)] = _worded(piece, words[cut:])
                if cut:
                    yield _worded(piece, words[:cut])
            case CallStarted(name=name, id=call_id):
                yield replace(piece, name=self._hidden.without(name), id=self._hidden.without(call_id))
            case Ended():
                yield from self._held.values()
                self._held.clear()
                end = masked_reply(Reply(finish=piece.finish, sealed=piece.sealed, tokens=piece.tokens), self._hidden)
                yield replace(piece, finish=end.finish, sealed=end.sealed, tokens=end.tokens)
            case _:
                assert_never(piece)


_Words = TextDelta | ReasoningDelta | CallDelta


def _part(piece: _Words) -> tuple[type[_Words], int]:
    return type(piece), piece.index if isinstance(piece, CallDelta) else 0


def _words(piece: _Words) -> str:
    return piece.arguments if isinstance(piece, CallDelta) else piece.text


def _worded(piece: _Words, words: str) -> _Words:
    return replace(piece, arguments=words) if isinstance(piece, CallDelta) else replace(piece, text=words)


# Rules of what is hidden from a journal and from telemetry; `forge.journal.redaction` applies them.


class Field(Struct, frozen=True, kw_only=True):
    """A value passed to the user's own rule: an argument of a tool or, if `argument` is empty, part of its result.

    `text` is the value as text.
    """

    tool: str
    argument: str
    text: str


class Redact(Options, frozen=True, kw_only=True):
    """What is hidden in a journal.

    `arguments` are named `tool.argument`, or `*.argument` for every tool; `results` are tools whose results are
    hidden; `values` are secrets known in advance. `patterns` are RE2 regular expressions, which take linear
    time on any text (the extra `redact`). `where` is asked about each argument and each
    part of a result.
    """

    arguments: Sequence[str] = ()
    results: Sequence[str] = ()
    values: Sequence[str] = ()
    patterns: Sequence[str] = ()
    where: Callable[[Field], bool] | None = None

    def __repr__(self) -> str:
        return f"Redact({', '.join(self.kinds())})"

    def _wrong_fields(self) -> dict[str, tuple[str, ...]]:
        wrong = super()._wrong_fields()  # quotes what is wrong, which in `values` is a secret
        return {**wrong, "values": ("values must be a list of strings",)} if "values" in wrong else wrong

    def kinds(self) -> tuple[str, ...]:
        """The rules as the journal lists them, without the secrets themselves."""
        counted = {"value": len(self.values), "pattern": len(self.patterns)}
        own = ("a rule of the user's own",) if self.where else ()
        return (
            *(f"argument {name}" for name in self.arguments),
            *(f"result {name}" for name in self.results),
            *(f"{count} {what}{'s' * (count > 1)}" for what, count in counted.items() if count),
            *own,
        )

    def refuse_wrong(self, tools: Mapping[str, tuple[str, ...]]) -> None:
        """DefinitionError for rules that match none of these tools, and for invalid patterns.

        `tools` are the parameters of each tool by its name.
        """
        if wrong := [*_mistakes(self, tools)]:
            raise DefinitionError(tuple(wrong))
        self.refuse_wrong_patterns()

    def refuse_wrong_patterns(self) -> None:
        """DefinitionError for a pattern that is not valid."""
        for pattern in self.patterns:
            found_by(pattern)


def both(one: Redact | None, other: Redact | None, tools: Mapping[str, tuple[str, ...]]) -> Redact:
    """The union of both. `other` is not specific to a workflow, so its rules for unknown tools are left out."""
    first, second = one or Redact(), other or Redact()
    rules = [rule for rule in (first.where, second.where) if rule]
    return Redact(
        arguments=(
            *first.arguments,
            *(it for it in second.arguments if not [*_mistakes(Redact(arguments=[it]), tools)]),
        ),
        results=(*first.results, *(it for it in second.results if it in tools or it == "*")),
        values=(*first.values, *second.values),
        patterns=(*first.patterns, *second.patterns),
        where=(lambda field: any(rule(field) for rule in rules)) if rules else None,
    )


def _mistakes(rules: Redact, tools: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    known = {*tools, "*"}
    for rule in rules.arguments:
        tool, dot, argument = rule.partition(".")
        if not (dot and argument) or tool not in known:
            yield f"redact: {rule!r} is not an argument; write tool.argument or *.argument; tools: {', '.join(tools)}"
        elif tools.get(tool) and argument not in tools[tool]:
            yield f"redact: {tool} has no argument {argument!r}; it has {', '.join(tools[tool])}"
    for name in rules.results:
        if name not in known:
            yield f"redact: there is no tool {name!r} with results to hide; tools: {', '.join(tools)}"


def found_by(pattern: str) -> Callable[[str], Iterable[str]]:
    """A function that finds the pattern's matches in a text."""
    try:
        import re2  # noqa: PLC0415 - an extra that only users of patterns need
    except ImportError:
        sentence = f"redact: patterns need RE2, which is not installed; {to_install('redact')}"
        raise DefinitionError((sentence,)) from None
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        reason = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise DefinitionError((f"redact: {pattern!r} is not a valid RE2 pattern: {reason}",)) from None
    return lambda text: (match.group() for match in compiled.finditer(text))
