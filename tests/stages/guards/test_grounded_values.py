"""Grounding: what counts as seen, and what a call with invented values is told."""

import re
from itertools import chain

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from forge import Workflow, run_sync, tool
from forge.errors import DefinitionError, ToolResolutionError
from forge.interpreters.scripted import Line, Scripted, call
from stages.message import Assistant, History, Kind, Message, Status, Tool, ToolCall, User
from stages.rules import Limits
from stages.schema.value import Json
from stages.seen import given_latest_first, ungrounded_values, with_shown
from stages.state import Cleared, State
from stages.tool import Grounded, ToolSpec
from tests.counted import calls_of


class Orders:
    """The order workflow; `sent` is what was reported."""

    def __init__(self, **options: object) -> None:
        self.sent: list[tuple[str, float]] = []

        @tool(effect="read")
        def get_order(order_id: str) -> dict[str, object]:
            """Look up an order."""
            if order_id != "A-17":
                raise ToolResolutionError(f"There is no order {order_id!r}; did you mean A-17?")
            return {"customer_id": "C-204", "total": 129.9}

        @tool(effect="read")
        def get_customer(customer_id: str) -> dict[str, str]:
            """Look up a customer."""
            return {"city": "Lisbon"}

        @tool
        def send_report(city: str, total: float) -> str:
            """Send the report."""
            self.sent.append((city, total))
            return "sent"

        self.workflow = Workflow(
            "orders",
            tools=[get_order, get_customer, send_report],
            terminal_tool="send_report",
            **options,  # type: ignore[arg-type]  # options of a test
        )

    def run(self, *script: Line) -> State:
        model = Scripted(list(script))
        result = run_sync(self.workflow, "Report on order A-17.", backend=model)
        model.assert_complete()
        return result.unwrap().state


ORDER, CUSTOMER = call("get_order", order_id="A-17"), call("get_customer", customer_id="C-204")
REPORT = call("send_report", city="Lisbon", total=129.9)


def corrections(state: State) -> list[str]:
    return [m.text for m in state.history if isinstance(m, Tool) and m.kind is Kind.RETRY_NUDGE]


def test_an_invented_value_is_corrected_with_the_one_that_was_given() -> None:
    desk = Orders(grounded={"send_report": ("city", "total")})
    state = desk.run(ORDER, CUSTOMER, call("send_report", city="Lisbon", total=99), REPORT)
    (text,) = corrections(state)
    assert text.startswith("[UngroundedArgument] send_report was not run: total is 99, which appears in no earlier")
    assert "total = 129.9 (from get_order)" in text
    assert "city is" not in text
    assert desk.sent == [("Lisbon", 129.9)]


def test_a_text_too_long_to_be_shown_whole_is_named_and_not_shown_cut_off() -> None:
    # A model that was shown "The box is made of … (361 characters more)" copied just that, until its budget was spent.
    letter = "The room is dark, smells of cedar, and has a folded letter in it that ends: the word is marble."
    rooms = Rooms(letter)
    model = rooms.run(LIST, call("book", room_id="The word is red ink."), call("book", room_id="marble"))
    assert b"room_id = words copied from the result of list_rooms." in model.requests[2]
    assert b"characters more" not in model.requests[2]
    assert rooms.booked == ["marble"]


def test_with_nothing_seen_it_says_what_may_be_called_to_find_it() -> None:
    desk = Orders(grounded={"send_report": "city"})
    state = desk.run(call("send_report", city="Paris", total=1), ORDER, CUSTOMER, REPORT)
    assert "find it first. You may call: get_order, get_customer." in corrections(state)[0]


def test_what_the_user_said_is_given() -> None:
    Orders(grounded={"get_order": "order_id"}).run(ORDER, REPORT)


def test_a_source_is_the_only_place_where_it_may_come_from_and_is_a_step_before() -> None:
    desk = Orders(grounded={"send_report": {"city": "get_customer", "total": "get_order"}})
    spec = desk.workflow.rules.tool("send_report")
    assert spec is not None
    assert [prerequisite.tool for prerequisite in spec.prerequisites] == ["get_customer", "get_order"]
    state = desk.run(ORDER, CUSTOMER, call("send_report", city="A-17", total=129.9), REPORT)
    assert 'city is "A-17", which appears in no result of get_customer' in corrections(state)[0]


