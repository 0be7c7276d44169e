"""A string or literal of damaged JSON: where it ends, and its value as valid JSON."""

import re
from typing import Literal

from msgspec import Struct

OPENING_QUOTE = re.compile(r'<\|"(?:\|>?|>)|<escape>|"""|\'\'\'|["\'\u201c\u201d\u2018\uff02]|`(?!``)')
"""What a string may begin with: JSON's quote, Python's, typographic ones, the quote tokens of the Gemmas."""

_CLEAN = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"')
_CLOSING = {
    '"': re.compile(r'"|\\', re.DOTALL),
    "'": re.compile(r"'|\\", re.DOTALL),
    "`": re.compile(r"`|\\", re.DOTALL),
    "\u201c": re.compile(r'[\u201d\u201c"]|\\', re.DOTALL),
    "\u201d": re.compile(r'[\u201d"]|\\', re.DOTALL),
    "\u2018": re.compile(r"[\u2019\u2018']|\\", re.DOTALL),
    "\uff02": re.compile(r'["\uff02]|\\', re.DOTALL),
}
_KEY = (
    r"\"[\w$-]{1,60}+:\s?(?:[{\[]\s?\"|[\"\d-]|true|false|null)|"
    r"(?:\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|[\u201c\u201d\u2018\uff02`][^\u201d\u2019\uff02`\"\n]*+[\u201d\u2019\uff02`\"])"
    r"\s*+(?:[:=\uff1a{\[\"']|->|-?\d|true|false|null|\Z)|[\"'\u201c][^\"'\u201d\n]*+\Z|[}\]{\[]|[\w$-]++\"?\s*+[:=]"
)
_VALUE = r"[\"'\u201c\u201d\u2018`}\]{\[)]|[\w$-]++(?:\s*+[:=,\]}]|\"\s*+[:=])"


def _after(following: str, parenthesis: str = "") -> re.Pattern[str]:
    """What can only follow a value: a bracket, this after a comma, a key without its comma, markup."""
    return re.compile(
        rf"\s*+(?:\\[nrt]\s*+){{0,3}}+(?:[}}\]\uff5d\uff3d]|\uff0c\s*+[\"\u201c\uff02{{\[]|\)(?!\s{{0,8}}[\"']){parenthesis}|"
        rf",[\s,]*+(?:\\[nrt]\s*+){{0,3}}+(?:{following}|/[/*]|#|$)|$|```|</|<\||/[/*]|#\s|;\s?\"[\w$-]{{1,60}}+\"\s?:)|"
        r"\s*+[\"'\u201c][^\"'\u201c\u201d\\\n:,]{1,64}[\"'\u201d]\s*+:"
    )


_AFTER_MEMBER = _after(_KEY, r"(?=\s*+(?:[}\])<`,\n]|\Z))")
"""In an object, only a key can follow a comma."""
_AFTER_VALUE = re.compile(rf"{_after(_VALUE).pattern}|\s++\"[^\"\\\n]{{0,400}}+\"(?:\s*+[,\]]|\s++\")")
"""In an array, another string too, without its comma."""
_AFTER_ARGUMENT = re.compile(rf"{_AFTER_MEMBER.pattern}|\s++[A-Za-z_]\w{{0,60}}\s?=\s?[\"'\d\[{{TFN-]")
"""In Python, a keyword too, without its comma."""
_AFTER_KEY = re.compile(r"\s*+(?:[:\uff1a{\[=]|->|[\"\u201c](?!\s?:)|(?:-?\d|true|false|null))")
"""A colon, or what shows that it is missing: a value."""

_JOINED = re.compile(r"\s*+\+\s*+[\"'\w]")
"""A plus sign after the string: an expression, not a value."""

_CONTINUED = {quote: re.compile(rf"{quote}[ \t]{{0,8}}\r?\n\s*+{quote}") for quote in ("'", '"')}
"""Between two parts of one string in Python."""

_FIX = re.compile(
    r'\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\(.)|["\x00-\x1f]|\\', re.DOTALL
)
_NO_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\(?=[bf])")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


class Scalar(Struct, frozen=True):
    """A string or literal as JSON, where it ended, and its repairs."""

    json: str
    end: int
    repairs: tuple[str, ...] = ()


_AFTER = {"key": _AFTER_KEY, "member": _AFTER_MEMBER, "argument": _AFTER_ARGUMENT, "item": _AFTER_VALUE}


