"""Family `functionary`: the recipient on a line of its own, then what it is sent. Functionary v2 and v3.2."""

import re

from stages.repair.json_text import FoundJson, json_at
from stages.rescue.families.json_calls import CUT_OFF, UNREADABLE
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names

_RECIPIENT = re.compile(
    r"(?:<\|from\|>\s*+assistant\s*+)?(?:>>>|<\|recipient\|>\s*+)(?P<name>[A-Za-z_][\w.-]{0,120})"
    r"[ \t]*+\n?(?:<\|content\|>)?\s*+"
)
_END = re.compile(r"\s*+<\|(?:stop|eot_id)\|>")


def _read(text: str, start: int, names: Names) -> Read | None:
    head = _RECIPIENT.match(text, start)
    if head is None:
        return None
    if head["name"] == "all":
        return Read(start=start, end=head.end(), keep="")
    if not text.startswith("{", head.end()) or not names.knows(head["name"]):
        return None
    found = json_at(text, head.end())
    if not isinstance(found, FoundJson):
        return Read(start=start, end=max(found.end, head.end()), damage=CUT_OFF if found.cut else UNREADABLE, keep="")
    end = _END.match(text, found.end)
    claim = Claim(name=head["name"], arguments=found.text, repairs=found.repairs, cost=found.cost)
    return Read(start=start, end=end.end() if end else found.end, claims=(claim,), keep="")


FUNCTIONARY = Family(
    name="functionary", first="><", opener=r">>>(?=[A-Za-z_])|<\|from\|>\s{0,4}assistant|<\|recipient\|>", read=_read
)
