"""Families `function`, `invoke` and `arg_key`: a name, then parameters each in a tag of its own.

Qwen3-Coder and Seed-OSS write `<function=f><parameter=k>v</parameter></function>`, MiniMax, DeepSeek 3.2 and
those who copy Anthropic `<invoke name="f"><parameter name="k">v</parameter></invoke>`, GLM and LongCat
`<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`. Values are text and stay text: what
type they are is the schema's business. Tags inside of a value are told from those that end it by what follows.
"""

import html
import re

from msgspec import Struct
from msgspec.structs import replace

from stages.repair.json_text import FoundJson, is_json, json_at, json_quoted
from stages.rescue.families.elements import element_as_json, joined_arguments, skip_cdata
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names

_NS = r"(?:\uff5cDSML\uff5c ?|\|DSML\| ?|\w{1,12}:)?"
_WRAPPER_CLOSED = rf"</{_NS}(?:function|tool)_calls?>"
_FUNCTION = re.compile(r"<function=\s*+[\"']?([^>\n\"']{1,200}+)[\"']?\s*+/?>")
_FUNCTION_KEY = re.compile(r"\s*+<parameter=\s*+[\"']?([^>\n\"']{1,200}+)[\"']?\s*+>")
_FUNCTION_VALUE = re.compile(
    r"</parameter(?:/|\w{0,3})>(?=\s*(?:<parameter=|</function>|</tool_call>|</seed:tool_call>|<function=|<tool_call>|(?:</\w*+)?\Z))|"
    r"(?=\n?<parameter=[\"']?[\w.-]{1,100}[\"']?>\n)|(?=\n</function>\s*(?:\Z|</|<tool_call>|<function=))"
)
_TO_BRACE = re.compile(r"\s*+(?=\{)")
_FUNCTION_END_OF_JSON = re.compile(r"\s*+</function>")
_FUNCTION_END = re.compile(r"\s*(?:</parameter>\s*)?</function>|(?=\s*</(?:seed:)?tool_call>)")
_INVOKE = re.compile(rf"<{_NS}invoke\s++name=[\"']?([^\"'>\n]{{1,200}}+)[\"']?\s*+(/?)>")
_INVOKE_KEY = re.compile(
    rf"\s*+<{_NS}parameter\s++(?:name=[\"']([^\"'>\n]{{1,200}}+)[\"']|name=([^\s\"'>]{{1,200}}+))(?P<typed>[^>\n]{{0,80}})>"
)
_INVOKE_VALUE = re.compile(
    rf"</{_NS}parameter>(?=\s*(?:<{_NS}parameter\s|</{_NS}invoke>|"
    rf"{_WRAPPER_CLOSED}|<{_NS}invoke\s|(?:</[\w:|\uff5c ]*+)?\Z))|"
    rf"(?=\n</{_NS}invoke>)|(?=\n<{_NS}parameter\s+name=)|(?=</{_NS}invoke>\s*(?:\Z|</|<{_NS}invoke\s))"
)
_INVOKE_END = re.compile(rf"\s*</{_NS}invoke>|(?=\s*(?:{_WRAPPER_CLOSED}|<{_NS}invoke\s))")
_VARIANT = r"(?::[\w-]{1,20}+)?"
"""What Hunyuan 3 appends to the name of each tag: `<arg_key:opensource>`."""
_CALL_TAG, _KEY_TAG, _VALUE_TAG = (rf"(?:longcat_)?{tag}{_VARIANT}>" for tag in ("tool_call", "arg_key", "arg_value"))
_PAIR_HEAD = re.compile(
    rf"<{_CALL_TAG}\s*([\w.:/-]{{1,200}})\s*(?P<sep><tool_sep{_VARIANT}>)?\s*(?=<{_KEY_TAG}|</{_CALL_TAG}|\{{)"
)
_PAIR_KEY = re.compile(rf"\s*<{_KEY_TAG}([^<]{{1,200}})(?:</{_KEY_TAG}\s*){{1,2}}<{_VALUE_TAG}")
_PAIR_VALUE = re.compile(
    rf"</{_VALUE_TAG}(?=\s*(?:<{_KEY_TAG}|</{_CALL_TAG}|(?:</\w*+)?\Z))|"
    rf"(?=</{_CALL_TAG}\s*(?:\Z|<{_CALL_TAG}))|(?=\s?<{_KEY_TAG}[\w.-]{{1,100}}</{_KEY_TAG}\s*<{_VALUE_TAG})"
)
_PAIR_END = re.compile(rf"\s*+(?:</{_CALL_TAG}|<end_of_tool_call{_VARIANT}>)")
_CUT_TAG = re.compile(r"\s*<[^>]*+\Z")
_ALL_CLOSED = re.compile(r"\s*(?:</[\w:|\uff5c ]*+)?\Z")
"""The reply ends after a value's own closing tag: only closers are missing."""
_WRAPPER_BEFORE = re.compile(r"<(?:seed:)?tool_call>\s*\Z")
_WRAPPER_AFTER = re.compile(r"\s*</(?:seed:)?tool_call>")


