"""The arguments of a call in plain XML: JSON, one element each, or the value of the only parameter."""

import html
import re
from collections.abc import Callable

from msgspec import Struct

from stages.repair.json_text import json_quoted
from stages.rescue.families.json_calls import ARGUMENTS_BEGIN, CUT_OFF, UNREADABLE, named_call
from stages.rescue.found import Claim
from stages.rescue.names import Names
from stages.rescue.tags import CLOSED, GAP, KEY, PARAMETER, VALUE, past_closing

ELEMENT = re.compile(
    rf"{GAP}<(?:(?P<word>{PARAMETER})=[\"']?(?P<bare>[^\"'>]{{1,100}}+)[\"']?|(?P<tag>[A-Za-z_][\w.-]{{0,100}})"
    r"(?:\s+(?:name|key)=[\"']?(?P<key>[^\"'>]{1,100}+)(?:[\"'](?:\s+type=[\"']\w{1,20}[\"'])?)?)?)>"
)
"""An element that is an argument. After `=` alone stands a key in a parameter's tag, and in any other tag its value."""
ARGUMENTS = re.compile(rf"{ARGUMENTS_BEGIN}|\[")
_BLANK = re.compile(GAP)
_CDATA = re.compile(r"\s*+<!\[CDATA\[")
_ESCAPED = re.compile(r"[^<>&]*+(?:&(?:lt|gt|amp|quot|apos|#39|#34);[^<>&]*+)++")
"""A value in which every special sign of XML is escaped: HTML has bare ones too."""
_FOREIGN = re.compile(CLOSED)
"""The closing tag of a call in another format."""
_SURPLUS = re.compile(r"\"?[ \t]*+[}\]]{0,3}(?=\s*+<)")
_MARGIN = re.compile(r"\n[ \t]{1,40}\Z")
_NEAR = 4_000
"""Characters in which a value is likely to end."""
_TAG = re.compile(r"</?[\w.-]{1,100}>")
_FOREIGN_END = re.compile(r"</([\w:.-]{1,60})>\Z")
_ANY_CLOSING = re.compile(rf"{GAP}</[\w:.-]{{1,60}}>")
_KEY_AND_VALUE = re.compile(f"(?:{KEY}|name) {VALUE}")
_UNCLOSED = "its markup is not closed."


class BrokenElements(Struct, frozen=True):
    """What is wrong with the arguments, and where reading them stopped."""

    why: str
    end: int


def body_at(text: str, position: int, tag: str, name: str, names: Names) -> tuple[Claim, int] | BrokenElements:
    """The arguments up to the closing tag, as JSON or as one element each; or what is wrong with them."""
    closing = f"</{tag}>"
    begin = skip_blank(text, position)
    if ARGUMENTS.match(text, begin):
        read = named_call(text, begin, begin, name, _past_surplus)
        if not read.claims:
            return BrokenElements(read.damage or UNREADABLE, len(text) if read.damage == CUT_OFF else read.end)
        # Complete JSON needs no closing tag to show its end, so one of any name will do.
        body = closed(text, read.end, closing, read.claims[0])
        if isinstance(body, BrokenElements):
            other = _ANY_CLOSING.match(text, read.end)
            return without_closing(read.claims[0]), other.end() if other else read.end
        return body
    given: dict[str, list[str]] = {}
    repairs: dict[str, None] = {}
    if text.startswith(f"<{tag}>", begin):
        # Some models write the opening tag twice.
        position = begin + len(f"<{tag}>")
    known = {f"<{parameter}>" for parameter in names.parameters(name)}

    def bound(begin: int, reach: int) -> int:
        tags = (tag for tag in _TAG.finditer(text, begin, reach) if tag[0] == closing or tag[0] in known)
        return next((tag.start() for tag in tags), -1)

    values = Values(text, bound)
    while (element := ELEMENT.match(text, position)) and not element[0].lstrip().startswith(closing):
        tag = element["tag"] or element["word"]
        value = values.read(element.end(), tag)
        if value is None:
            return BrokenElements(CUT_OFF, len(text))
        given.setdefault(element["key"] or element["bare"] or tag, []).append(element_as_json(value[0], repairs))
        position = value[1]
    repairs.update(values.repairs)
    keys = {json_quoted(key): key for key in names.parameters(name)}
    if _KEY_AND_VALUE.fullmatch(" ".join(given)) and given.keys().isdisjoint(keys.values()):
        # Each parameter's name and its value in an element of their own.
        written, values_of = given.values()
        if len({*written} & keys.keys()) == len(written) == len(values_of):
            given = {keys[key]: [value] for key, value in zip(written, values_of, strict=True)}
    claim = Claim(name=name, arguments=joined_arguments(given), repairs=tuple(repairs), cost=len(values.repairs))
    return closed(text, position, closing, claim)


def _past_surplus(text: str, position: int) -> int:
    """The position behind a quotation mark and brackets that close nothing."""
    surplus = _SURPLUS.match(text, position)
    return surplus.end() if surplus else position


