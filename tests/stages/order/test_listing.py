"""The values that a tool has listed, with each of which another has to be called."""

import pytest

from stages.order import Each, Use, listed_in, values_left
from stages.state import Listed, Success

FLAT = Each(tool="list_flats", argument="flat_id")
GET_FLAT = Use(tool="get_flat", each_of=FLAT)
CITY = Each(tool="list_cities", argument="city")
SHAPES: list[tuple[str, Each, str, tuple[str, ...]]] = [
    ("a list", FLAT, '["F-1","F-2","F-1"]', ("F-1", "F-2")),
    ("members called like the argument", FLAT, '[{"flat_id":"F-1","city":"Riga"},{"flat_id":"F-2"}]', ("F-1", "F-2")),
    ("ids of the tool's kind", FLAT, '{"flats":[{"id":"F-1"},{"id":"F-2"}],"count":2}', ("F-1", "F-2")),
    (
        "the outermost of them",
        FLAT,
        '[{"id":"F-1","owner":{"id":"O-9"}},{"id":"F-2","rooms":[{"id":1}]}]',
        ("F-1", "F-2"),
    ),
    ("no ids of another kind", FLAT, '[{"owner_id":"O-9"}]', ()),
    (
        "a member that is named",
        Each(tool="find", argument="city", member="places"),
        '{"q":"x","places":["Riga"]}',
        ("Riga",),
    ),
    ("only what is named", Each(tool="find", argument="city", member="places"), '["Riga"]', ()),
    ("an argument that is no id", CITY, '["Riga","Oslo"]', ("Riga", "Oslo")),
    ("members of an argument that is no id", CITY, '[{"city":"Riga","mayor":"Ann"}]', ("Riga",)),
    ("an empty list", FLAT, "[]", ()),
    ("one thing", FLAT, '{"flat_id":"F-1","rooms":3}', ("F-1",)),
    ("words", FLAT, "F-1 and F-2", ()),
    ("one text", FLAT, '"F-1"', ()),
    ("deeper than forge reads", FLAT, "[" * 100_000 + "]" * 100_000, ()),
]


@pytest.mark.parametrize(("each", "result", "values"), [c[1:] for c in SHAPES], ids=[c[0] for c in SHAPES])
def test_what_a_result_lists(each: Each, result: str, values: tuple[str, ...]) -> None:
    assert listed_in(each, result) == values


def test_what_is_left_goes_by_the_last_list_and_by_calls_that_succeeded() -> None:
    def listed(*values: str) -> Success:
        return Success(name="list_flats", arguments="{}", listed=(Listed(tool="get_flat", values=values),))

    def got(value: str) -> Success:
        return Success(name="get_flat", arguments=f'{{"flat_id": {value}}}')

    assert values_left(GET_FLAT, ()) is None
    assert values_left(GET_FLAT, (Success(name="list_flats", arguments="{}"),)) is None
    assert values_left(GET_FLAT, (listed(),)) == ()
    assert values_left(GET_FLAT, (listed("F-1", "2", "F-3"), got('"F-3"'), got("2"))) == ("F-1",)
    assert values_left(GET_FLAT, (listed("F-1"), got('"F-1"'), listed("F-1", "F-2"))) == ("F-2",)
