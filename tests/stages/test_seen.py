"""Evidence: which values stand in a text, and which only seem to."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages import seen
from stages.message import User
from stages.schema.value import Json
from stages.seen import evidence, is_id, is_own, shows, unseen_values, values_within
from stages.state import State
from stages.tool import Grounded

SHOWN: list[tuple[Json, str]] = [
    (99.5, "The total is 99.50."),
    (99.5, "99,50 €"),
    (99.5, '{"total": 99.5}'),
    (99.5, "it costs $99.50, all in all"),
    (1299, "1,299.00 in all"),
    (1299, "1.299,00"),
    (1299, "1 item for 1299EUR"),
    (1299.5, "1'299.50"),
    (-5, "It was -5 degrees"),
    (-5, "It was \u22125°"),
    (12, "12kg"),
    (12, "12,15,18"),
    (12, "from 12-15"),
    (12, "a 12, or a 13"),
    (50, "50%"),
    (19, "on the 19th"),
    ("19", "on the 19th"),
    (3, "the 3rd, not the 4th"),
    (21, "from the 19th\u201321st"),
    (19, "a 19th-century house"),
    (12, "a 12-minute walk"),
    ("12", "a 12-minute walk"),
    (5, "a 5-year-old and a 4-star hotel"),
    (17, "the 17-May flight"),
    (17, "ticket #17, please"),
    (100, "~100"),
    (100, "\u2265100"),
    (100, "100+ guests"),
    (100, "US$100"),
    (100, "100,- a night"),
    (["A-1", "B-2"], "B-2 and A-1"),
    (["A-1", "B-2"], '[{"id":"A-1"},{"id":"B-2"}]'),
    ([3, 19], "the 3rd and the 19th"),
    ("Lisbon", '{"city":"Lisbon"}'),
    ("lisbon", "In LISBON."),
    ("New  York", "Ship to New York, please"),
    ("Lisbon", "a Lisbon-based firm"),
    ("A-17", "order A-17."),
    ("A-17", "order a\u201117?"),
    ("O\u2019Brien", "Mr. O'Brien"),
    ("stra\u00dfe", "STRASSE"),
    ("129.9", "costs 129.90"),
    ("129.90", '{"total": 129.9}'),
    ("C-204", '{"customer": {"ids": ["C-118", "C-204"]}}'),
    ("", "anything"),
    (True, "anything"),
    (None, "anything"),
    (["a", 7], "a and 7"),
    ({"n": [1]}, "1"),
    ("北京", "他在 北京 住"),
    ("0171 619501", "call me at 0171 619501"),
    ("007", '{"agent": "007"}'),
    (5, "on the 05 of May"),
    (0.125, "0.125 per cent"),
]
NOT_SHOWN: list[tuple[Json, str]] = [
    (99, "99.50"),
    (50, "99,50"),
    (9.5, "99.5"),
    (17, "order A-17"),
    (-17, "order A-17"),
    (17, "2024-05-17"),
    (17, "17/05/2024"),
    (17, "version 1.17.2"),
    (1, "a1"),
    (204, "C-204"),
    (99.51, "99.5"),
    ("17", "order A-17"),
    (17, "room 17-A"),
    (17, "17-AB-7"),
    (17, "part 17-abc-7"),
    (19, "covid-19"),
    (17, "B#17"),
    (1, "the 19th"),
    (9, "the 19th"),
    (19, "the nineteenth"),
    (100, "EUR100B"),
    (["A-1", "B-3"], "A-1, B-2"),
    (["A-1", "B"], "A-1, B-2"),
    (["A-1, B-2"], '["A-1","B-2"]'),
    ([["A-1"], ["B-3"]], "A-1, B-2"),
    ("A", "order A-17"),
    ("C-20", "C-204"),
    ("2024-05", "2024-05-17"),
    ("99", "99.50"),
    ("99", '{"total": 99.5}'),
    ("port", "Airport"),
    ("city", '{"city": "Oslo"}'),
    ("Paris", "Lisbon"),
    (["a", 8], "a and 7"),
    ({"n": [1, 2]}, "1"),
    ("171", "call me at 0171 619501"),
    (171, "call me at 0171 619501"),
    ("7", "agent 007"),
    ("0171", "room 171"),
]


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=map(repr, SHOWN))
def test_a_value_that_stands_in_the_text_is_found_by_a_search_too(value: Json, text: str) -> None:
    assert shows(evidence((text,)), value)
    values = [leaf for _, leaf in values_within(value)]
    assert unseen_values(values, Grounded(argument="id"), State(history=(User(text=text),))) == []


@pytest.mark.parametrize(("value", "text"), NOT_SHOWN, ids=map(repr, NOT_SHOWN))
def test_a_value_that_is_only_a_part_of_another_or_not_there_at_all(value: Json, text: str) -> None:
    assert not shows(evidence((text,)), value)


floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | floats | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(value=values, others=st.lists(values, max_size=3))
def test_what_a_result_holds_is_shown_by_it(value: Json, others: list[Json]) -> None:
    texts = [msgspec.json.encode(one).decode() for one in (*others, {"found": value})]
    assert shows(evidence(texts), value)


@given(number=st.decimals(-(10**6), 10**6, places=2, allow_nan=False))
def test_a_number_is_found_however_its_zeros_are_written(number: object) -> None:
    text = f"{number}"
    assert shows(evidence((f"It is {text}, they say.",)), float(text))
    assert shows(evidence((f"It is {text.replace('.', ',')} they say.",)), float(text))


@given(st.text(max_size=40), st.text(alphabet="0123456789.,-'aA /", max_size=30))
def test_any_text_and_any_value_are_answered(value: str, text: str) -> None:
    seen = evidence((text, value))
    assert shows(seen, value)
    assert isinstance(shows(seen, text), bool)


def test_it_takes_time_in_proportion_to_the_text() -> None:
    """Texts that make a careless search or pattern quadratic: ten times a second's work would not end."""
    for text in ("9" * 10**6, "1," * 500_000, "a" * 10**6, "1.1" * 300_000, "-1" * 300_000, "[" * 10**5):
        assert not shows(evidence((text,)), "b" * 1000)
        assert not shows(evidence((text,)), "a" * 1000 + "b")


