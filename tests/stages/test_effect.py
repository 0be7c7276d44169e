"""Effects: a request in parts is one JSON object, whichever parts are empty."""

import json

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from stages.effect import Request

OBJECTS = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3)


def raw(value: object) -> Raw:
    return Raw(json.dumps(value, separators=(",", ":")).encode())


@given(head=OBJECTS, messages=st.lists(OBJECTS, max_size=3), tail=OBJECTS)
def test_whatever_the_parts_hold_the_body_holds_it(
    head: dict[str, object], messages: list[object], tail: dict[str, object]
) -> None:
    request = Request(head=raw(head), messages=tuple(map(raw, messages)), tail=raw(tail))
    pairs = json.loads(request.body, object_pairs_hook=list)
    assert [name for name, _ in pairs] == [*head, "messages", *tail]
