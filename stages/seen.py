"""Seen: which values a run was shown, and which of them a call may use."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import cache
from itertools import chain

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages._later import LazyPattern
from stages.decoding import decode_or
from stages.message import Assistant, History, Kind, Message, Status, Tool, ToolCall, User, messages_with_calls
from stages.schema.value import MAX_DEPTH, Json, any_json
from stages.state import Cleared, Evidence, Indexed, State
from stages.tool import RECALL, Grounded, ToolSpec

# Evidence: whether a text contains a value, and not as part of a longer one. Linear in the length of the text.
#
# Numbers are compared as numbers (99.50, 1,299.00, 1.299,00, #17, 19th and 12-minute are recognized), texts without
# regard to case, spaces and forms of Unicode. 17 does not occur in A-17, 2024-05-17 or 17.5.

_LONGEST = 100
"""Maximum length of a text that may be a number."""


def shows(said: Evidence, value: Json) -> bool:
    """Whether the value occurs; for a list or an object, all of its values. True, false and null always do."""
    match value:
        case None | bool():
            return True
        case int() | float():
            return _decimal_of(value) in said.numbers
        case str():
            wanted = normalized(value)
            occurs = not wanted or _occurs(_unjoined(wanted), said.words)
            return occurs or not said.numbers.isdisjoint(_readings(wanted))
        case list():
            return all(shows(said, one) for one in value)
        case dict():
            return all(shows(said, one) for one in value.values())


def _unjoined(wanted: str) -> str:
    """The value without a joining character at its edge: `A-` occurs in A-17, but only as a part of it."""
    return wanted.strip(_JOINING) or wanted


_WORD = LazyPattern(r"\w+")


def evidence(texts: Iterable[str]) -> Evidence:
    """The evidence in these texts. JSON is decoded, so its numbers are found without a search."""
    numbers: set[Decimal] = set()
    words: list[str] = []
    for text in texts:
        for leaf in leaves(text):
            if isinstance(leaf, str):
                said = normalized(leaf)
                words.append(said)
                numbers.update(_numbers_in(said))
            elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
                numbers.add(_decimal_of(leaf))
    return Evidence(numbers=frozenset(numbers), words="\n".join(words))


def normalized(text: str) -> str:
    """The text normalized for comparison: `Dune by Ada` for `"DUNE"  by Ada`."""
    return " ".join(_plainly_spelled(text).casefold().split())


def plain_words(text: str) -> list[str]:
    """The words of a text or a name, without case and punctuation."""
    return _LETTERS.compiled.findall(text.casefold())


_LETTERS = LazyPattern(r"[^\W_]+")


def _plainly_spelled(text: str) -> str:
    """The text in the usual form of Unicode, and without quotation marks, which only surround values."""
    return unicodedata.normalize("NFKC", text).translate(_PLAIN)


_PLAIN = str.maketrans(
    {0x2018: "'", 0x2019: "'", 0x2010: "-", 0x2011: "-", 0x2013: "-", 0x2212: "-"}
    | dict.fromkeys((0x201C, 0x201D, 0x22), " ")
)
"""Typographic apostrophes, hyphens, dashes and minus signs as on a keyboard; a blank for quotation marks."""


def leaves(text: str) -> Iterator[Json]:
    """All values in a JSON text, nested ones too; for any other text, the text itself."""
    return (value for _, value in named_values(text))


def named_values(text: str) -> Iterator[tuple[str, Json]]:
    """All values in a JSON text, each with the name of its member, empty if it has none; else the text itself."""
    value = decode_or(any_json, text, text)
    return values_within(value)


def values_within(value: Json) -> Iterator[tuple[str, Json]]:
    """All values in a JSON value, each with the name of its member."""
    stack: list[tuple[str, Json, int]] = [("", value, 0)]
    while stack:
        name, value, depth = stack.pop()
        if isinstance(value, dict | list) and depth < MAX_DEPTH:
            inner = value.items() if isinstance(value, dict) else ((name, item) for item in value)
            stack.extend((key, item, depth + 1) for key, item in inner)
        else:
            yield name, value


def _occurs(wanted: str, words: str) -> bool:
    """Whether the value occurs, and not as part of a longer one."""
    start = words.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        digits = any(character.isdigit() for character in wanted)
        before, after = words[max(0, start - 2) : start][::-1], words[end : end + 2]
        if not (_goes_on(wanted[0], before, digits=digits) or _goes_on(wanted[-1], after, digits=digits)):
            return True
        # Continue after it: a value that overlaps itself would be searched once per character.
        start = words.find(wanted, end)
    return False


def _goes_on(edge: str, beside: str, *, digits: bool) -> bool:
    """Whether a value with that edge continues in the characters beside it, of which the nearest comes first."""
    if not beside or not _in_word(edge):
        return False
    if _in_word(beside[0]):
        return True
    joined = len(beside) > 1 and beside[0] in _JOINING and _in_word(beside[1])
    # A hyphen joins independent words (Lisbon-based), but also the parts of an id or a number.
    return joined and (beside[1].isdigit() if beside[0] in ".,'" else digits or beside[1].isdigit())


_JOINING = "-.,/'"
"""Characters that may join the parts of a value."""


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


_CHUNK = LazyPattern(r"[^\s\"()\[\]{}<>:;=|]+")
_DIGIT = LazyPattern(r"\d")
_NUMBER = LazyPattern(r"([-+]?)(?:[^\W\d_]{0,2}[$€£¥])?(\d[\d.,'_]*?)(?:[$€£¥%‰°]|[^\W\d_]{1,3})?")
_CODE = LazyPattern(r"0\d\d")
_DECIMAL = LazyPattern(r"\d{1,40}(?:[.,]\d{1,40})?")
_GROUPED = LazyPattern(r"\d{1,3}(?:([.,'_])\d{3})(?:\1\d{3}){0,10}(?:[.,]\d{1,40})?")


def _numbers_in(text: str) -> Iterator[Decimal]:
    """Every number in a normalized text, in each way it can be read, with repetitions; not those in ids and dates."""
    for found in filter(_DIGIT.compiled.search, _CHUNK.compiled.findall(text)):
        chunk = found.strip(".,!?*`'/#~+±≈≤≥").rstrip("-,.")
        if len(chunk) <= _LONGEST:
            yield from _readings(chunk) or _listed(chunk) or _counted(chunk)


def _listed(chunk: str) -> list[Decimal]:
    """The numbers of a list without spaces, of a range or of a fraction."""
    for mark in ",/-":
        parts = [_readings(part) for part in chunk.split(mark)]
        if all(parts) and (len(parts) == 2 or mark == ","):
            return [number for part in parts for number in part]
    return []


_SHORTEST_NOUN = 3
"""Minimum letters of a word that is joined to a number; a shorter one belongs to an id (17-A)."""


def _counted(chunk: str) -> set[Decimal]:
    """The number in `12-minute`, `5-year-old`, `19th-century`."""
    number, *words = chunk.split("-")
    return _readings(number) if all(len(word) >= _SHORTEST_NOUN and word.isalpha() for word in words) else set()


def _readings(chunk: str) -> set[Decimal]:
    """The numbers that a word can mean: 1,234 may be one thousand or one; empty for any other word.

    Also empty for 0171, as for every code or telephone number with a leading zero; but 05 is 5.
    """
    shape = _NUMBER.compiled.fullmatch(chunk)
    if not shape or _CODE.compiled.match(shape[2]):
        return set()
    sign, digits = "-" if shape[1] == "-" else "", shape[2]
    found = {digits.replace(",", ".")} if _DECIMAL.compiled.fullmatch(digits) else set()
    if grouped := _GROUPED.compiled.fullmatch(digits):
        found.add(digits.replace(grouped[1], "").replace(",", "."))
    return {Decimal(sign + text) for text in found}


def _decimal_of(number: float) -> Decimal:
    """The number as it is written in JSON."""
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


# Ids: which arguments and members are named as ids.

_NAME_PART = LazyPattern(r"[A-Z]?[a-z0-9]+|[A-Z]+")


def is_id(name: str) -> bool:
    """Whether an argument, or a member of a result, is called an id or a list of them."""
    return _name_words(name)[-1:] in (["id"], ["ids"])


def is_own(bound: Grounded, name: str, tool: str) -> bool:
    """Whether the tool's value of that name is one for the argument.

    For `room_id`, so is the `id` that `list_rooms` returns, or what it lists without a name. A mere `id` could belong
    to anything, unless a source is named.
    """
    if not is_id(bound.argument) or (name and not is_id(name)):
        return name == bound.argument
    wanted, given = _name_words(bound.argument)[:-1], _name_words(name)[:-1]
    if not wanted:
        return not given and tool in bound.sources
    said = _name_words(tool) if name else _name_words(tool)[-1:]  # list_room_tags lists no rooms
    word = wanted[-1]
    forms = {word, f"{word}s", f"{word}es", f"{word.removesuffix('y')}ies"}
    return wanted == given or (not given and not forms.isdisjoint(said))


def _name_words(name: str) -> list[str]:
    """The words of a name in lower case: order and id, for `orderId` and `order_id`."""
    return [word.lower() for word in _NAME_PART.compiled.findall(name)]


# Sources: the texts that the model was given by the user and by tools, and the values of a call that none contains.


class Given(Struct, frozen=True, kw_only=True):
    """A text that the model was given by a tool or, if `tool` is empty, by the user.

    `echo` are the values of the call that it answers. The model supplied them, so the answer is no evidence for them,
    however often it contains them.
    """

    tool: str
    text: str
    echo: tuple[Json, ...] = ()


_Shown = Indexed[Evidence | None]
_Read = Callable[[Message | Cleared], Evidence | None]

_NOTHING = evidence(())


def ungrounded_values(tool: ToolSpec, arguments: str, state: State) -> tuple[tuple[Grounded, Json], ...]:
    """The arguments of a call that must have been seen and were not, with their values."""
    values = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
    wanted = [(g, msgspec.json.decode(values[g.argument])) for g in tool.grounded if g.argument in values]
    return tuple((bound, value) for bound, value in wanted if unseen_values([*leaves(encoded(value))], bound, state))


def unseen_values(values: list[Json], bound: Grounded, state: State) -> list[Json]:
    """The values (scalars) that none of the argument's sources contains; all of them if there are too many."""
    if len(values) > _MOST_VALUES:
        return values
    read = cache(_evidence_of)
    return [value for value in values if not shows(_NOTHING, value) and not _is_given(value, bound, state, read)]


