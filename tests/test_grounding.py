"""Grounding: what counts as seen, and what a call with invented values is told."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from forge import Workflow, run_sync, tool
from forge.errors import DefinitionError, ToolResolutionError
from forge.interpreters.scripted import Line, Scripted, call
from forge.testing import assert_guard_laws
from stages.evidence import evidence
from stages.given import ungrounded
from stages.guards import grounding
from stages.message import Assistant, Kind, Message, Status, Tool, ToolCall, User
from stages.schema.value import Json
from stages.state import State
from stages.tool import Grounded, ToolSpec

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
]


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=map(repr, SHOWN))
def test_a_value_that_stands_in_the_text(value: Json, text: str) -> None:
    assert evidence((text,)).shows(value)


@pytest.mark.parametrize(("value", "text"), NOT_SHOWN, ids=map(repr, NOT_SHOWN))
def test_a_value_that_is_only_a_part_of_another_or_not_there_at_all(value: Json, text: str) -> None:
    assert not evidence((text,)).shows(value)


floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | floats | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(value=values, others=st.lists(values, max_size=3))
def test_what_a_result_holds_is_shown_by_it(value: Json, others: list[Json]) -> None:
    texts = [msgspec.json.encode(one).decode() for one in (*others, {"found": value})]
    assert evidence(texts).shows(value)


@given(number=st.decimals(-(10**6), 10**6, places=2, allow_nan=False))
def test_a_number_is_found_however_its_zeros_are_written(number: object) -> None:
    text = f"{number}"
    assert evidence((f"It is {text}, they say.",)).shows(float(text))
    assert evidence((f"It is {text.replace('.', ',')} they say.",)).shows(float(text))


@given(st.text(max_size=40), st.text(alphabet="0123456789.,-'aA /", max_size=30))
def test_any_text_and_any_value_are_answered(value: str, text: str) -> None:
    seen = evidence((text, value))
    assert seen.shows(value)
    assert isinstance(seen.shows(text), bool)


def test_it_takes_time_in_proportion_to_the_text() -> None:
    """Texts that make a careless search or pattern quadratic: ten times a second's work would not end."""
    for text in ("9" * 10**6, "1," * 500_000, "a" * 10**6, "1.1" * 300_000, "-1" * 300_000, "[" * 10**5):
        assert not evidence((text,)).shows("b" * 1000)
        assert not evidence((text,)).shows("a" * 1000 + "b")


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
    assert text.startswith("[UngroundedArgument] send_report was not run: total is 99, which stands in no earlier")
    assert "total = 129.9 (from get_order)" in text
    assert "city is" not in text
    assert desk.sent == [("Lisbon", 129.9)]


def test_with_nothing_seen_it_says_what_may_be_called_to_find_it() -> None:
    desk = Orders(grounded={"send_report": "city"})
    state = desk.run(call("send_report", city="Paris", total=1), ORDER, CUSTOMER, REPORT)
    assert "first find it out. You may call: get_order, get_customer." in corrections(state)[0]


def test_what_the_user_said_is_given() -> None:
    Orders(grounded={"get_order": "order_id"}).run(ORDER, REPORT)


def test_a_source_is_the_only_place_where_it_may_come_from_and_is_a_step_before() -> None:
    desk = Orders(grounded={"send_report": {"city": "get_customer", "total": "get_order"}})
    spec = desk.workflow.rules.tool("send_report")
    assert spec is not None
    assert [prerequisite.tool for prerequisite in spec.prerequisites] == ["get_customer", "get_order"]
    state = desk.run(ORDER, CUSTOMER, call("send_report", city="A-17", total=129.9), REPORT)
    assert 'city is "A-17", which stands in no result of get_customer' in corrections(state)[0]


def test_an_error_gives_what_it_names_and_not_what_it_was_told() -> None:
    desk = Orders(grounded={"send_report": "city"})
    asked = call("get_order", order_id="Z-99")
    state = desk.run(asked, call("send_report", city="Z-99", total=1), call("send_report", city="A-17", total=1))
    assert len(corrections(state)) == 1


def test_what_compaction_cut_was_seen_all_the_same() -> None:
    @tool(effect="read")
    def read(page: int) -> str:
        """Read a page."""
        return f"secret{page} " + "word " * 400

    @tool(grounded=("word",))
    def report(word: str) -> str:
        """Report."""
        return word

    workflow = Workflow("pages", tools=[read, report], terminal_tool="report", max_iterations=20)
    pages = [call("read", page=number) for number in range(12)]
    run = run_sync(workflow, "Read.", backend=Scripted([*pages, call("report", word="secret0")], context_tokens=2048))
    assert run.unwrap().state.ledger.compactions
    assert run.unwrap().value == "secret0"


@pytest.mark.parametrize(
    ("grounded", "says"),
    [
        ({"nope": "city"}, "grounded: there is no tool named 'nope'"),
        ({"send_report": "town"}, "it has no argument 'town'; it has: city, total"),
        ({"send_report": {"city": "nope"}}, "the source 'nope' of city is no tool"),
        ({"get_order": {"order_id": "get_order"}}, "order_id could only come from get_order itself"),
    ],
)
def test_wrong_definitions_are_refused(grounded: object, says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        Orders(grounded=grounded)


def test_the_laws_of_guards() -> None:
    guard = grounding(Orders(grounded={"send_report": ("city", "total")}).workflow.rules)
    arguments = st.sampled_from(['{"city":"a","total":7}', '{"city":"7","total":-0.0}', '{"total":[1]}', "{}"])
    assert_guard_laws(guard, tools=["get_order", "send_report"], arguments=arguments, max_examples=60)


@given(exchanges=st.integers(1, 60), data=st.data())
def test_a_value_counts_wherever_in_a_long_history_it_stands_and_no_echo_does(
    exchanges: int, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, exchanges - 1))
    failed = data.draw(st.booleans())
    history: tuple[Message, ...] = (User(text="Go."),)
    for number in range(exchanges):
        asked = ToolCall(id=f"call_{number}", name="find", arguments='{"id":"A-17"}')
        text = "nothing of A-17" if failed else f"B-{number}: A-17" if number == place else f"B-{number}"
        status: Status = "failed" if failed else "succeeded"
        answer = Tool(call_id=asked.id, name="find", text=text, status=status)
        history = (*history, Assistant(calls=(asked,)), answer)
    bound = ToolSpec(name="find", description="", parameters=Raw(b"{}"), grounded=(Grounded(argument="id"),))
    assert bool(ungrounded(bound, '{"id":"A-17"}', State(history=history))) is failed
    assert ungrounded(bound, '{"id":"C-3"}', State(history=history))
