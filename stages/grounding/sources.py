"""Sources: what the model was given, by its user and its tools, and which values of a call are not in it."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages.gathered import Shown, known_messages
from stages.grounding.identifiers import is_id, is_own, like_an_id, shown_ids
from stages.grounding.matching import (
    Evidence,
    evidence,
    has_numbers,
    leaves,
    marks_of,
    named_values,
    normalized,
    searchable,
)
from stages.message import Assistant, History, Kind, Message, Status, Tool, User, with_calls
from stages.schema.value import Json
from stages.state import State
from stages.tool import Grounded, ToolSpec
from stages.view.recall import RECALL


class Given(Struct, frozen=True, kw_only=True):
    """One text that the model was given: by a tool, or, with an empty name, by the user.

    `echo` are the values of the call that was answered. The model supplied them itself, so the answer is no evidence
    for them, wherever and however often they occur in it.
    """

    tool: str
    text: str
    echo: tuple[Json, ...] = ()


def ungrounded_values(tool: ToolSpec, arguments: str, state: State) -> tuple[tuple[Grounded, Json], ...]:
    """The arguments of a call that must have been seen and were not, with their values."""
    values = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
    wanted = [(g, msgspec.json.decode(values[g.argument])) for g in tool.grounded if g.argument in values]
    return tuple((bound, value) for bound, value in wanted if unseen_values([*leaves(_encoded(value))], bound, state))


def unseen_values(values: list[Json], bound: Grounded, state: State) -> list[Json]:
    """The values (scalars) that do not occur where the argument's values must come from, or cannot be its ids."""
    nowhere = values_nowhere(values, bound, state)
    if len(nowhere) == len(values):
        return nowhere
    unlike = _unlike_ids([leaf for leaf in values if leaf not in nowhere], bound, state)
    return [leaf for leaf in values if leaf in nowhere or leaf in unlike]


def _unlike_ids(values: list[Json], bound: Grounded, state: State) -> list[str]:
    """The texts that are unlike the ids that results gave the argument."""
    odd = [one for one in values if isinstance(one, str) and normalized(one) and not like_an_id(one)]
    if not odd or not is_id(bound.argument):
        return []
    given = (one for one in possible_sources(bound, everything_given(state)) if one.tool)
    known = ((name, leaf, one.tool) for one in given for name, leaf in ids_given_by(one))
    ids = shown_ids(leaf for name, leaf, tool in known if is_own(bound, name, tool))
    return [one for one in odd if ids and not ids.may_have(one)]


def values_nowhere(values: list[Json], bound: Grounded, state: State) -> list[Json]:
    """The values that do not occur where the argument's values must come from; of too many, all."""
    if len(values) > _MOST_VALUES:
        return values
    left = _read_through(values, state, lambda given: possible_sources(bound, given))
    if not left or not bound.sources:
        return left
    # A source may repeat a value of its own call if another text has given it.
    repeated = _read_through(
        left, state, lambda given: tuple(replace(g, echo=()) for g in possible_sources(bound, given))
    )
    made_up = _read_through([leaf for leaf in left if leaf not in repeated], state, lambda given: given)
    return [leaf for leaf in left if leaf in repeated or leaf in made_up]


def _read_through(
    values: list[Json], state: State, wanted: Callable[[tuple[Given, ...]], tuple[Given, ...]]
) -> list[Json]:
    """The values that none of the wanted texts contains.

    The opening is read first, then ever more messages from the end, so a long history is rarely read to its beginning.
    """
    history, recalled = state.history, not state.cleared
    opening = next((place for place, m in enumerate(history) if isinstance(m, Assistant)), len(history))
    left = _unseen(_unseen(values, ()), wanted(tuple(texts_given(history[:opening], recalled=recalled))))
    end, most = len(history), _LATEST
    while left and (places := [*islice(_places(state, left, opening, end), most)]):
        left = _unseen(left, wanted(tuple(texts_given(_with_calls(history, places), recalled=recalled))))
        end, most = places[-1], 4 * most
    return _unseen(left, wanted(_cleared(state, left))) if left else left


def _places(state: State, values: list[Json], start: int, end: int) -> Iterator[int]:
    """The messages between these that may show one of the values, the latest first."""
    marks, shown, history = marks_of(values), state.gathered.shown, state.history
    known, numbers = known_messages(history, shown.length, shown.last), has_numbers(marks)
    somewhere = marks.difference(shown.nowhere)
    for place in reversed(range(start if somewhere else max(start, known), end)):
        text = shown.texts[place] if place < known else _searchable(history[place], numbers=numbers)
        # No call of a function: this runs for every message of a long history.
        for mark in somewhere if place < known else marks:
            if mark in text:
                yield place
                break


def with_shown(state: State, values: Iterable[Json] = ()) -> State:
    """The state that remembers what each message shows, up to the last, and that it shows none of the values, if so."""
    before, history = state.gathered.shown, state.history
    known = known_messages(history, before.length, before.last)
    texts = before.texts[:known] + tuple(map(_searchable, history[known:]))
    whole, added = "\n".join(texts), "\n".join(texts[known:])
    looked_for = before.nowhere if known else ()
    nowhere = [mark for mark in sorted(marks_of(values)) if mark not in (added if mark in looked_for else whole)]
    last = history[-1] if history else None
    shown = Shown(length=len(history), last=last, texts=texts, nowhere=tuple(nowhere))
    return replace(state, gathered=replace(state.gathered, shown=shown))


