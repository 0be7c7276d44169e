"""Laws: what fits passes, what is coerced fits and says the same as before, a projection refuses nothing more."""

import json

import jsonschema_rs
import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from stages.schema import Fits, Misfit, checker, project
from stages.schema.judging import Judge, compiled
from stages.schema.value import Json, at_pointer
from tests.property.schemas import Specimen, any_schemas, any_values, mistaken, specimens


def encoded(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def valid(schema: Json, value: Json) -> bool:
    assert isinstance(schema, dict)
    return jsonschema_rs.is_valid(schema, value, validate_formats=True)


@given(specimens())
def test_arguments_that_fit_pass_unchanged(specimen: Specimen) -> None:
    result = checker(encoded(specimen.schema).encode())(encoded(specimen.value))
    assert isinstance(result, Fits)
    assert json.loads(result.arguments) == specimen.value
    assert all(repair.startswith("number to integer") for repair in result.repairs)


@given(mistaken())
def test_a_result_fits_and_is_left_alone_the_second_time(specimen: Specimen) -> None:
    check = checker(encoded(specimen.schema).encode())
    result = check(encoded(specimen.value))
    if isinstance(result, Fits):
        assert valid(specimen.schema, json.loads(result.arguments))
        assert check(result.arguments) == Fits(arguments=result.arguments)
    else:
        assert result.problems


@given(mistaken())
def test_a_misfit_is_one_by_the_validator_too(specimen: Specimen) -> None:
    result = checker(encoded(specimen.schema).encode())(encoded(specimen.value))
    if isinstance(result, Misfit):
        assert not valid(specimen.schema, specimen.value)
        assert all(len(problem.found) <= 80 for problem in result.problems)


@given(mistaken())
def test_nothing_is_invented_and_nothing_lost(specimen: Specimen) -> None:
    result = checker(encoded(specimen.schema).encode())(encoded(specimen.value))
    if isinstance(result, Fits):
        assert said(json.loads(result.arguments)) == said(specimen.value)


def said(value: Json) -> list[str]:
    """The words and numbers of a value, however they are wrapped or quoted; nulls say nothing."""
    match value:
        case dict():
            named = ([name, *said(child)] for name, child in value.items() if child is not None and child != "null")
            return sorted(word for words in named for word in words)
        case list():
            return sorted(word for child in value for word in said(child))
        case str():
            spelt = read(value)
            return [value] if isinstance(spelt, str) else said(spelt)
        case float() if value.is_integer():
            return [str(int(value))]
        case None:
            return []
        case _:
            return [str(value)]


def read(text: str) -> Json:
    try:
        value: Json = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return value


@given(st.text() | st.text('{}[]":,\\ au0', max_size=30))
@example("\ud800")
@example("[" * 100_000)
@example('{"a":' * 2_000)
@example('"' + "\\" * 1_001)
def test_any_text_gets_a_verdict(text: str) -> None:
    check = checker(b'{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#"}}}}')
    assert isinstance(check(text), Fits | Misfit)


@given(specimens())
def test_a_projection_accepts_what_the_original_accepts(specimen: Specimen) -> None:
    projected = project(encoded(specimen.schema).encode(), "llama.cpp")
    assert valid(json.loads(bytes(projected.schema)), specimen.value)


@given(specimens())
def test_a_projection_of_a_projection_is_itself(specimen: Specimen) -> None:
    once = project(encoded(specimen.schema).encode(), "llama.cpp")
    twice = project(once.schema, "llama.cpp")
    assert (bytes(twice.schema), twice.dropped) == (bytes(once.schema), ())


def strict_parts(schema: Json) -> list[dict[str, Json]]:
    """All schemas within, the whole first."""
    match schema:
        case dict():
            within = [
                *(members.values() if isinstance(members := schema.get("properties"), dict) else ()),
                *(members.values() if isinstance(members := schema.get("$defs"), dict) else ()),
                *(branches if isinstance(branches := schema.get("anyOf"), list) else ()),
                *([schema["items"]] if "items" in schema else ()),
            ]
            return [schema, *(part for child in within for part in strict_parts(child))]
        case _:
            return []


def as_strict(value: Json, schema: Json, root: dict[str, Json]) -> Json:
    """The value as a strict decoder writes it: null for each member that it leaves out."""
    assert isinstance(schema, dict)
    if isinstance(reference := schema.get("$ref"), str):
        return as_strict(value, at_pointer(root, reference), root)
    if isinstance(branches := schema.get("anyOf"), list):
        tried = [as_strict(value, branch, root) for branch in branches]
        kept = ({**branch, "$defs": root.get("$defs", {})} for branch in branches if isinstance(branch, dict))
        return next((each for each, branch in zip(tried, kept, strict=True) if valid(branch, each)), value)
    match value, schema.get("properties"), schema.get("items"):
        case dict(), dict() as members, _:
            return {name: as_strict(value.get(name), child, root) for name, child in members.items()}
        case list(), _, dict() as items:
            return [as_strict(item, items, root) for item in value]
        case _:
            return value


@given(specimens())
def test_a_strict_projection_accepts_what_the_original_accepts_null_for_what_is_left_out(specimen: Specimen) -> None:
    projected = project(encoded(specimen.schema).encode(), "openai-strict")
    schema = json.loads(bytes(projected.schema))
    if projected.refused:
        return
    written = as_strict(specimen.value, schema, schema)
    assert valid(schema, written)
    result = checker(encoded(specimen.schema).encode())(encoded(written))
    assert isinstance(result, Fits), result
    assert said(json.loads(result.arguments)) == said(specimen.value)


@given(specimens())
def test_a_strict_projection_is_in_the_subset(specimen: Specimen) -> None:
    """https://platform.openai.com/docs/guides/structured-outputs#supported-schemas."""
    projected = project(encoded(specimen.schema).encode(), "openai-strict")
    if projected.refused:
        return
    for part in strict_parts(json.loads(bytes(projected.schema))):
        assert not part.keys() & {
            "allOf",
            "oneOf",
            "not",
            "if",
            "patternProperties",
            "default",
            "minLength",
            "prefixItems",
        }
        assert part.keys() & {"type", "anyOf", "$ref"}
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == [*part["properties"]]  # type: ignore[misc]  # strict_parts has seen it


@given(any_schemas(), any_values())
def test_the_judge_of_parts_says_what_the_validator_says_of_the_whole(schema: dict[str, Json], value: Json) -> None:
    """It is asked where the validator alone would take exponential time; here it does not, so both can be asked."""
    judge = Judge(compiled(encoded(schema).encode()), 10_000)
    verdict = judge.fits(judge.schema.root, {"a": value})
    assert not judge.exhausted
    assert verdict == jsonschema_rs.is_valid(schema, {"a": value})
