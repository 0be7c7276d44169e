"""The only text of a tool limited to anything but what it was called with before."""

import json
import re
import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from forge import Workflow, run_sync, tool
from forge.errors import ToolResolutionError
from forge.interpreters.scripted import Scripted, call
from stages.candidates import without_call
from stages.schema.projection import plain_pattern
from stages.tool import ToolEffect, ToolSpec

WRITABLE = string.ascii_letters + string.digits + " _.,:;@#%&=!~<>/'`*+?(){}|$-"


def spec(*, effect: ToolEffect = "read", **properties: object) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return ToolSpec(name="fetch", description="", parameters=Raw(msgspec.json.encode(schema)), effect=effect)


def made(text: str) -> str:
    return json.dumps({"count": text})


def pattern(tool: ToolSpec) -> str | None:
    found: str | None = msgspec.json.decode(tool.parameters)["properties"]["count"].get("pattern")
    return found


COUNT = {"type": "string", "description": "How many."}
texts = st.text(WRITABLE, max_size=24).map(str.strip)
near = st.text("01-. ", max_size=4).map(str.strip)


@given((texts | near).filter(bool), st.text(WRITABLE, max_size=30) | near)
def test_every_text_but_that_one_can_be_written(before: str, text: str) -> None:
    limited = pattern(without_call(spec(count=COUNT), made(before)))
    assert limited is not None
    assert plain_pattern(limited) is not None, "llama.cpp's grammars have no such pattern"
    for one in (text, f"{before}0", before[:-1], f"{before} 0"):
        if one.strip() == one and "  " not in one:
            assert bool(re.fullmatch(limited[1:-1], one)) == (one not in ("", before))
    assert not re.fullmatch(limited[1:-1], before)
    assert not re.fullmatch(limited[1:-1], f" {before} ")


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (spec(count=COUNT, effect="write"), "29"),
        (spec(count=COUNT, unit=COUNT), "29"),
        (spec(count={"type": "integer"}), "29"),
        (spec(count={**COUNT, "enum": ["29", "30"]}), "29"),
        (spec(count=COUNT), "twenty-nine or as many as there are of them"),
        (spec(count=COUNT), "neunundzwanzigfünf"),
    ],
    ids=["a write", "two texts", "no text", "a list", "long", "no ASCII"],
)
def test_others_are_as_they_were(tool: ToolSpec, text: str) -> None:
    assert without_call(tool, made(text)) == tool


def test_a_model_that_repeats_a_call_in_vain_is_held_to_another() -> None:
    @tool(effect="read")
    def fetch(count: str) -> str:
        """Fetch records."""
        if len(count) != 5:
            raise ToolResolutionError(f"count must have a letter and four digits, such as 'n0007'; got {count!r}")
        return f"{count} records"

    @tool
    def finish(text: str) -> str:
        """End."""
        return text

    workflow = Workflow("records", tools=[fetch, finish], terminal_tool="finish", required_steps=["fetch"])
    wrong = call("fetch", count="29")
    model = Scripted([wrong, wrong, call("fetch", count="n0029"), call("finish", text="29")], mode="constrained")
    assert run_sync(workflow, "Fetch 29 records.", backend=model).unwrap().value == "29"
    schemas = [json.loads(body)["response_format"]["json_schema"]["schema"] for body in model.requests]
    counts = [schema["anyOf"][0]["properties"]["args"]["properties"].get("count") for schema in schemas[:3]]
    assert [*map(set, counts)] == [{"type"}, {"type", "pattern"}, {"type", "pattern"}]  # and no enum of n0007
    assert not re.fullmatch(counts[2]["pattern"][1:-1], "29")
    assert re.fullmatch(counts[2]["pattern"][1:-1], "n0029")