def test_an_error_gives_what_it_names_and_not_what_it_was_told() -> None:
    desk = Orders(grounded={"send_report": "city"})
    asked = call("get_order", order_id="Z-99")
    state = desk.run(asked, call("send_report", city="Z-99", total=1), call("send_report", city="A-17", total=1))
    assert len(corrections(state)) == 1


class Rooms:
    """Rooms to book; `booked` is what was."""

    def __init__(self, *found: Json) -> None:
        self.booked: list[str] = []

        @tool(effect="read")
        def list_rooms() -> Json:
            """List the rooms."""
            return [*found]

        @tool(grounded=("room_id",))
        def book(room_id: str) -> str:
            """Book a room."""
            self.booked.append(room_id)
            return "booked"

        @tool(grounded=("room_ids", "floors"))
        def book_all(room_ids: list[str], floors: list[int]) -> str:
            """Book rooms."""
            self.booked += [*room_ids, *map(str, floors)]
            return "booked"

        self.workflow = Workflow("rooms", tools=[list_rooms, book, book_all], terminal_tool=["book", "book_all"])

    def run(self, *script: Line) -> Scripted:
        model = Scripted(script, mode="constrained")
        run_sync(self.workflow, "Book the room 12 minutes from the station, or K9.", backend=model).unwrap()
        return model


LIST = call("list_rooms")


def test_a_list_may_hold_what_was_seen_one_by_one_and_nothing_else() -> None:
    rooms = Rooms({"id": "R-7", "on": "the 2nd floor"}, {"id": "R-12", "on": "the 3rd floor"})
    model = rooms.run(
        LIST,
        call("book_all", room_ids=["R-7", "lobby"], floors=[2]),
        call("book_all", room_ids=["R-7", "R-12"], floors=[2, 4]),
        call("book_all", room_ids=["R-12", "R-7"], floors=[2, 3]),
    )
    assert rooms.booked == ["R-12", "R-7", "2", "3"]
    assert [len(re.findall(rb"UngroundedArgument", request)) for request in model.requests] == [0, 0, 1, 2]


def test_what_compaction_cut_was_seen_all_the_same() -> None:
    @tool(effect="read")
    def read(page: int) -> str:
        """Read a page."""
        return f"secret{page} " + "word " * 400

    @tool(grounded=("word",))
    def report(word: str) -> str:
        """Report."""
        return word

    workflow = Workflow("pages", tools=[read, report], terminal_tool="report", limits=Limits(max_iterations=20))
    pages = [call("read", page=number) for number in range(12)]
    run = run_sync(workflow, "Read.", backend=Scripted([*pages, call("report", word="secret0")], context_tokens=2048))
    assert run.unwrap().state.ledger.compactions
    assert run.unwrap().value == "secret0"


@pytest.mark.parametrize(
    ("grounded", "says"),
    [
        ({"nope": "city"}, "grounded: there is no tool named 'nope'"),
        ({"send_report": "town"}, "it has no argument 'town'; it has: city, total"),
        ({"send_report": {"city": "nope"}}, "source 'nope' of city is not a tool"),
        ({"get_order": {"order_id": "get_order"}}, "order_id could only come from get_order itself"),
    ],
)
def test_wrong_definitions_are_refused(grounded: object, says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        Orders(grounded=grounded)


@given(exchanges=st.integers(1, 60), data=st.data())
def test_a_value_counts_wherever_in_a_long_history_it_stands_and_no_echo_does(
    exchanges: int, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, exchanges - 1))
    echoed = data.draw(st.booleans())
    status = data.draw(st.sampled_from(ANSWERED))
    history: tuple[Message, ...] = (User(text="Go."),)
    for number in range(exchanges):
        text = f"B-{number}: A-17" if number == place else f"B-{number}"
        history = (*history, *exchange({"id": "A-17" if echoed else "x"}, text, status))
    assert bool(ungrounded_values(FIND, '{"id":"A-17"}', State(history=history))) is echoed
    assert ungrounded_values(FIND, '{"id":"C-3"}', State(history=history))


