"""Tools without type hints, and results of a type: what the model is told, what the function gets, what comes back."""

import asyncio
import dataclasses
import json
from collections.abc import Callable
from typing import Annotated, Literal, TypedDict

import msgspec
import pydantic
import pytest

from forge import Finished, ToolDef, Workflow, run_sync, tool
from forge.errors import DefinitionError
from forge.guardrails import Guardrails, RunCalls
from forge.interpreters.scripted import Line, Scripted, call

SCHEMA = {
    "type": "object",
    "properties": {"what": {"type": "string"}, "depth": {"type": "integer"}},
    "required": ["what"],
}


@dataclasses.dataclass
class Range:
    start: int
    end: int = 9


class Question(pydantic.BaseModel):
    what: str = pydantic.Field(min_length=2)
    within: Range = Range(0)
    depth: int = 1


class Words(TypedDict):
    what: str


class Ask(msgspec.Struct, kw_only=True):
    what: Annotated[str, msgspec.Meta(min_length=2)]
    within: Range = Range(0)
    depth: int = 1


def ran(made: Callable[..., object], *script: Line) -> object:
    return run_sync(Workflow("w", tools=[made], terminal_tool="look"), "Go.", backend=Scripted(script)).unwrap().value


def test_a_json_schema_and_a_function_without_hints() -> None:
    def find(what, depth=3):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - what ToolDef is for
        return f"{what} at {depth}"

    made = ToolDef(name="look", description="Look.", parameters=SCHEMA, function=find, effect="read")
    assert json.loads(bytes(made.spec.parameters)) == SCHEMA
    assert (made.name, made.spec.description, made.spec.effect) == ("look", "Look.", "read")
    assert made("x") == "x at 3"
    assert ran(made, call("look", depth=1), call("look", what="a", depth="2")) == "a at 2"


async def repeated(what, depth=3):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - what ToolDef is for
    await asyncio.sleep(0)
    return what * depth


@pytest.mark.parametrize(("parameters", "function", "value"), [(SCHEMA, repeated, "aaa"), (Words, dict, {"what": "a"})])
def test_an_async_function_and_a_typed_dict_will_do(
    parameters: type, function: Callable[..., object], value: object
) -> None:
    assert (
        ran(ToolDef(name="look", description="", parameters=parameters, function=function), call("look", what="a"))
        == value
    )


@pytest.mark.parametrize("kind", [Question, Ask])
def test_the_fields_of_a_class_arrive_as_their_types_with_their_defaults(kind: type) -> None:
    got = []

    def find(**fields: object) -> None:
        got.append(fields)

    made = ToolDef(name="look", description="Look.", parameters=kind, function=find)
    schema = json.loads(bytes(made.spec.parameters))
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["what"], False)
    assert "title" not in schema
    ran(made, call("look", what="a"), call("look", what="aa", within={"start": 5}))
    assert got == [{"what": "aa", "within": Range(5, 9), "depth": 1}]


def find(what: str) -> str:
    return what


@pytest.mark.parametrize(
    ("parameters", "function", "says"),
    [
        ({"type": "object", "properties": 3}, find, "its parameters are not a JSON Schema of an object"),
        ({"type": "array"}, find, "its parameters are not a JSON Schema of an object"),
        ({"type": "object", "properties": {"x": object()}}, find, "its parameters are not a JSON Schema of an object"),
        (int, find, "its parameters are int, which is not a class with fields"),
        (complex, find, "its parameters have no JSON form (type <class 'complex'> is not supported)"),
        (SCHEMA, find, "its parameters have 'depth', which the function does not take"),
        (
            {"type": "object", "properties": {"what": {"type": "string"}}},
            find,
            "the function needs 'what', which the parameters do not require",
        ),
        (SCHEMA, lambda what, depth: None, "the function needs 'depth', which the parameters do not require"),
    ],
)
def test_a_mistake_is_said_in_a_sentence(parameters: type, function: Callable[..., object], says: str) -> None:
    made = ToolDef(name="look", description="", parameters=parameters, function=function)
    with pytest.raises(DefinitionError) as caught:
        Workflow("w", tools=[made], terminal_tool="look")
    assert [problem for problem in caught.value.problems if problem.startswith(f"tool look: {says}")], caught.value


