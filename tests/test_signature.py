"""Signatures: the schema that a function gives, the mistakes that it names, the values that the function gets."""

import dataclasses
import datetime as dt
import enum
import functools
import json
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import annotated_types as at
import msgspec
import pydantic
import pytest
from typing_extensions import Doc

from forge.tools.definition import Signature, converter, describe
from stages.schema import Fits, checker


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Item(msgspec.Struct):
    sku: str
    count: int = 1


@dataclasses.dataclass
class Address:
    city: str


class Filters(TypedDict, total=False):
    limit: int


@dataclasses.dataclass
class Loose:
    """Its constraint would be lost without a word."""

    a: Annotated[int, pydantic.Field(ge=1)]


class Node(msgspec.Struct):
    children: "list[Node]" = []


class Point(pydantic.BaseModel):
    x: int = pydantic.Field(ge=0)


class Line(pydantic.BaseModel):
    """Two points."""

    ends: list[Point]


def described(function: Callable[..., object]) -> Signature:
    found = describe(function)
    assert isinstance(found, Signature), found
    return found


def parameters(function: Callable[..., object]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(described(function).parameters))
    return found


def google(order_id: str, days: int = 7) -> None:
    """Look an order up.

    Orders older than the limit are not found.

    Args:
        order_id: As in A-17.
        days: How far back.

    Returns:
        Nothing.
    """


def numpy(order_id: str, days: int = 7) -> None:
    """Look an order up.

    Orders older than the limit are not found.

    Parameters
    ----------
    order_id : str
        As in A-17.
    days : int
        How far back.
    """


def sphinx(order_id: str, days: int = 7) -> None:
    """Look an order up.

    Orders older than the limit are not found.

    :param order_id: As in A-17.
    :param days: How far back.
    """


@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_docstrings_of_three_styles_give_the_same(function: Callable[..., object]) -> None:
    found = described(function)
    assert found.name == function.__name__
    assert found.description == "Look an order up.\n\nOrders older than the limit are not found."
    assert parameters(function) == {
        "type": "object",
        "properties": {
            "order_id": {"description": "As in A-17.", "type": "string"},
            "days": {"description": "How far back.", "type": "integer", "default": 7},
        },
        "required": ["order_id"],
        "additionalProperties": False,
    }


def everything(  # noqa: PLR0917 - every kind of type once
    text: str,
    number: float,
    literal: Literal["low", "high", 2],
    color: Color,
    maybe: int | None,
    bounded: Annotated[int, msgspec.Meta(ge=1, description="Own words.")],
    items: list[Item],
    address: Address,
    filters: Filters,
    pair: tuple[int, str],
    names: set[str],
    counts: dict[str, int],
    day: dt.date,
    key: uuid.UUID,
    node: Node,
    line: Line,
    lines: list[Line],
    anything: Any,
    *,
    flag: bool = False,
    shade: Color = Color.RED,
    unset: str | None = None,
) -> None:
    """Take everything.

    Args:
        bounded: Not shown, for the annotation has words of its own.
        line: Where.
    """


class Rising(pydantic.BaseModel):
    level: Literal["low", "high"]


def of_levels(
    default: Literal["low", "high"],
    model: Rising,
    data: Annotated[dict[str, Any], msgspec.Meta(extra_json_schema={"examples": [{"enum": ["high", "low"]}]})],
) -> None:
    """Take one order, and data that looks like a schema."""


def of_both_orders(rising: Literal["low", "high"], falling: Literal["high", "low"], model: Rising) -> None:
    """Take two orders of the same choices."""


def test_choices_stay_as_they_are_written_and_nothing_else_is_reordered() -> None:
    one = parameters(of_levels)["properties"]
    assert one["default"]["enum"] == ["low", "high"]
    assert one["model"]["properties"]["level"]["enum"] == ["low", "high"]
    assert one["data"]["examples"] == [{"enum": ["high", "low"]}]
    both = parameters(of_both_orders)["properties"]
    assert [both[name]["enum"] for name in ("rising", "falling")] == [["high", "low"]] * 2  # sorted
    assert both["model"]["properties"]["level"]["enum"] == ["low", "high"]
    assert "$pydantic" not in json.dumps([one, both])


