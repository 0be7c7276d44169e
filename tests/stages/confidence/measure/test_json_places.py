"""Where values stand in JSON: every plain value with its path, whatever is around it."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stages.confidence.measure import JsonPlace, json_places

PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
KEYS = st.text(min_size=1, max_size=5)
TREES = st.recursive(
    PLAIN, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)), max_leaves=9
)


def leaves(tree: object, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], str]]:
    match tree:
        case dict():
            return [leaf for key, value in tree.items() for leaf in leaves(value, (*path, key))]
        case list():
            return [leaf for place, value in enumerate(tree) for leaf in leaves(value, (*path, place))]
        case _:
            return [(path, msgspec.json.encode(tree).decode())]


@given(
    st.dictionaries(KEYS, TREES, max_size=3), st.sampled_from(["", "```json\n", "I call: "]), st.sampled_from([0, 2])
)
def test_every_plain_value_is_found_where_it_stands(tree: dict[str, object], before: str, indent: int) -> None:
    body = msgspec.json.encode(tree)
    text = before + (msgspec.json.format(body, indent=indent) if indent else body).decode()
    found = list(json_places(text))
    assert [(place.path, place.value) for place in found] == [leaf for leaf in leaves(tree) if len(leaf[0]) <= 6]
    assert all(text[place.start :].startswith(place.value) for place in found)


@given(st.text('{}[]:,"\\ a1', max_size=200))
def test_any_text_is_read_to_its_end(text: str) -> None:
    assert all(
        isinstance(place, JsonPlace) and text[place.start :].startswith(place.value) for place in json_places(text)
    )


def test_texts_with_json_are_told_apart() -> None:
    found = [(place.number, place.path, place.value) for place in json_places('{"a":1}\n[{"a":2},{"a":3}]')]
    assert found == [(0, ("a",), "1"), (1, (0, "a"), "2"), (1, (1, "a"), "3")]
