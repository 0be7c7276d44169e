"""No call runs from a text that shows one, whatever its format, and whatever kind of text that is: tools that write."""

import html
import json
from collections.abc import Callable

import pytest

from stages.effect import Reply
from tests.stages.rescue.test_fresh import READS, WRITES

CALLS = (("bash", {"command": "rm -rf build"}), ("write_file", {"path": "a.txt", "content": "hello"}))
_XML = ('<NSinvoke name="NAME">\nEACH</NSinvoke>', '<NSparameter name="KEY">VALUE</NSparameter>\n')
FORMATS = {
    "bare": ('{"name": "NAME", "arguments": JSON}', ""),
    "other keys": ('{"fn": "NAME", "kwargs": JSON}', ""),
    "hermes": ('<tool_call>\n{"name": "NAME", "arguments": JSON}\n</tool_call>', ""),
    "qwen": (
        "<tool_call>\n<function=NAME>\nEACH</function>\n</tool_call>",
        "<parameter=KEY>\nVALUE\n</parameter>\n",
    ),
    "invoke": tuple(part.replace("NS", "") for part in _XML),
    "dsml": tuple(part.replace("NS", "\uff5cDSML\uff5c") for part in _XML),
    "attributes": ("<tool_call name=\"NAME\" arguments='JSON'/>", ""),
    "own tag": ("<NAME>\nEACH</NAME>", "<KEY>VALUE</KEY>\n"),
    "glm": ("<tool_call>NAME\nEACH</tool_call>", "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n"),
    "any tags": ("<fx>NAMEEACH</fx>", "<k>KEY</k><v>VALUE</v>"),
    "any words": ('<nova:step action="NAME">EACH</nova:step>', '<nova:input key="KEY">VALUE</nova:input>'),
    "equals": ("<do=NAME>\nEACH</do>", "<with=KEY>VALUE</with>\n"),
    "lost brackets": ('invoke name="NAME">EACHinvoke>', 'parameter name="KEY">VALUEparameter>'),
    "llama": ("<function=NAME=JSON</function>", ""),
    "kimi": (
        (
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>JSON"
            "<|tool_call_end|><|tool_calls_section_end|>"
        ),
        "",
    ),
    "deepseek": (
        (
            "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>NAME"
            "<\uff5ctool\u2581sep\uff5c>JSON<\uff5ctool\u2581call\u2581end\uff5c>"
        ),
        "",
    ),
    "mistral": ("[TOOL_CALLS]NAME[ARGS]JSON", ""),
    "harmony": (
        "<|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>JSON<|call|>",
        "",
    ),
    "command r": ('<|START_ACTION|>[\n    {"tool_name": "NAME", "parameters": JSON}\n]<|END_ACTION|>', ""),
    "gemma": ("<|tool_call>call:NAME(EACH)<tool_call|>", 'KEY:<|"|>VALUE<|"|>,'),
    "python": ("<|tool_call_start|>[NAME(EACH)]<|tool_call_end|>", "KEY='VALUE', "),
    "signs": ("%%CALL NAME(EACH)%%", "KEY='VALUE', "),
    "react": ("Thought: I need it.\nAction: NAME\nAction Input: JSON", ""),
    "label": ("Using tool: NAME\nJSON", ""),
    "lines": ("#CALL NAME\nEACH#END", "#WITH KEY=VALUE\n"),
    "key=value": ("<tool_call>NAME EACH</tool_call>", "KEY='VALUE' "),
    "other keys damaged": ("{'fn': 'NAME', 'with': JSON,}", ""),
    "yaml": ("```yaml\ntool: NAME\narguments:\nEACH```", "  KEY: VALUE\n"),
}
"""Formats: a call, and each of its arguments where they are not one JSON object."""
TEXTS: dict[str, Callable[[str], str]] = {
    "documentation": lambda call: f"A call is written like this:\n\n{call}\n\nThe server answers it.",
    "German": lambda call: f"Ein Aufruf sieht so aus:\n\n{call}\n\nDer Server beantwortet ihn.",
    "Chinese": lambda call: (
        f"\u8c03\u7528\u7684\u683c\u5f0f\u5982\u4e0b\uff1a\n\n{call}\n\n\u670d\u52a1\u5668\u4f1a\u8fd4\u56de\u7ed3\u679c\u3002"
    ),
    "fence": lambda call: f"The format is:\n\n```\n{call}\n```\n\nThat is all.",
    "refusal": lambda call: f"The page tells me to run this:\n{call}\nI will not do that.",
    "refusal before": lambda call: f"The page tells me to run this, which I will not do:\n\n{call}",
    "question": lambda call: f"{call}\n\nShall I run it?",
    "question before": lambda call: f"Shall I run this?\n\n{call}",
    "block quote": lambda call: "".join(f"> {line}\n" for line in call.split("\n")) + "\nThis is what it printed.",
    "patch": lambda call: (
        "--- a/x.md\n+++ b/x.md\n@@ -1,2 +1,4 @@\n # X\n"
        + "".join(f"+{line}\n" for line in call.split("\n"))
        + " end\n"
    ),
    "log": lambda call: f"2026-03-01 10:00:00 DEBUG parser: {call}\n2026-03-01 10:00:01 DEBUG done",
    "transcript": lambda call: f"User: clean up\nAssistant: {call}\nUser: thanks\nAssistant: welcome",
    "inline code": lambda call: f"Write `{call}` to call it, then wait.",
    "quotation": lambda call: f'He wrote "{call}" and nothing else, which was wrong.',
    "escaped": lambda call: f"{html.escape(call, quote=False)} is how it is written.",
    "escaped page": lambda call: f"<p>A call:</p>\n<pre>{html.escape(call, quote=False)}</pre>\n<p>It is answered.</p>",
    "page": lambda call: f"<html><body><pre>{call}</pre></body></html>",
    "comment": lambda call: f"<!-- {call} -->\n<p>text</p>",
    "table": lambda call: f"| format | text |\n|---|---|\n| x | {call} |",
    "thought": lambda call: f"<think>I could write {call} but nobody asked.</think>The answer is 4.",
    "list": lambda call: f"1. First the model writes {call}.\n2. Then the server runs it.",
    "code": lambda call: f'```python\nTEXT = """{call}"""\nassert parse(TEXT)\n```',
    "record": lambda call: json.dumps({"prompt": "clean", "completion": call}),
    "issue": lambda call: f"### Raw output\n\n{call}\n\n### Expected\n\nOne call.",
    "report": lambda call: f"I ran this and it worked:\n{call}\nAll files are gone.",
    "made up": lambda call: f"{call}\n<tool_response>\nok\n</tool_response>\nIt is done, as you can see above.",
}


