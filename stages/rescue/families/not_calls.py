"""Family `echo`: text that shows calls without making any: results, definitions, quotations, turns of others."""

import re

from stages.rescue.found import Family, Read
from stages.rescue.names import Names
from stages.rescue.tags import GIVEN_BACK, SHOWN

_TAG = re.compile(rf"<(?:({GIVEN_BACK})|({SHOWN}))\b[^>\n]{{0,100}}>")
_REACH = 16_000
"""Characters within which a tag that may be just a word in brackets must be closed."""
_TOKENS = {
    "<|tool_response|>": "<|/tool_response|>",
    "<|tool_response>": "<tool_response|>",
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
    "[AVAILABLE_TOOLS]": "[/AVAILABLE_TOOLS]",
    "<\uff5ctool\u2581outputs\u2581begin\uff5c>": "<\uff5ctool\u2581outputs\u2581end\uff5c>",
    "<\uff5ctool\u2581output\u2581begin\uff5c>": "<\uff5ctool\u2581output\u2581end\uff5c>",
    "<start_function_response>": "<end_function_response>",
}
_FOREIGN = r"\s{0,4}(?:user|human|system|developer|tools?|ipython|functions?|observation|environment)\b"
_TURN = (
    rf"<\|(?:im_start|start|turn|header_start|start_header_id|role_start)\|?>(?={_FOREIGN})|<start_of_turn>(?={_FOREIGN})|"
    r"<\|(?:user|User|system|System|observation|end_of_turn\|>\s{0,4}<\|user)\|>|<[|\uff5c]User[|\uff5c]>|\[INST\]"
)
_OWN_TURN = re.compile(
    r"<\|(?:im_start|start|turn|header_start|start_header_id|role_start)\|?>\s*(?:assistant|model)(?:<\|\w{1,20}\|>)?|"
    r"<start_of_turn>\s*model|<\|[aA]ssistant\|>|<[|\uff5c]Assistant[|\uff5c]>|\[/INST\]"
)
_SOMETHING = re.compile(r"\S")


def _tagged(text: str, start: int, names: Names) -> Read | None:
    opening = _TAG.match(text, start)
    if opening is None:
        return None
    tag = opening[1] or opening[2]
    if tag in names.known:
        return None
    end = text.find(f"</{tag}>", opening.end(), len(text) if opening[1] else opening.end() + _REACH)
    if end < 0:
        # One that may be just a word in brackets must be closed.
        return Read(
            start=start, end=len(text) if opening[1] else opening.end(), looked=min(len(text), opening.end() + _REACH)
        )
    return Read(start=start, end=end + len(f"</{tag}>"))


def _token(text: str, start: int, _names: Names) -> Read | None:
    opening = next((token for token in _TOKENS if text.startswith(token, start)), "")
    end = text.find(_TOKENS[opening], start) if opening else -1
    return Read(start=start, end=end + len(_TOKENS[opening]) if end >= 0 else len(text))


def _turn(text: str, start: int, _names: Names) -> Read:
    """Somebody else's turn: at the beginning, a repetition of the prompt; later, made up by the model."""
    answer = None if _SOMETHING.search(text, 0, start) else _OWN_TURN.search(text, start)
    return Read(start=start, end=answer.end() if answer else len(text))


ECHO = Family(name="echo", first="<", opener=rf"<(?:{GIVEN_BACK}|{SHOWN})(?=[\s>])", read=_tagged, words=())
ECHO_TOKEN = Family(name="echo", first="<[", opener="|".join(map(re.escape, _TOKENS)), read=_token, words=())
TURN = Family(name="echo", first="<[", opener=_TURN, read=_turn, words=())
