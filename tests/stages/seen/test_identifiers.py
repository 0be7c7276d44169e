"""Identifiers: what is called one, and whose it is."""

import pytest

from stages.seen import is_id, is_own
from stages.tool import Grounded


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
