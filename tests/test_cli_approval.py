"""The question about a call in a terminal: every argument is shown, nothing in it steers the terminal."""

import asyncio
import io
import json
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from forge.cli.approval import ask_person, question_lines, visible
from stages.effect import Approved, Ask, Rejected, Settled, Unanswered
from stages.execution import call_digest
from stages.message import ToolCall


def asks(arguments: dict[str, object], before: ToolCall | None = None) -> Ask:
    call = ToolCall(id="call_000000002", name="pay", arguments=json.dumps(arguments, ensure_ascii=False))
    return Ask(call=call, digest=call_digest(call), in_doubt=before)


FIVE: dict[str, object] = {"amount": 5}
BEFORE = ToolCall(id="call_000000001", name="pay", arguments='{"amount":4}')
values = st.recursive(
    st.integers() | st.booleans() | st.text() | st.text("\u202e\u200b\x1b\x00\n\r\u2028a[31m", max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(arguments=st.dictionaries(st.text(min_size=1, max_size=5), values, max_size=4), width=st.integers(30, 120))
def test_the_lines_are_the_arguments_whole(arguments: dict[str, object], width: int) -> None:
    effect = asks(arguments)
    lines = [*question_lines(effect, width)]
    assert all(cell_len(line) <= width for line in lines)
    shown = "".join(lines).partition("This is about to run:")[2].removeprefix("pay ")
    assert shown.isprintable()
    assert json.loads(shown) == json.loads(effect.call.arguments), "what is shown is what runs"


@pytest.mark.parametrize(
    "text", ["\u202e", "\u200b", "\x1b[2K", "\r", "\u3164", "\ufe0f", "\U000e0041", "\u2028", "\u00a0"]
)
def test_what_is_not_seen_is_spelt_out(text: str) -> None:
    assert visible(text).startswith("\\u")
    assert json.loads(f'"{visible(text)}"') == text


def test_what_is_seen_stays() -> None:
    assert visible('zahl an Müller, 東京 "7"') == 'zahl an Müller, 東京 "7"'


TYPED: list[tuple[str, Ask, str, type]] = [
    ("y", asks(FIVE), "y\n", Approved),
    ("yes", asks(FIVE), "YES\n", Approved),
    ("nothing", asks(FIVE), "\n", Rejected),
    ("anything else", asks(FIVE), "h\n", Rejected),
    ("the end of the input", asks(FIVE), "", Unanswered),
    ("it happened", asks(FIVE, BEFORE), "h\n", Settled),
    ("run it all the same", asks(FIVE, BEFORE), "y\n", Approved),
    ("left open", asks(FIVE, BEFORE), "\n", Rejected),
]


@pytest.mark.parametrize(("effect", "typed", "kind"), [c[1:] for c in TYPED], ids=[c[0] for c in TYPED])
def test_what_is_typed(
    effect: Ask, typed: str, kind: type, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    answer = asyncio.run(ask_person(effect))
    assert isinstance(answer, kind)
    assert answer.digest == effect.digest
    told = capsys.readouterr().out
    assert '"amount": 5' in told
    assert ('"amount": 4' in told) == (effect.in_doubt is not None)


@pytest.mark.parametrize(("typed", "kind"), [("\n" * 99 + "y\n", Approved), ("\nq\ny\n", Rejected), ("y\n", Rejected)])
def test_a_long_one_is_read_page_by_page_before_anyone_says_yes(
    typed: str, kind: type, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The account stood at the very end, where it was cut off."""
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "80")
    effect = asks({"note": [f"line {n}" for n in range(100)], "account": "DE02 1203 0000 0000 2020 51"})
    pages = (len([*question_lines(effect, 74)]) - 1) // 20
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed if kind is Rejected else "\n" * pages + "y\n"))
    answer = asyncio.run(ask_person(effect))
    assert isinstance(answer, kind)
    told = capsys.readouterr().out
    assert ("DE02 1203 0000 0000 2020 51" in told) == (kind is Approved)
    places = [told.find(f'"line {n}"') for n in range(100)]
    assert kind is Rejected or all(0 < one < other for one, other in pairwise(places))
