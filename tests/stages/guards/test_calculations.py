"""Calculated arguments: the model writes the calculation, the function gets the number, and nothing made up runs."""

import asyncio
import re
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta, Raw

from forge import ToolDef, Workflow, run_sync, tool
from forge.errors import DefinitionError
from forge.guardrails import Guardrails
from forge.interpreters.scripted import Line, Scripted, call, calls
from stages.arithmetic import argument_check, calculation_problems
from stages.effect import Approved, Ask, Execute, Failed
from stages.message import Kind, Tool, ToolCall, User
from stages.objection import NumbersUnseen
from stages.rules import Calls
from stages.schema import Fits
from stages.schema.projection import plain_pattern
from stages.state import State
from stages.tool import Calculated, ToolSpec
from stages.wire.tool_schemas import CALCULATION, constraint_of


class Orders:
    """An invoice whose amount is the sum of two results; `sent` is what was invoiced."""

    def __init__(self, **options: object) -> None:
        self.sent: list[tuple[float, int]] = []

        @tool(effect="read")
        def get_goods(order_id: str) -> dict[str, object]:
            """The price of the goods."""
            return {"goods": 19.9}

        @tool(effect="read")
        def get_shipping(order_id: str) -> dict[str, object]:
            """What the shipping costs."""
            return {"shipping": 11}

        @tool
        def send_invoice(
            order_id: str, amount: Annotated[float, Meta(le=1000)], parts: int = 1, note: float | None = None
        ) -> str:
            """Send the invoice.

            Args:
                order_id: The order.
                amount: What is to be paid.
                parts: In how many parts of 30 days.
                note: Anything.
            """
            self.sent.append((amount, parts))
            assert isinstance(amount, float)
            assert isinstance(parts, int)
            return "sent"

        chosen: dict[str, object] = {"calculated": {"send_invoice": ("amount", "parts", "note")}}
        self.workflow = Workflow(
            "orders",
            tools=[get_goods, get_shipping, send_invoice],
            terminal_tool="send_invoice",
            **(chosen | options),  # type: ignore[arg-type]  # options of a test
        )

    def run(self, *script: Line) -> State:
        model = Scripted(list(script))
        result = run_sync(self.workflow, "Invoice order A-17, 19% off, due in 45 days.", backend=model)
        model.assert_complete()
        return result.unwrap().state

    @property
    def invoice(self) -> ToolSpec:
        return self.workflow.rules.tools[2]


GOODS, SHIPPING = call("get_goods", order_id="A-17"), call("get_shipping", order_id="A-17")


def invoice(amount: object, **more: object) -> Line:
    return call("send_invoice", order_id="A-17", amount=amount, **more)


def corrections(state: State) -> list[str]:
    return [m.text for m in state.history if isinstance(m, Tool) and m.kind is Kind.RETRY_NUDGE]


def test_the_function_gets_the_result_and_the_history_keeps_what_the_model_wrote() -> None:
    desk = Orders()
    state = desk.run(GOODS, SHIPPING, invoice("19.90 + 11 = 31", parts="11 * 2", note=None))
    assert desk.sent == [(30.9, 22)]
    assert corrections(state) == []
    assert state.ledger.successes[-1].arguments == (
        '{"order_id":"A-17","amount":"19.90 + 11 = 31","parts":"11 * 2","note":null}'
    )


WRONG: list[tuple[object, str]] = [
    (30.9, "amount is '30.9', a number by itself; write the whole calculation that it comes from"),
    ("11", "amount is '11', a number by itself"),
    ("19.9 + 12", "amount is '19.9 + 12', but neither a result nor the user gave 12"),
    ("goods + shipping", 'which cannot be calculated: "goods" is neither a number nor one of + - * / % ( )'),
    ("19.9 * 100", "amount is '19.9 * 100', which comes to 1990; expected at most 1000"),
    ("19.9 + 3 + 4", "but neither a result nor the user gave 3, 4"),
]


@pytest.mark.parametrize(("amount", "says"), WRONG)
def test_a_calculation_that_is_none_or_is_made_up_is_corrected_with_the_numbers_that_were_given(
    amount: object, says: str
) -> None:
    desk = Orders()
    state = desk.run(GOODS, SHIPPING, invoice(amount), invoice("19.9 + 11"))
    (text,) = corrections(state)
    assert text.startswith("[Miscalculated] send_invoice was not run: amount is ")
    assert says in text
    assert "goods = 19.9 (from get_goods), shipping = 11 (from get_shipping)" in text
    assert state.ledger.refusals == 1
    assert desk.sent == [(30.9, 1)]


