"""Text about how calls are written: examples of every model's markup, in prose, in inline code, as code."""

import pytest

from stages.rescue import rescue
from tests.rescue_corpus import run_at_once

TOOLS = {"get_weather": ("city",)}
M3 = "]<]minimax[>["
INVOKE = '<invoke name="get_weather">\n<parameter name="city">Rome</parameter>\n</invoke>'
DEEPSEEK = (
    "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>get_weather<\uff5ctool\u2581sep\uff5c>"
    '{"city": "Rome"}<\uff5ctool\u2581call\u2581end\uff5c><\uff5ctool\u2581calls\u2581end\uff5c>'
)
DSML = INVOKE.replace("</", "\0").replace("<", "<\uff5cDSML\uff5c").replace("\0", "</\uff5cDSML\uff5c")
MARKUP = {
    "Hunyuan": (
        "<tool_calls>\n<tool_call>get_weather<tool_sep>\n"
        "<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>\n</tool_calls>"
    ),
    "MiniMax M2": f"<minimax:tool_call>\n{INVOKE}\n</minimax:tool_call>",
    "MiniMax M3": (
        f'{M3}<tool_call>\n{M3}<invoke name="get_weather">{M3}<city>Rome{M3}</city>{M3}</invoke>\n{M3}</tool_call>'
    ),
    "DeepSeek": DEEPSEEK,
    "DeepSeek V3.2": f"<\uff5cDSML\uff5cfunction_calls>\n{DSML}\n</\uff5cDSML\uff5cfunction_calls>",
    "Kimi K2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city": "Rome"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    "Mistral": '[TOOL_CALLS]get_weather[ARGS]{"city": "Rome"}',
    "Hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>',
    "function_calls": f"<function_calls>\n{INVOKE}\n</function_calls>",
}
MENTIONS = (
    "Some write `CALL`, for example.",
    "Some write CALL, for example.",
    "Some write `<function_calls>…`, for example.\n\nCALL",
    "CALL\n\nSome write `<function_calls>…`, for example.",
    "Einige nutzen `<tool_call>`.\n\nCALL",
    "Manche schreiben `CALL`.",
    "Einige schreiben \u201eCALL\u201c, andere nicht.",
    "A line `with CALL in it`.",
    "Kimi K2:\nCALL",
    "- Kimi: `CALL`\n- Other: `<x>`",
    "| Model | Markup |\n|---|---|\n| X | `CALL` |",
    "The markup is:\n\n```\nCALL\n```",
)
MEANT = (
    "CALL",
    "I will check.\nCALL",
    "Calling `get_weather`:\n\nCALL",
    "The page has `<div>` elements without a title.\n\nCALL",
    "The file uses `<parameter>` tags.\n\nCALL",
    "I'll answer with `<tool_call>` markup now:\n\nCALL",
    "CALL\n\nThen I will look at the `<div>`.",
)


@pytest.mark.parametrize("family", MARKUP)
@pytest.mark.parametrize("text", MENTIONS)
def test_markup_that_a_text_is_about_is_no_call(text: str, family: str) -> None:
    assert not run_at_once(text.replace("CALL", MARKUP[family]), TOOLS)


@pytest.mark.parametrize("family", MARKUP)
@pytest.mark.parametrize("text", MEANT)
def test_a_call_beside_other_words_is_one(text: str, family: str) -> None:
    (call,) = rescue(text.replace("CALL", MARKUP[family]), TOOLS).calls
    assert call.name == "get_weather"


@pytest.mark.parametrize("lead", ["Here is the code:", "Voici le code :", "Hier ist der Code:", "Ecco il codice:"])
@pytest.mark.parametrize("call", ['get_weather(city="Rome")', '{"name": "get_weather", "arguments": {"city": "Rome"}}'])
def test_a_program_that_is_introduced_as_code_is_no_call(lead: str, call: str) -> None:
    assert not run_at_once(f"{lead}\n\n```python\n{call}\n```", TOOLS)
    assert len(run_at_once(f"{lead}\n\n```python\n{call}\n```", TOOLS, "read")) == 1
    assert len(run_at_once(f"```python\n{call}\n```", TOOLS)) == 1
