"""Reading a reply: where its calls are found, and what is said of each that cannot run."""

from typing import get_args

import pytest
from msgspec import Raw

from stages.effect import RawCall, Refused, Reply
from stages.message import Assistant, Kind, Tool, ToolCall, User
from stages.objection import BadArguments, BesideDamage, Guessed, UnknownTool
from stages.reading.replies import Reading, reader
from stages.reading.toolset import toolset_of
from stages.rescue import FAMILIES
from stages.rules import Calls, Rules
from stages.tool import ToolEffect, ToolSpec
from stages.validate import corrected_calls
from stages.wire.valid import valid_history

WHAT = Raw(b'{"type":"object","properties":{"what":{"type":"string"},"limit":{"type":"integer"}},"required":["what"]}')
EFFECTS: dict[str, ToolEffect] = {"look": "read", "write": "write", "finish": "terminal"}
TOOLS = tuple(ToolSpec(name=name, description="", parameters=WHAT, effect=effect) for name, effect in EFFECTS.items())
NATIVE = reader(Rules(tools=TOOLS), in_text=False, families=FAMILIES)


def given(name: str, arguments: str, finish: str = "stop") -> Reading:
    return NATIVE(Reply(calls=(RawCall(id="x", name=name, arguments=arguments),), finish=finish))


def test_a_clean_call_is_taken_as_it_is() -> None:
    reading = NATIVE(Reply(text="<think>Hm.</think>So:", calls=(RawCall(name="look", arguments='{"what":"a"}'),)))
    (call,) = reading.calls
    assert (call.name, call.arguments, call.origin, call.repairs, call.wrong) == (
        "look",
        '{"what":"a"}',
        "native",
        (),
        None,
    )
    assert (reading.said.reasoning, reading.said.text) == ("Hm.", "So:")


@pytest.mark.parametrize(
    ("name", "arguments", "meant"),
    [
        ("Look", '{"what":"a"}', '{"what":"a"}'),
        ("functions.look", '{"what":"a"}', '{"what":"a"}'),
        ("look", "{'what':'a'}", '{"what":"a"}'),
        ("look", '{"what":"a","limit":"3"}', '{"what":"a","limit":3}'),
        ("look", ' {"what":"a",}', '{"what":"a"}'),
    ],
)
def test_what_has_one_meaning_is_read_so_and_says_what_was_repaired(name: str, arguments: str, meant: str) -> None:
    (call,) = given(name, arguments).calls
    assert (call.name, call.arguments, call.wrong) == ("look", meant, None)
    assert call.repairs


@pytest.mark.parametrize(
    ("name", "arguments", "wrong"),
    [
        ("lok", "{}", UnknownTool),
        ("look", "{}", BadArguments),
        ("look", "no json", BadArguments),
        ("look", '{"what":1,"limit":"many"}', BadArguments),
        ("write", '{"what":"say "hi" now"}', Guessed),
        ("write", '{"what":["a"', Guessed),
    ],
)
def test_what_is_wrong_with_a_call(name: str, arguments: str, wrong: type) -> None:
    assert type(given(name, arguments).calls[0].wrong) is wrong


def test_an_unknown_name_is_told_the_nearest_one() -> None:
    assert given("lookk", "{}").calls[0].wrong == UnknownTool(known=("look", "write", "finish"), nearest="look")
    assert given("zebra", "{}").calls[0].wrong == UnknownTool(known=("look", "write", "finish"), nearest=None)


def test_a_call_is_guessed_at_only_where_its_tool_reads_and_nothing_was_cut_off() -> None:
    torn = '{"what":"a"'
    assert [type(given(name, torn).calls[0].wrong) for name in ("look", "write")] == [type(None), Guessed]
    assert type(given("look", torn, finish="length").calls[0].wrong) is Guessed


def test_calls_in_text_are_found_and_the_words_beside_them_kept() -> None:
    reading = NATIVE(Reply(text='I look it up.\n<tool_call>{"name":"look","arguments":{"what":"a"}}</tool_call>'))
    assert [(call.name, call.wrong) for call in reading.calls] == [("look", None)]
    assert (reading.said.text, reading.alone) == ("I look it up.", False)