def test_the_schema_of_every_kind_of_type() -> None:
    schema = parameters(everything)
    assert schema["properties"] == {
        "text": {"type": "string"},
        "number": {"type": "number"},
        "literal": {"enum": ["low", "high", 2]},
        "color": {"$ref": "#/$defs/Color"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "bounded": {"type": "integer", "minimum": 1, "description": "Own words."},
        "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        "address": {"$ref": "#/$defs/Address"},
        "filters": {"$ref": "#/$defs/Filters"},
        "pair": {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
            "items": False,
        },
        "names": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "day": {"type": "string", "format": "date"},
        "key": {"type": "string", "format": "uuid"},
        "node": {"$ref": "#/$defs/Node"},
        "line": {
            "title": "Line",
            "description": "Two points.",
            "type": "object",
            "properties": {"ends": {"title": "Ends", "type": "array", "items": {"$ref": "#/$defs/Point"}}},
            "required": ["ends"],
            "additionalProperties": False,
        },
        "lines": {"type": "array", "items": schema["properties"]["line"]},
        "anything": {},
        "flag": {"type": "boolean", "default": False},
        "shade": {"$ref": "#/$defs/Color", "default": "red"},
        "unset": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    assert [*schema["properties"]] == [*everything.__annotations__][:-1]
    assert schema["required"] == [*schema["properties"]][:-3]
    assert schema["$defs"]["Color"]["enum"] == ["red", "blue"]
    assert schema["$defs"].keys() == {"Color", "Item", "Address", "Filters", "Node", "Point"}


def test_arguments_arrive_as_what_the_hints_say() -> None:
    given = {
        "number": 2,
        "color": "red",
        "maybe": None,
        "items": [{"sku": "A"}],
        "address": {"city": "Bonn"},
        "filters": {"limit": 3},
        "pair": [1, "x"],
        "names": ["n"],
        "day": "2026-11-21",
        "node": {"children": [{}]},
        "line": {"ends": [{"x": 1}]},
        "lines": [{"ends": []}],
        "anything": [None],
    }
    assert converter(everything)(json.dumps(given)) == {
        "number": 2.0,
        "color": Color.RED,
        "maybe": None,
        "items": [Item(sku="A")],
        "address": Address(city="Bonn"),
        "filters": {"limit": 3},
        "pair": (1, "x"),
        "names": {"n"},
        "day": dt.date(2026, 11, 21),
        "node": Node(children=[Node()]),
        "line": Line(ends=[Point(x=1)]),
        "lines": [Line(ends=[])],
        "anything": [None],
    }


def test_what_passes_the_check_of_its_schema_arrives() -> None:
    def pay(total: float, cents: int, when: dt.datetime, note: str = "") -> None: ...

    check = checker(described(pay).parameters)
    result = check('{"total":"1.5","cents":2.0,"when":"2026-11-21T10:00:00","note":null}')
    assert isinstance(result, Fits)
    assert converter(pay)(result.arguments) == {"total": 1.5, "cents": 2, "when": dt.datetime(2026, 11, 21, 10)}  # noqa: DTZ001 - as the model wrote it


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ('{"day":"tomorrow"}', "day: Invalid"),
        ('{"line":{"ends":[{"x":-1}]}}', "line: 1 validation error for Line"),
        ('{"items":[{"sku":1}]}', "items: Expected `str`, got `int` - at `$[0].sku`"),
        ('{"wrong":1}', "everything has no parameter wrong; it has: text, number, "),
    ],
)
def test_a_value_that_its_type_refuses_is_named(arguments: str, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        converter(everything)(arguments)
    assert str(caught.value).startswith(sentence)


class Clock:
    """Tell the time."""

    async def __call__(self, zone: str) -> str:
        return zone

    def at(self, city: str) -> str:
        """Tell it elsewhere."""
        return city

    @classmethod
    def of(cls, city: str) -> str:
        """Tell it here."""
        return city


def decorated(function: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(function)
    def inner(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    return inner


@pytest.mark.parametrize(
    ("function", "name", "description", "names"),
    [
        (Clock(), "Clock", "Tell the time.", ["zone"]),
        (Clock().at, "at", "Tell it elsewhere.", ["city"]),
        (Clock.of, "of", "Tell it here.", ["city"]),
        (decorated(google), "google", None, ["order_id", "days"]),
        (functools.partial(google, days=3), "google", None, ["order_id"]),
        (functools.partial(google, "A-17"), "google", None, ["days"]),
        (functools.partial(Clock(), zone="UTC"), "Clock", "Tell the time.", []),
        (functools.partial(functools.partial(google, days=3)), "google", None, ["order_id"]),
    ],
)
def test_every_kind_of_callable(
    function: Callable[..., object], name: str, description: str | None, names: list[str]
) -> None:
    """What a partial has bound is not the model's business."""
    found = described(function)
    assert found.name == name
    assert description is None or found.description == description
    assert [*parameters(function)["properties"]] == names


def test_every_mistake_is_named_at_once() -> None:
    def wrong(  # type: ignore[no-untyped-def] # the mistakes are the test
        first,  # noqa: ANN001
        second=3,  # noqa: ANN001
        /,
        third: "Nowhere" = 1,  # type: ignore[name-defined] # noqa: F821
        fourth: complex = 1j,
        *rest: str,
        fifth,  # noqa: ANN001
        sixth=2.5,  # noqa: ANN001
        seventh: Annotated[int, pydantic.Field(alias="x")] = 1,
        eighth: list[Loose] = [],  # noqa: B006 - never called
        **further: str,
    ) -> None: ...

    problems = describe(wrong)
    assert isinstance(problems, tuple)
    for start in (
        "tool wrong: parameter first is positional-only, and calls give names; remove the / from the signature",
        "tool wrong: parameter second is positional-only",
        "tool wrong: the type hint of parameter third, 'Nowhere', cannot be resolved (name 'Nowhere' is not defined)",
        "tool wrong: parameter fourth has a type without a JSON form (type <class 'complex'> is not supported); use ",
        "tool wrong: a model cannot fill in *rest; name each parameter, or take a list: rest: list[str]",
        "tool wrong: parameter fifth has no type hint; write fifth: str",
        "tool wrong: parameter sixth has no type hint; write sixth: float",
        "tool wrong: the type hint of parameter seventh: Field(alias=…) works only in a pydantic model; leave it out",
        "tool wrong: parameter eighth: a of Loose has a constraint of pydantic.fields, which works only in pydantic",
        "tool wrong: a model cannot fill in **further; name each parameter, or take a dict: further: dict[str, str]",
    ):
        assert any(problem.startswith(start) for problem in problems), start
    assert len(problems) == 10


def mistake(function: Callable[..., object]) -> str:
    """The only mistake in a function."""
    problems = describe(function)
    assert isinstance(problems, tuple)
    assert len(problems) == 1
    return problems[0]


@pytest.mark.parametrize("field", [pydantic.Field(default=5, ge=1), msgspec.field(default=5), dataclasses.field()])
def test_a_field_as_a_default_is_refused(field: int) -> None:
    """The function would be called with the Field itself, and its constraints would hold for nothing."""

    def wrong(count: int = field) -> None: ...

    assert "parameter count has a Field as its default" in mistake(wrong)
    assert "write count: Annotated[<type>, Field(…)] = <default>" in mistake(wrong)


def test_a_function_as_a_parameter_is_refused_by_name() -> None:
    def wrong(each: Callable[[int], int]) -> None: ...

    assert mistake(wrong).startswith("tool wrong: parameter each has a type without a JSON form")


def test_a_method_of_a_class_is_not_told_to_annotate_self() -> None:
    class Shop:
        def get_order(self, order_id: str) -> str:
            return order_id

    assert "make a tool of an object's method, as in tool(shop.get_order)" in mistake(Shop.get_order)
    assert [*parameters(Shop().get_order)["properties"]] == ["order_id"]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Annotated[int, pydantic.Field(ge=1, description="n")], {"type": "integer", "minimum": 1, "description": "n"}),
        (Annotated[str, at.Len(1, 3)], {"type": "string", "minLength": 1, "maxLength": 3}),
        (list[Annotated[int, at.Gt(1)]], {"type": "array", "items": {"type": "integer", "exclusiveMinimum": 1}}),
        (
            Annotated[int, at.Interval(ge=1, lt=9), "words"],
            {"minimum": 1, "exclusiveMaximum": 9, "description": "words"},
        ),
        (Annotated[str, pydantic.StringConstraints(pattern="a+")], {"type": "string", "pattern": "a+"}),
        (Annotated[int, at.Ge(1)] | str, {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
        (Annotated[int, "plain", msgspec.Meta(ge=2)], {"minimum": 2, "description": "plain"}),
        (pydantic.PositiveInt, {"exclusiveMinimum": 0}),
        (Annotated[int, Doc("More.")], {"type": "integer", "description": "More."}),
        (Annotated[int, object()], {"type": "integer"}),
        (dict[str, Annotated[float, pydantic.Field(multiple_of=0.5, examples=[1.5])]], {"type": "object"}),
    ],
)
def test_what_other_libraries_annotate_counts(hint: object, schema: dict[str, object]) -> None:
    def take(value) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001 - its hint is set below

    take.__annotations__["value"] = hint
    found = parameters(take)["properties"]["value"]
    assert found | schema == found


def test_an_annotated_constraint_is_kept_by_the_value_too() -> None:
    def take(value: list[Annotated[int, pydantic.Field(ge=1)]]) -> None: ...

    with pytest.raises(ValueError, match="value: Expected `int` >= 1"):
        converter(take)('{"value":[0]}')


def test_models_of_one_name_are_told_apart() -> None:
    """Two modules may each have a `Point`; a Struct may have the name too."""

    def other() -> tuple[type, type]:
        class Point(pydantic.BaseModel):
            label: str

        class Sign(pydantic.BaseModel):
            at: Point

        return Sign, type("Point", (msgspec.Struct,), {"__annotations__": {"name": str}})

    sign, struct = other()

    def take(line, sign, point) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001 - set below

    take.__annotations__ |= {"line": Line, "sign": sign, "point": struct}
    schema = parameters(take)

    def fields(ref: str) -> list[str]:
        return [*schema["$defs"][ref.removeprefix("#/$defs/")]["properties"]]

    properties = schema["properties"]
    assert fields(properties["line"]["properties"]["ends"]["items"]["$ref"]) == ["x"]
    assert fields(properties["sign"]["properties"]["at"]["$ref"]) == ["label"]
    assert fields(properties["point"]["$ref"]) == ["name"]


def test_a_function_without_a_readable_signature_is_a_mistake() -> None:
    problems = describe(dict)
    assert isinstance(problems, tuple)
    assert problems[0].startswith("tool dict: its signature cannot be read (")


def test_a_function_without_parameters_and_docstring() -> None:
    def ping() -> None: ...

    assert described(ping).description == ""
    assert parameters(ping) == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.mark.parametrize(
    ("hint", "works"),
    [
        (Address | int | None, True),
        (Point | None, True),
        (dt.date | str, False),
        (Address | Loose, False),
        (Point | int, False),
    ],
)
def test_the_unions_that_docs_workflow_md_names(hint: object, works: bool) -> None:
    def take(value) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001 - its hint is set below

    take.__annotations__["value"] = hint
    assert isinstance(describe(take), Signature) is works
