"""Values that the model is shown: collected as the view grows, each once, and no more than a list may have."""

import json
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from stages.message import Assistant, History, Kind, Message, Tool, ToolCall, User
from stages.seen import MOST_NUMBERS, MOST_WORDS, all_numbers, values_for, with_values
from stages.state import SourceValues
from stages.tool import Grounded

ANYWHERE = Grounded(argument="what")


def answered(text: str, name: str = "look", arguments: str = "{}", number: int = 1) -> History:
    call = ToolCall(id=f"call_{number}", name=name, arguments=arguments)
    return (Assistant(calls=(call,)), Tool(call_id=call.id, name=name, text=text))


def seen(*messages: Message, bound: Grounded = ANYWHERE) -> SourceValues:
    return values_for(bound, with_values((), messages, 0))


def test_the_user_and_results_give_values_and_corrections_do_not() -> None:
    found = seen(
        User(text="Order A-17, please."),
        User(text="You forgot B-2.", kind=Kind.RETRY_NUDGE),
        *answered('{"city":"Lisbon","total":129.9,"paid":true}'),
    )
    assert set(found.texts or ()) == {"Order A-17, please.", "Lisbon"}
    assert found.numbers == (Decimal("129.9"),)


def test_what_an_answer_repeats_of_its_call_is_a_value_only_where_a_source_is_named() -> None:
    echo = answered('{"id":"A-17","count":7,"city":"Lisbon"}', arguments='{"id":"A-17","n":7}')
    assert seen(*echo).texts == ("Lisbon",)
    assert seen(*echo).numbers == ()
    named = seen(*echo, bound=Grounded(argument="what", sources=("look",)))
    assert {*(named.texts or ())} == {"A-17", "Lisbon"}
    assert named.numbers == (Decimal(7),)
    assert seen(*echo, bound=Grounded(argument="what", sources=("other",))).texts == ()


def test_too_many_values_are_not_listed() -> None:
    words, numbers = " ".join(["word"] * (MOST_WORDS + 1)), json.dumps([*range(MOST_NUMBERS + 1)])
    assert seen(User(text=words)).texts is None
    assert seen(User(text=words.removesuffix(" word"))).texts is not None
    assert seen(User(text=numbers)).numbers is None
    assert all_numbers(with_values((), (User(text=numbers),), 0)) == ()
    assert seen(User(text=words), *answered('"Lisbon"'), bound=Grounded(argument="a", sources=("look",))).texts


exchanges = st.lists(
    st.tuples(st.sampled_from(["Go to Lisbon.", "[1,2]", '{"id":"A-17"}', "A-17 costs 3"]), st.sampled_from("ab")),
    max_size=6,
)


@given(exchanges=exchanges, data=st.data())
def test_collected_step_by_step_it_is_the_same_as_all_at_once(
    exchanges: list[tuple[str, str]], data: st.DataObject
) -> None:
    view: History = (User(text="Order A-17."),)
    for number, (text, name) in enumerate(exchanges):
        view += answered(text, name, '{"id":"A-17"}', number)
    step = data.draw(st.integers(0, len(view)))
    assert with_values(with_values((), view[:step], 0), view, step) == with_values((), view, 0)
