"""The tags around reasoning, and the markup of calls that must not be mistaken for them."""

import re

_THINK = r"(?i:(?:antml:|seed:|mm:)?(?:think(?:ing)?|thoughts?|reasoning)(?::[\w-]{1,20})?)"
_CALL_TAG = r"(?i:(?:\w{1,12}:)?(?:tool_?calls?|function_calls?|longcat_tool_call)(?::[\w-]{1,20})?)"
_OPEN = (
    rf"<{_THINK}>|\[(?i:THINK)\]|\u25c1think\u25b7|<\|START_THINKING\|>|<\|begin_of_thought\|>|<\|channel>thought|"
    r"<\|open\|>think<\|sep\|>|<unused94>thought"
)
_CLOSE = (
    rf"</{_THINK}>|\[/(?i:THINK)\]|\u25c1/think\u25b7|<\|END_THINKING\|>|<\|end_of_thought\|>|<channel\|>|"
    r"<\|close\|>think<\|sep\|>|<unused95>"
)
_ANALYSIS = r"(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>"
_CALL = (
    rf"<{_CALL_TAG}>|<function=|<invoke name=|\[TOOL_CALLS\]|\[TOOL_REQUEST\]|"
    r"<[|\uff5c]DSML[|\uff5c] ?(?:tool_|function_)?calls>|<[|\uff5c]tool[\u2581_]calls?[\u2581_]begin[|\uff5c]>|"
    r"<\|(?:tool_calls_section_begin|tool_call_start|tool_calls?|python_tag|START_ACTION)\|>|"
    r"<\|open\|>tools<\|sep\|>|<\|tool_call>|<start_function_call>"
)
_CALLED = (
    rf"</{_CALL_TAG}>|</function>|</invoke>|\[END_TOOL_REQUEST\]|</[|\uff5c]DSML[|\uff5c] ?(?:tool_|function_)?calls>|"
    r"<[|\uff5c]tool[\u2581_]calls?[\u2581_]end[|\uff5c]>|<\|(?:tool_calls_section_end|tool_call_end|/tool_calls?|END_ACTION)\|>|"
    r"<\|close\|>tools<\|sep\|>|<tool_call\|>|<end_function_call>"
)
OPEN_ENDED = ("[TOOL_CALLS]", "<|python_tag|>")
"""Call markup that has no closing tag."""
_DRAFT = r'\n\{"name"|\n\{"tool"|\n```json'

TAG = re.compile(
    rf"(?P<open>{_OPEN})|(?P<close>{_CLOSE})|(?P<analysis>{_ANALYSIS})|(?P<end><\|end\|>)|(?P<turn><\|start\|>assistant)|"
    rf"(?P<call>{_CALL})|(?P<called>{_CALLED})|(?P<draft>{_DRAFT})"
)
"""Every tag that splitting knows, in a group named after what it does."""

_TAGGED = re.compile(
    rf"{_OPEN}|{_CLOSE}|<\|start\|>assistant<\|channel\|>analysis<\|message\|>|<\|channel\|>analysis<\|message\|>"
)
"""A text without any of these contains no reasoning."""


def may_hold_reasoning(text: str) -> bool:
    """Whether any tag of reasoning is in the text."""
    return ("<" in text or "[" in text or "\u25c1" in text) and _TAGGED.search(text) is not None


ADDRESSED_TO_TOOL = re.compile(r"\bto=[\w.:-]{1,80}\s*$")
"""Before an analysis header: the message is addressed to a tool, so it is a call."""

_LONGEST = 64
_SEVERAL_PARTS = (
    "<|start|>assistant<|channel|>analysis<|message|>",
    "<|channel|>analysis<|message|>",
    "<|channel>thought",
    "<unused94>thought",
    "<|open|>think<|sep|>",
    "<|close|>think<|sep|>",
    "<|open|>tools<|sep|>",
    "<|close|>tools<|sep|>",
    '\n{"name"',
    '\n{"tool"',
    "\n```json",
)
_FIRST = re.compile(r"[<\[\u25c1\n]")
_ONE_PART = re.compile(r"[<\[\u25c1][^>\]\u25b7\n]*")


def open_tag_start(buffer: str, start: int) -> int:
    """Where a tag may begin whose end has not come yet; else the buffer's length."""
    for first in _FIRST.finditer(buffer, max(start, len(buffer) - _LONGEST)):
        begun = buffer[first.start() :].lower()
        if _ONE_PART.fullmatch(begun) or any(tag.startswith(begun) for tag in _SEVERAL_PARTS):
            return first.start()
    return len(buffer)