def test_the_latest_texts_are_read_without_those_before_them() -> None:
    def given_to(exchanges: int) -> State:
        answered = (exchange({"id": number}, f"B-{number}") for number in range(exchanges))
        return State(history=(User(text="Go."), *chain.from_iterable(answered)))

    state = given_to(20)
    assert [one.text for one in given_latest_first(state)] == [*(f"B-{n}" for n in reversed(range(20))), "Go."]
    short, long = given_to(10), given_to(1_000)
    assert calls_of(lambda: next(given_latest_first(short))) == calls_of(lambda: next(given_latest_first(long)))


@given(data=st.data(), texts=st.lists(st.text(alphabet='aA-1720., ü"', max_size=8), max_size=9))
def test_what_is_remembered_of_a_history_shows_what_the_history_shows(data: st.DataObject, texts: list[str]) -> None:
    """However much of it is remembered; of values as words and as numbers, with sources and without."""
    history: History = (User(text="Go: 7 of A-1."),)
    for text in texts:
        history += exchange({"id": data.draw(st.sampled_from(["a", "17", 2]))}, text)
    first = data.draw(st.integers(0, len(texts))) * 2 + 1
    some: st.SearchStrategy[Json] = st.sampled_from(["a", "A-1", "17", 17, 1.7, "a 1", "ü", "-", ""])
    value = data.draw(some)
    remembered = with_shown(State(history=history[:first])).say(*history[first : first + 2])
    remembered = with_shown(remembered)
    spec = replace(FIND, grounded=(Grounded(argument="id", sources=data.draw(st.sampled_from([(), ("find",)]))),))
    arguments = msgspec.json.encode({"id": value}).decode()
    whole = remembered.say(*history[first + 2 :])
    assert ungrounded_values(spec, arguments, whole) == ungrounded_values(spec, arguments, State(history=history))


ANSWERED: tuple[Status, ...] = ("succeeded", "failed", "unresolved", "final")
FIND = ToolSpec(name="find", description="", parameters=Raw(b"{}"), grounded=(Grounded(argument="id"),))


def exchange(arguments: dict[str, Json], text: str, status: Status = "succeeded", tool_: str = "find") -> History:
    asked = ToolCall(id="call_1", name=tool_, arguments=msgspec.json.encode(arguments).decode())
    return (Assistant(calls=(asked,)), Tool(call_id=asked.id, name=tool_, text=text, status=status))


def wants(value: Json, history: History, *sources: str, cleared: tuple[Cleared, ...] = ()) -> bool:
    """Whether the value is one that nobody gave."""
    spec = replace(FIND, grounded=(Grounded(argument="id", sources=sources),))
    state = State(history=history, cleared=cleared)
    return bool(ungrounded_values(spec, msgspec.json.encode({"id": value}).decode(), state))


ECHOES: list[tuple[str, Json, dict[str, Json], str]] = [
    ("a query", 99999, {"query": "total 99999"}, '{"query": "total 99999", "results": []}'),
    ("under another name", 99999, {"total": 99999}, '{"you_asked_for": 99999}'),
    ("written otherwise", 99999, {"total": "99999"}, "nothing for 99,999.00 EUR"),
    ("in words", "Lisbon", {"city": "lisbon"}, "No customer in LISBON. Lisbon is in Portugal."),
    ("put together", "John Smith", {"first": "John", "last": "Smith"}, "There is no John Smith."),
    ("in a list", "C-9", {"ids": ["C-8", "C-9"]}, '{"missing": ["C-8", "C-9"]}'),
    ("as an escape", "ü-1", {"id": "ü-1"}, '{"id": "\\u00fc-1"}'),
]


