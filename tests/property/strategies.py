"""What a model says to the machine of these tests: calls that fit its tools, calls that don't, calls in text."""

from hypothesis import strategies as st

from forge import testing
from forge.testing import histories, malformed
from stages.effect import RawCall, Reply, Usage
from stages.state import Ready

__all__ = ["TOOLS", "arguments", "bad_calls", "good_calls", "histories", "replies", "states", "texts"]

TOOLS = ("look", "write", "finish")
texts, arguments = testing.texts(), testing.arguments()
states = testing.states(TOOLS, phases=[Ready])

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
replies = st.builds(
    Reply,
    text=said_calls | malformed(TOOLS) | texts,
    reasoning=st.just("") | texts,
    calls=st.just(()) | st.lists(good_calls | bad_calls, max_size=3).map(tuple),
    finish=st.sampled_from(["stop", "length", "tool_calls"]),
    usage=st.none() | st.builds(Usage, prompt=st.integers(0, 5000), completion=st.integers(0, 500)),
)