def test_calls_of_the_form_that_was_asked_for_are_read_even_without_rescue() -> None:
    asked = reader(Rules(tools=TOOLS, calls=Calls(rescue_enabled=False)), in_text=True, families=())
    text = '{"tool":"look","args":{"what":"a"}}'
    assert [call.name for call in asked(Reply(text=text)).calls] == ["look"]
    assert (
        reader(Rules(tools=TOOLS, calls=Calls(rescue_enabled=False)), in_text=False, families=())(
            Reply(text=text)
        ).calls
        == ()
    )


def test_a_text_that_was_meant_as_a_call_says_what_is_wrong_with_it() -> None:
    reading = NATIVE(Reply(text='<tool_call>{"name":"lok","arguments":{}}</tool_call>'))
    assert (reading.calls, reading.damage) == ((), "there is no tool named 'lok'. Did you mean look?")
    assert NATIVE(Reply(text="Hello.")).damage is None


@pytest.mark.parametrize(("before", "runs"), [("look", True), ("finish", False)])
def test_a_call_before_one_that_is_damaged_runs_unless_it_ends_the_run(before: str, *, runs: bool) -> None:
    text = f'<tool_call>{{"name":"{before}","arguments":{{"what":"a"}}}}</tool_call>\n<tool_call>{{"name":"look","argum'
    reading = NATIVE(Reply(text=text))
    assert [type(call.wrong) for call in reading.calls] == [type(None) if runs else BesideDamage]
    assert reading.notice.startswith("[NotRun] Another call in your reply")


def test_tools_are_compiled_once() -> None:
    tools = toolset_of(TOOLS)
    assert [*tools.specs] == [*tools.checks] == [*tools.parameters] == [*EFFECTS]
    assert tuple(TOOLS[0].properties) == ("what", "limit"), "in the order in which they were declared"
    assert set(EFFECTS.values()) == set(get_args(ToolEffect))


# --- Corrected calls: what goes back to the server is a history that every server accepts

READING = Reading(said=Assistant(text="So:", reasoning="Hm."))


def corrected(*calls: ToolCall) -> tuple[object, ...]:
    answers = tuple(Refused(call_id=call.id, text=f"{call.name} is wrong.") for call in calls)
    history = corrected_calls(READING, calls, answers, 3)
    assert valid_history(history) == history
    return history


def test_calls_that_a_server_takes_back_are_answered_one_by_one() -> None:
    calls = (
        ToolCall(id="call_1", name="look", arguments='{"what":1}'),
        ToolCall(id="call_2", name="lok", arguments="{}"),
    )
    said, one, other = corrected(*calls)
    assert said == Assistant(text="So:", reasoning="Hm.", calls=calls, turn=3)
    assert one == Tool(call_id="call_1", name="look", text="look is wrong.", kind=Kind.RETRY_NUDGE, turn=3)
    assert isinstance(other, Tool)


@pytest.mark.parametrize(
    "damaged",
    [
        ToolCall(id="call_2", name="look", arguments='{"what"'),
        ToolCall(id="call_2", name="look", arguments="[]"),
        ToolCall(id="call_2", name="look up!", arguments="{}"),
        ToolCall(id="call_2", name="", arguments="{}"),
    ],
)
def test_one_that_a_server_would_refuse_makes_text_of_them_all(damaged: ToolCall) -> None:
    fine = ToolCall(id="call_1", name="look", arguments='{"what":"a"}')
    said, nudge = corrected(fine, damaged)
    assert said == Assistant(
        text=f'So:\nlook({{"what":"a"}})\n{damaged.name}({damaged.arguments})', reasoning="Hm.", turn=3
    )
    assert nudge == User(text=f"look is wrong.\n{damaged.name} is wrong.", kind=Kind.RETRY_NUDGE, turn=3)


def test_of_endless_arguments_only_the_beginning_goes_back() -> None:
    said, _ = corrected(ToolCall(id="call_1", name="look", arguments="x" * 100_000))
    assert isinstance(said, Assistant)
    assert len(said.text) < 2_100