@pytest.mark.parametrize(("value", "arguments", "text"), [c[1:] for c in ECHOES], ids=[c[0] for c in ECHOES])
def test_an_answer_that_repeats_its_call_proves_nothing(value: Json, arguments: dict[str, Json], text: str) -> None:
    history = exchange(arguments, text)
    assert wants(value, history)
    said = exchange({}, f"See also: {value}", tool_="list")
    assert not wants(value, (*history, *said)), "another call has found it"
    assert not wants(value, (User(text=f"It is {value}"), *history)), "the user has said it"
    record = Cleared(call_id="call_1", name="find", arguments=msgspec.json.encode(arguments).decode(), text=text)
    assert wants(value, (), cleared=(record,)), "what compaction cut proves no more"
    again = exchange({"call_id": "call_1"}, text, tool_="recall")
    assert wants(value, again, cleared=(record,)), "nor does what is read again"


def test_what_an_answer_says_beside_its_echo_counts() -> None:
    """A value that happens to be the same as one of the call is lost, if nobody else gave it; nothing else is."""
    order = exchange({"order_id": "A-17", "limit": 5}, '{"order_id": "A-17", "total": 129.9, "items": 5}')
    assert not wants(129.9, order)
    assert wants("A-17", order)
    assert wants(5, order)
    assert not wants(5, (User(text="Show 5 of A-17."), *order))


def test_a_source_that_repeats_what_somebody_gave_has_been_asked() -> None:
    """The order that the user named: its source has confirmed it."""
    found = exchange({"order_id": "A-17"}, '{"order_id": "A-17"}', tool_="get_order")
    assert wants("A-17", found, "get_order")
    assert wants("A-17", (User(text="Order A-17."),), "get_order")
    assert not wants("A-17", (User(text="Order A-17."), *found), "get_order")


@pytest.mark.parametrize("status", ["not_run", "in_doubt"])
def test_what_forge_says_itself_is_no_evidence(status: Status) -> None:
    said = exchange({}, "[NotRun] find was not run: only the first 32 calls of a reply are run.", status)
    assert wants(32, said)
    assert wants(32, (User(text="Call find with 32", kind=Kind.RETRY_NUDGE), *said))


@given(data=st.data())
def test_evidence_does_not_grow_by_an_answer_made_of_its_own_call(data: st.DataObject) -> None:
    """Whatever the tool makes of it: in any order, in JSON or in words, once or often, with any status."""
    scalar = st.integers(0, 10**6) | st.from_regex(r"[A-Za-z]{1,5}-?[0-9]{0,3}", fullmatch=True)
    arguments: dict[str, Json] = data.draw(st.dictionaries(st.sampled_from("abcd"), scalar, min_size=1))
    parts = data.draw(st.lists(st.sampled_from([*arguments.values()]), min_size=1, max_size=5))
    as_json = msgspec.json.encode({"echo": [*parts], **arguments}).decode()
    text = data.draw(st.sampled_from((as_json, " ".join(map(str, parts)), f"<{', '.join(map(str, parts))}>".upper())))
    history = exchange(arguments, text, data.draw(st.sampled_from(ANSWERED)))
    for value in (*parts, " ".join(map(str, parts))):
        assert wants(value, history), (value, text)


def test_a_model_does_not_launder_a_value_by_searching_for_it() -> None:
    orders = Orders(grounded={"send_report": ("city", "total")})

    @tool(effect="read")
    def search(query: str) -> dict[str, object]:
        """Search the archive."""
        return {"query": query, "results": []}

    flow = Workflow(
        "flow",
        tools=[*orders.workflow.tools, search],
        terminal_tool="send_report",
        grounded={"send_report": ("total",)},
    )
    script = [
        call("search", query="total 99999"),
        call("send_report", city="Lisbon", total=99999),
        call("get_order", order_id="A-17"),
        call("send_report", city="Lisbon", total=129.9),
    ]
    model = Scripted(script)
    run_sync(flow, "Report.", backend=model).unwrap()
    assert orders.sent == [("Lisbon", 129.9)]
    assert b"total is 99999, which appears in no earlier result" in model.requests[2].replace(b".0,", b",")
    assert b"total 99999 (from search)" not in model.requests[2]
