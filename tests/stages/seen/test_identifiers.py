"""Identifiers: which words may be ids once some were shown, and whose they are."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.schema.value import Json
from stages.seen import is_id, is_own, like_an_id, shown_ids
from stages.tool import Grounded

ROOMS = ["R-7", "R-12"]


@pytest.mark.parametrize(
    ("shown", "may", "may_not"),
    [
        (ROOMS, ["r-7", "R-99", "K9", "new-york", "old/17-b", "x.y", "a_b"], ["station", "12", "12 minutes", "12kg"]),
        (["4711", "815"], ["12", "K9", "007"], ["station", "12 minutes", "12kg", "12.50", "14:30"]),
        ([4711, 815], ["12", "K9"], ["station", "12 minutes"]),
        (["17a", "4b"], ["12kg", "19th", "R-7"], ["12", "station"]),
        (["R-7", "12"], ["R-8", "13"], ["station", "12 minutes"]),
    ],
    ids=["letters and digits", "digits", "whole numbers", "a number and a letter", "both kinds"],
)
def test_what_may_be_an_id(shown: list[Json], may: list[str], may_not: list[str]) -> None:
    ids = shown_ids(shown)
    assert ids is not None
    assert [one for one in may if not ids.may_have(one)] == []
    assert [one for one in may_not if ids.may_have(one)] == []


@pytest.mark.parametrize("shown", [[], ["ann"], [*ROOMS, "ann"], [*ROOMS, "Room 12"], [None, True], [""]])
def test_where_one_does_not_look_like_an_id_anything_may_be_one(shown: list[Json]) -> None:
    assert shown_ids(shown) is None


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


SHOWN = st.lists(st.from_regex(r"[A-Z]{0,2}-?[0-9]{1,3}[a-z]?", fullmatch=True), min_size=1, max_size=4)


@given(shown=SHOWN, words=st.lists(st.text(alphabet="aB1 -/.,", max_size=6), max_size=4))
def test_the_parts_of_a_text_hold_whatever_may_be_an_id(shown: Sequence[str], words: list[str]) -> None:
    ids = shown_ids(shown)
    assert ids is not None
    assert all(map(ids.may_have, shown)), "those that were shown may be"
    parts = [*ids.parts_of(" ".join(words))]
    for word in (one.strip(".,") for several in words for one in several.split()):
        if like_an_id(word):
            assert any(word in part for part in parts)
