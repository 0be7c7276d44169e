"""Strategies for texts, tool calls, messages, valid histories, and budgets that fit them tightly."""

from collections.abc import Sequence
from typing import get_args

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace

from stages.compaction import ContextBudget, Meter, estimate
from stages.message import NUDGES, WARNINGS, Assistant, History, Kind, Message, Status, System, Tool, ToolCall, User

TOOL_NAMES = ("look", "write", "finish")
"""The tools that are called where you name none."""

_POOL = st.sampled_from(("", "7", "Fine.", "größer, 漢字 🙂", "two\nlines", '{"a": [1]}', "\\\"'`</think>"))
_SMALL = _POOL | st.text(max_size=20)
_BIG = st.sampled_from(("x" * 300, "long text " * 200, "数" * 250, '{"row": 1, "of": "many"},\n' * 40))
_SAID_BY_FORGE = (*sorted(NUDGES), *sorted(WARNINGS), Kind.SUMMARY, Kind.REMEMBERED)
_PINS = st.sampled_from((st.just(value=False), st.booleans(), st.booleans()))
"""Whether messages are pinned: never in one history, often in the next two."""


def texts() -> SearchStrategy[str]:
    """Texts, small (often empty, or in other scripts) and big (300 characters and more)."""
    return _SMALL | _BIG


def arguments() -> SearchStrategy[str]:
    """Arguments of a call: the JSON text of an object."""
    objects = st.dictionaries(st.text(max_size=5), st.integers() | _SMALL, max_size=3)
    usual = st.sampled_from(("{}", '{"what":"a"}', '{"text":"long text","what":3}'))
    return usual | objects.map(lambda value: msgspec.json.encode(value).decode())


@st.composite
def batches(
    draw: st.DrawFn,
    tools: Sequence[str] = TOOL_NAMES,
    *,
    first_id: int = 1,
    least: int = 0,
    arguments: SearchStrategy[str] | None = None,
) -> tuple[ToolCall, ...]:
    """The calls of one reply, four at most, with ids counted up from `first_id`."""
    names = draw(st.lists(st.sampled_from(tools), min_size=least, max_size=4))
    values = _ARGUMENTS if arguments is None else arguments
    numbered = enumerate(names, start=first_id)
    return tuple(ToolCall(id=f"call_{number:09d}", name=name, arguments=draw(values)) for number, name in numbered)


_ARGUMENTS = arguments()


def messages(tools: Sequence[str] = TOOL_NAMES) -> SearchStrategy[Message]:
    """One message by itself: of each role and each kind."""
    turns, pinned = st.integers(0, 20), st.booleans()
    said = st.sampled_from((Kind.USER_INPUT, *_SAID_BY_FORGE))
    answers = st.sampled_from((Kind.TOOL_RESULT, *sorted(NUDGES)))
    ids, names = st.integers(1, 99).map("call_{:09d}".format), st.sampled_from(tools)
    return st.one_of(
        st.builds(System, text=texts()),
        st.builds(User, text=texts(), kind=said, turn=turns, pinned=pinned),
        st.builds(Assistant, text=texts(), reasoning=texts(), calls=batches(tools), turn=turns, pinned=pinned),
        st.builds(Tool, call_id=ids, name=names, text=texts(), kind=answers, turn=turns, pinned=pinned),
    )


@st.composite
def histories(
    draw: st.DrawFn,
    tools: Sequence[str] = TOOL_NAMES,
    *,
    max_turns: int = 8,
    arguments: SearchStrategy[str] | None = None,
) -> History:
    """A whole conversation as forge writes it down, valid for every server.

    Batches of one to four calls with an answer each, batches refused with every kind of nudge, bare texts with
    a correction and with an answer of the user, reasoning, several turns of the user, warnings, summaries, pins.
    """
    system = (System(text=draw(_SMALL)),) if draw(st.integers(0, 4)) else ()
    pins = draw(_PINS)
    history: History = (*system, User(text=draw(_SMALL), pinned=draw(pins)))
    for turn in range(1, 1 + draw(st.integers(0, max_turns))):
        history += draw(_exchanges(turn, tools, pins, arguments))
        match draw(st.integers(0, 7)):
            case 0 | 1:
                history += (User(text=draw(_SMALL), turn=turn),)
            case 2:
                kind = draw(st.sampled_from((*sorted(WARNINGS), Kind.SUMMARY, Kind.SUMMARY, Kind.REMEMBERED)))
                history += (User(text=draw(_SMALL), kind=kind, turn=turn, pinned=draw(pins)),)
    return history


_ANSWERS = (Kind.TOOL_RESULT,) * 4 + tuple(sorted(NUDGES))
_EXCHANGES = (*_ANSWERS, "corrected", "answered", "answered", "empty")


@st.composite
def _exchanges(
    draw: st.DrawFn, turn: int, tools: Sequence[str], pins: SearchStrategy[bool], arguments: SearchStrategy[str] | None
) -> History:
    """One turn: a batch with its answers, a bare text with its correction or an answer, an empty reply corrected."""
    what, pinned = draw(st.sampled_from(_EXCHANGES)), draw(pins)
    if what == "empty":
        return (User(text=draw(_SMALL), kind=Kind.RETRY_NUDGE, turn=turn),)
    said = Assistant(text=draw(texts()), reasoning=draw(texts()), turn=turn, pinned=pinned)
    if not isinstance(what, Kind):
        kind = Kind.RETRY_NUDGE if what == "corrected" else Kind.USER_INPUT
        return (replace(said, text=said.text + "!"), User(text=draw(_SMALL), kind=kind, turn=turn))
    calls = draw(batches(tools, first_id=10 * turn, least=1, arguments=arguments))
    status = _STATUS if what is Kind.TOOL_RESULT else st.just(_STATUSES[0])
    answers = (
        Tool(call_id=call.id, name=call.name, text=draw(texts()), kind=what, status=draw(status), turn=turn)
        for call in calls
    )
    return (replace(said, calls=calls), *answers)


_STATUSES: tuple[Status, ...] = get_args(Status)
_STATUS = st.sampled_from(_STATUSES)


@st.composite
def budgets(draw: st.DrawFn, history: History) -> ContextBudget:
    """A budget for that history: from next to nothing to more than enough, most of them somewhat too small."""
    meter = Meter(overhead=draw(st.sampled_from((0, 0, 400))), tokens_per_character=draw(st.sampled_from((0.25, 0.4))))
    options = ContextBudget(
        tokens=1,
        threshold=draw(st.sampled_from((0.75, 0.5, 1.0))),
        low=draw(st.sampled_from((0.5, 0.75, 0.1))),
        reasoning=draw(st.booleans()),
        recall=draw(st.booleans()),
        meter=meter,
    )
    whole, known = estimate(history, options), draw(st.booleans())
    share, more = draw(st.sampled_from(_SHARES)), draw(st.integers(-1, 1))
    sizes = options.measured(history).sizes if known else None
    return replace(options, tokens=max(1, whole * share // 100 + more), meter=replace(meter, sizes=sizes))


_SHARES = (100, 130, 105, 110, 120, 125, 200, 97, 95, 90, 85, 80, 70, 60, 50, 40, 20, 0)
"""Of what a history takes, in hundredths; from 100 to 133 it fits and is over the usual threshold."""
