"""One pass over a text: each family is asked where its opener stands, and what it read is never read again."""

import re
from collections.abc import Callable, Collection

from msgspec import Struct

from stages.rescue.context import is_shown
from stages.rescue.found import Claim, Family, FoundCall, Read
from stages.rescue.names import Names
from stages.rescue.reasoning import without_reasoning

_STRAY = re.compile(
    r"</?(?:tool_calls?|function_calls?|tools?_call|function|invoke|parameter|tool_use|TOOLCALL|"
    r"(?:minimax|seed|longcat|antml|steptml)[:_]\w+)>|"
    r"<[|\uff5c](?:im_end|im_start|eot_id|eom_id|end|end_of_text|endoftext|call|return|start|message|python_tag|sep|"
    r"DSML[|\uff5c] ?[\w ]*|/?(?:tool|tools|action|plugin|START|END|Function)\w*|tool[\u2581_]\w+)[|\uff5c]?>|"
    r"</[|\uff5c]DSML[|\uff5c] ?\w+>|<tool_call\|>|<(?:end|start)_function_call>|<\|python_(?:start|end)\|>|"
    r"<tool[\u2581_]calls?[\u2581_](?:begin|end)>|\[/?TOOL_CALLS\]|\[(?:END_)?TOOL_REQUEST\]"
)
"""Markup of calls, closing or empty, that is left between them."""


class Rescued(Struct, frozen=True, kw_only=True):
    """The tool calls that a text holds.

    `calls` in order of appearance, all of known names. `unknown`: names that were called but are not known.
    `damage`: what is wrong with text that was clearly meant as a call, as a sentence for the model. `rest`: the
    text outside the calls, their markup stripped.
    """

    calls: tuple[FoundCall, ...] = ()
    unknown: tuple[str, ...] = ()
    damage: str | None = None
    rest: str = ""


Rescue = Callable[[str, Collection[str]], Rescued]
_Asked = dict[str, tuple[tuple[Family, Callable[[str, int], re.Match[str] | None]], ...]]


def rescuer(families: tuple[Family, ...]) -> Rescue:
    """A function `rescue(text, names)` that knows these families; where two openers match, the earlier family wins."""
    anywhere = re.compile("|".join(family.opener for family in families))
    opens = tuple((family, re.compile(family.opener).match) for family in families)
    asked: _Asked = {
        first: tuple((family, match) for family, match in opens if first in family.first)
        for first in {character for family in families for character in family.first}
    }

    def rescue(text: str, names: Collection[str]) -> Rescued:
        # Half a surrogate pair is no text: no JSON can hold it, and no server takes it back.
        sound = text if text.isascii() else text.encode(errors="replace").decode()
        visible = without_reasoning(sound)
        return _gathered(visible, _reads(visible, anywhere, asked, Names(names)), Names(names))

    return rescue


def _reads(text: str, anywhere: re.Pattern[str], asked: _Asked, names: Names) -> list[tuple[str, Read]]:
    """What the families read, in order, none overlapping, without what is only shown."""
    reads: list[tuple[str, Read]] = []
    position = floor = 0
    while found := anywhere.search(text, position):
        start = found.start()
        position = start + 1
        for family, opens in asked[text[start]]:
            read = family.read(text, start, names) if opens(text, start) else None
            if read is None or read.start < floor:
                continue
            position = max(read.end, position)
            says_something = read.claims or read.damage
            if says_something and is_shown(text, read.start, read.end, floor, torn=not read.claims):
                break
            if says_something or read.keep is not None:
                reads.append((family.name, read))
                floor = position
            break
    return reads


def _gathered(text: str, reads: list[tuple[str, Read]], names: Names) -> Rescued:
    if not reads:
        return Rescued(rest=text.strip())
    calls: list[FoundCall] = []
    unknown: list[str] = []
    for family, read in reads:
        for claim in read.claims:
            match names.find(claim.name):
                case (known,):
                    calls.append(_call(claim, known, family, (read.start, read.end)))
                case _:
                    unknown.append(claim.name)
    damage = next((read.damage for _, read in reads if read.damage), None)
    return Rescued(calls=tuple(calls), unknown=tuple(unknown), damage=damage, rest=_rest(text, reads))


def _call(claim: Claim, known: str, family: str, span: tuple[int, int]) -> FoundCall:
    renamed = () if claim.name == known else ("name",)
    return FoundCall(
        name=known,
        arguments=claim.arguments,
        origin=family,
        repairs=renamed + claim.repairs,
        cost=claim.cost,
        span=span,
    )


def _rest(text: str, reads: list[tuple[str, Read]]) -> str:
    pieces: list[str] = []
    position = 0
    for _, read in reads:
        pieces.append(_STRAY.sub("", text[position : read.start]))
        pieces.append(read.keep or "")
        position = read.end
    pieces.append(_STRAY.sub("", text[position:]))
    return "".join(pieces).strip()
