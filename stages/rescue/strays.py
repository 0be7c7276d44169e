"""Markup around calls that holds nothing itself."""

import re

from stages.rescue.tags import END_TAG, TAG, TAG_END

STRAY_MARKUP = re.compile(
    rf"(?:{TAG}|{END_TAG})(?:tool_calls?|function_calls?|invoke|parameter){TAG_END}|"
    r"\]<\]minimax\[>\[|</?(?:tool_calls?(?::[\w-]{1,20})?|function_calls?|tools?_call|function|invoke|parameter|tool_use|TOOLCALL|"
    r"(?:minimax|seed|longcat|antml|steptml)[:_]\w+)>|"
    r"<[|\uff5c](?:im_end|im_start|eot_id|eom_id|end|end_of_text|endoftext|call|return|start|message|python_tag|sep|"
    r"DSML[|\uff5c] ?[\w ]*|/?(?:tool|tools|action|plugin|START|END|Function)\w*|tool[\u2581_]\w+)[|\uff5c]?>|"
    r"</[|\uff5c]DSML[|\uff5c] ?\w+>|<tool_call\|>|<(?:end|start)_function_call>|<\|python_(?:start|end)\|>|"
    r"<tool[\u2581_]calls?[\u2581_](?:begin|end)>|\[/?TOOL_CALLS\]|\[(?:END_)?TOOL_REQUEST\]"
)
"""An opening, closing or empty tag or token of calls."""
