"""The choices of a reply: tool and values of each call, found in whatever stands around them."""

import re
from math import log

import pytest

from stages.confidence.measure import measured_calls, measures_of
from stages.effect import TokenProbability

OFFER = {"route": {"queue": ('"billing"', '"sales"')}, "read": {}}


def tokens(text: str, **alternatives: str) -> list[TokenProbability]:
    """The text, word by word; each word named is three times as likely as the one in its place."""
    return [
        TokenProbability(w, log(0.75), ((w, log(0.75)), (alternatives[w], log(0.25))))
        if w in alternatives
        else TokenProbability(w, -1e-6)
        for w in re.findall(r"\w+|\W", text)
    ]


CALL = '{"tool": "route", "args": {"queue": "billing"}}'
NATIVE = (
    '<tool_call>\n{"name": "route", "arguments": {"queue": "billing", "note": "{\\"tool\\":\\"read\\"}"}}\n</tool_call>'
)


@pytest.mark.parametrize(
    ("text", "content", "expected"),
    [
        (CALL, CALL, [0.75 * 0.75]),
        (f'[{CALL}, {{"tool": "read", "args": {{}}}}]', "", [0.75 * 0.75, 1.0]),
        (f'<think>perhaps {{"tool": "read", "args": {{}}}}</think>{CALL}', CALL, [0.75 * 0.75]),
        (NATIVE, "", [0.75 * 0.75]),
        ('{"tool": "drop", "args": {}}', "", []),
        ('{"tool": "route", "args": {"queue": "other"}}', "", []),
        ('{"answer": "the tool is route"}', "", []),
        ('{"tool": "route", "args": {"queue"', "", [0.75]),
    ],
    ids=[
        "alone",
        "list",
        "after thoughts",
        "native",
        "unknown",
        "other value",
        "words",
        "cut",
    ],
)
def test_each_call_has_the_probability_of_all_of_its_choices(text: str, content: str, expected: list[float]) -> None:
    measured = measured_calls(tokens(text, route="read", billing="sales"), content, OFFER)
    assert [call.confidence for call in measured] == pytest.approx(expected, abs=1e-4)


def test_a_choice_says_what_it_was_made_from() -> None:
    (call,) = measured_calls(tokens(CALL, route="read", billing="sales"), CALL, OFFER)
    told = [(choice.argument, choice.chosen, choice.offered) for choice in call.choices]
    assert told == [("", '"route"', ('"route"', '"read"')), ("queue", '"billing"', ('"billing"', '"sales"'))]


def test_where_nothing_else_was_offered_nothing_was_chosen() -> None:
    (call,) = measured_calls(tokens(CALL), CALL, {"route": {"queue": ('"billing"',)}})
    assert call.choices == ()
    assert call.confidence == 1.0


def test_calls_are_matched_by_their_names_in_order() -> None:
    text = f'[{CALL}, {{"tool": "read", "args": {{}}}}]'
    route, read = measured_calls(tokens(text, route="read"), "", OFFER)
    assert measures_of([route, read], ["route", "read"]) == (route, read)
    assert measures_of([route, read], ["read", "route"]) == (read, None)
    assert measures_of([], ["read"]) == (None,)
