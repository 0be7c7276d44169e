"""The question about a call in a terminal: all of it is shown, nothing in it steers the terminal, only a yes is one."""

import asyncio
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from forge.cli.approval import Approver, Decision, EditWanted, choices, decided, question_lines, visible
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
def test_only_what_is_not_seen_is_spelt_out(text: str) -> None:
    assert visible(text).startswith("\\u")
    assert json.loads(f'"{visible(text)}"') == text
    assert visible('zahl an Müller, 東京 "7"') == 'zahl an Müller, 東京 "7"'


class Typing(PlainFace):
    """A face of 20 lines at which these answers are typed. `begun` are the answers to edit."""

    def __init__(self, *typed: str) -> None:
        self._typing = iter(typed)
        self.shown = list[str]()
        self.begun = list[str]()

    def size(self) -> tuple[int, int]:
        return 68, 20

    async def answer(self, lines: Sequence[str], prompt: str, begun: str = "") -> str:
        self.shown += lines
        self.begun.append(begun)
        return next(self._typing)


LONG = asks({"note": [f"line {n}" for n in range(100)], "account": "DE02 1203 0000 0000 2020 51"})
PAGES = (len([*question_lines(LONG, 68)]) - 1) // 20


@pytest.mark.parametrize(
    ("typed", "kind"), [([""] * PAGES + ["y"], Approved), (["", "q"], Rejected), (["y"], Rejected)]
)
def test_a_long_one_is_read_page_by_page_before_anyone_says_yes(typed: list[str], kind: type) -> None:
    """The account stood at the very end, where it was cut off."""
    face = Typing(*typed)
    assert isinstance(asyncio.run(Approver(face)(LONG)), kind)
    assert (face.shown == [*question_lines(LONG, 68)]) == (kind is Approved)
    assert face.shown == [*question_lines(LONG, 68)][: len(face.shown)]


@pytest.mark.parametrize("typed", ["n", "y"])
def test_whoever_stops_reading_about_an_unknown_outcome_leaves_it_open(typed: str) -> None:
    """It was taken for "it did not happen", and the write ran again."""
    unsure = UnknownCall(id="call_000000001", name=LONG.call.name, arguments=LONG.call.arguments)
    answer = asyncio.run(Approver(Typing(typed))(replace(LONG, in_doubt=unsure)))
    assert answer == Rejected(digest=LONG.digest, reason="the user left it open")


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
    ("text", "answer"), [('{"amount": 4}\n', Approved(digest="d", edited='{"amount": 4}')), ("  ", NO)]
)
def test_what_was_edited_runs_or_nothing(text: str, answer: object) -> None:
    assert asyncio.run(Approver(Typing("e", text))(ASK)) == answer


def test_arguments_that_were_edited_wrongly_are_corrected_as_they_were_typed() -> None:
    ask = Approver(face := Typing(*("e", '{"amount": "four"}') * 2))
    for asked in (ASK, replace(ASK, problem="amount: expected a number")):
        asyncio.run(ask(asked))
    assert face.begun == ["", '{"amount": 5}', "", '{"amount": "four"}']