def _is_given(value: Json, bound: Grounded, state: State, read: _Read) -> bool:
    """Whether one of its sources shows the value, and a text of anybody gives it."""
    shown = given = False
    for one in _showing(value, state, read):
        shown = shown or is_source(one, bound)
        given = given or not _is_echo(value, one)
        if shown and given:
            return True
    return False


def _showing(value: Json, state: State, read: _Read) -> Iterator[Given]:
    """The texts that show the value: those before the first reply, then the latest first."""
    history, cut = state.history, state.cleared
    opening = next((place for place, m in enumerate(history) if isinstance(m, Assistant)), len(history))
    for place in _places(value, history, opening, state.memo.shown, read):
        *_, (message, call) = messages_with_calls(history[_reply_before(history, place) : place + 1])
        if given := _given(message, call, recalled=not cut):
            yield given
    yield from (_given_before(cut[place]) for place in _places(value, cut, 0, state.memo.cut_shown, read))


def _places(value: Json, texts: tuple[Message | Cleared, ...], first: int, index: _Shown, read: _Read) -> Iterator[int]:
    """The positions of the texts that show the value: up to `first`, then the latest first.

    What the memo does not have is read when its turn comes: a long history is rarely read whole.
    """
    text = normalized(value) if isinstance(value, str) else ""
    words, numbers = _unjoined(text), {_decimal_of(value)} if isinstance(value, int | float) else _readings(text)
    longest = "" if numbers else max(words.split(), key=len, default="")
    known = index.known(texts)
    for place in chain(range(first), reversed(range(first, len(texts)))):
        if place >= len(known) and longest and _lacks(texts[place].text, longest):
            continue
        said = known[place] if place < len(known) else read(texts[place])
        # No call of a function before `shows`: this runs for every message of a long history.
        if said and (numbers & said.numbers or (text and words in said.words)) and shows(said, value):
            yield place


