"""A reader of damaged JSON: one pass, forward only, that writes valid JSON and names its repairs."""

import re
from typing import Literal

import msgspec

from stages.repair.strings import OPENING_QUOTE, literal_at, quoted_string

_DEEPEST = 40
"""Maximum levels of nesting; no tool takes more, and deeper text is an attack."""
_MOST = 3000
"""Maximum number of values in damaged JSON; valid JSON may have any number."""

_BLANK = re.compile(
    r"(?:[\s\ufeff\u200b]++|\\[nrt]|//[^\n]*+|/\*[^*]*+(?:\*++[^*/][^*]*+)*+(?:\*++/|\**+\Z)|#[^\n]*+)*+"
)
_LAST_WORD = re.compile(r"[\w.+-]*+\Z")
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$.-]*+(?=\s*+[:\uff1a=\uff1d]|[\"'])")
_UNOPENED_KEY = re.compile(r"([A-Za-z_$][\w$-]{0,60}+)\"(?=\s*+:)")
"""A key whose opening quotation mark is missing."""
_PREFIX = re.compile(r"[rRuU](?=[\"'])")
"""What Python writes before a string."""
_VALUE_BEGINS = re.compile(rf"{OPENING_QUOTE.pattern}|-?\d|true|false|null")
_DASHED_KEY = re.compile(r"--([A-Za-z_]\w{0,60}+)[ \t]++(?=\S)")
"""A key like an option of a command, as MiniMax M2 writes them."""
_BARE_STRING = re.compile(
    r"(?!(?:nan|inf|infinity|undefined)\b)(?:[^\W\d_]|[/.~*]|\d{1,4}-)[^\"'`{}\[\]():,=<>\n\\]{0,80}+(?=[,}\]])",
    re.IGNORECASE,
)
"""A bare word in place of a string, up to the next member."""
_BARE_ARGUMENT = re.compile(
    r"(?!(?:String|Str|Integer|Int|Number|Float|Boolean|Bool|Optional|Any|List|Array|Dict|Object|None|Null|True|False)\b)"
    r"[A-Z][a-z]{2,40}(?:[ -][A-Z0-9][\w-]{0,40}){0,6}(?=\s?[,)])"
)
"""The same in Python, where a word is a variable or a type, unless it is a proper name."""
_UNOPENED = re.compile(
    r"([^\s\"'`{}\[\],\\-][^\"`{}\[\],\n\\]{0,400}+)\"(?=\s*+[,}\]])|"
    r"(?:[<|\"]{1,3}>|escape>|<escape)?([^\s<|{\[\"'-][^<|{}\[\]\n]{0,400}+)(?:<\|\"\|>|<escape>)(?=\s*+[,}\]])"
)
"""A string whose opening quotation mark, or Gemma's token for one, is missing or torn."""
_DELIMITED = re.compile(
    r"([^\w\s{}\[\](),:/~*#$@%\\+.=\"'-][^\w\s{}\[\](),:]{0,4}?)(?=\w)([^\n{}\[\]]{0,400}?)(?<=[\w.!?])\1(?=\s*+[,}\]])"
)
"""A string between quotation marks of any kind."""
_KEY_INSIDE = re.compile(r",\s?[\w$-]{1,60}\s?:")
_UNCLOSED_KEY = re.compile(r"\"([\w$-]{1,60}+)(?=[:=]\s*+(?:[\"{\[\d-]|true|false|null))(?!:\"\s*+:)")
"""A key whose closing quotation mark is missing."""
_GIVEN = ('"arguments"', '"parameters"', '"args"', '"input"')
_OBJECT_TEXT = re.compile(r"\"\s*+(?=\{\s*+\"[\w$-]{1,60}\"\s*+:)")
"""An object in quotation marks, whose own quotation marks are not escaped."""
_KEY_AHEAD = re.compile(r"\"[\w$.-]{1,60}+\"\s*+[:\uff1a]\s*+[\"{\[\w-]")
_MARKED_KEY = re.compile(r"[^\s:{}\[\],\"'<][^:{}\[\],\"'<\n]*+(?=:)")
_ENDED = re.compile(r"```|</|<[|\uff5c]|\[/|\[END")
"""What a model writes after a complete value: the end of a fence, a closing tag."""
_STOP = re.compile(r"<[a-zA-Z]|\Z|(?<=\n)(?:[A-Z][\w']*+[ :]|\{)")
"""What comes after a value that the model may consider complete: words, another value, nothing."""

_SOUND = re.compile(
    r"(\"[\w$-]{1,60}+\")\s*+:\s*+(\"[^\"\\\x00-\x1f]*+\"|-?(?:0|[1-9]\d*+)(?:\.\d++)?|true|false|null)"
    r"(?=\s*+(?:\}|,\s*+\"[\w$-]{1,60}+\"\s*+:))",
    re.ASCII,
)
"""A member that needs no repair, with what shows that it ends there."""

_FULL_WIDTH = str.maketrans("\uff5b\uff5d\uff3b\uff3d\uff1a\uff0c\uff1d\uff08\uff09\uff1b", "{}[]:,=();")
"""Punctuation of Chinese and Japanese keyboards; between values it has only one meaning."""

_CALL = "f("
"""What opens the arguments of a call in Python, which are read as an object."""
_CLOSER = {"{": "}", "{{": "}", "[": "]", "(": "]", _CALL: "}"}
_SHUT = {**_CLOSER, "(": ")", _CALL: ")"}
"""What closes a value, in JSON and in the text."""
_OBJECTS = ("{", "{{", _CALL)


class BrokenError(Exception):
    """No value: reading stopped at `position`. `cut`: the text ended inside the value."""

    def __init__(self, position: int, *, cut: bool) -> None:
        self.position = position
        self.cut = cut


class Reader:
    """The state of one reading. After `run`, `out` is the value, `repairs` the repairs, `position` the end."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.position = start
        self.out: list[str] = []
        self.repairs: dict[str, None] = {}
        self.open: list[str] = []
        self.values = 0
        self.tuples: list[int] = []
        """Where each open tuple began in `out`; -1 once it has a comma."""
        self.left_open = 0
        """How many arrays and objects the end of the text closed."""
        self.in_quotes = -1
        """The nesting depth of an object that is written as a string without its backslashes."""

    def run(self, *, opened: bool, called: bool) -> None:
        if called:
            self.out.append("{")
            self.open.append(_CALL)
        elif opened:
            self.opened()
        else:
            self.value()
        while self.open:
            if self.open[-1] in ("[", "("):
                self.array_step()
            else:
                self.object_step()

    def blank(self) -> str:
        """Skip to the next token and return its first character; "" at the end."""
        if "!" <= (following := self.text[self.position : self.position + 1]) <= "~" and following not in "\\/#":
            return following
        end = _BLANK.match(self.text, self.position).end()  # type: ignore[union-attr]  # it matches the empty string
        skipped = self.text[self.position : end]
        if skipped and not skipped.isspace():
            self.note("escaped_blanks" if skipped.lstrip().startswith("\\") else "comments")
        self.position = end
        following = self.text[end : end + 1]
        if following.isascii() or (meant := following.translate(_FULL_WIDTH)) == following:
            return following
        self.note("full_width")
        return meant

    def broken(self) -> BrokenError:
        return BrokenError(self.position, cut=self.position >= len(self.text))

    def value(self) -> None:
        self.values += 1
        if self.values > _MOST:
            raise BrokenError(len(self.text), cut=False)
        first = self.blank()
        if self.out[-1:] == [":"] and self.out[-2] in _GIVEN and (text := _OBJECT_TEXT.match(self.text, self.position)):
            self.note("arguments_as_text")
            self.position = text.end()
            self.in_quotes = len(self.open)
            self.push("{")
        elif first in ("{", "["):
            self.push(first)
        elif first == "(":
            self.tuples.append(len(self.out))
            self.note("tuple")
            self.push(first)
        elif self.out and self.out[-1] in (":", "[") and _KEY_AHEAD.match(self.text, self.position):
            self.opened()
        elif OPENING_QUOTE.match(self.text, self.position):
            self.string(key=False)
        elif prefix := _PREFIX.match(self.text, self.position):
            self.position = prefix.end()
            self.string(key=False, raw=prefix[0] in "rR")
        else:
            self.word()

    def opened(self) -> None:
        """An object without its opening brace, at its first key."""
        if len(self.open) >= _DEEPEST:
            raise self.broken()
        self.note("missing_opener")
        self.out.append("{")
        self.open.append("{")
        self.member()

    def push(self, opener: str) -> None:
        if len(self.open) >= _DEEPEST:
            raise self.broken()
        self.out.append("[" if opener == "(" else opener)
        self.position += 1
        if opener == "{" and self.text.startswith("{", self.position):
            self.position += 1
            self.note("doubled_braces")
            opener = "{{"
        self.open.append(opener)

    def string(self, *, key: bool, raw: bool = False) -> None:
        found = quoted_string(self.text, self.position, "key" if key else self.place(), raw=raw)
        if found is None:
            raise BrokenError(len(self.text), cut=True)
        self.out.append(found.json)
        self.note(*found.repairs)
        self.position = found.end

    def place(self) -> Literal["argument", "member", "item"]:
        """What a value is in the innermost open bracket."""
        if not self.open or self.open[-1] not in _OBJECTS:
            return "item"
        return "argument" if self.open[-1] == _CALL else "member"

    def word(self) -> None:
        unopened = _UNOPENED.match(self.text, self.position) if self.open else None
        if unopened and unopened[2] and _KEY_INSIDE.search(unopened[2]):
            unopened = None
        found = None if unopened else literal_at(self.text, self.position)
        if found is None:
            bare = unopened or self.bare_string()
            if delimited := None if bare or not self.open else _DELIMITED.match(self.text, self.position):
                self.position = delimited.end()
                self.out.append(msgspec.json.encode(delimited[2]).decode())
                self.note("other_quotes")
                return
            if bare:
                self.position = bare.end()
                self.out.append(
                    msgspec.json.encode((unopened[1] or unopened[2]) if unopened else bare[0].rstrip()).decode()
                )
                self.note("bare_string")
                return
            if word := _LAST_WORD.match(self.text, self.position):
                self.position = word.end()
            raise self.broken()
        self.position = found.end
        self.out.append(found.json)
        self.note(*found.repairs)

    def bare_string(self) -> re.Match[str] | None:
        """A bare word as a string, where a string may be."""
        if not self.open or self.open[-1] != _CALL:
            return _BARE_STRING.match(self.text, self.position) if self.open else None
        bare = _BARE_ARGUMENT.match(self.text, self.position)
        # `city=City` passes on a variable.
        return None if bare and self.out[-2].strip('"').casefold() == bare[0].casefold() else bare

    def close(self) -> None:
        opener = self.open.pop()
        self.position += 1
        if opener == "(" and 0 <= (begin := self.tuples.pop()) < len(self.out) - 1:
            # In Python, parentheses around one value do not make a tuple.
            self.out[begin] = ""
            return
        if opener == "{{" and self.text.startswith("}", self.position):
            self.position += 1
        self.out.append(_CLOSER[opener])
        if len(self.open) == self.in_quotes:
            self.in_quotes = -1
            self.position += self.text.startswith('"', self.position)

    def add_closer(self, repair: str) -> None:
        self.note(repair)
        self.out.append(_CLOSER[self.open.pop()])

    def array_step(self) -> None:
        """After `[` or an element."""
        following = self.blank()
        if self.out[-1] == "[" and following not in ("]", "", ","):
            self.value()
        else:
            self.after_value(following)

    def object_step(self) -> None:
        """After `{` or a member."""
        following = self.blank()
        if self.out[-1] == "{" and following not in ("}", "", ","):
            self.member()
        else:
            self.after_value(following)

    def after_value(self, following: str) -> None:
        closer = _SHUT[self.open[-1]]
        in_object = self.open[-1] in _OBJECTS
        if following == closer:
            self.close()
        elif following in (",", ";"):
            self.comma(closer)
        elif following == ")" and self.out[-1] not in ("{", "[") and self.may_stand_for():
            self.note("other_bracket")
            self.close()
        elif following in ("}", "]") and self.out[-1] in ("}", "]") and not self.closes_outer(following):
            self.note("surplus_bracket")
            self.position += 1
        elif self.out[-1] in ("{", "["):
            raise self.broken()
        elif in_object and self.key_follows():
            self.note("missing_comma")
            self.out.append(",")
            self.member()
        elif closer == "]" and ((following == "{" and self.out[-1] == "}") or following == '"'):
            # In Python, two strings would be one.
            self.note("parted_strings" if following == '"' else "missing_comma")
            self.out.append(",")
            self.value()
        elif _ENDED.match(self.text, self.position):
            self.add_closer("closer")
        elif _STOP.match(self.text, self.position) or (following in ("}", "]", ")") and self.closes_outer(following)):
            self.left_open += self.position >= len(self.text)
            self.add_closer("missing_closer")
        else:
            raise self.broken()

    def key_follows(self) -> bool:
        """Whether a key follows a value directly, because its comma was lost."""
        delimited = '<|"|>' in self.text[self.position - 8 : self.position]
        bare = (delimited or self.open[-1] == _CALL) and _BARE_KEY.match(self.text, self.position)
        quoted = OPENING_QUOTE.match(self.text, self.position) or _DASHED_KEY.match(self.text, self.position)
        return bool(bare or quoted)

    def note(self, *repairs: str) -> None:
        self.repairs.update(dict.fromkeys(repairs))

    def may_stand_for(self) -> bool:
        """Whether a parenthesis may stand for another bracket: none is open, in JSON or in a text with quotes in it."""
        return "inner_quotes" not in self.repairs and not self.closes_outer(")")

    def closes_outer(self, closer: str) -> bool:
        return any(_SHUT[opener] == closer for opener in self.open)

    def comma(self, closer: str) -> None:
        """One comma between members; surplus commas, and one before the closing bracket, are left out."""
        first = self.out[-1] in ("{", "[")
        if self.open[-1] == "(":
            self.tuples[-1] = -1
        following, commas = ",", 0
        if self.text[self.position] == ";":
            self.note("semicolon")
        while following in (",", ";"):
            self.position += 1
            commas += 1
            following = self.blank()
        if first or commas > 1 or following == closer:
            self.note("trailing_comma")
        if following == closer:
            return
        if following == "{" and self.open[-1] == "{" and self.open[-2:-1] == ["["]:
            # The next object of a list: this one was not closed.
            self.add_closer("missing_closer")
        if not first:
            self.out.append(",")
        if self.open[-1] in _OBJECTS:
            self.member()
        else:
            self.value()

    def member(self) -> None:
        """A key, a colon, and the value or its opening bracket."""
        self.blank()
        if self.open[-1] != _CALL and self.values < _MOST and (sound := _SOUND.match(self.text, self.position)):
            self.values += 1
            self.out += (sound[1], ":", sound[2])
            self.position = sound.end()
            return
        if self.text.startswith('""', self.position) and self.text[self.position + 2 : self.position + 3].isalnum():
            self.position += 1
            self.note("doubled_quotes")
        if dashed := _DASHED_KEY.match(self.text, self.position):
            self.note("bare_key")
            self.out += (f'"{dashed[1]}"', ":")
            self.position = dashed.end()
            self.value()
            return
        if unclosed := _UNCLOSED_KEY.match(self.text, self.position):
            self.note("bare_key")
            self.out.append(f'"{unclosed[1]}"')
            self.position = unclosed.end()
        elif unopened := _UNOPENED_KEY.match(self.text, self.position):
            self.note("bare_key")
            self.out.append(f'"{unopened[1]}"')
            self.position = unopened.end()
        elif OPENING_QUOTE.match(self.text, self.position):
            self.string(key=True)
        else:
            self.bare_key()
        following = self.blank()
        if following == ":":
            self.position += 1 + self.text.startswith("::", self.position)
        elif following == "=" or self.text.startswith("->", self.position):
            self.position += 2 if self.text.startswith(("=>", "->", "=="), self.position) else 1
            if self.open[-1] != _CALL:
                self.note("equals_sign")
        elif "inner_quotes" not in self.repairs and (
            following in ("{", "[") or _VALUE_BEGINS.match(self.text, self.position)
        ):
            self.note("missing_colon")
        else:
            raise self.broken()
        self.out.append(":")
        self.value()

    def bare_key(self) -> None:
        key = _BARE_KEY.match(self.text, self.position) or _MARKED_KEY.match(self.text, self.position)
        if key is None:
            raise self.broken()
        if self.open[-1] != _CALL:
            self.note("bare_key")
        self.out.append(msgspec.json.encode(key[0].strip()).decode())
        self.position = key.end()