_LETTERS = st.text(alphabet="aAß1.,-' \u0301\u2019\u201c\"\\\n", max_size=8)


@given(leaf=_LETTERS, value=_LETTERS | st.integers(0, 20), as_json=st.booleans())
def test_a_search_finds_the_texts_that_show_the_value(leaf: str, value: Json, *, as_json: bool) -> None:
    text = msgspec.json.encode({"a": [leaf]}).decode() if as_json else leaf
    unseen = unseen_values([value], Grounded(argument="id"), State(history=(User(text=text),)))
    assert unseen == ([] if shows(evidence((text,)), value) else [value])


def test_a_text_that_no_result_shows_is_looked_for_without_reading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: object) -> None:
        raise AssertionError(text)

    monkeypatch.setattr(seen, "_evidence_of", refuse)
    state = State(history=tuple(User(text=f'{{"name": "Ann {n}", "total": {n}.5}}') for n in range(100)))
    assert unseen_values(["Zoe 17"], Grounded(argument="name"), state) == ["Zoe 17"]


# --- Identifiers: what is called one, and whose it is


def test_what_ids_are_called() -> None:
    assert all(map(is_id, ["id", "ids", "room_id", "roomId", "roomIds", "roomID", "ROOM_ID"]))
    assert not any(map(is_id, ["", "paid", "identity", "id_of", "room", "number", "idea"]))


@pytest.mark.parametrize(
    ("argument", "name", "tool", "own"),
    [
        ("room_id", "room_id", "any", True),
        ("room_ids", "room_id", "any", True),
        ("roomId", "room_id", "any", True),
        ("room_id", "guest_id", "list_rooms", False),
        ("room_id", "id", "list_rooms", True),
        ("room_id", "id", "get_room", True),
        ("category_id", "id", "listCategories", True),
        ("room_id", "id", "list_guests", False),
        ("guest_room_id", "id", "list_rooms", True),
        ("id", "id", "list_rooms", False),
        ("room_id", "name", "list_rooms", False),
        ("room_id", "", "list_rooms", True),
        ("room_id", "", "searchRooms", True),
        ("room_id", "", "list_room_tags", False),
        ("room_id", "", "list_guests", False),
        ("id", "", "list_rooms", False),
        ("city", "", "list_cities", False),
        ("city", "city", "any", True),
        ("city", "town", "any", False),
    ],
)
def test_whose_id_it_is(argument: str, name: str, tool: str, *, own: bool) -> None:
    assert is_own(Grounded(argument=argument), name, tool) is own


def test_a_mere_id_is_that_of_the_source() -> None:
    bound = Grounded(argument="id", sources=("list_rooms",))
    assert is_own(bound, "id", "list_rooms")
    assert not is_own(bound, "id", "list_guests")
