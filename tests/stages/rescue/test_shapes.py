"""Formats of vendors, invented ones and damage, written down from public facts before the shapes were built.

`half` says what a case was for: `tune` and `held`, two halves of one list, and `invented`, new prefixes and markers.
A case of the kind `negative` calls nothing; it is read with tools that write.
"""

import json

import msgspec
import pytest
from msgspec import Raw, Struct

from forge.backends.profile import from_toml
from forge.errors import ForgeError
from forge.workflow.checks import own_families
from stages.effect import Reply
from stages.options import OptionError
from stages.reading.replies import reader
from stages.rescue import FAMILIES, Format, family_of, rescue, rescuer
from stages.rules import Rules
from stages.tool import ToolEffect, ToolSpec
from tests.rescue_corpus import FOLDER, Meant, arguments
from tests.stages.rescue.test_cost import work


class Case(Struct, frozen=True):
    """One reply, and the calls that it means. `missed`: it is not read so (yet)."""

    id: str
    half: str
    kind: str
    text: str
    calls: tuple[Meant, ...]
    missed: bool = False


CASES = [
    msgspec.json.decode(line, type=Case) for line in (FOLDER / "shapes.jsonl").read_text(encoding="utf-8").splitlines()
]
PARAMETERS = {
    "get_weather": {"city": "string", "days": "integer"},
    "search": {"query": "string"},
    "write_file": {"path": "string", "content": "string"},
    "set_timer": {"seconds": "integer", "label": "string"},
    "pay": {"to": "string", "amount": "number"},
    "tagged": {"tags": "array"},
}
NAMES = {name: tuple(given) for name, given in PARAMETERS.items()}


def _tools(effect: ToolEffect) -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(
            name=name,
            description="",
            parameters=Raw(
                json.dumps(
                    {"type": "object", "properties": {key: {"type": kind} for key, kind in given.items()}}
                ).encode()
            ),
            effect=effect,
        )
        for name, given in PARAMETERS.items()
    )


READS, WRITES = (reader(Rules(tools=_tools(effect)), in_text=False, families=FAMILIES) for effect in ("read", "write"))


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_a_format_is_read_whatever_its_prefix_markers_and_damage(case: Case) -> None:
    read = (WRITES if case.kind == "negative" else READS)(Reply(text=case.text))
    right = all(call.wrong is None for call in read.calls) or case.kind == "negative"
    found = tuple(Meant(call.name, arguments(call.arguments)) for call in read.calls if call.wrong is None)
    assert right
    assert found == case.calls


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.id) for c in CASES if c.kind == "clean" and "-" not in c.id[-5:]]
)
def test_well_formed_calls_on_one_line_take_time_linear_in_their_number(case: Case) -> None:
    call = case.text.replace("\n", " ")
    short, long = (call * count for count in (4, 20))
    assert work(long, NAMES) <= 8 * work(short, NAMES) + 2000


SHEET = Format(name="sheet", call="@@{name} {json}@@")
BLOCK = Format(name="block2", call="CALL|{name}|{arguments} END", argument="WITH {key} -> {value} DONE")


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('Look: @@get_weather {"city": "Paris"}@@', (Meant("get_weather", {"city": "Paris"}),)),
        ('@@get_weather\n{"city": "Paris",}@@ @@search {"query": "x"}@@', ("get_weather", "search")),
        ("@@somebody said {} @@", ()),
        (
            "CALL|get_weather|WITH city -> Paris DONE WITH days -> 3 DONE END",
            (Meant("get_weather", {"city": "Paris", "days": 3}),),
        ),
    ],
)
def test_a_format_of_ones_own_is_an_example_of_a_call(text: str, calls: tuple[Meant | str, ...]) -> None:
    found = rescuer((family_of(SHEET), family_of(BLOCK), *FAMILIES))(text, NAMES)
    assert [call.name for call in found.calls] == [call if isinstance(call, str) else call.name for call in calls]


def test_a_workflow_and_a_profile_take_formats() -> None:
    profile = from_toml('name = "mine"\n[[formats]]\nname = "sheet"\ncall = "@@{name} {json}@@"\n')
    assert profile.formats == (SHEET,)
    (family,) = own_families([SHEET])
    assert [call.name for call in rescuer((family,))('@@search {"query": "x"}@@', NAMES).calls] == ["search"]
    with pytest.raises(ForgeError, match=r"it must be markup, then \{name\}"):
        from_toml('name = "mine"\n[[formats]]\nname = "sheet"\ncall = "@@"\n')


@pytest.mark.parametrize(
    ("call", "argument", "says"),
    [
        ("@@{name}@@", "", "it must be markup, then {name}, then {json} or {arguments}"),
        ("{name} {json}", "", "it must be markup, then {name}"),
        ("@@{name} {arguments}@@", "", "it must have {key}, then {value}"),
        ("@@{name} {json}@@", "{key}={value};", "it must be empty, because call has {json}"),
        ("@@{name} {arguments}@@", "{key}={value};", "it must have markup before {key} and after {value}"),
    ],
)
def test_a_format_without_its_places_is_refused_when_it_is_made(call: str, argument: str, says: str) -> None:
    with pytest.raises(OptionError, match="Format 'mine': ") as caught:
        Format(name="mine", call=call, argument=argument)
    assert says in str(caught.value)


