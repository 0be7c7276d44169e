"""Markers derived from chat templates, and the calls that they then find."""

import json
from pathlib import Path

import pytest

from forge.testing.strategies import GRAMMARS, call_text
from stages.rescue import FAMILIES, rescuer
from stages.rescue.chat_template import template_family
from stages.rescue.found import Markers
from stages.rescue.markers import openers
from tests.chat_templates import seen

HERMES = """{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}{% else %}{{ m.content }}{% endif %}<|im_end|>
{% endfor %}"""
NAMED = """{%- for m in messages %}[{{ m.role }}]
{%- for c in m.tool_calls %}<<run>>{{ c.function.name }}<<with>>
{{ c.function.arguments }}<<end>>{% endfor %}{{ m.content }}{% endfor %}"""
ARRAY = """{%- for m in messages %}<{{ m.role }}>
{%- if m.tool_calls %}@@calls [{% for c in m.tool_calls %}
{"tool": "{{ c.function.name }}", "parameters": {{ c.function.arguments | tojson }}}
{%- endfor %}]{% else %}{{ m.content }}{% endif %}{% endfor %}"""
BARE = """{%- for m in messages %}{% for c in m.tool_calls -%}
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
{%- endfor %}{{ m.content }}{% endfor %}"""
PLAIN = "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"


@pytest.mark.parametrize(
    ("template", "found"),
    [
        (HERMES, Markers(opening="<tool_call>")),
        (NAMED, Markers(opening="<<run>>", between="<<with>>\n")),
        (ARRAY, Markers(opening="@@calls")),
        (BARE, None),
        (PLAIN, None),
        ("", None),
        ("{{ raise_exception('no') }}", None),
        ("{% for x in %}", None),
        ("{{ messages[7].content }}", None),
        ("{{ ''.__class__.__mro__ }}", None),
    ],
)
def test_markers_are_read_off_a_template(template: str, found: Markers | None) -> None:
    assert seen(template).markers == found


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (HERMES, '<tool_call>\n{"name": "look", "arguments": {"what": "a"}}\n</tool_call>'),
        (NAMED, 'I look.\n<<run>>look<<with>>\n{"what": "a"}<<end>>'),
        (ARRAY, '@@calls [\n{"tool": "look", "parameters": {"what": "a"}}]'),
    ],
)
def test_calls_in_a_grammar_that_nobody_knew_are_found(template: str, said: str) -> None:
    found = seen(template).markers
    assert found is not None
    rescued = rescuer((template_family(found), *FAMILIES))(said, ["look"])
    (call,) = rescued.calls
    assert (call.name, json.loads(call.arguments), call.origin) == ("look", {"what": "a"}, "template")


def test_what_the_template_s_grammar_cannot_read_the_others_may() -> None:
    rescue = rescuer((template_family(Markers(opening="<tool_call>")), *FAMILIES))
    (call,) = rescue(
        "<tool_call>\n<function=look>\n<parameter=what>\na\n</parameter>\n</function>\n</tool_call>", ["look"]
    ).calls
    assert json.loads(call.arguments) == {"what": "a"}


@pytest.mark.parametrize("markers", [Markers(opening="<tool_call>"), Markers(opening="§run ", between=" with ")])
@pytest.mark.parametrize("place", [0, 3, len(FAMILIES)])
def test_a_family_more_reads_as_if_all_had_been_compiled_together(markers: Markers, place: int) -> None:
    more = template_family(markers)
    together = rescuer((*FAMILIES[:place], more, *FAMILIES[place:]))
    added = rescuer(openers(FAMILIES).with_family(more, place))
    texts = (*(call_text(family, "look", {"what": "a"}) for family in GRAMMARS), '§run look with {"what": "a"}', "")
    for text in (*texts, " ".join(texts)):
        assert added(text, ["look"]) == together(text, ["look"])


TEMPLATES = [
    json.loads(line) for line in (Path(__file__).parents[2] / "data/chat_templates.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("recorded", TEMPLATES, ids=lambda recorded: recorded["model"])
def test_templates_of_real_servers(recorded: dict[str, str | None]) -> None:
    found = seen(str(recorded["template"])).markers
    assert (found.opening if found else None) == recorded["opening"]