def quoted_string(
    text: str, start: int, place: Literal["key", "member", "argument", "item"], *, raw: bool = False
) -> Scalar | None:
    """The string that begins at `start`; None if it never ends. `raw`: backslashes are ordinary characters."""
    after = _AFTER[place]
    clean = None if raw else _CLEAN.match(text, start)
    if clean and (after.match(text, clean.end()) or not _more_quotes(text, clean.end())):
        return Scalar(clean[0], clean.end())
    opening = OPENING_QUOTE.match(text, start)
    if opening is None:
        return None
    if opening[0] not in _CLOSING:
        return _delimited(text, opening.end(), opening[0], raw=raw or opening[0].startswith("<"))
    return _searched(text, start, opening[0], after, raw=raw)


def _more_quotes(text: str, end: int) -> bool:
    """Whether the line contains another quotation mark, so that the previous one may belong to the string."""
    line_end = text.find("\n", end, end + 2000)
    return text.find('"', end, line_end if line_end >= 0 else end + 2000) >= 0


def _delimited(text: str, body: int, delimiter: str, *, raw: bool) -> Scalar | None:
    """A string between delimiters that cannot occur in it: triple quotes, quote tokens."""
    end = text.find(delimiter, body)
    past = end + len(delimiter)
    style = () if delimiter.startswith("<") else ("triple_quotes",)
    if not style and not (end >= 0 and _AFTER_DELIMITER.match(text, past)):
        if end >= 0 and text.startswith(delimiter, past):
            past, style = past + len(delimiter), ("doubled_quotes",)
        elif lost := _UNDELIMITED.match(text, body, len(text) if end < 0 else end):
            # The one that was found opens the next value, or there is none.
            end, past, style = lost.end("value"), lost.end(), ("missing_quote",)
    if end < 0:
        return None
    fixer = _Fixer(raw=raw)
    json = fixer.json(text[body:end])
    return Scalar(json, past, (*style, *fixer.repairs))


def _searched(text: str, start: int, quote: str, after: re.Pattern[str], *, raw: bool) -> Scalar | None:
    """A string that ends at its first quote followed by something that cannot be in a string."""
    may_be_lost = quote == '"' and after is not _AFTER_KEY
    inner, doubled, end = False, False, 0
    if (
        text.startswith(quote, start + 1)
        and (third := text.find(quote, start + 2)) > 0
        and after.match(text, third + 1)
    ):
        inner, doubled, start = True, True, start + 1
    position = start + 1
    while found := _CLOSING[quote].search(text, position):
        position = found.end()
        if found[0] == "\\":
            position += 1
        elif after.match(text, position):
            end = found.start()
            # Only where the opening one is doubled too: `12""` may be twelve inches.
            if doubled and text[end - 1] == quote and text.find(quote, start + 1, end) == end - 1:
                end -= 1
            break
        elif not inner and _JOINED.match(text, position):
            return None
        elif not inner and may_be_lost and (cut := _lost_quote(text, start + 1, position, after)):
            position = end = cut
            break
        else:
            inner = True
    if found is None:
        position = end = _lost_quote(text, start + 1, len(text), after) if may_be_lost else 0
        if not end:
            return None
    lost = position == end
    if lost and (last := text[end - 1]) in "'`\u2019\u201d" and last not in text[start + 1 : end - 1]:
        end -= 1  # closed with another quotation mark
    body = text[start + 1 : end]
    if inner and (joined := _CONTINUED[quote].sub("", body) if quote in _CONTINUED else body) != body:
        # Python joins adjacent strings; across several lines, this can be nothing else.
        body, inner = joined, quote in joined
    fixer = _Fixer(raw=raw)
    json = fixer.json(body)
    guesses = ["missing_quote"] if lost else ["inner_quotes"] if inner else []
    style = {'"': [], "'": ["single_quotes"], "`": ["backquotes"]}.get(quote, ["smart_quotes"])
    return Scalar(json, position, tuple(style + guesses + fixer.repairs))


_LOST = re.compile(
    r"[^\"{}\[\]\n]{1,2000}?(?<!\s)(?=,\s{0,8}\"\s{0,8}[\w$-]{1,60}\"\s?[:=]|"
    r"(?:\s{0,40}[}\]]){1,6}+\s{0,40}(?:\Z|```|</|<[|\uff5c]|\[/))"
)
"""A string without its closing quotation mark, up to the next key or the end of everything."""


_LOST_ARGUMENT = re.compile(
    r"[^\"{}\[\]\n]{1,2000}?(?<!\s)(?=,\s{0,8}[A-Za-z_]\w{0,60}\s?[=:]\s?[\"'\d\[{TFNtfn-]|\)\s{0,8}\]?\s{0,8}(?:\Z|```|<))"
)
"""The same in Python, up to the next keyword or the end."""