def test_with_nothing_seen_it_says_what_may_be_called_to_find_it() -> None:
    state = Orders().run(invoice("40 + 2"), GOODS, SHIPPING, invoice("19.9 + 11"))
    assert "find it first. You may call: get_goods, get_shipping." in corrections(state)[0]


def test_an_integer_must_come_out_whole() -> None:
    desk = Orders()
    state = desk.run(GOODS, SHIPPING, invoice("19.9 + 11", parts="45 / 2"), invoice("19.9 + 11", parts="45 / 1"))
    assert "parts is '45 / 2', which comes to 22.5; expected integer" in corrections(state)[0]
    assert desk.sent == [(30.9, 45)]


SEEN: list[tuple[str, str]] = [
    ("19 + 11", ""),
    ("19 - 5", ""),
    ("1,299.00 / 2", ""),
    ("19 * 12 * 60", ""),
    ("19 / 100", ""),
    ("19 * 1", ""),
    ("(19 + 11 + 5) / 3", ""),
    ("11 * 7%", ""),
    ("11 * 0.07", ""),
    ("11 * 1.07", ""),
    ("11 * 0.93", ""),
    ("11 * (1 + 0.07)", ""),
    ("11 * (1 - 7%)", ""),
    ("19 * 30", ""),
    ("19 / 45", ""),
    ("19 + 1", "1"),
    ("19 + 2", "2"),
    ("19 * 3", "3"),
    ("11 * 1.08", "1.08"),
    ("11 * 5.5", "5.5"),
    ("19 + 0.07", "0.07"),
    ("19 + 100", "100"),
]


@pytest.mark.parametrize(("text", "made_up"), SEEN)
def test_what_counts_as_a_number_that_was_given(text: str, made_up: str) -> None:
    """Seen, or said of the tool; as factors percentages in their other forms, constants of the world, and counts."""
    told = User(text="The goods are 19, shipping is 11, and -5. Last year it was 1,299.00. Tax is 7%.")
    asked = Calculated(argument="amount", number=Raw(b'{"type":"number","description":"In parts of 30 days."}'))
    spec = ToolSpec(name="send", description="Up to 45 days.", parameters=Raw(b"{}"), calculated=(asked,))
    found = calculation_problems(spec, msgspec.json.encode({"amount": text}).decode(), State(history=(told,)))
    expected = NumbersUnseen(argument="amount", text=text, numbers=tuple(made_up.split(", ")))
    assert found == ((expected,) if made_up else ())


def test_the_model_is_asked_for_a_text_with_the_users_own_words_kept() -> None:
    schema = msgspec.json.decode(Orders().invoice.parameters)
    asked = "Write the calculation, such as 3 + 4; it is done for you."
    assert schema["properties"]["amount"] == {"type": "string", "description": f"What is to be paid. {asked}"}
    assert schema["properties"]["note"]["type"] == ["string", "null"]
    assert schema["required"] == ["order_id", "amount"]


def test_a_grammar_asks_for_a_calculation() -> None:
    model = Scripted([GOODS, SHIPPING, invoice("19.9 + 11")], mode="constrained")
    run_sync(Orders().workflow, "Invoice order A-17.", backend=model).unwrap()
    last = msgspec.json.decode(model.requests[-1])["response_format"]["json_schema"]["schema"]
    branches = {b["properties"]["tool"]["const"]: b for b in last["anyOf"]}
    asked = branches["send_invoice"]["properties"]["args"]["properties"]["amount"]["pattern"]
    assert asked == plain_pattern(CALCULATION)
    for text in ("19.9 + 11", "19.9 * 19 / 100", "(19.9 + 11 + 45) / 3", "45 - 11 - 11"):
        assert re.fullmatch(asked, text), text
    for text in ("19.9", "goods + shipping", "19.9 + 11 = 30.9"):
        assert not re.fullmatch(asked, text), text


def test_tools_without_calculations_are_left_as_they_are() -> None:
    desk = Orders(calculated=None)
    assert "calculated" not in desk.workflow.compiled.guards
    assert desk.invoice.parameters == constraint_of(desk.invoice)
    assert "calculated" in Orders().workflow.compiled.guards