def _lacks(text: str, word: str) -> bool:
    """Whether the text has no value with that word; much faster than to read it. Escapes in JSON may hide one."""
    return "\\" not in text and word not in _plainly_spelled(text).casefold()


def with_shown(state: State) -> State:
    """The state with a memo of what each message shows."""
    memo = state.memo
    shown = memo.shown.extended(state.history, lambda message, _: _evidence_of(message))
    cut = memo.cut_shown.extended(state.cleared, lambda entry, _: _evidence_of(entry))
    return replace(state, memo=replace(memo, shown=shown, cut_shown=cut))


def _evidence_of(text: Message | Cleared) -> Evidence | None:
    """What the text shows; None if it gives nothing, like forge's own."""
    match text:
        case User(kind=Kind.USER_INPUT | Kind.REMEMBERED):
            return evidence((text.text,))
        case Tool(kind=Kind.TOOL_RESULT, status=status) | Cleared(status=status) if status not in _FORGES_WORDS:
            return evidence((text.text,))
        case _:
            return None


def is_source(given: Given, bound: Grounded) -> bool:
    """Whether the argument's value may come from the text."""
    return not bound.sources or given.tool in bound.sources


def echoed(given: Given) -> Evidence:
    """The evidence in the answered call: each value, and all of them as one text."""
    together = " ".join(value if isinstance(value, str) else encoded(value) for value in given.echo)
    return evidence((*map(encoded, given.echo), f"· {together}"))


