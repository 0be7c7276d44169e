"""Shown: what a model was shown by tools and by its user, and whether a call occurs in it."""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import compress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages import rescue
from stages.decoding import decode
from stages.message import Assistant, Kind, Message, Tool, User
from stages.reading.replies import Judged
from stages.rescue.names import Names, name_search
from stages.rescue.unescape import unescape_letters
from stages.schema import Check, Fits
from stages.schema.value import MAX_DEPTH, Json, any_json
from stages.state import State

PLACES_READ = 4_000
"""Places in the texts that are read for one call."""

_AROUND = 1_000
_ESCAPED = 8
"""Maximum characters of an occurrence of a call: so many for each of its own, escaped and in markup, plus these."""


class ShownCall(Struct, frozen=True, kw_only=True):
    """A call to search for; `same` tells whether arguments, as JSON text, equal its own."""

    name: str
    sought: "rescue.WantedCall"
    same: Callable[[str], bool]


def shown_call(judged: Judged, check: Check, names: Names) -> ShownCall | None:
    """What to search for; None for a call whose arguments are not a JSON object, because it never runs."""
    takes = names.parameters(judged.name)
    wanted = _canonical(judged.arguments)
    if wanted is None:
        return None

    def same(arguments: str) -> bool:
        # A model that copies a call with an argument that its tool does not take is told to leave that out.
        if wanted in (_canonical(arguments), _canonical(arguments, takes)):
            return True
        fits = check(arguments)
        return isinstance(fits, Fits) and _canonical(fits.arguments) == wanted

    sought = rescue.WantedCall(
        name=judged.name,
        written=judged.written,
        arguments=judged.arguments,
        reach=_AROUND + _ESCAPED * max(len(judged.written), len(judged.arguments)),
        names=names,
    )
    return ShownCall(name=judged.name, sought=sought, same=same)


def occurs(call: ShownCall, texts: Iterable[str], *, loose: bool) -> bool:
    """Whether the call occurs in one of the texts; also true if they are too long to tell.

    `loose`: an uncertain occurrence (`Occurrence.loose`) counts as a call.
    """
    read = 0
    for text in texts:
        for found in rescue.search(text, call.sought):
            read += 1
            if read > PLACES_READ:
                return True
            if found and (loose or not found.loose) and (found.arguments is None or call.same(found.arguments)):
                return True
    return False


def tool_answers(state: State, call: ShownCall) -> Iterator[str]:
    """The results and summaries that name a tool, without results of this same call."""
    own: set[str] | None = None
    history = state.history
    for message in compress(history, state.memo.naming.values):
        match message:
            case Tool(name=call.name, call_id=call_id) as answer:
                own = _ids_of(call, history) if own is None else own
                if call_id not in own:
                    yield answer.text
            case Tool(text=text) | User(kind=Kind.SUMMARY, text=text):
                yield text
            case _:
                pass
    for cut in compress(state.cleared, state.memo.cut_naming.values):
        if cut.name != call.name or not call.same(cut.arguments):
            yield cut.text


def _ids_of(call: ShownCall, history: tuple[Message, ...]) -> set[str]:
    said = (m for m in history if isinstance(m, Assistant))
    return {made.id for m in said for made in m.calls if made.name == call.name and call.same(made.arguments)}


def user_texts(state: State) -> Iterator[str]:
    """The messages of the user that name a tool."""
    for message in compress(state.history, state.memo.naming.values):
        if isinstance(message, User) and message.kind is Kind.USER_INPUT:
            yield message.text


def with_naming(state: State, names: Names) -> State:
    """The state with a memo of which messages name a tool, including the latest one."""
    search = name_search(names.known)
    key = "\n".join(search.letters + search.signs)
    memo = state.memo
    naming = memo.naming.extended(state.history, lambda message, _: search.finds(_shown(message)), key)
    cut = memo.cut_naming.extended(state.cleared, lambda entry, _: search.finds(entry.text), key)
    return replace(state, memo=replace(memo, naming=naming, cut_naming=cut))


def _shown(message: Message) -> str:
    """What the message brings in from outside."""
    match message:
        case (
            Tool(kind=Kind.TOOL_RESULT, text=text)
            | User(kind=Kind.USER_INPUT | Kind.SUMMARY | Kind.REMEMBERED, text=text)
        ):
            return text
        case _:
            return ""


def _canonical(arguments: str, takes: Collection[str] | None = None) -> bytes | None:
    """The arguments in a form in which equal ones are equal bytes, in any grammar; None if not a JSON object.

    Grammars differ in the types that they can express, so scalars are compared as text, and null counts as absent.
    `takes`: only these arguments.
    """
    try:
        value = decode(any_json, arguments)
        if not isinstance(value, dict):
            return None
        taken = value if takes is None else {name: one for name, one in value.items() if name in takes}
        return _sorted.encode(_plain(taken, 0))
    except (msgspec.DecodeError, RecursionError):
        return None


_sorted = msgspec.json.Encoder(order="sorted")


def _plain(value: Json, depth: int) -> Json:
    if depth > MAX_DEPTH:
        raise RecursionError
    match value:
        case dict():
            return {key: _plain(inner, depth + 1) for key, inner in value.items() if inner is not None}
        case [only] if not isinstance(only, dict | list):
            return _plain(only, depth)
        case list():
            return [_plain(item, depth + 1) for item in value]
        case str():
            return " ".join(unescape_letters(value).split())
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return msgspec.json.encode(value).decode()
