"""Family `tagged`: a marker, then JSON (or Python) that is a call. Hermes, Granite, Mistral and many more.

The markers are data. Their contents are read in all the shapes that `shape` knows, whatever the marker, because models
mix them up.
"""

import re

from msgspec.structs import replace

from stages.repair.damaged_json import FoundJson
from stages.repair.json_text import FIRST_KEY, json_at
from stages.rescue.families.elements import Called, parameters
from stages.rescue.families.json_calls import ARGUMENTS_BEGIN, CUT_OFF, UNREADABLE, named_call
from stages.rescue.families.lines import lines_call
from stages.rescue.families.xml_calls import elements, in_attributes, own_tags
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names
from stages.rescue.pycalls import PythonCalls, call_list
from stages.rescue.shape import shape_of
from stages.rescue.tags import GAP, GIVEN, WORDS, past_closing

_WORDS = (
    r"tool_calls?>",  # Hermes, Qwen, EXAONE, Granite 4, Jamba, Hunyuan, Apriel
    r"toolcall>",
    r"function_calls?>",  # Granite code models, OLMo 3
    r"functioncall>",  # Glaive
    r"functions?>",
    r"tools>",  # what Qwen2.5-Coder writes for <tool_call>; definitions in it are recognized by their shape
    r"tool_use>",
    r"tool_request>",
    r"tool>",
    r"<function>>",  # Gorilla
    r"TOOLCALL>",  # Nemotron
)
_TOKENS = (
    r"tool_calls?\|?>(?!call:)",  # Granite 3, Phi-4 mini, Gemma 4; its own grammar is another family
    r"tool_call_start\|?>",  # LFM2, MiniCPM
    r"python_tag\|?>",  # Llama 3
    r"python_start\|?>",  # Llama 4
    r"action_start\|?>(?:\s*<\|plugin\|?>)?",  # InternLM
    r"START_ACTION\|?>",  # Command R7B, Command A
    r"FunctionCallBegin\|?>",  # Doubao, Skywork
    r"tools_prefix\|?>",  # Apertus
)
_BRACKETS = (
    r"TOOL_CALLS\]",  # Mistral before v11
    r"TOOL_REQUEST\]",  # LM Studio
)
_FUNCTOOLS = r"functools(?=\s{0,4}\[)"  # Phi-4 mini, FireFunction
_OPENER = rf"<(?:{'|'.join(_WORDS)})|<\|(?:{'|'.join(_TOKENS)})|\[(?:{'|'.join(_BRACKETS)})|{_FUNCTOOLS}"
_OPENING = re.compile(_OPENER)
_FENCE_OPEN = re.compile(rf"{GAP}(?:```[ \t]*+\w*+\s*+)?(?:[\"'](?=[\[{{]))?")
_OPENED_AGAIN = re.compile(rf"\s*+(?:{_OPENER})\s*+\Z")
"""An opening marker in place of the closing one."""
_NO_MARKUP = re.compile(r"[^<]{1,4000}+(?:(?=<)|\Z)")
_NAME = re.compile(r"[A-Za-z_][\w.:/-]{0,120}+")
_ATTRIBUTES = re.compile(rf"(?:{GIVEN})+\s*+")
_NEXT = re.compile(r"\s*+[,;]?\s*+(?=\{|\[\s{0,20}[\[{])")
_EMPTY = re.compile(r"\s*+\Z")
_JUNK = re.compile(r"[^<\[{]{1,2000}</(?:tool_?calls?|function_call)>[ \t]*$", re.MULTILINE)
_AT_ONCE = re.compile(rf"[{{\uff5b]|\[(?!/?[A-Z_]{{3,20}}\])|{FIRST_KEY}")
_NAME_THEN_JSON = re.compile(
    r"(?:name\s*+[:=]\s*+)?[\"'*`\[]*+([A-Za-z_][\w.:/-]{0,120}+)[\"'*`]*+"
    r"(?:[\s*`,:(\]]|(?<=```)json|\[ARGS\]|\[CALL_ID\][\w-]{1,40}+\[ARGS\]|arguments\s*+[:=])*"
    rf"{ARGUMENTS_BEGIN}"
)
_NAME_THEN_ELEMENTS = re.compile(
    r"\{\s*+\"(?:name|tool|function)\"\s*+:\s*+\"([\w.:/-]{1,200}+)\"\s*+(?:,\s*+(?:\"(?:arguments|parameters)\"\s*+:\s*+\{?\s*+)?|\}\s*+)(?=<(?!/))"
)
"""An object with the name, open or closed, and the tag after it."""