@pytest.mark.parametrize("text", ['{"order_id":"A","amount":30.50}', '{"amount":30.50,"order_id":"A","note":null}'])
def test_a_number_is_taken_as_the_text_that_it_is(text: str) -> None:
    found = argument_check(Orders().invoice)(text)
    assert isinstance(found, Fits)
    assert msgspec.json.decode(found.arguments)["amount"] == "30.50"


@pytest.mark.parametrize("text", ["", "[", '{"amount":}', '{"amount":true,"order_id":"A"}', '{"amount":[3]}', "\ud800"])
def test_any_other_text_is_judged_as_before(text: str) -> None:
    assert not isinstance(argument_check(Orders().invoice)(text), Fits)


def test_a_tool_with_a_schema_gets_the_number_too() -> None:
    got: list[object] = []

    def taken(total: object) -> None:
        got.append(total)

    schema = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
    pay = ToolDef(name="pay", description="", parameters=schema, function=taken, calculated="total")
    model = Scripted([call("pay", total="19 + 11.5")])
    run_sync(Workflow("w", tools=[pay], terminal_tool="pay"), "19 and 11.5", backend=model).unwrap()
    assert got == [30.5]


def test_a_person_may_approve_with_a_number_and_with_a_calculation() -> None:
    for edited, paid in (('{"total":100}', 100.0), ('{"total":"50 + 20"}', 70.0)):
        got: list[float] = []
        told: list[str] = []

        @tool(approval=True, calculated="total")
        def pay(total: float, got: list[float] = got) -> str:
            """Pay."""
            got.append(total)
            return "paid"

        async def ask(question: Ask, told: list[str] = told, edited: str = edited) -> Approved:
            told.append(question.problem)
            return Approved(digest=question.digest, edited='{"total":"much"}' if len(told) == 1 else edited)

        workflow = Workflow("w", tools=[pay], terminal_tool="pay")
        run_sync(workflow, "Pay 19 and 11.", backend=Scripted([call("pay", total="19 + 11")]), ask=ask).unwrap()
        assert got == [paid]
        assert "which cannot be calculated" in told[1]


def test_a_check_of_the_users_own_sees_the_result() -> None:
    seen: list[object] = []

    def check(arguments: dict[str, object]) -> str | None:
        seen.append(arguments["amount"])
        return None if len(seen) > 1 else "It is too early."

    desk = Orders(completion_checks={"send_invoice": check})
    state = desk.run(GOODS, SHIPPING, invoice("19.9 + 11"), invoice("19.9 + 11"))
    assert seen == [30.9, 30.9]
    assert corrections(state) == [
        "[Incomplete] send_invoice was not accepted: It is too early. Fix that, then call send_invoice again."
    ]


def test_a_calculation_of_what_is_not_known_yet_waits_for_it() -> None:
    desk = Orders(calls=Calls(batch="independent"), required_steps=())
    asked = {"order_id": "A-17"}
    plan = calls(("get_goods", asked), ("get_shipping", asked), ("send_invoice", {**asked, "amount": "19.9 + 11"}))
    state = desk.run(plan, invoice("19.9 + 11"))
    assert state.ledger.refusals == 0
    assert desk.sent == [(30.9, 1)]


def test_without_the_guard_the_tool_is_told_what_is_wrong() -> None:
    desk = Orders()
    bad = ToolCall(id="call_1", name="send_invoice", arguments='{"order_id":"A","amount":"much"}')
    (result,) = asyncio.run(desk.workflow.execute(Execute(calls=(bad,)))).results
    assert isinstance(result, Failed)
    assert "amount cannot be worked out" in result.message


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"calculated": {"nope": "amount"}}, "calculated: there is no tool named 'nope'"),
        ({"calculated": {"send_invoice": "sum"}}, "it has no argument 'sum'; it has: order_id, amount, parts, note"),
        ({"calculated": {"send_invoice": ["amount", "order_id"]}}, "its argument order_id is not a number"),
        ({"calculated": {"send_invoice": 7}}, "calculated"),
        (
            {"calculated": {"send_invoice": "amount"}, "grounded": {"send_invoice": "amount"}},
            "amount is calculated, so its numbers are grounded already; leave it out of grounded",
        ),
    ],
)
def test_wrong_definitions_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        Orders(**options)


def test_a_loop_of_ones_own_is_told_that_it_cannot_have_it() -> None:
    with pytest.raises(DefinitionError, match="send_invoice: calculated: only forge's own loop writes"):
        Guardrails(Orders().workflow)