def _written(pattern: str, each: str, name: str, given: dict[str, str]) -> str:
    parts = "".join(each.replace("KEY", key).replace("VALUE", value) for key, value in given.items())
    return pattern.replace("EACH", parts).replace("JSON", json.dumps(given)).replace("NAME", name)


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("form", FORMATS)
def test_what_is_shown_does_not_run(form: str, kind: str) -> None:
    pattern, each = FORMATS[form]
    for name, given in CALLS:
        read = WRITES(Reply(text=TEXTS[kind](_written(pattern, each, name, given))))
        assert [call.name for call in read.calls if call.wrong is None] == []


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_calls_are_read_where_they_are_the_reply(form: str) -> None:
    pattern, each = FORMATS[form]
    for name, given in CALLS:
        read = READS(Reply(text=_written(pattern, each, name, given)))
        assert [(call.name, json.loads(call.arguments), call.wrong) for call in read.calls] == [(name, given, None)]


@pytest.mark.parametrize(
    "text",
    [
        'Here is the file.\n```xml\n<step name="bash" command="make test"/>\n```',
        '<project>\n<target name="bash" command="make"/>\n</project>',
        '<button onclick="bash" command="x"/>',
        'I did not do that. <denied tool="bash" command="rm -rf build"/>',
        '<denied tool="bash"><arg name="command">rm -rf build</arg></denied>',
        "<bash><command=rm>x</command></bash>",
        "```log\n<bash><command>rm</command></bash>\n```",
        '```console\n【bash】\n{"command": "rm"}\n```',
        '```jsx\n<bash command="rm"/>\n```',
        '```toml\n{"bash": {"command": "npx"}}\n```',
        '```ini\n{"name": "bash", "command": "npx"}\n```',
        '[INFO] bash({"command": "rm"})',
        '```\n[ERROR] bash({"command": "rm"})\n```',
        "Function: bash\nParameters:\n- command (string): the command to run\nReturns: text",
        "Tool: bash\nInput: a shell command\nOutput: text",
        '```tool_output\nbash(command="rm")\n```',
        '```callback\nx = bash(command="rm")\nprint(x)\n```',
        'Previous tool call: bash\nArguments:\n{"command": "rm"}\n[RESULT]',
        '<bash><command type="string">the command to run</command></bash>',
    ],
)
def test_tags_of_other_things_that_name_a_tool_run_nothing(text: str) -> None:
    assert [call.name for call in WRITES(Reply(text=text)).calls if call.wrong is None] == []


def test_a_remark_beside_a_call_is_no_argument_and_does_not_hide_it() -> None:
    text = '{"thought": "I need the file.", "name": "write_file", "arguments": {"file": "a.txt"}}'
    assert [call.name for call in READS(Reply(text=text)).calls] == ["write_file"]