def _function(text: str, start: int, names: Names) -> Read | None:
    head = _FUNCTION.match(text, start)
    if head is None:
        return None
    before = _WRAPPER_BEFORE.search(text, max(0, start - 40), start)
    begin = before.start() if before else start
    called = _Called(name=_without_slash(head[1]), begin=begin, body=head.end())
    if whole := _json_body(text, called, _FUNCTION_END_OF_JSON, names):
        return whole
    read = _parameters(text, called, (_FUNCTION_KEY, _FUNCTION_VALUE, _FUNCTION_END), names)
    wrapper = _WRAPPER_AFTER.match(text, read.end) if read.claims else None
    return replace(read, end=wrapper.end()) if wrapper else read


class _Called(Struct, frozen=True):
    """The called name, where the call begins, and where its arguments begin."""

    name: str
    begin: int
    body: int


def _without_slash(written: str) -> str:
    """The name in a tag that may be self-closing: `f/`."""
    return written.rstrip().removesuffix("/").rstrip()


def _json_body(text: str, called: _Called, end: re.Pattern[str], names: Names) -> Read | None:
    """Llama 3.1's custom tools: the arguments as JSON between the tags."""
    brace = _TO_BRACE.match(text, called.body)
    if brace is None:
        return None
    found = json_at(text, brace.end())
    if not isinstance(found, FoundJson):
        return _damaged(called, max(found.end, called.body), names)
    closing = end.match(text, found.end)
    claim = Claim(name=called.name, arguments=found.text, repairs=found.repairs, cost=found.cost)
    return Read(start=called.begin, end=closing.end() if closing else found.end, claims=(claim,), keep="")


def _invoke(text: str, start: int, names: Names) -> Read | None:
    head = _INVOKE.match(text, start)
    if head is None:
        return None
    called = _Called(name=_without_slash(head[1]), begin=start, body=head.end())
    if head[2] or head[1].rstrip().endswith("/"):
        return Read(start=start, end=head.end(), claims=(Claim(name=called.name, arguments="{}"),), keep="")
    if whole := _json_body(text, called, _INVOKE_END, names):
        return whole
    return _parameters(text, called, (_INVOKE_KEY, _INVOKE_VALUE, _INVOKE_END), names)


def _pairs(text: str, start: int, names: Names) -> Read | None:
    head = _PAIR_HEAD.match(text, start)
    if head is None or not (names.knows(head[1]) or head["sep"] or "arg_key" in text[head.end() : head.end() + 30]):
        return None
    called = _Called(name=head[1], begin=start, body=head.end())
    if text.startswith("{", head.end()):
        return _json_body(text, called, _PAIR_END, names) if head["sep"] else None
    return _parameters(text, called, (_PAIR_KEY, _PAIR_VALUE, _PAIR_END), names)


def _parameters(
    text: str, called: _Called, grammar: tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]], names: Names
) -> Read:
    """Parameters up to the end tag. Without that tag it is not known whether more were to come: damage."""
    key_tag, value_end, end_tag = grammar
    given: dict[str, list[str]] = {}
    repairs: dict[str, None] = {}
    position = called.body
    while key := key_tag.match(text, position):
        ended = value_end.search(text, skip_cdata(text, key.end()))
        if ended is None:
            return _damaged(called, len(text), names)
        if not ended[0]:
            repairs["missing_closer"] = None
        typed = key["typed"] if key.re is _INVOKE_KEY else ""
        value = _value(text[key.end() : ended.start()], typed, repairs, strip=key.re is not _PAIR_KEY)
        given.setdefault(html.unescape(next(filter(None, key.groups()))).strip(), []).append(value)
        position = ended.end()
    end = end_tag.match(text, position)
    if end is None and given and text[position - 1] == ">" and (end := _ALL_CLOSED.match(text, position)):
        repairs["missing_closer"] = None
    if end is None:
        cut = _CUT_TAG.match(text, position)
        return _damaged(called, cut.end() if cut else position, names)
    claim = Claim(name=called.name, arguments=joined_arguments(given), repairs=tuple(repairs), cost=len(repairs))
    return Read(start=called.begin, end=end.end(), claims=(claim,), keep="")


def _value(value: str, typed: str, repairs: dict[str, None], *, strip: bool) -> str:
    """One value as JSON. If the format types it (`string="false"`), JSON as it is; else a string."""
    if "string=" in typed:
        return value.strip() if "false" in typed and is_json(value.strip()) else json_quoted(value)
    return element_as_json(value, repairs, strip=strip)


def _damaged(called: _Called, end: int, names: Names) -> Read:
    known = names.knows(called.name)
    why = f"the markup of the call of {called.name[:60]} is cut off or not closed." if known else None
    return Read(start=called.begin, end=end, damage=why, keep="" if known else None)


FUNCTION = Family(name="function", first="<", opener="<function=", read=_function)
INVOKE = Family(
    name="invoke",
    first="<",
    opener=r"<\uff5cDSML\uff5c ?invoke\s|<\|DSML\| ?invoke\s|<(?:\w{1,12}:)?invoke\s",
    read=_invoke,
)
ARG_KEY = Family(
    name="arg_key",
    first="<",
    opener=r"<tool_call(?::[\w-]{1,20})?>(?=\s{0,8}[\w.:/-]{1,200}\s{0,8}<)|<longcat_tool_call>",
    read=_pairs,
)
