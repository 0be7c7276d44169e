"""JSON from outside: one limit of nesting on every Python, and text without halves of characters."""

import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from forge import run_sync
from forge.interpreters.tools import succeeded
from forge.testing import Scripted
from stages.decoding import NESTING, decode, nested, objects, sound
from stages.effect import Fault, RawCall, Reply
from stages.repair.damaged_json import FoundJson
from stages.repair.json_text import json_at
from stages.schema import Misfit, checker
from stages.wire.anthropic import messages as anthropic
from stages.wire.ollama import chat as ollama
from stages.wire.openai import chat as openai
from tests.flows import Desk

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]
_any: msgspec.json.Decoder[object] = msgspec.json.Decoder()

UNSOUND = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | UNSOUND,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(UNSOUND, inner, max_size=4),
)


def tower(levels: int, opened: str = "[", closed: str = "]") -> str:
    return opened * levels + "1" + closed * levels


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}"), ('[{"]":"}\\"",  "a": ', "}]")])
def test_the_limit_of_nesting_is_forge_s_own(opened: str, closed: str) -> None:
    most = NESTING // (opened.count("[") + opened.count("{"))
    assert decode(_any, tower(most, opened, closed)) == json.loads(tower(most, opened, closed))
    for levels in (most + 1, 1_100, 100_000):
        for text in (tower(levels, opened, closed), opened * levels):
            for given_ in (text, text.encode()):
                with pytest.raises(msgspec.DecodeError, match="nested deeper than 128 levels"):
                    decode(_any, given_)


_bracketed = st.recursive(
    st.sampled_from(["", "[", "]", '"', '"[', "\\", '\\"{', "\n{", "é["]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["{", '"', "\\"]), inner, max_size=3),
)


@given(value=_bracketed, ascii_only=st.booleans())
def test_brackets_in_strings_nest_nothing(value: object, ascii_only: bool) -> None:
    def depth(part: object) -> int:
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else None
        return 0 if inside is None else 1 + max(map(depth, inside), default=0)

    def count(part: object) -> int:
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else None
        return 0 if inside is None else 1 + sum(map(count, inside))

    text = json.dumps(value, ensure_ascii=ascii_only)
    assert objects(text.encode()) == count(value)
    for given_ in (text, text.encode()):
        assert not nested(given_, depth(value))
        assert not depth(value) or nested(given_, depth(value) - 1)


def test_what_is_not_nested_is_decoded_however_much_it_is() -> None:
    flat: list[object] = [[{}]] * 10_000 + ["[" * 1_000, '\\"{[' * 1_000]
    assert decode(_any, json.dumps(flat)) == flat
    assert not nested("[]" + "[" * 1_000), "the value ends before"


@pytest.mark.parametrize(
    "text", ['"' * 99_999, '"\\' * 99_999, '[["\\"' * 99_999, "]" * 99_999, "[1" * 100, "", "{", "\x00"]
)
def test_what_is_no_json_is_refused_as_such(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(_any, text)


@given(VALUES)
def test_text_with_halves_of_characters_is_decoded_as_text_without(value: Value) -> None:
    whole = made_sound(value)
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert same(decode(_any, text), whole)
        assert same(decode(_any, text.encode(errors="surrogatepass")), whole, loose=True)


def made_sound(value: Value) -> object:
    """By Python's own reader, which pairs halves that stand side by side."""
    return json.loads(sound(json.dumps(json.loads(json.dumps(value)), ensure_ascii=False)))


def same(one: object, other: object, *, loose: bool = False) -> bool:
    """Whether they are equal once written down; `loose`: however many U+FFFD stand for half of a character in bytes."""
    texts = [json.dumps(value, ensure_ascii=False) for value in (one, other)]
    return len({text.replace("\ufffd", "") for text in texts} if loose else {*texts}) == 1


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\uD83D", "\ufffd"),
        (rb"a\udc00b", "a\ufffdb"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\ud83d\u0041", "\ufffdA"),
        (rb"\\ud83d", "\\ud83d"),
        (b"\xff", "\ufffd"),
        (b"\xf0\x9f\x98", "\ufffd"),
    ],
)
def test_half_a_character_is_the_replacement_character(written: bytes, read: str) -> None:
    assert decode(_any, b'{"' + written + b'":["' + written + b'"]}') == {read: [read]}


OPENAI = (
    '{"choices":[{"message":{"content":"%s","tool_calls":['
    '{"id":"%s","function":{"name":"%s","arguments":{"a":%s}}}]}}]}'
)
ANTHROPIC = r'{"content":[{"type":"text","text":"%s"},{"type":"tool_use","id":"%s","name":"%s","input":{"a":%s}}]}'
OLLAMA = '{"message":{"content":"%s","tool_calls":[{"id":"%s","function":{"name":"%s","arguments":{"a":%s}}}]}}'


@pytest.mark.parametrize(
    ("wire", "form"),
    [(openai.decode_reply, OPENAI), (anthropic.decode_reply, ANTHROPIC), (ollama.decode_reply, OLLAMA)],
)
def test_every_wire_reads_halves_of_characters_and_refuses_what_is_nested_too_deep(
    wire: Callable[[bytes], Reply | Fault], form: str
) -> None:
    half = r"x\ud800"
    reply = wire((form % (half, half, half, f'"{half}"')).encode())
    assert isinstance(reply, Reply)
    assert reply.text == "x\ufffd"
    (call,) = reply.calls
    assert call.name == "x\ufffd"
    assert decode(_any, call.arguments) == {"a": "x\ufffd"}
    for levels in (500, 5_000, 50_000):
        refused = wire((form % ("", "", "", tower(levels))).encode())
        assert isinstance(refused, Fault)
        assert "nested deeper than 128 levels" in refused.detail


def test_arguments_are_held_to_one_limit_however_they_come() -> None:
    check = checker(b'{"type":"object"}')
    for levels in (100, 500, 1_500, 5_000, 50_000):
        judged = check(f'{{"a":{tower(levels)}}}')
        assert isinstance(judged, Misfit)
        assert [problem.rule for problem in judged.problems] == ["depth"]


@pytest.mark.parametrize("levels", [200, 500, 1_100, 5_000])
def test_rescue_takes_no_call_that_is_nested_too_deep(levels: int) -> None:
    assert isinstance(json_at(tower(60), 0), FoundJson)
    assert not isinstance(json_at(tower(levels), 0), FoundJson)


@pytest.mark.parametrize("levels", [101, 500, 900])
def test_a_result_that_could_not_be_read_back_is_a_text(levels: int) -> None:
    value: Value = 1
    for _ in range(levels):
        value = [value]
    shown = succeeded("1", value)
    assert shown.value == Raw(msgspec.json.encode(str(value)))


def test_a_run_goes_on_with_text_that_holds_halves_of_characters() -> None:
    desk = Desk()
    script: list[str | Reply] = [
        "\ud800",
        Reply(calls=(RawCall(id="\ud800", name="look", arguments='{"what": "a\\ud83d"}'),)),
        Reply(calls=(RawCall(name="write", arguments='{"what": "\ud83d", "text": "\udc00"}'),)),
        Reply(calls=(RawCall(name="finish", arguments='{"result": "ok\\udfff"}'),)),
    ]
    print(run_sync(desk.workflow, "Go\udcff.", backend=Scripted(script)))
