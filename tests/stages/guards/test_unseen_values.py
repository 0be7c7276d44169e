"""Values that nobody gave, in a write that no rule speaks of."""

import pytest
from msgspec import Raw

from stages.guards import no_unseen_values
from stages.message import History, Tool, ToolCall, User
from stages.rules import Rules
from stages.state import Attempt, Ledger, State
from stages.tool import ToolSpec

KINDS = b"""{"type": "object", "properties": {"day": {"enum": ["Friday"]}, "at": {}, "people": {}, "note": {}, "on": {},
"size": {"anyOf": [{"enum": ["large", 8]}, {"type": "null"}], "default": "medium"},
"kind": {"$ref": "#/$defs/Kind"}}}"""
BOOK = ToolSpec(name="book", description="", parameters=Raw(KINDS))
RULES = Rules(tools=(BOOK,), unruled=("book",), on_text="accept")
SAID: History = (
    User(text="A table for four at Verde, 19:30 please. Order B-7."),
    Tool(call_id="call_1", name="look", text='{"people": 4}'),
)


@pytest.mark.parametrize(
    ("arguments", "unseen"),
    [
        ('{"at": "Verde", "people": 4}', ()),
        ('{"at": "verde", "people": 4.0}', ()),
        ('{"at": "19:30"}', ()),
        ('{"at": "14:00", "people": 2}', ("at", "people")),
        ('{"at": "Osteria"}', ("at",)),
        ('{"at": "order B-8"}', ("at",)),
        ('{"note": "Jane Smith"}', ("note",)),
        ('{"note": "Verde, dinner"}', ()),
        ('{"note": "by the window, if there is one"}', ()),
        ('{"day": "Friday", "on": true, "note": ""}', ()),
        ('{"size": "large", "kind": "private"}', ()),
        ('{"size": 8}', ()),
        ('{"size": 8.0}', ()),
        ('{"size": true}', ()),
        ('{"size": "medium"}', ()),
        ('{"size": "small"}', ("size",)),
        ('{"size": 9}', ("size",)),
    ],
)
def test_a_number_a_word_or_a_code_has_to_be_seen_and_no_text_of_its_own_words(
    arguments: str, unseen: tuple[str, ...]
) -> None:
    call = ToolCall(id="call_2", name="book", arguments=arguments)
    verdict = no_unseen_values(RULES)(State(history=SAID), (call,))
    assert isinstance(verdict, list)
    found = tuple(value.argument for one in verdict for value in getattr(one.wrong, "values", ()))
    assert found == unseen


def test_a_date_a_time_or_a_number_that_is_said_again_was_worked_out_and_a_name_was_not() -> None:
    call = ToolCall(id="call_2", name="book", arguments='{"at": "12:00", "people": 2}')
    named = ToolCall(id="call_2", name="book", arguments='{"at": "Osteria", "people": 2}')
    for made, left in ((call, ()), (named, ("at",))):
        ledger = Ledger(attempts=(Attempt(name="book", arguments=made.arguments),))
        verdict = no_unseen_values(RULES)(State(history=SAID, ledger=ledger), (made,))
        assert isinstance(verdict, list)
        assert tuple(value.argument for one in verdict for value in getattr(one.wrong, "values", ())) == left
