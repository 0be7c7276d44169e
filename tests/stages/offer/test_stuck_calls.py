"""Stuck tools: repeated calls, and look-ups tried again and again with texts that nobody gave."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from forge import Workflow, run_sync, tool
from forge.errors import ToolResolutionError
from forge.interpreters.scripted import Scripted, call
from stages.message import Assistant, History, Tool, ToolCall, User
from stages.offer import escalation_level, guessing_tools, offered_tools, stuck_replies, stuck_tools
from stages.rules import Escalation, EscalationLevel, Limits, Rules, legal_tools
from stages.state import Attempt, Ledger, State, Success
from stages.tool import ToolSpec


def spec(name: str, effect: str, *required: str, **properties: object) -> ToolSpec:
    kinds = properties or {argument: {"type": "string"} for argument in required}
    schema = {"type": "object", "properties": kinds, "required": [*required]}
    return ToolSpec(name=name, description="", parameters=Raw(json.dumps(schema).encode()), effect=effect)  # type: ignore[arg-type]


FIND = spec("find", "read", "room", room={"type": "string"}, floor={"type": "integer"})
RATE = spec("rate", "read", "kind", kind={"type": "string", "enum": ["single", "double"]})
LIST, BOOK, END = spec("list", "read"), spec("book", "write", "room"), spec("end", "terminal")
RULES = Rules(tools=(FIND, RATE, LIST, BOOK, END), required=("find", "book"))


def failed(name: str, turn: int, **arguments: object) -> Attempt:
    return Attempt(name=name, arguments=json.dumps(arguments), answer=f"{turn:016x}", turn=turn)


def at(*attempts: Attempt, said: str = "A room, please.", results: History = (), done: tuple[str, ...] = ()) -> State:
    turn = max((attempt.turn for attempt in attempts), default=0)
    successes = tuple(Success(name=name, arguments="{}") for name in done)
    return State(history=(User(text=said), *results), ledger=Ledger(turn=turn, attempts=attempts, successes=successes))


TWICE = (failed("find", 1, room="R-1"), failed("find", 2, room="R-2"))


@pytest.mark.parametrize(
    ("state", "guessing"),
    [
        (at(*TWICE), True),
        (at(*TWICE[:1]), False),
        (at(TWICE[0], failed("find", 2, room="R-2", floor=3)), True),
        (at(TWICE[0], failed("find", 2, room="R-1", floor=3)), True),
        (at(*TWICE, said="Room R-1 or R-2."), False),
        (at(*TWICE, said="Room R-2."), False),
        (at(*TWICE, results=(Tool(call_id="x", name="list", text='["R-1","R-2"]'),)), False),
        (at(failed("find", 1, room="R-1"), failed("list", 2)), False),
        (at(failed("rate", 1, kind="single"), failed("rate", 2, kind="double")), False),
        (at(failed("book", 1, room="R-1"), failed("book", 2, room="R-2")), False),
        (at(failed("fly", 1, room="R-1"), failed("fly", 2, room="R-2")), False),
    ],
    ids=[
        "twice, each time with another text",
        "once",
        "and a number beside it",
        "the same text with another number",
        "the user gave both",
        "the user gave one",
        "a result gave both",
        "another tool in between",
        "texts that the schema lists",
        "a write",
        "no tool",
    ],
)
def test_a_look_up_that_is_tried_again_with_what_nobody_gave_is_stuck(state: State, *, guessing: bool) -> None:
    assert guessing_tools(RULES, state) == ({"find"} if guessing else frozenset())
    assert stuck_tools(RULES, state) == guessing_tools(RULES, state)
    assert stuck_replies(RULES, state) == int(guessing)


def test_a_repeated_call_is_stuck_whatever_it_says() -> None:
    again = at(failed("book", 1, room="R-1"), failed("book", 2, room="R-1"), failed("end", 3))
    assert (set(stuck_tools(RULES, again)), stuck_replies(RULES, again)) == ({"book"}, 2)


def test_what_came_before_the_last_progress_is_forgiven() -> None:
    state = at(*TWICE, failed("find", 3, room="R-3"))
    assert stuck_replies(RULES, state) == 2
    later = replace(state, ledger=replace(state.ledger, progress=2))
    assert (guessing_tools(RULES, later), stuck_replies(RULES, later)) == (frozenset(), 0)


def offered(state: State, rules: Rules = RULES) -> dict[str, list[str] | None]:
    """The tools that are offered, each with the values that its argument is limited to."""
    found = {}
    for tool_ in offered_tools(rules, state):
        kinds = json.loads(bytes(tool_.parameters))["properties"]
        found[tool_.name] = None if tool_ in rules.tools else kinds["room"]["enum"]
    return found


LISTED = (
    Assistant(calls=(ToolCall(id="x", name="list", arguments="{}"),)),
    Tool(call_id="x", name="list", text='["K-7","K-9"]'),
)


@pytest.mark.parametrize(
    ("state", "found"),
    [
        (at(*TWICE), {"list": None}),
        (at(*TWICE, said="Room K-7 at 12 o'clock, 'please'."), {"list": None, "find": ["K-7"]}),
        (at(*TWICE, results=LISTED), {"list": None, "find": ["K-9", "K-7"]}),
        (at(*TWICE, results=LISTED, done=("list",)), {"rate": None, "list": None, "find": ["K-9", "K-7"]}),
        (at(*TWICE, said="Room 'K-7'.", done=("list",)), {"rate": None, "list": None, "find": ["K-7"]}),
        (at(*TWICE, done=("list",)), {"rate": None, "list": None}),
    ],
    ids=[
        "nothing was seen: what lists without arguments",
        "only the user gave an id: that and what lists, no words",
        "results gave values: those too",
        "what lists was called: the values seen",
        "what lists was called: what the user gave",
        "what lists was called and gave nothing",
    ],
)
def test_a_stuck_look_up_is_offered_with_seen_values_or_not_at_all(state: State, found: dict[str, object]) -> None:
    assert offered(state) == found
    pinned = replace(RULES, escalation=Escalation(levels=("pin",)))
    assert offered(state, pinned) == found


def test_a_pending_look_up_whose_own_value_is_unknown_is_no_way_to_find_one() -> None:
    """The user gave the id of the first one of a chain; only what it finds has that of the second."""
    guest = spec("guest", "read", "room")
    chain = replace(RULES, tools=(FIND, guest, END), required=("find", "guest"))
    assert offered(at(*TWICE, said="Room 'the blue one'."), chain) == {"find": ["the blue one"], "guest": None}
    assert offered(at(*TWICE, said="Room K-7, 'please'.", results=LISTED), chain) == {
        "find": ["K-9", "K-7"],
        "guest": None,
    }


def test_where_it_is_the_only_tool_that_does_not_write_it_stays() -> None:
    assert offered(at(*TWICE), replace(RULES, tools=(FIND, BOOK))) == {"find": None, "book": None}
    assert offered(at(*TWICE), replace(RULES, tools=(FIND,), required=())) == {"find": None}
    assert offered(at(*TWICE), replace(RULES, tools=(FIND, BOOK, END), required=())) == {"end": None}


VALUES = st.sampled_from(["R-1", "R-2", "K-7", "5", "a room"])
ATTEMPTS = st.lists(
    st.one_of(
        st.builds(lambda room: ("find", {"room": room}), VALUES),
        st.builds(lambda room: ("book", {"room": room}), VALUES),
        st.just(("list", {})),
    ),
    max_size=6,
).map(lambda calls: tuple(failed(name, turn, **arguments) for turn, (name, arguments) in enumerate(calls, 1)))


STATES = st.builds(
    lambda attempts, said, results: at(*attempts, said=said, results=results),
    ATTEMPTS,
    st.sampled_from(["A room.", "Room K-7, 'please'."]),
    st.sampled_from([(), LISTED]),
)


@given(
    state=STATES,
    tools=st.lists(st.sampled_from(RULES.tools), min_size=1, unique_by=lambda one: one.name).map(tuple),
    required=st.sampled_from([(), ("find",), ("find", "book")]),
    levels=st.lists(st.sampled_from(["narrow", "pin"]), max_size=3).map(tuple),
)
def test_there_is_always_something_to_call_and_a_guess_only_where_nothing_else_reads(
    state: State, tools: tuple[ToolSpec, ...], required: tuple[str, ...], levels: tuple[EscalationLevel, ...]
) -> None:
    rules = Rules(tools=tools, required=required, escalation=Escalation(levels=levels))
    legal, given_ = legal_tools(rules, state), offered_tools(rules, state)
    assert {one.name for one in given_} <= {one.name for one in legal}
    assert bool(given_) == bool(legal)
    if FIND in given_ and "find" in guessing_tools(rules, state) and escalation_level(rules, state) != "open":
        stuck = stuck_tools(rules, state)
        assert not any(one.effect != "write" and one.name not in stuck for one in legal)


def test_a_model_that_invents_one_value_after_another_is_led_to_what_lists_them() -> None:
    asked: list[str] = []

    @tool(effect="read")
    def list_rooms() -> list[dict[str, object]]:
        """List the rooms."""
        return [{"id": "K-7", "seats": 4}, {"id": "K-9", "seats": 12}]

    @tool(effect="read")
    def get_room(room_id: str) -> dict[str, object]:
        """Look up a room."""
        asked.append(room_id)
        if room_id not in ("K-7", "K-9"):
            raise ToolResolutionError("There is no such room.")
        return {"free": room_id == "K-9"}

    @tool
    def book(room_id: str) -> str:
        """Book a room."""
        return f"booked {room_id}"

    workflow = Workflow(
        "rooms",
        tools=[list_rooms, get_room, book],
        required_steps=["get_room"],
        terminal_tool="book",
        limits=Limits(max_iterations=12),
    )
    guesses = [call("get_room", room_id=f"room {name}") for name in "abcd"]
    script = [
        *guesses[:2],
        call("list_rooms"),
        *guesses[2:],
        call("get_room", room_id="K-9"),
        call("book", room_id="K-9"),
    ]
    model = Scripted(script, mode="constrained")
    assert run_sync(workflow, "Book a room for twelve people.", backend=model).unwrap().value == "booked K-9"
    assert [names(request) for request in model.requests] == [
        ["list_rooms", "get_room"],
        ["list_rooms", "get_room"],
        ["list_rooms"],  # two were made up, and nothing was seen that could be meant
        ["list_rooms", "get_room"],
        ["list_rooms", "get_room"],
        ["list_rooms", "get_room"],
        ["list_rooms", "get_room", "book"],
    ]
    assert b'"enum":["K-9","K-7"]' in model.requests[5]
    assert asked == ["room a", "room b", "room c", "room d", "K-9"]


def names(request: bytes) -> list[str]:
    """The tools that a request's constraint has."""
    return [name for name in ("list_rooms", "get_room", "book") if f'"const":"{name}"'.encode() in request]
