"""Family `gemma`: calls in the grammar of Gemma 4 and FunctionGemma."""

import re

from msgspec.structs import replace

from stages.rescue.families.json_calls import CUT_OFF, UNREADABLE, named_call
from stages.rescue.found import Family, Read
from stages.rescue.names import Names
from stages.rescue.pycalls import call_list
from stages.rescue.tags import WORDS

_HEAD = re.compile(r"(?:<\|tool_call>|<start_function_call>)\s*+:?\s*+(?:call:)?\s*+([\w.:/-]{1,200}+)\s*+(?=[{(])")
_ENDS = ("<tool_call|>", "<end_function_call>", "<turn|>", "/>")
_END = re.compile(rf"\s*+(?:{'|'.join(map(re.escape, _ENDS))})")


def _gemma(text: str, start: int, names: Names) -> Read | None:
    head = _HEAD.match(text, start)
    if head is None:
        return None
    if text.startswith("(", head.end()):
        return _python(text, start, head, names)
    read = named_call(text, start, head.end(), head[1], _past_end)
    if any("missing_closer" in claim.repairs for claim in read.claims) and not text.endswith(_ENDS, 0, read.end):
        return Read(start=start, end=read.end, damage=CUT_OFF, keep="")
    # This grammar writes keys without quotes.
    claims = (replace(c, repairs=tuple(repair for repair in c.repairs if repair != "bare_key")) for c in read.claims)
    return replace(read, claims=tuple(claims))


def _past_end(text: str, position: int) -> int:
    ended = _END.match(text, position)
    return ended.end() if ended else position


def _python(text: str, start: int, head: re.Match[str], names: Names) -> Read:
    """The arguments in parentheses, as Python has them."""
    calls = call_list(text, head.start(1), names)
    if calls is None or not calls.claims:
        damage = (calls.damage if calls else None) or UNREADABLE
        return Read(start=start, end=max(calls.end if calls else 0, head.end()), damage=damage, keep="")
    return Read(start=start, end=_past_end(text, calls.end), claims=calls.claims, keep="")


GEMMA = Family(name="gemma", first="<", opener=r"<\|tool_call>|<start_function_call>", read=_gemma, words=WORDS)