def _searchable(message: Message, *, numbers: bool = True) -> str:
    given = isinstance(message, User | Tool) and message.kind in _GIVEN
    return searchable(message.text, numbers=numbers) if given else ""


def _with_calls(history: History, places: Iterable[int]) -> History:
    """These messages, answers with their calls."""
    shown = {near for place in places for near in range(with_their_calls(history, place), place + 1)}
    return tuple([history[place] for place in sorted(shown)])


def possible_sources(bound: Grounded, given: tuple[Given, ...]) -> tuple[Given, ...]:
    """The texts that the argument's value may come from."""
    return tuple(one for one in given if one.tool in bound.sources) if bound.sources else given


def _unseen(values: list[Json], given: tuple[Given, ...]) -> list[Json]:
    free = evidence(one.text for one in given if not one.echo)
    left = [leaf for leaf in values if not free.shows(leaf)]
    # Read once, not once per value: both may be of any length.
    answers = [one for one in given if one.echo and left]
    somewhere = evidence(one.text for one in answers)
    places = {number: marks_of((leaf,)) for number, leaf in enumerate(left) if somewhere.shows(leaf)}
    told = [(said := evidence((one.text,)), said.marked(), echoed(one)) for one in answers if places]
    return [
        leaf
        for number, leaf in enumerate(left)
        if not any(
            _beyond_echo(leaf, said, echo)
            for said, marked, echo in told
            if number in places and any(mark in marked for mark in places[number])
        )
    ]


def echoed(given: Given) -> Evidence:
    """The evidence in the answered call itself: each value, and all of them as words."""
    together = " ".join(value if isinstance(value, str) else _encoded(value) for value in given.echo)
    return evidence((*map(_encoded, given.echo), f"· {together}"))


def values_given_by(given: Given) -> Iterator[tuple[str, Json]]:
    """The values in it that its own call did not contain, each with the name of its member."""
    echo = echoed(given)
    return (
        (name, leaf) for name, leaf in named_values(given.text) if isinstance(leaf, bool | None) or not echo.shows(leaf)
    )


def ids_given_by(given: Given) -> Iterator[tuple[str, str | int]]:
    """Of these values those under the name of an id, and texts of a list without a name."""
    for name, leaf in values_given_by(given):
        bare = not name and isinstance(leaf, str) and leaf is not given.text
        if isinstance(leaf, str | int) and (bare or is_id(name)):
            yield name, leaf


def _beyond_echo(leaf: Json, said: Evidence, echo: Evidence) -> bool:
    """Whether an answer contains the value independently of its own call's arguments, joined or not."""
    return said.shows(leaf) and not echo.shows(leaf) and not (isinstance(leaf, str) and echo.has_the_words_of(leaf))


def everything_given(state: State) -> tuple[Given, ...]:
    """All texts that the model was given: those that compaction cut, and those in the history."""
    return (*_cleared(state), *texts_given(state.history, recalled=not state.cleared))


_FORGES_WORDS: frozenset[Status] = frozenset({"not_run", "in_doubt"})
"""Statuses of answers by forge itself: no tool has said anything."""

_MOST_VALUES = 1000
"""Values of an argument that are looked for, each in each result: nobody means to give more."""

_LATEST = 4
"""Messages at the end of the history that are read first."""

_GIVEN = frozenset({Kind.USER_INPUT, Kind.REMEMBERED, Kind.TOOL_RESULT})


def given_latest_first(state: State) -> Iterator[Given]:
    """All texts that the model was given, the latest first; read one after the other, as they are asked for."""
    history, end = state.history, len(state.history)
    while end:
        start = with_their_calls(history, end - 1)
        yield from reversed(tuple(texts_given(history[start:end], recalled=not state.cleared)))
        end = start
    yield from reversed(_cleared(state))


def with_their_calls(history: History, start: int) -> int:
    """Where to begin, there or before it, so that each answer is read with its call."""
    while 0 < start < len(history) and isinstance(history[start], Tool):
        start -= 1
    return start


def _cleared(state: State, values: Iterable[Json] = (None,)) -> tuple[Given, ...]:
    """What compaction has cut, as far as it may show one of the values."""
    marks = marks_of(values)
    numbers = has_numbers(marks)
    said = [entry for entry in state.cleared if entry.status not in _FORGES_WORDS]
    if "" not in marks:
        said = [one for one in said if any(map(searchable(one.text, numbers=numbers).__contains__, marks))]
    return tuple(Given(tool=one.name, text=one.text, echo=tuple(leaves(one.arguments))) for one in said)


def texts_given(history: History, *, recalled: bool) -> Iterator[Given]:
    """The given texts of these messages. `recalled`: those that were read again too, which no record has."""
    for message, call in with_calls(history):
        match message:
            case User(kind=Kind.USER_INPUT | Kind.REMEMBERED, text=text):
                yield Given(tool="", text=text)
            case Tool(kind=Kind.TOOL_RESULT, status=status, text=text):
                name, arguments = (call.name, call.arguments) if call else (message.name, "{}")
                # What the record has, it has with the call that was answered.
                if status not in _FORGES_WORDS and (recalled or name != RECALL.name):
                    yield Given(tool=name, text=text, echo=tuple(leaves(arguments)))
            case _:
                pass


def _encoded(value: Json) -> str:
    return msgspec.json.encode(value).decode()
