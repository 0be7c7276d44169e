"""Constrained replies: the schema of the calls that are legal, of answers, and of summaries."""

import jsonschema_rs
import msgspec
import pytest
from msgspec import Raw

from stages.tool import ToolSpec
from stages.wire.tool_schemas import SUMMARY_SCHEMA, branch, decode_summary, list_of, one_of

TREE = Raw(
    b'{"type":"object","properties":{"node":{"$ref":"#/$defs/Node"}},'
    b'"$defs":{"Node":{"type":"object","properties":{"child":{"$ref":"#/$defs/Node"}}}}}'
)


def tool(name: str) -> ToolSpec:
    return ToolSpec(name=name, description="", parameters=TREE)


def test_a_wrapped_call_is_the_only_member() -> None:
    schema = msgspec.json.decode(one_of([branch(tool("look"), Raw(b"{}"))], wrapped=True))
    assert (schema["required"], schema["additionalProperties"]) == (["call"], False)
    assert "$defs" not in schema


def test_definitions_of_two_tools_do_not_meet() -> None:
    def of_items(name: str, kind: str) -> ToolSpec:
        schema = b'{"type":"object","properties":{"item":{"$ref":"#/$defs/Item"}},"$defs":{"Item":{"type":"%b"}}}'
        return ToolSpec(name=name, description="", parameters=Raw(schema % kind.encode()))

    tools = (of_items("count", "integer"), of_items("name", "string"))
    valid = jsonschema_rs.validator_for(msgspec.json.decode(one_of([branch(t, t.parameters) for t in tools]))).is_valid
    assert valid({"tool": "count", "args": {"item": 1}})
    assert valid({"tool": "name", "args": {"item": "x"}})
    assert not valid({"tool": "name", "args": {"item": 1}})


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("words", [False, True])
def test_a_reply_may_be_calls_and_an_answer_where_words_are_welcome(words: bool, wrapped: bool) -> None:
    branches = [branch(tool("look"), TREE), branch(tool("write"), TREE)]
    whole = msgspec.json.decode(list_of(branches, words=words, wrapped=wrapped))
    schema = whole["properties"]["call"] if wrapped else whole
    valid = jsonschema_rs.validator_for(schema | {"$defs": whole["$defs"]}).is_valid
    look: dict[str, object] = {"tool": "look", "args": {}}
    write: dict[str, object] = {"tool": "write", "args": {}}
    assert valid([look])
    assert valid([look, write, look])
    assert valid(look), "a model that begins with a brace may mean a call"
    assert not valid({"tool": "cancel", "args": {}})
    assert not valid([{"tool": "cancel", "args": {}}])
    assert valid({"answer": "7"}) is words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '{"done_and_found":" A. ","did_not_work":"B.","still_open":"C."}',
            "A.\nDid not work: B.\nStill open: C.",
        ),
        ('{"done_and_found":"A.","did_not_work":"","still_open":" "}', "A."),
        ('{"done_and_found":"A."}', '{"done_and_found":"A."}'),
    ],
)
def test_a_summary_is_its_words(text: str, words: str) -> None:
    assert decode_summary(text) == words
    assert {*msgspec.json.decode(SUMMARY_SCHEMA)["required"]} == {"done_and_found", "did_not_work", "still_open"}
