"""Laws of rescue: total, deterministic, only known names out, nothing that is not in the text."""

import re

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.test_rescue import WORST
from stages.reasoning import Split, SplitDelta, advance_split, finish_split, join_split, split_reasoning
from stages.rescue import rescue
from tests.counted import calls_of
from tests.rescue_corpus import cases

NAMES = ("get_weather", "search", "set_timer")
FRAGMENTS = (
    *("{", "}", "[", "]", '"', "'", "`", "```", "```json\n", "\n", " ", ":", ",", "\\", "\u201c", "<", ">", "/*"),
    *("#", "\ud800"),
    *(
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        "[TOOL_CALLS]",
        "[ARGS]",
        "<function=search>",
        "</function>",
    ),
    *("<parameter=q>", "</parameter>", "<arg_key>q</arg_key>", "<arg_value>", "</arg_value>", '<invoke name="search">'),
    *(
        "<|channel|>analysis<|message|>",
        "<|channel|>final<|message|>",
        "to=functions.search",
        "<|end|>",
        "<|start|>assistant",
    ),
    *(
        "<|tool_call>call:search{",
        '<|"|>',
        "<tool_call|>",
        "<|open|>call ",
        "<\uff5ctool\u2581call\u2581begin\uff5c>",
        "<search>",
    ),
    *("search(", "q=1)", "Action: search\n", "Action Input: ", '"name": "search"', '"arguments": {', '"q": 1'),
    *("&quot;", "for example"),
    *('{"name": "search", "arguments": {"q": "x"}}', "get_weather", "<tool>search</tool>", "<tool_input>"),
    *("<|im_start|>user\n", "tool: search\n", '{\\"name\\": ', "```log\n", "<search q=", "a", "1", "-", "None"),
    *("true", ">>>search\n", "<tools>"),
)
hostile = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join) | st.text(max_size=60)
replies = st.sampled_from([case.text for kind in ("clean", "damage", "torn", "negative") for case in cases(kind)])
words = st.text(st.characters(codec="utf-8"), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@given(hostile)
def test_any_text_is_read_without_an_exception_and_always_alike(text: str) -> None:
    assert rescue(text, NAMES) == rescue(text, NAMES)
    assert split_reasoning(text) == split_reasoning(text)


@given(hostile)
@example("<start_function_call>call:set_timer{se\x00conds:90}<end_function_call>")
def test_only_known_names_and_json_objects_come_out(text: str) -> None:
    found = rescue(text, NAMES)
    for call in found.calls:
        assert call.name in NAMES
        msgspec.json.decode(call.arguments, type=dict[str, msgspec.Raw])
        assert 0 <= call.span[0] < call.span[1] <= len(text)
        assert call.cost >= 0
    assert not set(found.unknown) & set(NAMES)


def _strings(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [s for pair in value.items() for part in pair for s in _strings(part)]
        case list():
            return [s for part in value for s in _strings(part)]
        case bool() | None:
            return []
        case _:
            return [str(value)]


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower())


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join))
@example("{'name': 'search', 'arguments': {'q': 'it's'}}")
def test_no_value_comes_out_that_is_not_in_the_text(text: str) -> None:
    for call in rescue(text, NAMES).calls:
        for value in _strings(msgspec.json.decode(call.arguments)):
            assert _letters(value) in _letters(text)


@given(st.dictionaries(words, values, max_size=4))
def test_a_clean_call_comes_back_unchanged(arguments: dict[str, object]) -> None:
    written = msgspec.json.encode(arguments).decode()
    call = f'{{"name":"search","arguments":{written}}}'
    for text in (
        call,
        f"```json\n{call}\n```",
        f"<tool_call>\n{call}\n</tool_call>",
        f"[TOOL_CALLS]search[ARGS]{written}",
    ):
        found = rescue(text, NAMES)
        if _is_schema(arguments):
            continue
        assert [(c.name, c.arguments, c.cost) for c in found.calls] == [("search", written, 0)]


def _is_schema(arguments: dict[str, object]) -> bool:
    return any(key in ("properties", "type") for key in arguments) or any(
        isinstance(value, str) and value in ("str", "int", "float", "bool") for value in arguments.values()
    )


@given(replies | hostile, st.lists(st.integers(1, 9), max_size=60))
@example("`\n`<think>", [1, 1, 1])
def test_a_stream_splits_like_the_whole_for_every_way_to_cut_it(text: str, sizes: list[int]) -> None:
    split, position = Split(), 0
    deltas: list[SplitDelta] = []
    for size in sizes:
        split, added = advance_split(split, text[position : position + size])
        deltas += added
        position += size
    split, added = advance_split(split, text[position:])
    assert join_split((*deltas, *added, *finish_split(split))) == split_reasoning(text)


@given(replies | hostile)
def test_splitting_drops_tags_only(text: str) -> None:
    reasoning, rest = split_reasoning(text)
    kept = re.sub(r"\s", "", reasoning) + re.sub(r"\s", "", rest)
    assert len(kept) <= len(re.sub(r"\s", "", text))


def _steps(text: str) -> int:
    """Calls of functions while the text is read."""
    return calls_of(lambda: (rescue(text, NAMES), split_reasoning(text)))


@given(st.lists(st.sampled_from((*FRAGMENTS, *WORST.values())), min_size=1, max_size=3).map("".join))
@example('{"a":"\nAction: {')
@example("look[ARGS]{")
@example('[x(a="')
@example('{"name":[[[[')
@example("<search>{")
@example("<log>")
def test_twice_the_text_is_at_most_twice_the_work(unit: str) -> None:
    text = unit * (4000 // len(unit) + 1)
    # A window of the strict reader more or less is what the constant is for.
    assert _steps(text * 2) <= 2.3 * _steps(text) + 1000
