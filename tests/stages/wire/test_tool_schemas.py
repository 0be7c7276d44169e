"""Lists of values: no value that the guard accepts is left out, and what is made up is."""

import re

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.message import Assistant, History, Tool, ToolCall, User
from stages.schema.value import Json
from stages.seen import evidence, normalized, unseen_values, values_for, with_values
from stages.state import State
from stages.tool import Grounded
from stages.wire.tool_schemas import listed_values

TEXT: Json = {"type": "string"}
ASKED = User(text="Please ship order A-17 to New York, costs $129.90 (paid by Ada Lovelace).")
LOOKED = (
    Assistant(calls=(ToolCall(id="1", name="look", arguments='{"id":"A-17"}'),)),
    Tool(
        call_id="1", name="look", text='{"id":"A-17","items":["C-1","C-2"],"total":64,"by":"J. \\"Jo\\" O\u2019Hara"}'
    ),
)


def listed(kind: Json, *view: User | Assistant | Tool, tried: frozenset[str] = frozenset()) -> Json:
    return listed_values(kind, values_for(Grounded(argument="what"), with_values((), view, 0)), tried)


def takes(kind: Json, value: Json) -> bool:
    return jsonschema_rs.validator_for(kind).is_valid(value)  # type: ignore[arg-type]  # any JSON


@pytest.mark.parametrize(
    "value",
    [
        "A-17",
        "order A-17",
        "New York",
        "$129.90",
        "129.90",
        "C-1",
        "Ada",
        "Ada Lovelace",
        'J. "Jo" O\u2019Hara',
        "Jo O'Hara",
    ],
)
def test_what_was_seen_may_be_written(value: str) -> None:
    assert takes(listed(TEXT, ASKED, *LOOKED), value)


@pytest.mark.parametrize("value", ["A-18", "A", "17", "York New", "Boston", "<order_id>", "C-12", ""])
def test_what_was_not_seen_may_not(value: str) -> None:
    assert not takes(listed(TEXT, ASKED, *LOOKED), value)


def test_an_id_ends_before_the_full_stop() -> None:
    kind = listed(TEXT, User(text="I ordered it with X-98, a green one; now cancel my second order X-99."))
    tried = ("X-98", "X-98,", "X-98, a green one", "X-99", "X-99.", "order X-99", "order X-99.")
    assert [one for one in tried if takes(kind, one)] == ["X-98", "X-98, a green one", "X-99", "order X-99"]
    assert takes(listed(TEXT, User(text="It was sold to Smith and his two Sons Inc.")), "Sons Inc."), (
        "a name may have one"
    )


def test_numbers_are_those_that_were_seen_and_fit() -> None:
    number, whole = listed({"type": "number"}, ASKED, *LOOKED), listed({"type": "integer"}, ASKED, *LOOKED)
    assert number == {"type": "number", "enum": [64, 129.9]}
    assert whole == {"type": "integer", "enum": [64]}
    assert listed({"type": "integer"}, User(text="Go.")) == {"type": "integer"}, "nothing would be left"


FAILED = (
    Assistant(calls=(ToolCall(id="2", name="look", arguments='{"room":"Blue Whale","id":"V-9"}'),)),
    Tool(
        call_id="2",
        name="look",
        text="[ToolResolutionError] No room Blue Whale (V-9) on Monday.",
        status="unresolved",
    ),
)


def test_what_an_error_only_repeats_of_its_call_is_not_offered() -> None:
    kind = listed(TEXT, User(text="A room."), *FAILED)
    assert [one for one in ("Blue", "Whale", "Blue Whale", "V-9", "Whale (V-9)") if takes(kind, one)] == []
    assert all(takes(kind, one) for one in ("Monday", "room", "No", "V-9) on", "Whale (V-9) on Monday"))
    said = listed(TEXT, User(text="The whale room, Blue."), *FAILED)
    assert all(takes(said, one) for one in ("Blue", "Whale", "Blue Whale"))
    assert not takes(said, "V-9")


def test_where_a_source_is_named_it_may_repeat_what_another_text_has_given() -> None:
    bound = Grounded(argument="what", sources=("look",))
    view = (User(text="The room Blue Whale."), *FAILED)
    assert unseen_values(["Blue Whale"], bound, State(history=view)) == []
    assert takes(listed_values(TEXT, values_for(bound, with_values((), view, 0))), "Blue Whale")


def test_values_within_lists_objects_and_alternatives_are_listed_too() -> None:
    inner = listed(TEXT, ASKED)
    assert listed({"type": "array", "items": TEXT}, ASKED) == {"type": "array", "items": inner}
    assert listed({"anyOf": [TEXT, {"type": "null"}]}, ASKED) == {"anyOf": [inner, {"type": "null"}]}
    assert listed({"type": ["string", "null"]}, ASKED) == {"anyOf": [inner, {"type": "null"}]}
    nested: Json = {"type": "object", "properties": {"a": TEXT}}
    assert listed(nested, ASKED) == {"type": "object", "properties": {"a": inner}}


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "string", "enum": ["a"]},
        {"type": "string", "pattern": "^a$"},
        {"const": 1},
        {"type": "boolean"},
        {},
        True,
    ],
)
def test_a_schema_that_says_more_stays_as_it_is(kind: Json) -> None:
    assert listed(kind, ASKED) == kind


