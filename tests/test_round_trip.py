"""Types on their way: a default in the schema, an argument as the function gets it, a result as the run gives it."""

import dataclasses
import datetime as dt
import enum
import uuid
from decimal import Decimal
from typing import NamedTuple, TypedDict

import msgspec
import pydantic
import pytest

from forge import Workflow, run_sync, tool
from forge.interpreters.scripted import Scripted, call
from forge.tools import Tool

DAY, MOMENT = dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4)  # noqa: DTZ001 - users have naive ones too


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Item:
    name: str
    price: Decimal = Decimal("1.10")
    when: dt.datetime = MOMENT
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    day: dt.date = DAY
    color: Color = Color.RED


@dataclasses.dataclass(slots=True)
class Slotted:
    price: Decimal = Decimal(3)


class Point(NamedTuple):
    x: Decimal = Decimal(1)
    items: tuple[Frozen, ...] = ()


class Named(TypedDict, total=False):
    item: Frozen


class Order(msgspec.Struct):
    items: dict[str, Item]
    when: dt.datetime = MOMENT


class Model(pydantic.BaseModel):
    price: Decimal = Decimal("2.5")
    when: dt.datetime = MOMENT


CASES: list[tuple[object, object, object]] = [
    (dt.datetime, MOMENT, "2024-01-02T03:04:00"),
    (dt.datetime, MOMENT.replace(tzinfo=dt.UTC), "2024-01-02T03:04:00Z"),
    (dt.date, DAY, "2024-01-02"),
    (dt.time, dt.time(3, 4), "03:04:00"),
    (dt.timedelta, dt.timedelta(hours=1), "PT3600S"),
    (Decimal, Decimal("9.90"), "9.90"),
    (uuid.UUID, uuid.UUID(int=3), str(uuid.UUID(int=3))),
    (bytes, b"abc", "YWJj"),
    (Color, Color.RED, "red"),
    (Item, Item("a"), {"name": "a", "price": "1.10", "when": "2024-01-02T03:04:00", "tags": []}),
    (Frozen, Frozen(), {"day": "2024-01-02", "color": "red"}),
    (Slotted, Slotted(), {"price": "3"}),
    (Point, Point(items=(Frozen(),)), ["1", [{"day": "2024-01-02", "color": "red"}]]),
    (Named, Named(item=Frozen()), {"item": {"day": "2024-01-02", "color": "red"}}),
    (Model, Model(), {"price": "2.5", "when": "2024-01-02T03:04:00"}),
    (list[Frozen | None], [Frozen(), None], [{"day": "2024-01-02", "color": "red"}, None]),
    (dict[dt.date, Decimal], {DAY: Decimal("1.5")}, {"2024-01-02": "1.5"}),
    (frozenset[dt.date], frozenset({DAY}), ["2024-01-02"]),
    (float, 1.5, 1.5),
]


def echo(kind: object, default: object, seen: list[object]) -> Tool[..., object]:
    def echoed(value: object = default) -> object:
        seen.append(value)
        return value

    echoed.__annotations__["value"] = kind
    return tool(echoed)


@pytest.mark.parametrize(("kind", "value", "written"), CASES)
def test_a_value_is_the_same_as_default_argument_and_result(kind: object, value: object, written: object) -> None:
    seen: list[object] = []
    made = echo(kind, value, seen)
    schema = msgspec.json.decode(made.spec.parameters)
    assert schema["properties"]["value"]["default"] == written
    workflow = Workflow("w", tools=[made], terminal_tool="echoed")
    for arguments in ({}, {"value": written}):
        ended = run_sync(workflow, "Go.", backend=Scripted([call("echoed", **arguments)])).unwrap()
        assert ended.value == written
    assert seen == [value, value]
    assert type(seen[1]) is type(value)


def test_defaults_of_dataclasses_are_in_the_instances_at_any_depth() -> None:
    seen: list[Order] = []

    @tool
    def take(order: Order) -> Order:
        """Take an order."""
        seen.append(order)
        return order

    model = Scripted([call("take", order={"items": {"a": {"name": "b"}}})])
    value = run_sync(Workflow("w", tools=[take], terminal_tool="take"), "Go.", backend=model).unwrap().value
    item = {"name": "b", "price": "1.10", "when": "2024-01-02T03:04:00", "tags": []}
    assert value == {"items": {"a": item}, "when": "2024-01-02T03:04:00"}
    assert vars(seen[0].items["a"]) == dataclasses.asdict(Item("b"))


class Open(pydantic.BaseModel, extra="allow"):
    item: Frozen = Frozen()


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        (Item, True),
        (Named, True),
        (Order, True),
        (Model, True),
        (list[Item], True),
        (dict[str, Model], True),
        (Open, False),
    ],
)
def test_an_unknown_field_of_an_object_is_refused_and_not_dropped(kind: object, refused: bool) -> None:
    misspelt = {"name": "a", "items": {}, "price_": "9"}
    given: dict[object, object] = {list[Item]: [misspelt], dict[str, Model]: {"a": misspelt}, Named: {"itme": 1}}
    seen: list[object] = []
    workflow = Workflow("w", tools=[echo(kind, None, seen)], terminal_tool="echoed")
    model = Scripted([call("echoed", value=given.get(kind, misspelt)), call("echoed")])
    history = run_sync(workflow, "Go.", backend=model).unwrap().state.history
    assert ("expected no argument of that name" in history[2].text) == refused
    assert (seen == [None]) == refused


@pytest.mark.parametrize(("given", "price"), [(3.5, "3.5"), (12, "12"), ("1.10", "1.10")])
def test_a_decimal_may_be_written_as_a_number(given: object, price: str) -> None:
    seen: list[object] = []
    workflow = Workflow("w", tools=[echo(Decimal, Decimal(0), seen)], terminal_tool="echoed")
    run_sync(workflow, "Go.", backend=Scripted([call("echoed", value=given)])).unwrap()
    assert seen == [Decimal(price)]
    assert str(seen[0]) == price


@pytest.mark.parametrize("default", [float("inf"), float("nan")])
def test_a_default_that_json_cannot_say_is_not_said(default: float) -> None:
    schema = msgspec.json.decode(echo(float, default, []).spec.parameters)
    assert schema["properties"]["value"] == {"type": "number"}


def test_a_result_of_a_type_has_its_defaults_too() -> None:
    workflow = Workflow("w", tools=[], result=Item)
    made = run_sync(workflow, "Go.", backend=Scripted([call("submit_result", name="a")])).unwrap().value
    assert vars(made) == vars(Item("a"))
