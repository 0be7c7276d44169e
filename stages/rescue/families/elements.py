"""The arguments of a call in plain XML: JSON, one element each, or the value of the only parameter."""

import re

from msgspec import Struct

from stages.rescue.families.json_calls import CUT, UNREADABLE
from stages.rescue.found import Claim
from stages.rescue.jsontext import Json, json_at, quoted
from stages.rescue.names import Names

ELEMENT = re.compile(
    r"\s*+<(?P<tag>[A-Za-z_][\w.-]{0,100})(?:\s+(?:name|key)=[\"'](?P<key>[^\"'>]{1,100})[\"'](?:\s+type=[\"']\w{1,20}[\"'])?)?>"
)
_BLANK = re.compile(r"\s*+")
_UNCLOSED = "its markup is not closed."


class Broken(Struct, frozen=True):
    """What is wrong with the arguments, and where reading them stopped."""

    why: str
    end: int


def body_at(text: str, position: int, tag: str, name: str) -> tuple[Claim, int] | Broken:
    """The arguments up to the closing tag, as JSON or as one element each; or what is wrong with them."""
    closing = f"</{tag}>"
    begin = past_blank(text, position)
    if text.startswith("{", begin):
        found = json_at(text, begin)
        if not isinstance(found, Json):
            return Broken(CUT if found.cut else UNREADABLE, len(text) if found.cut else found.end)
        claim = Claim(name=name, arguments=found.text, repairs=found.repairs, cost=found.cost)
        return _closed(text, found.end, closing, claim)
    given: dict[str, str] = {}
    while (element := ELEMENT.match(text, position)) and not element[0].lstrip().startswith(closing):
        closing_tag, key = f"</{element['tag']}>", element["key"] or element["tag"]
        end = text.find(closing_tag, element.end())
        if end < 0 or key in given:
            return Broken(CUT, len(text)) if end < 0 else Broken(f"it gives {key} twice.", end)
        given[key] = quoted(_unwrapped(text[element.end() : end]))
        position = end + len(closing_tag)
    arguments = "{" + ",".join(f"{quoted(key)}:{value}" for key, value in given.items()) + "}"
    return _closed(text, position, closing, Claim(name=name, arguments=arguments))


def _closed(text: str, position: int, closing: str, claim: Claim) -> tuple[Claim, int] | Broken:
    """The claim, where its closing tag or, after whole arguments, the end of the reply follows."""
    if end := after(text, position, closing):
        return claim, end
    if claim.arguments == "{}" or past_blank(text, position) < len(text):
        return Broken(_UNCLOSED, position)
    return unclosed(claim), len(text)


def unclosed(claim: Claim) -> Claim:
    """The claim, whose closing tag the reply lacks at its very end."""
    if "missing_closer" in claim.repairs:
        return claim
    repairs = (*claim.repairs, "missing_closer")
    return Claim(name=claim.name, arguments=claim.arguments, repairs=repairs, cost=claim.cost + 1)


def after(text: str, position: int, closing: str) -> int | None:
    """Where the closing tag ends, if it comes next."""
    begin = past_blank(text, position)
    return begin + len(closing) if text.startswith(closing, begin) else None


def past_blank(text: str, position: int) -> int:
    """The next position that is not blank."""
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _unwrapped(value: str) -> str:
    return value[1:].removesuffix("\n") if value.startswith("\n") else value


def plain_body(text: str, position: int, tag: str, name: str, names: Names) -> tuple[Claim, int] | None:
    """The body as the value of the tool's only parameter."""
    parameters, closing, end = names.parameters(name), f"</{tag}>", text.find("<", position)
    if len(parameters) != 1 or not text.startswith(closing, max(end, 0)) or not text[position:end].strip():
        return None
    arguments = f"{{{quoted(parameters[0])}:{quoted(text[position:end].strip())}}}"
    return Claim(name=name, arguments=arguments, repairs=("plain_input",)), end + len(closing)