def values_given_by(given: Given) -> Iterator[tuple[str, Json]]:
    """The values in the text that its own call did not contain, each with the name of its member."""
    echo = echoed(given)
    return (
        (name, leaf)
        for name, leaf in named_values(given.text)
        if isinstance(leaf, bool | None) or not shows(echo, leaf)
    )


def _is_echo(value: Json, given: Given) -> bool:
    """Whether the answered call contained the value, in one piece or as words."""
    if not given.echo:
        return False
    echo = echoed(given)
    if shows(echo, value):
        return True
    # In any order: `Smith, John` has the words of `John Smith`.
    words = {*_WORD.compiled.findall(normalized(value))} if isinstance(value, str) else set()
    return bool(words) and words <= {*_WORD.compiled.findall(echo.words)}


def given_latest_first(state: State) -> Iterator[Given]:
    """All texts that the model was given, the latest first; each is read when it is needed."""
    end = len(state.history)
    while end:
        start = _reply_before(state.history, end - 1)
        pairs = [*messages_with_calls(state.history[start:end])]
        told = (_given(message, call, recalled=not state.cleared) for message, call in reversed(pairs))
        yield from filter(None, told)
        end = start
    yield from (_given_before(entry) for entry in reversed(state.cleared) if entry.status not in _FORGES_WORDS)


def _reply_before(history: History, place: int) -> int:
    """The place of the reply that a tool's answer belongs to; that of any other message is its own."""
    while place and isinstance(history[place], Tool):
        place -= 1
    return place


_FORGES_WORDS: frozenset[Status] = frozenset({"not_run", "in_doubt"})
"""Statuses of answers that forge wrote, not a tool."""

_MOST_VALUES = 1000
"""Maximum values of an argument that are looked for, since each is looked for in each result."""


def _given_before(cut: Cleared) -> Given:
    return Given(tool=cut.name, text=cut.text, echo=tuple(leaves(cut.arguments)))


def _given(message: Message, call: ToolCall | None, *, recalled: bool) -> Given | None:
    """The text that the message gives the model; None if it gives none.

    `recalled` includes what a recall has read again: only needed without the record, which has it with its original
    call.
    """
    match message:
        case User(kind=Kind.USER_INPUT | Kind.REMEMBERED, text=text):
            return Given(tool="", text=text)
        case Tool(kind=Kind.TOOL_RESULT, status=status, text=text) if status not in _FORGES_WORDS:
            name, arguments = (call.name, call.arguments) if call else (message.name, "{}")
            shown = recalled or name != RECALL.name
            return Given(tool=name, text=text, echo=tuple(leaves(arguments))) if shown else None
        case _:
            return None


def encoded(value: Json) -> str:
    """The value as JSON text."""
    return msgspec.json.encode(value).decode()