ELEMENTS = {
    "an attribute without a name": ("<function=f>", "<parameter=KEY>", "</parameter>", "</function>"),
    "an attribute": ('<invoke name="f">', '<parameter name="KEY">', "</parameter>", "</invoke>"),
    "own keys": ('<invoke name="f">', "<KEY>", "</KEY>", "</invoke>"),
    "pairs": ("<tool_call>f", "<arg_key>KEY</arg_key><arg_value>", "</arg_value>", "</tool_call>"),
    "an own tag": ("<f>", "<KEY>", "</KEY>", "</f>"),
    "a name in an element": ("<tool_use><name>f</name>", "<KEY>", "</KEY>", "</tool_use>"),
    "MiniMax-M3": (
        ']<]minimax[>[<invoke name="f">',
        "]<]minimax[>[<KEY>",
        "]<]minimax[>[</KEY>",
        "]<]minimax[>[</invoke>",
    ),
    "Kimi K3": (
        '<|open|>call tool="f"<|sep|>',
        '<|open|>argument key="KEY"<|sep|>',
        "<|close|>argument<|sep|>",
        "<|close|>call<|sep|>",
    ),
}
PLAIN = {form for form in ELEMENTS if form not in ("MiniMax-M3", "Kimi K3")}
"""The grammars whose tags are no control tokens."""


@pytest.mark.parametrize("form", ELEMENTS)
def test_the_same_damage_is_read_alike_in_every_grammar_of_elements(form: str) -> None:
    head, key, value_end, end = ELEMENTS[form]
    city, days = (key.replace("KEY", word) for word in ("city", "days"))
    closed = value_end.replace("KEY", "city")
    last = f"{days}2{value_end.replace('KEY', 'days')}"
    once, twice = {"city": "Paris", "days": "2"}, {"city": ["Paris", "Rome"], "days": "2"}
    texts = {
        "sound": (f"{head}\n{city}Paris{closed}\n{last}\n{end}", once, 0),
        "the head twice": (f"{head}\n{head}\n{city}Paris{closed}\n{last}\n{end}", once, 0),
        "a key twice": (f"{head}\n{city}Paris{closed}\n{city}Rome{closed}\n{last}\n{end}", twice, 0),
        "no end": (f"{head}\n{city}Paris{closed}\n{last}", once, 1),
    }
    if form in PLAIN:
        texts |= {
            "a value without its end": (f"{head}\n{city}Paris\n{last}\n{end}", once, 1),
            "a value with another end": (f"{head}\n{city}Paris</x>\n{last}\n{end}", once, 0),
            "a sign that slipped in": (f"{head}\n{city}Paris{closed}\n{last})\n{end}", once, 0),
            "JSON": (f'{head}\n{{"city": "Paris", "days": "2"}}\n{end}', once, 0),
            "JSON with a brace too many": (f'{head}\n{{"city": "Paris", "days": "2"}}}}\n{end}', once, 0),
        }
    for damage, (text, given, cost) in texts.items():
        (call,) = rescue(text, {"f": ("city", "days")}).calls
        assert (arguments(call.arguments), call.cost) == (given, cost), damage


WRITE_AND_RUN = {"write_file": ("path", "content"), "run": ("name", "input")}
OWN_READS, OWN_WRITES = (
    reader(
        Rules(
            tools=tuple(
                ToolSpec(
                    name=name,
                    description="",
                    parameters=Raw(msgspec.json.encode({"type": "object", "properties": {k: {} for k in keys}})),
                    effect=effect,
                )
                for name, keys in WRITE_AND_RUN.items()
            )
        ),
        in_text=False,
        families=FAMILIES,
    )
    for effect in ("read", "write")
)


@pytest.mark.parametrize(
    "value", ["<m>\n<function>b</function>\n</m>", "x\n</invoke>\ny", '<invoke name="f">\n</invoke>\nDone.']
)
@pytest.mark.parametrize(
    "form",
    [
        (
            '<invoke name="write_file">\n<parameter name="path">a</parameter>\n'
            '<parameter name="content">{}</parameter>\n</invoke>'
        ),
        (
            "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n"
            "<parameter=content>\n{}\n</parameter>\n</function>\n</tool_call>"
        ),
    ],
)
def test_a_value_may_hold_what_ends_a_call_whose_values_are_not_closed(form: str, value: str) -> None:
    read = OWN_WRITES(Reply(text=form.format(value)))
    assert [(call.name, arguments(call.arguments), call.wrong) for call in read.calls] == [
        ("write_file", {"path": "a", "content": value}, None)
    ]


def test_an_element_with_the_name_of_an_argument_holds_that_one_though_it_is_json() -> None:
    (call,) = OWN_READS(Reply(text='<run><input>{"a": 1}</input><name>x</name></run>')).calls
    assert (call.wrong, arguments(call.arguments)) == (None, {"input": '{"a": 1}', "name": "x"})


def test_a_torn_opening_tag_is_no_empty_value_and_a_torn_call_beside_another_is_a_guess() -> None:
    torn = '<invoke name="run">\n<parameter name="input b\n  </parameter>\n</invoke>'
    assert not OWN_WRITES(Reply(text=torn)).calls
    two = "<tool_call>run<tool_call>\n<tool_call>run<arg_key>name</arg_key><arg_value>x</arg_value></tool_call>"
    assert all(call.wrong is not None for call in OWN_WRITES(Reply(text=two)).calls)