class Values:
    """The values of a call's elements, each up to its closing tag.

    Where that is not near, and the next argument or the end of the call is, the value ends there: its closing tag is
    missing, or has another name. `bound` finds that place between two positions, -1 for none.
    """

    def __init__(self, text: str, bound: Callable[[int, int], int]) -> None:
        self.text = text
        self.bound = bound
        self.repairs: dict[str, None] = {}

    def read(self, begin: int, tag: str) -> tuple[str, int] | None:
        """The value that begins there, and where its markup ends."""
        closing, inside = f"</{tag}>", skip_cdata(self.text, begin)
        end = self.text.find(closing, inside, inside + _NEAR)
        if end < 0 and (bound := self.bound(inside, inside + _NEAR)) >= 0:
            self.repairs["missing_closer"] = None
            return self.text[begin:bound].strip(), bound
        if end < 0 and (end := self.text.find(closing, inside)) < 0:
            return None
        return self.text[begin:end], end + len(closing)


def without_foreign_closer(written: str) -> str:
    """The value without a closing tag of another name at its end."""
    foreign = _FOREIGN_END.search(written[-80:].rstrip())
    if foreign and f"<{foreign[1]}" not in written:
        return written.rstrip().removesuffix(foreign[0])
    return written.strip()


def joined_arguments(given: dict[str, list[str]]) -> str:
    """The object of these values, each as JSON.

    A name that was given several values is an array: whether the tool takes one is its schema's business.
    """
    values = ((key, one[0] if len(one) == 1 else f"[{','.join(one)}]") for key, one in given.items())
    return "{" + ",".join(f"{json_quoted(key)}:{value}" for key, value in values) + "}"


def skip_cdata(text: str, begin: int) -> int:
    """Where the search for the closing tag starts: after a CDATA section at the beginning, in which tags are text."""
    while opening := _CDATA.match(text, begin):
        end = text.find("]]>", opening.end())
        if end < 0:
            return len(text)
        begin = end + len("]]>")
    return begin


def element_as_json(value: str, repairs: dict[str, None], *, strip: bool = True) -> str:
    """The text between two tags as a JSON string, with CDATA and entities decoded.

    A newline after the opening tag and one before the closing tag belong to the markup, unless `strip` is off. Entities
    are only decoded if every special character is escaped; that is noted among the `repairs`.
    """
    bare = value.strip()
    if bare.startswith("<![CDATA[") and bare.endswith("]]>"):
        # XML writes `]]>` inside of CDATA by closing it in the middle and opening it again.
        return json_quoted(bare[len("<![CDATA[") : -len("]]>")].replace("]]><![CDATA[", ""))
    if value[-1:] in (" ", "\t") and (margin := _MARGIN.search(value)):
        value = _without_margin(value, margin[0])
    if strip:
        # A server may have escaped the line breaks of the markup.
        newline = next(filter(value.startswith, ("\n", "\r\n", *(() if "\n" in value else ("\\n",)))), "")
        value = value.removeprefix(newline).removesuffix(newline) if newline else value
    if not _ESCAPED.fullmatch(value):
        return json_quoted(value)
    repairs["entities"] = None
    return json_quoted(html.unescape(value))


def _without_margin(written: str, margin: str) -> str:
    """The value without the indentation of its closing tag, if all its lines have it."""
    lines = written.removesuffix(margin[1:]).split("\n")
    if any(line.strip() and not line.startswith(margin[1:]) for line in lines[1:]):
        return written
    return "\n".join((lines[0], *(line.removeprefix(margin[1:]) for line in lines[1:])))


def closed(text: str, position: int, closing: str, claim: Claim) -> tuple[Claim, int] | BrokenElements:
    """The claim, if its closing tag follows or, after complete arguments, the end of the reply."""
    if end := after_closing(text, position, closing):
        return claim, end
    if claim.arguments == "{}" or skip_blank(text, position) < len(text):
        return BrokenElements(_UNCLOSED, position)
    return without_closing(claim), len(text)


def without_closing(claim: Claim) -> Claim:
    """The claim, whose closing tag is missing at the very end of the reply."""
    if "missing_closer" in claim.repairs:
        return claim
    repairs = (*claim.repairs, "missing_closer")
    return Claim(name=claim.name, arguments=claim.arguments, repairs=repairs, cost=claim.cost + 1)


def after_closing(text: str, position: int, closing: str) -> int | None:
    """Where the closing tag ends, if it comes next."""
    begin = skip_blank(text, position)
    if text.startswith(closing, begin):
        return begin + len(closing)
    if closing.startswith(cut := text[begin : begin + len(closing)]) and cut.startswith("</"):
        return len(text)
    foreign = _FOREIGN.match(text, begin)
    past = foreign.end() if foreign else past_closing(text, begin)
    return past if past > begin else None


def skip_blank(text: str, position: int) -> int:
    """The next position that is not blank."""
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def plain_body(text: str, position: int, tag: str, name: str, names: Names) -> tuple[Claim, int] | None:
    """The body as the value of the tool's only parameter."""
    parameters, closing, end = names.parameters(name), f"</{tag}>", text.find("<", position)
    if len(parameters) != 1 or not text.startswith(closing, max(end, 0)) or not text[position:end].strip():
        return None
    arguments = f"{{{json_quoted(parameters[0])}:{json_quoted(text[position:end].strip())}}}"
    return Claim(name=name, arguments=arguments, repairs=("plain_input",)), end + len(closing)