def _lost_quote(text: str, begin: int, until: int, after: re.Pattern[str]) -> int:
    """Where a string without its closing quotation mark ends, before `until`; 0 if it may continue."""
    lost = (_LOST_ARGUMENT if after is _AFTER_ARGUMENT else _LOST).match(text, begin)
    return lost.end() if lost and lost.end() < until else 0


_AFTER_DELIMITER = re.compile(r"\s*+(?:[,}\]:]|\Z|[A-Za-z_][\w$-]{0,60}+\s?:(?!//))")
"""What follows the end of a string between tokens: also the next key, without its comma."""
_UNDELIMITED = re.compile(
    r"(?P<value>(?:[^<{}\[\]\n,]|,(?!\s{0,8}[\w$-]{1,60}\s?:)){1,2000}?)(?:<?\|?\"\|?>?|<?escape>?|<\|{0,2}>?)?"
    r"(?=\s{0,8}(?:,\s{0,8}[\w$-]{1,60}\s?:|\}\s{0,8}(?:<|\Z)))"
)
"""A string whose closing token is missing or torn, up to the next key or the end."""


class _Fixer:
    """Writes the inside of a string as JSON. `raw`: backslashes are ordinary characters."""

    def __init__(self, *, raw: bool) -> None:
        self.raw = raw
        self.repairs: list[str] = []
        self.escapes = False
        self.markdown = False

    def json(self, body: str) -> str:
        # Markdown escapes underscores, and nothing else in `my\_folder`; a path has other backslashes.
        paths = any(sign in body for sign in (":\\", "$", "/\\"))
        self.markdown = not paths and body.count("\\") == body.count("\\_")
        if self.raw:
            body = body.replace("\\", "\\\\")
        fixed = _FIX.sub(self.fix, body)
        if "backslash" in self.repairs and self.escapes:
            # In `C:\new\Projects`, it is unknown which backslash is an escape; `\b` and `\f` never are.
            fixed = _NO_ESCAPE.sub(r"\g<0>\\", fixed)
            self.repairs[self.repairs.index("backslash")] = "mixed_backslash"
        return f'"{fixed}"'

    def fix(self, found: re.Match[str]) -> str:
        written, escaped = found[0], found[1]
        if escaped is None:
            return self.plain(written)
        if escaped in '"\\/bfnrt':
            self.escapes |= escaped in "bfnrt"
            return written
        if escaped in "'`":
            return escaped
        if escaped == "_" and self.markdown:
            self.note("markdown_escape")
            return escaped
        if escaped in "\n\r":
            self.note("line_continuation")
            return ""
        self.note("backslash")
        return "\\\\" + _NAMED.get(escaped, escaped if escaped >= " " else f"\\u{ord(escaped):04x}")

    def plain(self, written: str) -> str:
        if written == '"':
            return '\\"'
        if written == "\\":
            self.note("backslash")
            return "\\\\"
        if written[0] != "\\":
            if not self.raw:
                self.note("control_characters")
            return _NAMED.get(written) or f"\\u{ord(written):04x}"
        if len(written) == len("\\u0000") and written[2] in "dD" and written[3] in "89abcdefABCDEF":
            self.note("lone_surrogate")
            return "\\ufffd"
        return written

    def note(self, repair: str) -> None:
        if repair not in self.repairs:
            self.repairs.append(repair)


_LITERAL = re.compile(r"[+-]?[\w.][\w.+-]*+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?", re.ASCII)
_LOOSE_NUMBER = re.compile(r"([+-]?)(?:0+(?=\d))?(0|[1-9]\d*+|(?=\.\d))(?:\.(\d*+))?", re.ASCII)
_WORDS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}


def literal_at(text: str, start: int) -> Scalar | None:
    """The literal that begins at `start`; None for any other word, and for a number that may be cut off."""
    word = _LITERAL.match(text, start)
    if word is None:
        return None
    if json := _WORDS.get(word[0]):
        return Scalar(json, word.end(), () if json == word[0] else ("python_literals",))
    if word.end() == len(text):
        # Perhaps the first digits of a longer number.
        return None
    if _NUMBER.fullmatch(word[0]):
        return Scalar(word[0], word.end())
    loose = _LOOSE_NUMBER.fullmatch(word[0].replace("_", ""))
    if loose is None:
        return None
    sign, fraction = loose[1].replace("+", ""), "" if loose[3] is None else f".{loose[3] or 0}"
    return Scalar(f"{sign}{loose[2] or 0}{fraction}", word.end(), ("loose_number",))
