"""What reading a hostile text costs: counted, not timed, and never more than its length allows.

Three things together make it linear. No regular expression backtracks over what it has read (`test_patterns`). A
family says how far it looked, unless that was a bounded stretch, or one in which none of its calls begins. And the
driver adds that up.
"""

import re
from collections.abc import Mapping
from functools import cache

import pytest
from msgspec.structs import replace

from stages.reasoning import split_reasoning
from stages.rescue import FAMILIES, Family, Names, Read, rescue, rescuer
from stages.rescue.chat_template import template_family
from stages.rescue.found import Markers
from stages.rescue.markers import openers
from tests.automaton import examples
from tests.counted import calls_of

TOOLS: Mapping[str, tuple[str, ...]] = {"pay": ("to", "amount"), "find": ("q",), "wait": ()}
CALL = '{"name": "pay", "arguments": {"to": "x"}}'
TEMPLATES = (
    template_family(Markers(opening="CALL:")),
    template_family(Markers(opening="@@@", between=" with ")),
)
HEADS = (
    *(
        "<tool_call>pay",
        "<tool_call>name: 'pay'",
        "<tool_call>[pay(to='x')",
        "[TOOL_CALLS]pay",
        "[TOOL_CALLS]pay[ARGS]",
    ),
    *(
        "<function=pay><parameter=to>",
        '<invoke name="pay"><parameter name="to">',
        "<tool_call>pay<arg_key>to</arg_key>",
    ),
    *("[pay(to='x')", "pay(to='", "```python\npay(to='x')", f"```json\n{CALL}", "Action: pay\nAction Input:", "find: "),
    *("<|channel|>final", "<|channel|>commentary to=functions.pay", "<|tool_call>call:pay", "<tool_call><tool_name>"),
    *("<|tool_call_begin|>functions.pay:0<|tool_call_argument_begin|>{}", "<pay><to>", "<pay to=", "<tool>find</tool>"),
    *(
        f"<tool_call>{CALL}",
        "<tool_call>{",
        "{'name': 'pay",
        '{"name": "pay", "arguments": {',
        '{\\"name\\": \\"pay',
        CALL,
    ),
    *(
        "{&quot;name&quot;: ",
        "tool: find\ninput: ",
        "tool: lose\ninput: ",
        "CALL:{",
        "@@@pay with {",
        "<think>",
        "</think>",
    ),
)
FILLERS = (
    *(
        " ",
        "\n",
        "\t",
        "`",
        "```\n",
        "'",
        '"',
        "{",
        "}",
        "[",
        "](",
        "\\",
        ",",
        ":",
        "=",
        "/",
        "<",
        ">",
        "#",
        "/*",
        "*",
        "-",
    ),
    *(
        " \n",
        "` ",
        '" ',
        '",',
        '"a":',
        "a=1,",
        "a()",
        "pay",
        "pay(",
        "[pay(",
        "<a>",
        "</a>",
        "<|",
        "<pay>",
        "</pay>",
        "&quot;",
    ),
    *(
        "</tool_call>",
        "<tool_call>",
        "</parameter>",
        "<|end|>",
        "<think>",
        "</think>",
        "Action: ",
        "json",
        "[ARGS]{",
        "CALL:{",
    ),
)
CLOSERS = (
    "\n```\n</pay></find></a></tool></log></tool_call></parameter></function></invoke></tool_input></arg_value>"
    "<|tool_call_end|><tool_call|>\"'}])<|close|>call<|sep|><|end|>\n"
)
REACH = 5_000
"""Characters that a family may look at in vain without a word, whatever stands there."""


def _counted(family: Family, looks: list[int]) -> Family:
    """The family, which notes how far each reading looked."""

    def read(text: str, start: int, names: Names) -> Read | None:
        found = family.read(text, start, names)
        looks.append(max(found.end, found.looked) - start if found else 1)
        return found

    return replace(family, read=read)


LOOKS: list[int] = []
READ = rescuer(tuple(_counted(family, LOOKS) for family in FAMILIES))


def work(text: str, tools: Mapping[str, tuple[str, ...]] = TOOLS) -> int:
    """Calls of functions while the text is read, and the characters that families looked at."""
    LOOKS.clear()
    return calls_of(lambda: (split_reasoning(text), READ(text, tools))) + sum(LOOKS)


@cache
def _heads() -> tuple[str, ...]:
    """Some of the ways to begin a call that each family's opener has, and some that go on."""
    begun: list[str] = []
    for family in (*TEMPLATES, *FAMILIES):
        ways = examples(family.opener)
        begun += ways[:: max(1, len(ways) // 3)][:3]
    return tuple(dict.fromkeys((*begun, *HEADS)))


@pytest.mark.parametrize("filler", FILLERS)
def test_every_opener_pumped_with_every_filler_costs_no_more_than_its_length(filler: str) -> None:
    for head in _heads():
        short, long = (head + (filler * size)[:size] for size in (250, 1250))
        # Five times the text: a cost that grew with its square would be twenty-five times as much.
        limit = 8 * work(short) + 2000
        # The second time, what is loaded and compiled when it is first needed is no cost of the text.
        assert work(long) <= limit or work(long) <= limit, (head, filler)


@pytest.mark.parametrize("filler", FILLERS)
def test_a_family_says_how_far_it_looked_wherever_its_calls_may_begin(filler: str) -> None:
    """What it has not looked at can be anything: the reading stays what it was."""
    families = (*TEMPLATES, *FAMILIES)
    known, names = openers(families), Names(TOOLS)
    mute = {id(family) for family in families if not re.search(family.opener, filler * 50)}
    for head in _heads():
        text = head + (filler * 3 * REACH)[: 3 * REACH]
        for place in known.anywhere.finditer(text, 0, len(head) + 20):
            for opener, family in known.which[text[place.start()]]:
                if not opener.match(text, place.start()):
                    continue
                read = family.read(text, place.start(), names)
                seen = max(place.start(), read.end, read.looked) + REACH if read else place.start() + REACH
                if seen >= len(text) or id(family) in mute:
                    continue
                for tail in (CLOSERS, CALL, ""):
                    assert family.read(text[:seen] + tail, place.start(), names) == read, (family.name, head)


def test_what_families_look_at_in_vain_is_bounded_in_all() -> None:
    for unit in ("CALL:{'", "@@@pay with {'", "tool: find\ninput: {'", "```\t", "<log>", "[pay(to='x')", "x[ARGS]{'"):
        looks: list[int] = []
        read = rescuer(tuple(_counted(family, looks) for family in (*TEMPLATES, *FAMILIES)))
        text = (unit * 20_000)[:40_000]
        read(text, TOOLS)
        # The driver's budget for a text of this length, and the one reading that used it up.
        assert sum(looks) <= 8_000 * 20 + 2 * len(text), unit


@pytest.mark.parametrize(
    "before",
    [
        "<a>" * 9_000,
        "f(x) " * 9_000,
        "{x} " * 9_000,
        "<p>Some <b>words</b> of (a) text.</p>\n" * 1_500,
        "def f(x):\n    return {'a': {x: [1, 2, {'b': x}]}}\n" * 1_500,
        '{"id": 7, "tags": ["a", "b"], "at": {"x": 1}}\n' * 1_000,
        "Action is needed. The tool (a function) calls: see above.\n" * 1_500,
        "- [ ] Buy `milk`, [link](http://x.test) and {so on}.\n" * 1_500,
    ],
)
def test_a_call_after_much_that_might_begin_one_is_found(before: str) -> None:
    assert [call.name for call in rescue(f"{before}\n\n<tool_call>{CALL}</tool_call>", TOOLS).calls] == ["pay"]
