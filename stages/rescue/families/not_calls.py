"""Family `echo`: what shows calls without making any: tool results, tool definitions, quoted messages."""

import re

from stages.rescue.found import Family, Read
from stages.rescue.names import Names

_TAGS = (
    "tool_response|tool_responses|tool_result|tool_results|tool_output|function_response|function_results|function_result|"
    "observation|tools|available_tools|example|examples|documentation|tool_definitions|quote|blockquote|transcript|log|results?"
)
_TAG = re.compile(rf"<({_TAGS})\b[^>\n]{{0,100}}>")
_TOKENS = {
    "<|tool_response|>": "<|/tool_response|>",
    "<|tool_response>": "<tool_response|>",
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
    "[AVAILABLE_TOOLS]": "[/AVAILABLE_TOOLS]",
    "<\uff5ctool\u2581outputs\u2581begin\uff5c>": "<\uff5ctool\u2581outputs\u2581end\uff5c>",
    "<\uff5ctool\u2581output\u2581begin\uff5c>": "<\uff5ctool\u2581output\u2581end\uff5c>",
    "<start_function_response>": "<end_function_response>",
}


def _tagged(text: str, start: int, names: Names) -> Read | None:
    opening = _TAG.match(text, start)
    if opening is None or opening[1] in names.known:
        return None
    end = text.find(f"</{opening[1]}>", opening.end())
    # Not closed, it is only a word in brackets.
    return None if end < 0 else Read(start=start, end=end + len(f"</{opening[1]}>"))


def _token(text: str, start: int, names: Names) -> Read | None:
    opening = next((token for token in _TOKENS if text.startswith(token, start)), "")
    end = text.find(_TOKENS[opening], start) if opening else -1
    return Read(start=start, end=end + len(_TOKENS[opening]) if end >= 0 else len(text))


ECHO = Family(name="echo", opener=rf"<(?:{_TAGS})(?=[\s>])", read=_tagged)
ECHO_TOKEN = Family(name="echo", opener="|".join(map(re.escape, _TOKENS)), read=_token)
