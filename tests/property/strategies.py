"""Hypothesis strategies: valid histories, states in every phase, outcomes, scripts of a model."""

import msgspec
from hypothesis import strategies as st

from stages.effect import RawCall, Reply, Usage
from stages.message import Assistant, History, Kind, System, Tool, ToolCall, User
from stages.state import Budget, Ledger, State, Success

TOOLS = ("look", "write", "finish")

texts = st.text(max_size=40)
arguments = st.dictionaries(st.text(max_size=5), st.integers() | texts, max_size=3).map(
    lambda value: msgspec.json.encode(value).decode()
)


@st.composite
def exchanges(draw: st.DrawFn, turn: int, first_id: int) -> History:
    """One turn's messages: a batch with its answers, a batch refused, a bare text corrected, an answer."""
    count = draw(st.integers(1, 3))
    calls = tuple(
        ToolCall(id=f"call_{first_id + n:09d}", name=draw(st.sampled_from(TOOLS)), arguments=draw(arguments))
        for n in range(count)
    )
    reasoning, long = draw(texts), draw(st.sampled_from(["", "x" * 300, "long text " * 200]))
    kind = draw(st.sampled_from([Kind.TOOL_RESULT, Kind.STEP_NUDGE, Kind.RETRY_NUDGE, None]))
    if kind is None:
        nudge = User(text=draw(texts), kind=Kind.RETRY_NUDGE, turn=turn)
        return (Assistant(text=draw(texts) + "!", reasoning=reasoning, turn=turn), nudge)
    answers = (Tool(call_id=c.id, name=c.name, text=draw(texts) + long, kind=kind, turn=turn) for c in calls)
    pinned = draw(st.integers(0, 9)) == 0
    said = Assistant(text=draw(texts), reasoning=reasoning, calls=calls, turn=turn, pinned=pinned)
    return (said, *answers)


@st.composite
def histories(draw: st.DrawFn, max_turns: int = 12) -> History:
    """A whole conversation: system prompt, what the user asked (more than once), turns."""
    history: History = (System(text=draw(texts)), User(text=draw(texts)))
    for turn in range(1, draw(st.integers(1, max_turns + 1))):
        history += draw(exchanges(turn, first_id=10 * turn))
        if draw(st.integers(0, 5)) == 0:
            history += (User(text=draw(texts), turn=turn),)
    return history


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    """A ledger in the middle of a run."""
    successes = draw(st.lists(st.builds(Success, name=st.sampled_from(TOOLS), arguments=arguments), max_size=3))
    return Ledger(
        budget=Budget(calls=draw(st.integers(0, 5))),
        turn=draw(st.integers(0, 20)),
        successes=tuple(successes),
        retries=draw(st.integers(0, 4)),
        tool_errors=draw(st.integers(0, 3)),
        premature=draw(st.integers(0, 4)),
        prerequisite_violations=draw(st.integers(0, 3)),
    )


good_calls = st.sampled_from(
    [
        RawCall(name="look", arguments='{"what": "a"}'),
        RawCall(name="look", arguments='{"what": "b"}'),
        RawCall(name="write", arguments='{"text": "t"}'),
        RawCall(name="finish", arguments="{}"),
    ]
)
bad_calls = st.sampled_from(
    [
        RawCall(name="look", arguments="{"),
        RawCall(name="look", arguments='{"what": 3, "more": 1}'),
        RawCall(name="unheard of", arguments="{}"),
        RawCall(name="functions", arguments="[]"),
        RawCall(),
    ]
)
said_calls = st.sampled_from(
    [
        "",
        "Let me think about it.",
        '{"tool": "look", "args": {"what": "a"}}',
        '```json\n{"name": "write", "arguments": {"text": "t"}}\n```',
        '<tool_call>\n{"name": "finish", "arguments": {}}\n</tool_call>',
        '{"tool": "look", "args": {"wha',
        "<think>finish now</think>\n<tool_call>",
    ]
)
usages = st.none() | st.builds(Usage, prompt=st.integers(0, 5000), completion=st.integers(0, 500))
replies = st.builds(
    Reply,
    text=said_calls | texts,
    reasoning=st.just("") | texts,
    calls=st.just(()) | st.lists(good_calls | bad_calls, max_size=3).map(tuple),
    finish=st.sampled_from(["stop", "length", "tool_calls"]),
    usage=usages,
)

states = st.builds(State, history=histories(max_turns=4), ledger=ledgers())