def _read(text: str, start: int, names: Names) -> Read | None:
    opening = _OPENING.match(text, start)
    if opening is None:
        return None
    body = _FENCE_OPEN.match(text, opening.end())
    position = body.end() if body else opening.end()
    if text.startswith("{", position):
        return _json(text, start, position, names)
    if _EMPTY.match(text, position):
        return Read(start=start, end=len(text), damage="it ends where the call should begin.", keep="")
    if text.startswith("<", position):
        # Nested markup: its own family reads it.
        return None
    if _AT_ONCE.match(text, position):
        python = call_list(text, position, names) if text[position] == "[" else None
        return _of_python(text, start, python) if python else _json(text, start, position, names)
    return (
        _named(text, start, position, names)
        or _python(text, start, position, names)
        or _plain(text, start, position, names)
        or _junk(text, start, position)
    )


def _json(text: str, start: int, position: int, names: Names) -> Read:
    if mixed := _mixed(text, start, position, names):
        return mixed
    claims: list[Claim] = []
    damage = None
    while True:
        found = json_at(text, position)
        if not isinstance(found, FoundJson):
            return Read(
                start=start,
                end=max(found.end, position),
                claims=tuple(claims),
                damage=CUT_OFF if found.cut else UNREADABLE,
                keep="",
            )
        shape = shape_of(found, names, marked=True)
        if not shape.claims and not shape.damage:
            return Read(start=start, end=found.end, claims=tuple(claims), damage=damage)
        claims += shape.claims
        damage = damage or shape.damage
        following = _NEXT.match(text, found.end)
        if following is None:
            end = _past_closer(text, found.end)
            return Read(start=start, end=end, claims=tuple(claims), damage=damage, keep="")
        position = following.end()


def _mixed(text: str, start: int, position: int, names: Names) -> Read | None:
    """The name in JSON, and the arguments in elements."""
    head = _NAME_THEN_ELEMENTS.match(text, position)
    known = names.parameters(head[1]) if head else ()
    if head is None:
        return None
    for grammar in (elements(), own_tags(text, head.end(), (), known)):
        key = grammar.key.match(text, head.end())
        if key and any(key[group] in known for group in grammar.keys):
            read = parameters(text, Called(head[1], start, head.end()), grammar, names)
            claims = tuple(claim.guessed("mixed") for claim in read.claims)
            return replace(read, end=_past_closer(text, read.end), claims=claims)
    return None


def _named(text: str, start: int, position: int, names: Names) -> Read | None:
    """The name outside the JSON: `get_weather`, then `{"city": …}`."""
    head = _NAME_THEN_JSON.match(text, position)
    if head is None:
        return None
    read = named_call(text, start, head.end(), head[1], _past_closer)
    # Perhaps it is not a name; but with its closing marker, it was meant as a call.
    return read if names.knows(head[1]) or (read.claims and text[read.end - 1] in ">]") else None


def _python(text: str, start: int, position: int, names: Names) -> Read | None:
    calls = call_list(text, position, names)
    return None if calls is None else _of_python(text, start, calls)


def _of_python(text: str, start: int, calls: PythonCalls) -> Read:
    damage = calls.damage or (None if calls.claims else UNREADABLE)
    return Read(start=start, end=_past_closer(text, calls.end), claims=calls.claims, damage=damage, keep="")


def _plain(text: str, start: int, position: int, names: Names) -> Read | None:
    """A name, then `key=value` or a line for each argument, up to a closing marker: a guess."""
    name = _NAME.match(text, position)
    inside = _NO_MARKUP.match(text, position) if name and names.knows(name[0]) else None
    end = _past_closer(text, inside.end()) if inside else 0
    if name is None or inside is None or (end == inside.end() < len(text)):
        return None
    body = inside[0]
    read = lines_call(body, 0, 0, names, marked=True)
    given = _ATTRIBUTES.fullmatch(body, len(name[0]))
    arguments = in_attributes(given[0], name[0], names) if given else None
    if arguments:
        read = Read(start=0, end=0, claims=(Claim(name=name[0], arguments=arguments, repairs=("attributes",), cost=1),))
    return replace(read, start=start, end=end, keep="") if read else None


def _junk(text: str, start: int, position: int) -> Read | None:
    """A closed marker around something that is not a call, each on separate lines."""
    junk = _JUNK.match(text, position)
    if junk is None or (start > 0 and text[start - 1] != "\n"):
        return None
    return Read(start=start, end=junk.end(), damage="what stands between the tags is no call.", keep="")


def _past_closer(text: str, position: int) -> int:
    end = past_closing(text, position)
    again = _OPENED_AGAIN.match(text, end)
    return again.end() if again else end


TAGGED_JSON = Family(
    name="tagged", first="<[f", opener=rf"(?:{_OPENER})(?=\s{{0,8}}\{{)", read=_read, words=(*WORDS, "<|")
)
"""The same if an object follows directly; no other family reads that, so this one is asked first."""
TAGGED = Family(name="tagged", first="<[f", opener=rf"(?:{_OPENER})(?!\s{{0,8}}\{{)", read=_read, words=(*WORDS, "<|"))
