"""The question about a call in a terminal: all of it is shown, nothing in it steers the terminal, only a yes is one."""

import asyncio
import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from forge.cli.approval import Approver, Decision, EditWanted, choices, decided, edited, question_lines, visible
from forge.cli.chat.faces import PlainFace
from stages.effect import Approved, Ask, Rejected, Settled, Unanswered
from stages.execution import question
from stages.message import ToolCall, UnknownCall


def asks(arguments: dict[str, object]) -> Ask:
    call = ToolCall(id="call_000000002", name="pay", arguments=json.dumps(arguments, ensure_ascii=False))
    return question(call)


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


@pytest.mark.parametrize(("typed", "kind"), [("\n" * 20 + "y\n", Approved), ("\nq\ny\n", Rejected), ("y\n", Rejected)])
def test_a_long_one_is_read_page_by_page_before_anyone_says_yes(
    typed: str, kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The account stood at the very end, where it was cut off."""
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "80")
    effect = asks({"note": [f"line {n}" for n in range(100)], "account": "DE02 1203 0000 0000 2020 51"})
    pages = (len([*question_lines(effect, 68)]) - 1) // 20
    (tmp_path / "typed").write_text(typed if kind is Rejected else "\n" * pages + "y\n")
    with (tmp_path / "typed").open() as person:
        monkeypatch.setattr(sys, "stdin", person)
        answer = asyncio.run(Approver(PlainFace())(effect))
    assert isinstance(answer, kind)
    told = capsys.readouterr().out
    assert ("DE02 1203 0000 0000 2020 51" in told) == (kind is Approved)
    places = [told.find(f'"line {n}"') for n in range(100)]
    assert kind is Rejected or all(0 < one < other for one, other in pairwise(places))


@pytest.mark.parametrize("typed", ["n", "q", "y", "h"])
def test_whoever_stops_reading_about_an_unknown_outcome_leaves_it_open(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken for "it did not happen", and the write ran again."""
    monkeypatch.setenv("LINES", "24")
    ask = asks({"note": [f"line {n}" for n in range(100)]})
    unsure = UnknownCall(id="call_000000001", name=ask.call.name, arguments=ask.call.arguments)
    (tmp_path / "typed").write_text(f"{typed}\n")
    with (tmp_path / "typed").open() as person:
        monkeypatch.setattr(sys, "stdin", person)
        answer = asyncio.run(Approver(PlainFace())(replace(ask, in_doubt=unsure)))
    assert answer == Rejected(digest=ask.digest, reason="the user left it open")


CALL = UnknownCall(id="c1", name="pay", arguments='{"amount":5}')
ASK = Ask(call=CALL, digest="d")
UNSURE = Ask(call=CALL, digest="d", in_doubt=CALL)
NO = Rejected(digest="d", reason="the user said no")
YES = Approved(digest="d")


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        ("y", Decision(YES)),
        (" YES ", Decision(YES)),
        ("a", Decision(YES, always=True)),
        ("n", Decision(NO)),
        ("", Decision(NO)),
        ("es", Decision(Rejected(digest="d", reason="the user said no: es"))),
        ("Use the other account.", Decision(Rejected(digest="d", reason="the user said no: Use the other account."))),
        ("yes but less", Decision(Rejected(digest="d", reason="the user said no: yes but less"))),
        ("e", EditWanted('{"amount": 5}')),
        (None, Decision(Unanswered(digest="d", reason="nobody answered in the terminal"))),
    ],
)
def test_only_a_yes_is_one(typed: str | None, means: Decision | EditWanted) -> None:
    assert decided(ASK, typed) == means


def test_long_arguments_are_edited_line_by_line_and_hidden_characters_are_escapes() -> None:
    arguments = json.dumps({"to": "a\u202e", "why": "x" * 60}, ensure_ascii=False)
    found = decided(Ask(call=replace(CALL, arguments=arguments), digest="d"), "e")
    assert found == EditWanted('{\n  "to": "a\\u202e",\n  "why": "' + "x" * 60 + '"\n}')


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("y", YES),
        ("h", Settled(digest="d", happened=True)),
        ("n", Settled(digest="d", happened=False)),
        ("", Rejected(digest="d", reason="the user left it open")),
        ("a", Rejected(digest="d", reason="the user left it open")),
        ("e", Rejected(digest="d", reason="the user left it open")),
    ],
)
def test_of_a_call_whose_outcome_is_unknown_nothing_is_allowed_for_good(typed: str, answer: object) -> None:
    assert decided(UNSURE, typed) == Decision(answer)  # type: ignore[arg-type]  # of the table
    assert "always" not in choices(UNSURE)


@pytest.mark.parametrize(
    ("text", "answer"),
    [('{"amount": 4}\n', Approved(digest="d", edited='{"amount": 4}')), ("  ", NO), (None, NO)],
)
def test_what_was_edited_runs_or_nothing(text: str | None, answer: object) -> None:
    assert edited(ASK, text) == Decision(answer)  # type: ignore[arg-type]  # of the table


def test_arguments_that_were_edited_wrongly_are_corrected_as_they_were_typed() -> None:
    class Face(PlainFace):
        begun: list[str] = []  # noqa: RUF012 - of this test

        async def answer(self, lines: object, prompt: str, text: str = "") -> str:
            self.begun.append(text)
            return '{"amount": "four"}' if prompt.startswith("change") else "e"

    ask = Approver(face := Face())
    for asked in (ASK, replace(ASK, problem="amount: expected a number")):
        asyncio.run(ask(asked))
    assert face.begun == ["", '{"amount": 5}', "", '{"amount": "four"}']
