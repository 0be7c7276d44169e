"""What is shown of a streamed text, for any text cut anywhere: its beginning, and nothing of a call that is read."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.proxy.admission import Admission
from forge.proxy.upstream import Heard
from stages import rescue
from stages.rescue.holding import WINDOW, Holding
from stages.rescue.markers import openers
from stages.rescue.names import name_search
from stages.wire.deltas import CallDelta, CallStarted, Ended, ReasoningDelta, TextDelta

NAMES = ("look", "send_mail")
HOLDING = Holding(openers(rescue.FAMILIES).anywhere, name_search(NAMES))
ARGUMENTS = '{"at": 4}'
CALLS = (
    f'<tool_call>{{"name": "look", "arguments": {ARGUMENTS}}}</tool_call>',
    f'```json\n{{"name": "look", "arguments": {ARGUMENTS}}}\n```',
    '```json\n{"tool": "look"}\n```',
    f'{{"name": "look", "arguments": {ARGUMENTS}}}',
    f"<function=look>{ARGUMENTS}</function>",
    "<function=look>\n</function>",
    "[look(at=4)]",
    f"Action: look\nAction Input: {ARGUMENTS}",
    f'[TOOL_CALLS][{{"name": "look", "arguments": {ARGUMENTS}}}]',
    f'{{"name": "lo\\u00adok", "arguments": {ARGUMENTS}}}',
)
PROSE = st.text(alphabet="ab \n.,<{[(`>=]A", max_size=60)


def shown(text: str, cuts: list[int]) -> str:
    """What is shown before the end, of the text in pieces of these lengths."""
    holding, out, held, position = HOLDING, "", "", 0
    for cut in [*cuts, len(text)]:
        piece = text[position : position + cut]
        position += cut
        holding, free = holding.advance(piece)
        held += piece
        out, held = out + held[:free], held[free:]
        assert holding.text == held
    return out


@given(st.text(max_size=300), st.lists(st.integers(1, 9), max_size=40))
def test_what_is_shown_is_the_beginning_of_the_text(text: str, cuts: list[int]) -> None:
    assert text.startswith(shown(text, cuts))


@given(PROSE, st.sampled_from(CALLS), st.sampled_from(["", "\nDone. " * 100]), st.lists(st.integers(1, 7), max_size=60))
def test_nothing_of_a_call_is_shown(before: str, call: str, after: str, cuts: list[int]) -> None:
    prose = before.replace("look", "") + "\n"
    assert len(shown(prose + call + after, cuts)) <= len(prose)


@given(st.lists(st.sampled_from(["one ", "two. ", "three\n", "x < y ", "a (b) ", "5 > 4 "]), min_size=1, max_size=40))
def test_prose_is_shown_but_for_its_end(words: list[str]) -> None:
    text = "".join(words)
    assert len(text) - len(shown(text, [len(word) for word in words])) <= WINDOW


@pytest.mark.parametrize(
    "text", ["Hello, how are you? ", "Two lines.\n\nAnd a third. ", "3 apples, and a price of 9.50. "]
)
def test_words_are_shown_at_once(text: str) -> None:
    assert shown(text, [len(text)]) == shown(text, [1] * len(text)) == text


@pytest.mark.parametrize("text", ["In HTML, <b>bold</b> is bold. ", "Use {} for an empty object. ", "a[0] = b[1] "])
def test_what_only_looks_like_a_beginning_is_shown_once_it_is_clear(text: str) -> None:
    whole = text + "And so on, and so forth. " * (2 * WINDOW // 20)
    assert shown(whole, [1] * len(whole)).startswith(text)


def test_code_that_names_no_tool_is_shown_after_a_window() -> None:
    code = "```python\n" + "value = {'a': [1, 2]}\n" * 100
    assert len(shown(code, [20] * 99)) >= len(code) - WINDOW - 150


KINDS = st.one_of(
    st.builds(lambda text: (TextDelta(text=text),), st.sampled_from(["a", "b c ", "<", "look", "{"])),
    st.just((ReasoningDelta(text="Hm."),)),
    st.just(()),
    st.just((CallStarted(index=0, name="look", id="c"),)),
    st.just((Ended(),)),
)


@given(st.lists(KINDS, max_size=20))
def test_events_are_admitted_in_order_and_none_is_lost(kinds: list[tuple[TextDelta, ...]]) -> None:
    events = [Heard(b"data: %d" % number, pieces) for number, pieces in enumerate(kinds)]
    admission, out = Admission(HOLDING), list[Heard]()
    for event in events:
        out += admission.advance(event)
    assert [*out, *admission.held] == events
    assert not any(isinstance(piece, CallStarted | Ended) for event in out for piece in event.pieces)


HELD = (TextDelta(text="a"), CallDelta(index=0, arguments="a"))


@pytest.mark.parametrize("piece", HELD, ids=["text", "call"])
def test_the_cost_of_held_events_grows_with_their_number(piece: TextDelta | CallDelta) -> None:
    """Ten times as many: copying what is held at each would take a hundred times as long."""

    def least(count: int) -> float:
        def taken() -> float:
            admission, began = Admission(HOLDING), time.process_time()
            admission.advance(Heard(b"data: 0", (TextDelta(text=CALLS[0]),)))
            for _ in range(count):
                admission.advance(Heard(b"data: 1", (piece,)))
            return time.process_time() - began

        return min(taken(), taken())

    assert least(10_000) <= 30 * least(1_000) + 0.05
