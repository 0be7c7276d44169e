"""Named tools: those that the user or an error has spoken of in this run; and related ones."""

import re
from collections.abc import Collection, Iterable

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.gathered import Spoken, known_messages
from stages.grounding.sources import Given, texts_given, values_given_by, with_their_calls
from stages.message import Kind, Message, Tool, User
from stages.nudges.outcomes import status_of
from stages.state import State
from stages.tool import ToolSpec

_TELLING = 4
"""Letters of a word that says what a tool is about."""

_IN_A_FIELD = 5
"""Maximum words of a value that says what a record is; a longer one is text, by whomever."""

_WORDS = re.compile(r"[a-z0-9]+")
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


class _Parameters(Struct):
    properties: dict[str, Raw] = {}


def named_tools(names: Iterable[str], state: State) -> frozenset[str]:
    """Which of these tools were spoken of: by name in a tool's error, or by every word of it in the user's message.

    "Cancel the order if it is late" speaks of `cancel_order`; "report on order 7" does not. An error that says "call
    confirm_address first" speaks of `confirm_address`: whoever wrote the tool wrote it. A result does not: it may hold
    a stranger's mail that says what to call. Corrections of forge's own don't count: they list tools.
    """
    wanted = frozenset(names)
    if not wanted:
        return wanted
    known, before = _known(wanted, state)
    history = state.history[known:]
    errors = [m.text for m in history if isinstance(m, Tool) and _failed(m)]
    asked = [_WORDS.findall(m.text.lower()) for m in history if _asks(m)]
    left = wanted.difference(before.named)
    found = {name for name in left if _in_errors(name, errors) or any(_all_in(name, said) for said in asked)}
    return wanted & found.union(before.named)


def related_tools(tools: Iterable[ToolSpec], state: State) -> frozenset[str]:
    """The names of those that were spoken of, or with a word in common with what the user said or a tool answered.

    A tool's words are the parts of its name and of its arguments' names; those of less than four letters say too
    little. "Annul invoice 7" is related to `void_invoice`, "lend it to the member Ines" to a tool with a `member_id`.
    Of an answer the values count that its call did not have, and no names of members, which are often arguments'. A
    state such as "overdue" may call for a tool, but what stands in a mail or a note is nobody's order.
    """
    words = {tool.name: _words_of(tool) for tool in tools}
    known, before = _known(words.keys(), state)
    given = tuple(texts_given(state.history[with_their_calls(state.history, known) :], recalled=True))
    left = words.keys() - before.related
    related = {name for name in left if any(_speaks(one, words[name]) for one in given)}
    return named_tools(words, state) | related | (words.keys() & before.related)


def times_asked(state: State) -> int:
    """How often the user has said something."""
    known, before = _known((), state)
    return before.asked + sum(map(_asks, state.history[known:]))


def with_spoken(tools: Iterable[ToolSpec], state: State) -> State:
    """The state that remembers which of these tools were spoken of up to now, so that it is not looked up again."""
    specs = tuple(tools)
    named, related = named_tools((tool.name for tool in specs), state), related_tools(specs, state)
    spoken = Spoken(
        tools=tuple(tool.name for tool in specs),
        length=len(state.history),
        last=state.history[-1] if state.history else None,
        named=tuple(sorted(named)),
        related=tuple(sorted(related)),
        asked=times_asked(state),
    )
    return replace(state, gathered=replace(state.gathered, spoken=spoken))


def _known(names: Collection[str], state: State) -> tuple[int, Spoken]:
    """What is remembered of these tools, and of how many messages; of none where any of the tools is not known."""
    spoken = state.gathered.spoken
    known = known_messages(state.history, spoken.length, spoken.last) if {*spoken.tools}.issuperset(names) else 0
    return known, spoken if known else Spoken()


def _asks(message: Message) -> bool:
    return isinstance(message, User) and message.kind is Kind.USER_INPUT


def _speaks(given: Given, words: re.Pattern[str]) -> bool:
    # Most texts have none of the words, and that is found out many times faster.
    values = values_given_by(given) if words.search(given.text) else ()
    texts = (value for _, value in values if isinstance(value, str) and not (given.tool and _is_prose(value)))
    return any(words.search(text) is not None for text in texts)


def _is_prose(text: str) -> bool:
    return len(text.split(maxsplit=_IN_A_FIELD)) > _IN_A_FIELD


def _words_of(tool: ToolSpec) -> re.Pattern[str]:
    """A pattern of the words that begin with one of the tool's: `reservations` with its `reservation`."""
    names = (tool.name, *msgspec.json.decode(tool.parameters, type=_Parameters).properties)
    parts = {part.lower().removesuffix("s") for name in names for part in _PARTS.findall(name)}
    telling = sorted(part for part in parts if len(part) >= _TELLING)
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(telling) or '(?!)'})", re.IGNORECASE)


def _failed(answer: Tool) -> bool:
    """Whether a tool has failed with it. In what a client sends back, forge's mark says more than the client."""
    marked = status_of(answer.text)
    status = answer.status if marked == "succeeded" else marked
    return answer.kind is Kind.TOOL_RESULT and status in ("failed", "final", "unresolved")


def _in_errors(name: str, errors: Iterable[str]) -> bool:
    whole = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    # Most errors do not hold the name at all, and that is found out many times faster.
    return any(name in error and whole.search(error) for error in errors)


def _all_in(name: str, said: list[str]) -> bool:
    """Whether each part of the name begins a word: "cancelled orders" has `cancel` and `order`."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    return bool(parts) and all(any(word.startswith(part) for word in said) for part in parts)
