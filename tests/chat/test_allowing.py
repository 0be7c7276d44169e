"""What a person's typed answer to a question means."""

import json

import pytest
from msgspec.structs import replace

from forge.cli.chat.slash import Decision, EditWanted, choices, decided, edited
from stages.effect import Approved, Ask, Rejected, Settled, Unanswered
from stages.message import ToolCall

CALL = ToolCall(id="c1", name="pay", arguments='{"amount":5}')
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