class Report(msgspec.Struct):
    """A report on an order."""

    city: str
    total: Annotated[float, msgspec.Meta(ge=0)]
    kind: Literal["short", "long"] = "short"


@dataclasses.dataclass
class Plain:
    city: str
    within: Range


class Model(pydantic.BaseModel):
    city: str = pydantic.Field(alias="City")
    total: float

    @pydantic.field_validator("total")
    @classmethod
    def positive(cls, value: float) -> float:
        if value < 0:
            raise ValueError("the total is never negative")
        return value


@tool(effect="read")
def look(what: str) -> str:
    """Look."""
    return what


@pytest.mark.parametrize(
    ("kind", "wrong", "right", "value"),
    [
        (Report, {"city": "Oslo", "total": -1}, {"city": "Oslo", "total": "3.5"}, Report("Oslo", 3.5)),
        (Plain, {"city": "Oslo"}, {"city": "Oslo", "within": {"start": 1}}, Plain("Oslo", Range(1))),
        (Words, {}, {"what": "x"}, {"what": "x"}),
        (Model, {"City": "Oslo", "total": -1}, {"City": "Oslo", "total": 2}, Model(City="Oslo", total=2)),
        (list[Range], {"result": 3}, {"result": [{"start": 1}]}, [Range(1)]),
        (Annotated[int, pydantic.Field(ge=3)], {"result": 2}, {"result": 3}, 3),
        (int | str, {"result": []}, {"result": "x"}, "x"),
    ],
)
def test_a_run_ends_with_a_value_of_the_type(kind: type[object], wrong: object, right: object, value: object) -> None:
    workflow = Workflow("w", tools=[look], required_steps="look", result=kind)
    script = [call("look", what="a"), call("submit_result", **wrong), call("submit_result", **right)]  # type: ignore[arg-type]
    model = Scripted(script)
    found = run_sync(workflow, "Go.", backend=model).unwrap().value
    assert found == value
    assert type(found) is type(value)
    assert b"city" not in model.requests[0] or b"Submit the final result" in model.requests[0]
    guard = Guardrails(workflow)
    for reply in script:
        action = guard.check(reply)
        if isinstance(action, RunCalls):
            (made,) = action.calls
            if made.name == "submit_result" and made.arguments == wrong:
                action = guard.record(failures={made.id: "no"})  # what only the type itself refuses
            else:
                action = guard.record({made.id: made.arguments})
    assert isinstance(action, Finished)
    assert action.value == value


def test_another_terminal_tool_keeps_its_own_value() -> None:
    @tool
    def give_up(why: str) -> dict[str, str]:
        """Give up."""
        return {"why": why}

    workflow = Workflow("w", tools=[give_up], terminal_tool="give_up", result=Report)
    value: object = run_sync(workflow, "Go.", backend=Scripted([call("give_up", why="no")])).unwrap().value
    assert value == {"why": "no"}


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (complex, "result is a type without a JSON form (type <class 'complex'> is not supported); use str, int"),
        (Annotated[int, pydantic.Field(alias="x")], "result: Field(alias=…) works only in a pydantic model"),
    ],
)
def test_a_type_that_cannot_be_a_result_is_said(kind: type[object], says: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Workflow("w", tools=[look], result=kind)
    assert caught.value.problems[0].startswith(says)


def test_a_function_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(DefinitionError, match="tool a: function is 3, which cannot be called"):
        ToolDef(name="a", description="A.", parameters={"type": "object"}, function=3)  # type: ignore[arg-type]  # wrong on purpose


def test_a_mistyped_option_is_answered_with_the_one_that_is_meant() -> None:
    with pytest.raises(TypeError, match=r"no option 'efect'.*Did you mean effect"):
        tool(efect="read")  # type: ignore[call-overload]  # wrong on purpose


def test_what_of_a_schema_is_not_checked_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    sku = {"type": "string", "pattern": "[a-z]?" * 1_000}
    schema = {"type": "object", "properties": {"sku": sku}, "required": ["sku"]}
    made = ToolDef(name="find", description="Find.", parameters=schema, function=lambda sku: sku)
    assert not made.problems
    (told,) = [one.getMessage() for one in caplog.records]
    assert told.startswith("the tool find: some of its schema costs too much to check")
