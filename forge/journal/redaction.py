"""Redaction: values hidden in a journal, in every spelling, under marks that keep them apart."""

import json
import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.errors import ForgeError
from forge.journal.records import OutcomeLine
from forge.masking import HEAD_LENGTH, Field, Redact, end_of_form, found_by, spellings, undone
from stages.decoding import decode_or, nested
from stages.effect import (
    Approved,
    Ask,
    Effect,
    Execute,
    Failed,
    InDoubt,
    Outcome,
    Replied,
    Reply,
    Results,
    Succeeded,
    Unresolved,
)
from stages.execution import question
from stages.reading.replies import ReplyRead
from stages.schema.value import Json, pairs_lost

# Members of JSON objects, including duplicates and members of JSON within a text.


class _Members(list[tuple[str, object]]):
    """The members of a JSON object in order, including duplicate names."""


def _with_pairs(text: str) -> object:
    """The JSON value of a text, with all members of its objects; None if it has none."""
    if nested(text):
        return None
    try:
        return json.loads(text, object_pairs_hook=_Members)
    except (ValueError, RecursionError):
        return None


def _inner_members(text: str) -> Iterator[tuple[str, object]]:
    """Anything in a text that looks like a member with a string or number value, escaped or not."""
    for form in {text, text.replace('\\"', '"')}:
        for name, value in _MEMBER.findall(form):
            try:
                yield name, json.loads(value)
            except ValueError:
                yield name, value


_MEMBER = re.compile(r"""["']([^"'\\\n]{1,64})["']\s{0,9}:\s{0,9}("(?:[^"\\]|\\.)*"|[^\s,{}\[\]"]{1,400})""")


def _plainly(name: str) -> str:
    """The name without case and punctuation: `api-key`, `apiKey` and `API_KEY` are the same."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) or name


# Marks: what replaces a secret in a journal, always the same for the same secret.

MARK = re.compile(r"\[redacted(?: \d{1,9})?\]")

_SHORTEST = 4
"""Minimum length to hide a secret wherever it occurs; a shorter one is hidden only as a complete value."""

_MOST = 2000
"""Maximum number of secrets in one journal."""

PROTOCOL = frozenset(
    {"type", "id", "call_id", "tool_call_id", "tool_use_id", "role", "kind", "origin", "finish", "name", "status"}
    | {"version", "mode", "model", "workflow", "forge", "started", "run", "dialect", "redacted"}
)
"""Fields whose texts belong to forge or a protocol; inside `_DATA`, every name is the user's."""

_FOREIGN = frozenset(("id", "call_id", "tool_call_id", "tool_use_id", "name", "finish", "model", "workflow"))
"""Protocol fields in which a server or user may put anything."""

_OWN_ID = re.compile(r"call_\d{9}")
_FINISHES = frozenset(("", "stop", "length", "tool_calls", "tool_use", "end_turn", "max_tokens", "content_filter"))

_DATA = frozenset(("arguments", "input", "value", "args"))


class Marks:
    """The known secrets of a journal and their marks. `own` are names that are never replaced.

    `digests` are those of questions about what is hidden, each with the one that is written in its place.
    """

    def __init__(self, own: frozenset[str] = frozenset()) -> None:
        self.digests: dict[str, str] = {}
        self._own = own | _FINISHES
        self._marks: dict[str, str] = {}
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
        if name != "name" or not isinstance(hidden, str):
            return hidden
        # With brackets it would not be a valid name, and a replay would take the call for text.
        return MARK.sub(lambda mark: re.sub(r"\W+", "_", mark[0]).strip("_"), hidden)

    def _stays(self, field: str, value: Json) -> bool:
        """Whether a protocol's field stays unchanged: a server may put anything into an id, a name or a reason."""
        if not isinstance(value, str):
            return False
        return field not in _FOREIGN or value in self._own or _OWN_ID.fullmatch(value) is not None

    def _text(self, text: str) -> str:
        if text in self.digests:
            return self.digests[text]
        if text.strip() in self._marks:
            return self._marks[text.strip()]
        inner = _json(text)
        if inner is None:
            return self._found(text)
        hidden, lost = self.hidden(inner, data=True), pairs_lost(text, inner)
        if hidden != inner and not lost:
            return msgspec.json.encode(hidden).decode()
        # Parsing drops duplicate members; keep the text, because it may have been refused for them.
        found = self._found(text)
        left = _leaves(_with_pairs(found)) if lost else ()
        return "[redacted]" if any(self._text(leaf) != leaf for leaf in left) else found

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
                continue  # within a truncated spelling that was just replaced
            end = match.end()
            if found not in self._forms:
                form = max(self._heads[found], key=lambda one: end_of_form(one, text, begin))
                end, found = end_of_form(form, text, begin), form
            # A bare number in JSON gets a quoted mark, so that the text stays valid JSON.
            mark, before, after = self._forms[found], text[at:begin].rstrip()[-1:], text[end : end + _NEAR].lstrip()[:1]
            bare = before in (":", "[", ",") and after in ("]", "}", ",")
            parts += [text[at:begin], (f'"{mark}"' if bare and _NUMBER.fullmatch(found) else mark)]
            at = end
        return "".join((*parts, text[at:]))