def test_the_sentence_before_a_call_stays_what_the_model_said() -> None:
    read = READS(Reply(text='I will now clean up with bash {"command": "rm -rf build"}'))
    assert [call.name for call in read.calls] == ["bash"]
    assert read.said.text.startswith("I will now clean up")
    assert not READS(Reply(text='I looked at bash and it returned {"command": "x"} as you see.')).calls


@pytest.mark.parametrize(
    "text",
    [
        "Error: bash command is empty",
        "Never bash command=x",
        "UPDATE bash command=x",
        "[INFO] bash command=x",
        "Bob: bash command x",
        "> bash command: x",
        "| bash command=x |",
        "// bash command=x",
        "`bash command=x`",
        "\u201cbash command=x\u201d",
        "**bash command=x**",
        "bash failed\ncommand: make",
        "The bash\ncommand: make\ntimeout: 5",
        "bash | x\ncommand | y",
        "tool: bash\ncommand: x\nStop words removed",
        '{"history": [{"tool": "bash", "args": {"command": "x"}}]}',
        '{"tools": [{"name": "list_orders"}]}',
        '{"buttons": [{"action": "list_orders"}]}',
        '{"messages": [{"role": "assistant", "tool_calls": [{"name": "bash", "arguments": {"command": "x"}}]}]}',
        '{"function": "bash", "description": "Runs it", "parameters": {"command": "the command"}}',
        '{"name": "bash", "parameters": {"type": "object", "properties": {"command": "string"}}}',
        "bash(command=String)",
        "bash(command=Command)",
        "bash(command=lambda x)",
        '### bash\n```python\ntool_call(command="x")\n```',
        "<br>\nbash\ncommand: x\n<br>",
        "<stdout>\nbash\ncommand: x\n</stdout>",
        'Llama uses <python_tag>bash(command="x")',
        "<|im_end|>\n<|im_start|>user\n<tool_call>\nbash:\n  command: x\n</tool_call>",
        "<tool_response>\n=== call\nbash:\n  command: x\n=== end",
        ":: output ::\nbash:\n  command: x\n:: end ::",
        "---\ntitle: bash\ncommand: x\n---",
        "The tool [[call list_orders]]\nlists them.",
        '[bash]\ncommand = "ls',
        '<go do="bash"><arg id="command" is="x"/><arg id="timeout" is="7/></go>',
    ],
)
def test_what_only_looks_like_a_call_runs_nothing_even_of_a_tool_that_reads(text: str) -> None:
    assert [call.name for call in READS(Reply(text=text)).calls if call.wrong is None] == []


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (
            '<tool_call>\n{"name": "ping"}\n<tool_call>\n{"name": "bash", "arguments": {"command": "x"}}\n</tool_call>',
            [("ping", "{}"), ("bash", '{"command":"x"}')],
        ),
        ('{"name": "ping"}<|im_end|>', [("ping", "{}")]),
        (
            '<|tool_call>call:bash{command:<|"|>a, b: c<|"|> timeout:5}<tool_call|>',
            [("bash", '{"command":"a, b: c","timeout":5}')],
        ),
        ('bash {"command": "<|"}', [("bash", '{"command":"<|"}')]),
        ('{% bash command="one" and timeout="2" %}', [("bash", '{"command":"one","timeout":2}')]),
        (
            '<do:bash command="echo "one" two" timeout="2" />',
            [("bash", '{"command":"echo \\"one\\" two","timeout":2}')],
        ),
        ("[[run bash]][[command]]echo <command[[/command]][[/run]]", [("bash", '{"command":"echo <command"}')]),
        ("<t>\nbash:\n  command: a <t> b\n</t>", [("bash", '{"command":"a <t> b"}')]),
        (
            "---call\nlist_orders: {}\n---end\n---call\nbash:\n  command: x\n---end",
            [("list_orders", "{}"), ("bash", '{"command":"x"}')],
        ),
    ],
)
def test_what_stands_behind_a_name_or_between_values_is_not_taken_for_a_part_of_them(
    text: str, calls: list[tuple[str, str]]
) -> None:
    assert [(call.name, call.arguments) for call in READS(Reply(text=text)).calls] == calls


@pytest.mark.parametrize("behind", ["", "\n\nThat should do."])
@pytest.mark.parametrize("before", ["", "Let me look.\n"])
@pytest.mark.parametrize(
    "call",
    [
        "```yaml\ntool: bash\narguments:\n  command: make\n```",
        '```toml\n[bash]\ncommand = "make"\n```',
        '<tool_call>bash command="make"</tool_call>',
        "<tool_call>bash\ncommand: make\n</tool_call>",
    ],
)
def test_words_around_a_call_of_lines_do_not_hide_it(before: str, call: str, behind: str) -> None:
    text = f"{before}{call}{behind}"
    assert [(one.name, one.arguments) for one in READS(Reply(text=text)).calls] == [("bash", '{"command":"make"}')]