def test_a_value_that_was_tried_is_left_out_unless_none_is_left() -> None:
    kind = listed(TEXT, *LOOKED, tried=frozenset({"c-1"}))
    assert (takes(kind, "C-1"), takes(kind, "C-2")) == (False, True)
    only = (LOOKED[0], Tool(call_id="1", name="look", text='["C-1"]'))
    assert takes(listed(TEXT, *only, tried=frozenset({"c-1"})), "C-1")


def test_too_much_to_list_leaves_the_schema_open() -> None:
    assert listed(TEXT, User(text="many words " * 200)) == TEXT
    assert listed({"type": "integer"}, User(text=str([*range(100)]))) == {"type": "integer"}


letters = st.text(alphabet="aB3é- .,'/$()\"_\u2019\n", max_size=14)
leaf = (
    letters
    | st.integers(-99, 9999)
    | st.decimals(0, 99, places=2).map(float)
    | st.sampled_from(["A-17", "New York", "1,299.00", "12 minutes", "17a", "12kg"])
)
ids = st.sampled_from(["A-17", "B-2", "17a", "12", "old/1", "a-b"])
results = (
    leaf
    | st.lists(leaf, max_size=3)
    | st.lists(ids, max_size=3)
    | st.dictionaries(st.sampled_from(["id", "what"]), leaf, max_size=2)
    | st.dictionaries(st.sampled_from(["room_id", "roomIds", "id", "name"]), ids | leaf, min_size=1, max_size=2)
)


@st.composite
def views(draw: st.DrawFn) -> History:
    view: History = (User(text=draw(letters)),)
    for number in range(draw(st.integers(0, 3))):
        arguments = msgspec.json.encode({"id": draw(leaf)}).decode()
        quoted = msgspec.json.decode(arguments)["id"]
        words = letters | st.sampled_from([f"No '{quoted}' there.", f"{quoted} B-2", f"[{quoted}] is on Monday"])
        text = msgspec.json.encode(draw(results)).decode() if draw(st.booleans()) else draw(words)
        name = draw(st.sampled_from(["look", "list_rooms"]))
        view += (
            Assistant(calls=(ToolCall(id=f"{number}", name=name, arguments=arguments),)),
            Tool(call_id=f"{number}", name=name, text=text),
        )
    return view


def the_same(one: Json, other: Json) -> bool:
    """Whether the guard takes both for the same value."""
    if isinstance(one, str) and isinstance(other, str) and normalized(one) == normalized(other):
        return True
    return evidence((f"{one}",)).shows(other) and evidence((f"{other}",)).shows(one)


def parts_of(view: History) -> st.SearchStrategy[Json]:
    texts = [m.text for m in view if isinstance(m, User | Tool)]
    pieces = [text[a:b] for text in texts for a in range(len(text)) for b in range(a + 1, min(len(text), a + 12) + 1)]
    return st.sampled_from(pieces or ["a"]) | leaf


BOUND = st.builds(
    Grounded, argument=st.sampled_from(["what", "room_id", "id"]), sources=st.sampled_from([(), ("list_rooms",)])
)


@given(view=views(), data=st.data(), bound=BOUND)
def test_no_value_that_the_guard_accepts_is_left_out(view: History, data: st.DataObject, bound: Grounded) -> None:
    value = data.draw(parts_of(view))
    if unseen_values([value], bound, State(history=view)) or not re.search(r"\w", f"{value}"):
        return
    kind = "string" if isinstance(value, str) else "integer" if isinstance(value, int) else "number"
    schema = listed_values({"type": kind}, values_for(bound, with_values((), view, 0)), frozenset())
    said = value
    if isinstance(said, str):
        said = normalized(said).strip(",.;:!?)]}'%-/ ")
    assert offers(schema, said), (schema, said)


def offers(schema: Json, value: Json) -> bool:
    if schema in ({"type": "string"}, {"type": "integer"}, {"type": "number"}) or takes(schema, value):
        return True
    parts = schema["anyOf"] if isinstance(schema, dict) and isinstance(schema.get("anyOf"), list) else [schema]
    assert isinstance(parts, list)
    listed_ones = [one for part in parts if isinstance(part, dict) for one in (part.get("enum") or [])]  # type: ignore[union-attr]  # a list
    if any(the_same(one, value) for one in listed_ones):
        return True
    patterns = [part["pattern"] for part in parts if isinstance(part, dict) and "pattern" in part]
    return isinstance(value, str) and any(
        re.fullmatch(f"{pattern}".strip("^$"), normalized(value), re.IGNORECASE) for pattern in patterns
    )