def _leaves(value: object) -> Iterator[str]:
    """The strings and numbers in a value, as text."""
    match value:
        case str():
            yield value
        case int() | float() if not isinstance(value, bool):
            yield msgspec.json.encode(value).decode()
        case _Members():
            for _, item in value:
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case _:
            pass


_NEAR = 8
"""Characters around a number that are checked for JSON."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")

_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def _json(text: str) -> Json:
    """The object or array, if the text is JSON of one; None otherwise."""
    return decode_or(_any, text, None) if text[:1] in {"{", "["} else None


# Redaction: the rules applied.
#
# Once a rule has hidden a value, it is a secret from then on: wherever it occurs again, in a text, in JSON within a
# text, in a request, the same mark replaces it.


class Redactor:
    """Applies the rules to the lines of one journal. `read` finds the calls in a reply's text."""

    def __init__(self, rules: Redact, read: ReplyRead, tools: Mapping[str, tuple[str, ...]]) -> None:
        rules.refuse_wrong(tools)
        self._rules = rules
        self._read = read
        self._parameters = tools
        self._named = [(tool, argument) for tool, _, argument in (rule.partition(".") for rule in rules.arguments)]
        self._plain_names = {_plainly(argument) for _, argument in self._named}
        self._patterns = [found_by(pattern) for pattern in rules.patterns]
        self._tools: dict[str, str] = {}
        self._asked = ""
        self._marks = Marks(own=frozenset(tools))
        for value in rules.values:
            self._marks.hide(value)

    def written(self, line: Struct, about: Effect | Outcome | None) -> bytes:
        """The redacted line as JSON; `about` is the effect or outcome that it holds."""
        if about is not None:
            self._learn(about)
        # Requests contain example calls; real values come from outcomes.
        told = self._named and isinstance(line, OutcomeLine)
        match line:
            case OutcomeLine(outcome=Replied(reply=Reply(tokens=[_, *_]) as reply) as replied):
                # The tokens have the secrets of the text in pieces.
                line = replace(line, outcome=replace(replied, reply=replace(reply, tokens=())))
            case _:
                pass
        tree: Json = msgspec.json.decode(msgspec.json.encode(line))
        for text in self._marks.texts(tree) if self._patterns or told else ():
            for find in self._patterns:
                for secret in find(text):
                    self._marks.hide(secret)
            # Values of arguments that rules name, in JSON within a text: `… {"pin": 4711} …`.
            for name, value in _inner_members(text) if told else ():
                for secret in _leaves(value) if _plainly(name) in self._plain_names else ():
                    self._marks.hide(secret)
        return msgspec.json.encode(self._marks.hidden(tree))

    def _learn(self, about: Effect | Outcome) -> None:
        """Learn the secrets in an effect or an outcome."""
        match about:
            case Execute(calls=calls):
                for call in calls:
                    self._called(call.name, call.arguments)
                self._tools = {call.id: call.name for call in calls}
            case Approved(edited=str(arguments)):
                self._called(self._asked, arguments)
            case Ask(call=call):
                self._asked = call.name
                self._called(call.name, call.arguments)
                # The digest is a hash of the arguments, so guesses could be tested against it.
                if about.digest not in self._marks.digests:
                    shown = replace(call, arguments=str(self._marks.hidden(call.arguments)))
                    before = self._marks.digests.values()
                    self._marks.digests[about.digest] = question(shown, about.in_doubt, about.problem, before).digest
            case Replied(reply=reply):
                self._replied(reply)
            case Results(results=results):
                for result in results:
                    tool = self._tools.get(result.call_id, "")
                    hide = tool in self._rules.results or "*" in self._rules.results
                    match result:
                        case Succeeded(text=text, value=value):
                            self._hide_leaves(tool, "", msgspec.json.decode(value), always=hide)
                            if hide:
                                self._marks.hide(text)
                        case Unresolved(message=message) | Failed(message=message) | InDoubt(why=message):
                            self._hide_leaves(tool, "", message, always=hide)
                        case _:
                            pass
            case _:
                pass

    def _replied(self, reply: Reply) -> None:
        """Learn from the calls of a reply, wherever they are; from an unreadable one, learn every word."""
        for given in reply.calls:
            self._called(given.name, given.arguments)
        reading = self._read(reply)
        for judged in reading.calls:
            self._called(judged.name, judged.arguments)
        if reading.calls and not any(judged.wrong for judged in reading.calls):
            return
        for name in {argument for _, argument in self._named}:
            _, found, rest = reply.text.partition(name)
            if found:
                self._marks.hide_words(rest)

    def _called(self, tool: str, arguments: str) -> None:
        value, parameters = _with_pairs(arguments), self._parameters.get(tool)
        given = value if isinstance(value, _Members) else None
        # The arguments of this tool that rules name; for an unknown tool, all that rules name.
        about = [argument for named, argument in self._named if parameters is None or named in {tool, "*"}]
        if given is None and (about or self._rules.where):
            self._marks.hide_words(arguments)
        for name, value in given or ():
            self._hide_leaves(
                tool, name, value, always=name in about or (bool(about) and name not in (parameters or ()))
            )

    def _hide_leaves(self, tool: str, argument: str, value: object, *, always: bool) -> None:
        own = self._rules.where
        for text in _leaves(value):
            if always or (own is not None and own(Field(tool=tool, argument=argument, text=text))):
                self._marks.hide(text)
