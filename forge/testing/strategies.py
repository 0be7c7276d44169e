"""Hypothesis strategies for histories, replies and states."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import AnyStr, get_args

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from hypothesis.vendor.pretty import RepresentationPrinter, for_type_by_name
from msgspec import Raw
from msgspec.structs import replace

from stages.compaction import ContextBudget, Meter, estimate
from stages.effect import (
    Budget,
    CallResult,
    Execute,
    Failed,
    HandOff,
    InDoubt,
    NeedsInput,
    NotRun,
    Paused,
    RawCall,
    Reply,
    Said,
    Send,
    Succeeded,
    Unresolved,
    Usage,
)
from stages.execution import question
from stages.message import (
    NUDGES,
    WARNINGS,
    Assistant,
    History,
    Kind,
    Message,
    Status,
    System,
    Tool,
    ToolCall,
    User,
    turn_of,
)
from stages.rules import Rules
from stages.serialize import serialize
from stages.state import (
    MAIN,
    Answered,
    Asked,
    Awaiting,
    Batch,
    Completed,
    Done,
    Edited,
    Ending,
    Executed,
    Folded,
    Ledger,
    Phase,
    Prepared,
    Ready,
    State,
    Success,
    Vetted,
)
from stages.wire.target import Target

# Strategies for texts, tool calls, messages, valid histories, and budgets that fit them tightly.

TOOL_NAMES = ("look", "write", "finish")
"""The default tools."""

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


_ARGUMENTS = arguments()


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


def messages(tools: Sequence[str] = TOOL_NAMES) -> SearchStrategy[Message]:
    """Single messages of every role and kind."""
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
    """A whole conversation as forge records it, valid for every server.

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
    """A budget for that history: from almost nothing to more than enough, mostly a little too small."""
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
    sizes = options.sizes(history) if known else None
    return replace(options, tokens=max(1, whole * share // 100 + more), meter=replace(meter, sizes=sizes))


_SHARES = (100, 130, 105, 110, 120, 125, 200, 97, 95, 90, 85, 80, 70, 60, 50, 40, 20, 0)
"""Percentages of the history's size; from 100 to 133 it fits but is over the usual threshold."""


# Strategies for replies: calls in the grammars of many families, damage to them, chunks.

GRAMMARS: Mapping[str, tuple[str, str]] = {
    "bare": ('{"name": "NAME", "arguments": JSON}', ""),
    "fenced": ('```json\n{"name": "NAME", "arguments": JSON}\n```', ""),
    "tagged": ('<tool_call>\n{"name": "NAME", "arguments": JSON}\n</tool_call>', ""),
    "args": ("[TOOL_CALLS]NAME[ARGS]JSON", ""),
    "functionary": (">>>NAME\nJSON", ""),
    "function": (
        "<tool_call>\n<function=NAME>\nEACH</function>\n</tool_call>",
        "<parameter=KEY>\nVALUE\n</parameter>\n",
    ),
    "invoke": (
        '<function_calls>\n<invoke name="NAME">\nEACH</invoke>\n</function_calls>',
        '<parameter name="KEY">VALUE</parameter>\n',
    ),
    "arg_key": (
        "<tool_call>NAME\nEACH</tool_call>",
        "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n",
    ),
    "own_tag": ("<NAME>\nEACH</NAME>", "<KEY>VALUE</KEY>\n"),
    "harmony": ("<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>JSON<|call|>", ""),
    "pythonic": ("[NAME(EACH)]", 'KEY="VALUE",'),
    "react": ("Thought: I need it.\nAction: NAME\nAction Input: JSON", ""),
}
"""How families write a call, and each argument unless they write one JSON object."""


def call_text(family: str, name: str, values: Mapping[str, object]) -> str:
    """The call as that family of `GRAMMARS` writes it, undamaged."""
    whole, each = GRAMMARS[family]
    parts = (each.replace("KEY", key).replace("VALUE", str(value)) for key, value in values.items())
    given = msgspec.json.encode(values).decode()
    return whole.replace("NAME", name).replace("EACH", "".join(parts)).replace("JSON", given)


_DAMAGE: Mapping[str, Callable[[str], str]] = {
    "none": lambda text: text,
    "trailing comma": lambda text: text.replace("}", ",}", 1),
    "single quotes": lambda text: text.replace('"', "'"),
    "curly quotes": lambda text: text.replace('"', "“", 1).replace('"', "”", 1),
    "quotes in HTML": lambda text: text.replace('"', "&quot;"),
    "keys without quotes": lambda text: text.replace('"name"', "name").replace('"arguments"', "arguments"),
    "another word": lambda text: text.replace('"arguments"', '"parameters"').replace("parameter", "param"),
    "one quote too many": lambda text: text.replace('"', '""', 1),
    "a raw newline": lambda text: text.replace(" ", "\n", 1),
    "a colon missing": lambda text: text.replace(":", "", 1),
    "braces doubled": lambda text: text.replace("{", "{{").replace("}", "}}"),
    "no closing tag": lambda text: text[: text.rfind("</")] if "</" in text else text[:-1],
    "no opening tag": lambda text: text[text.find(">") + 1 :],
    "another name": lambda text: text.replace("o", "0").replace("i", "I"),
    "thought, not done": lambda text: f"<think>I will say {text}",
    "told": lambda text: f"For example, you could write {text} to do it.",
    "in a sentence": lambda text: f"Of course! {text}\n\nLet me know if there is more.",
    "twice": lambda text: f"{text}\n{text}",
}
"""Kinds of damage to a call, by name; in addition, characters are dropped and ends cut off."""

_VALUES = st.dictionaries(
    st.sampled_from(("what", "text", "n")),
    st.sampled_from(("a", "two words", "it's", 'a "b" c', "{", "</x>", "größer 🙂", 7, -0.5)),
    max_size=3,
)


@st.composite
def malformed(draw: st.DrawFn, tools: Sequence[str] = TOOL_NAMES) -> str:
    """A text with a call in it, usually damaged, in the grammar of some family."""
    text = call_text(draw(st.sampled_from([*GRAMMARS])), draw(st.sampled_from(tools)), draw(_VALUES))
    for damage in draw(st.lists(st.sampled_from([*_DAMAGE]), max_size=2)):
        text = _DAMAGE[damage](text)
    if draw(st.booleans()):
        lost = draw(st.integers(0, len(text)))
        text = text[:lost] + text[lost + 1 :]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


def replies(tools: Sequence[str] = TOOL_NAMES) -> SearchStrategy[Reply]:
    """Replies: text, calls in text, native calls, damaged or not, or nothing."""
    broken = st.sampled_from(("", "{", "[]", '{"what": 3,}', "null", '"a"'))
    names = st.sampled_from((*tools, *tools, *tools, "unheard of", ""))
    made = st.builds(RawCall, id=st.sampled_from(("", "1")), name=names, arguments=arguments() | broken)
    return st.builds(
        Reply,
        text=st.just("") | malformed(tools) | texts(),
        reasoning=st.just("") | texts(),
        calls=st.just(()) | st.lists(made, max_size=3).map(tuple),
        finish=st.sampled_from(("stop", "length", "tool_calls")),
        usage=st.none() | st.builds(Usage, prompt=st.integers(0, 5000), completion=st.integers(0, 500)),
    )


def chunkings(whole: AnyStr) -> SearchStrategy[tuple[AnyStr, ...]]:
    """Every way to split a text or bytes into chunks, including one piece, single characters and empty chunks."""
    places = st.integers(0, len(whole))
    return st.lists(places).map(lambda at: _cut(whole, at)) | st.just(_cut(whole, range(1, len(whole))))


def _cut(whole: AnyStr, at: Iterable[int]) -> tuple[AnyStr, ...]:
    return tuple(whole[start:end] for start, end in pairwise((0, *sorted(at), len(whole))))


# Strategies for states in the middle of a run, in each phase of a turn.


def _whole(state: State, printer: RepresentationPrinter, _: bool) -> None:
    """A State as Python that can be pasted into a test; its own repr is too short for that."""
    with printer.group(6, "State(", ")"):
        for name in state.__struct_fields__:
            printer.text(f"{name}=")
            printer.pretty(getattr(state, name))
            printer.text(",")
            printer.breakable()


for_type_by_name(State.__module__, State.__name__, _whole)

PHASES: tuple[type[Phase], ...] = get_args(Phase)


@st.composite
def states(
    draw: st.DrawFn,
    tools: Sequence[str] = TOOL_NAMES,
    *,
    phases: Sequence[type[Phase]] = PHASES,
    max_turns: int = 4,
    arguments: SearchStrategy[str] | None = None,
) -> State:
    """A state in one of these phases: a valid history, and a ledger that agrees with it.

    `arguments` are the arguments of every call in it, JSON texts of objects.
    """
    given = _ARGUMENTS if arguments is None else arguments
    history = draw(histories(tools, max_turns=max_turns, arguments=given))
    ledger, phase = draw(ledgers(history, tools, arguments=given)), draw(st.sampled_from(phases))
    return State(history=history, ledger=ledger, phase=draw(_phase(phase, history, ledger, tools, given)))


def ledgers(
    history: History = (), tools: Sequence[str] = TOOL_NAMES, *, arguments: SearchStrategy[str] | None = None
) -> SearchStrategy[Ledger]:
    """A ledger for that history: turns and ids agree with it, counts are arbitrary."""
    few, given = st.integers(0, 4), _ARGUMENTS if arguments is None else arguments
    called = [int(call.id[-9:]) for m in history if isinstance(m, Assistant) for call in m.calls]
    return st.builds(
        Ledger,
        budget=st.builds(Budget, calls=st.integers(0, 5)),
        turn=st.just(max(map(turn_of, history), default=0)),
        ids=st.just(max(called, default=0)),
        successes=st.lists(st.builds(Success, name=st.sampled_from(tools), arguments=given), max_size=3).map(tuple),
        retries=few,
        tool_errors=few,
        premature=few,
        prerequisite_violations=few,
    )


def results(call: ToolCall) -> SearchStrategy[CallResult]:
    """Every kind of result of a call."""
    return st.sampled_from(
        (
            Succeeded(call_id=call.id, text="fine", value=Raw(b'"fine"')),
            Succeeded(call_id=call.id, text="?", ends=NeedsInput(question="Which one?")),
            Failed(call_id=call.id, error="ValueError", message="broken"),
            Failed(call_id=call.id, error="ToolFailed", message="no use", counted=False),
            Unresolved(call_id=call.id, message="not there"),
            NotRun(call_id=call.id, reason="cancelled"),
            InDoubt(call_id=call.id, reason="crashed"),
            Paused(call_id=call.id, asks=NeedsInput(question="Which one?"), saved="{}"),
        )
    )


def _phase(
    phase: type[Phase], history: History, ledger: Ledger, tools: Sequence[str], arguments: SearchStrategy[str]
) -> SearchStrategy[Phase]:
    calls = batches(tools, first_id=ledger.ids + 1, least=1, arguments=arguments)
    said = st.builds(Assistant, text=texts(), reasoning=texts(), calls=calls, turn=st.just(ledger.turn))
    folded = Folded(view=history)
    prepared = _prepared(folded)
    made: dict[type[Phase], SearchStrategy[Phase]] = {
        Ready: st.just(Ready()),
        Folded: st.just(folded),
        Prepared: st.just(prepared),
        Awaiting: _sent(prepared, ledger.turn) | said.flatmap(_underway),
        Answered: st.builds(Answered, reply=replies(tools), asked=_ASKED),
        Vetted: st.builds(Vetted, said=said, allowed=st.booleans(), asked=_ASKED),
        Edited: said.flatmap(lambda reply: _edited(reply, arguments)),
        Executed: said.flatmap(lambda reply: _executed(reply, tools, arguments)),
        Done: st.sampled_from(_ENDINGS).map(lambda ending: Done(outcome=ending)),
    }
    return made[phase]


_ASKED = st.builds(
    Asked, target=st.sampled_from((MAIN, "larger")), mode=st.sampled_from(("native", "prompted", "constrained"))
)

_ENDINGS: tuple[Ending, ...] = (
    Completed(tool="finish", value=Raw(b"null")),
    Said(text="Done."),
    NeedsInput(question="Which?"),
    HandOff(to="me"),
)


def _prepared(folded: Folded) -> Prepared:
    """The request for that view, as forge writes it without tools."""
    write = serialize(Rules(tools=()), Target(model="model"))
    phase = write(State(history=folded.view, phase=folded)).unwrap().phase
    if not isinstance(phase, Prepared):
        raise TypeError(f"serialize leaves {type(phase).__name__}")
    return phase


def _sent(prepared: Prepared, turn: int) -> SearchStrategy[Phase]:
    return st.just(Awaiting(effect=Send(request=prepared.request, turn=turn), asked=prepared.asked))


def _underway(said: Assistant) -> SearchStrategy[Awaiting]:
    effects = (Execute(calls=said.calls), question(said.calls[0]))
    return st.builds(Awaiting, effect=st.sampled_from(effects), batch=st.just(Batch(said=said)))


def _edited(said: Assistant, arguments: SearchStrategy[str]) -> SearchStrategy[Edited]:
    """The first call, approved with other arguments, which may or may not match its tool."""
    ask = question(said.calls[0])
    written = arguments | texts()
    return written.map(lambda text: Edited(batch=Batch(said=said), ask=ask, arguments=text))


def _executed(said: Assistant, tools: Sequence[str], arguments: SearchStrategy[str]) -> SearchStrategy[Executed]:
    """The results of the first calls, or of all; sometimes with an earlier call that a person has settled."""
    back = st.integers(1, len(said.calls)).flatmap(lambda number: st.tuples(*map(results, said.calls[:number])))
    heard = st.sampled_from([(), ("Stop after this.",)])
    batch = st.builds(lambda came, words: Batch(said=said, results=came, heard=words), back, heard)
    earlier = st.builds(ToolCall, id=st.just("call_000000000"), name=st.sampled_from(tools), arguments=arguments)
    found = st.just(Succeeded(call_id="call_000000000", text="It was sent.", value=Raw(b'"It was sent."')))
    return st.builds(Executed, batch=batch, settled=st.none() | st.tuples(earlier, found))
