"""Family `react`: a line that names the tool and a line with its input. ReAct, Qwen-Agent, and plain labels."""

import re

from msgspec.structs import replace

from stages.repair.damaged_json import BrokenJson, FoundJson
from stages.repair.json_text import json_at, json_quoted
from stages.rescue.families.json_calls import ARGUMENTS_BEGIN, CUT_OFF, UNREADABLE, named_call, torn_call
from stages.rescue.families.lines import lines_call
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names
from stages.rescue.pycalls import call_list
from stages.rescue.shape import arguments_of, shape_of
from stages.rescue.tags import WORDS

_LABEL = (
    r"(?:(?:Tool|Function)[ _](?:[Cc]all|[Nn]ame)|Action|Tool|Function|Call|(?:tool|function)_name|tool|function|"
    r"action|\u273fFUNCTION\u273f)"
)
_INPUT = (
    r"(?:[Aa]ction[ _]?(?:[Ii]nput|[Aa]rgs)|(?:[Tt]ool|[Ff]unction)[ _]?(?:[Ii]nput|[Aa]rgs|[Aa]rguments)|"
    r"[Aa]rguments|[Aa]rgs|[Pp]arameters|[Pp]arams|[Ii]nput|\u273fARGS\u273f)"
)
_HEAD = re.compile(rf"{_LABEL}(?: \d{{1,3}})?\**[ \t]*:\**[ \t\u00a0]*")
_NAME = re.compile(r"[*`\"'\[]*([A-Za-z_][\w.:/-]{0,120})[*`\"'\]]*[ \t]*(?:\(\))?[ \t]*")
_INPUT_LABEL = re.compile(rf"\s*+(?:\d[.)] )?\**+{_INPUT}(?: \d{{1,3}})?\**+[ \t]*+:\**+\s*+(?:```(?:json)?\s*+)?`?")
_ARGUMENTS = re.compile(ARGUMENTS_BEGIN)
_TO_BRACE = re.compile(r"[(\[]?\s*+(?=\{)")
_FENCE = re.compile(r"(?:```(?:json)?\s*)?(?=[\[{])")
_AFTER = re.compile(r"\"?`?(?:\s*```)?")
_OBSERVATION = re.compile(r"\s*\**(?:Observation|Result|\u273fRESULT\u273f)\**[ \t]*:")
_NEXT_LABEL = re.compile(r"\n[ \t*]*+(?:Observation|Thought|Action|Final Answer|Result|Question)\b")
_LONGEST_LABEL = 40
_BRACKETS = re.compile(r"\[([^\[\]\n]*)\](?=[ \t.]*(?:\n|\Z))")
_LINE_START = re.compile(r"[ \t>*#-]*(?:\d{1,2}[.)] \**)?")
_ONE_VALUE = re.compile(r"[^=:,;|(){}\[\]]{1,80}")
"""An input that is a single value, rather than several in an invented notation."""
_YAML_BEGINS = ("tool", "name", "function", "action")
_MARGIN = 12
"""Maximum characters of a quotation, list or heading mark before a label."""
_NO_TOOL = frozenset({"none", "n/a", "na", "finish", "final", "final_answer", "answer", "stop"})


def _read(text: str, start: int, names: Names) -> Read | None:
    line = text.rfind("\n", max(0, start - _MARGIN), start) + 1
    if start - line > _MARGIN or not _LINE_START.fullmatch(text, line, start):
        return None
    head = _HEAD.match(text, start)
    if head is None:
        return None
    if text.startswith(_YAML_BEGINS, start) and (read := lines_call(text, line, line, names)):
        return read
    read = _labelled(text, start, head.end(), names) or _inline(text, start, head.end(), names)
    if read and any(map(str.isdecimal, text[line:start])):
        # A numbered list may consist of the parts of a call.
        read = replace(read, claims=tuple(claim.guessed() for claim in read.claims))
    return read


def _labelled(text: str, start: int, position: int, names: Names) -> Read | None:
    name = _NAME.match(text, position)
    label = _INPUT_LABEL.match(text, name.end()) if name else None
    if name is None or label is None or name[1].lower() in _NO_TOOL:
        return None
    if text.startswith('"', label.end()) and _ARGUMENTS.match(text, label.end()):
        read = named_call(text, start, label.end(), name[1])
        return replace(read, end=_end(text, read.end)) if read.claims else None
    if not _ARGUMENTS.match(text, label.end()):
        return _plain(text, start, label.end(), name[1], names)
    found = json_at(text, label.end())
    looked = found.end
    if isinstance(found, BrokenJson):
        found = _up_to_label(text, label.end(), found)
    if not isinstance(found, FoundJson):
        why = CUT_OFF if found.cut else UNREADABLE
        return Read(start=start, end=max(found.end, label.end()), damage=why, keep="", looked=looked)
    shape = arguments_of(name[1], found)
    end = _end(text, found.end)
    return Read(start=start, end=end, claims=shape.claims, damage=shape.damage, keep="", looked=looked)


def _up_to_label(text: str, start: int, torn: BrokenJson) -> FoundJson | BrokenJson:
    """The object read again up to the label of the next line, even if its braces are not closed."""
    label = _NEXT_LABEL.search(text, start, torn.end + _LONGEST_LABEL)
    if label is None:
        return torn
    found = json_at(text[start : label.start()], 0)
    return replace(found, end=start + found.end)


def _plain(text: str, start: int, position: int, name: str, names: Names) -> Read | None:
    """An input that is not a JSON object, up to the next label."""
    if not names.knows(name):
        return None
    label = _NEXT_LABEL.search(text, position) if names.parameters(name) else None
    end = label.start() if label else len(text)
    read = _no_object(text, start, (position, end), name, names)
    return replace(read, looked=end) if read and names.parameters(name) else read


def _no_object(text: str, start: int, at: tuple[int, int], name: str, names: Names) -> Read | None:
    """An input that is not a JSON object: the value of the first parameter. Without any, a call without arguments.

    It is a guess if the tool has further parameters.
    """
    position, end = at
    line = text[position : min(position + 80, end)].split("\n", 1)[0].strip(" `")
    if not names.knows(name):
        return None
    parameters = names.parameters(name)
    nothing = line.lower() in ("", "none", "null", "n/a")
    # After labels other than ReAct's `Action`, it may describe a function: `Input: a shell command`.
    action, alone = "action" in text[start:position].lower(), len(parameters) == 1
    written = text[position:end].strip()
    if line and (alone or (parameters and action and not nothing and _ONE_VALUE.fullmatch(written))):
        value = json_quoted(_unwrapped(written))
        cost = int(not (alone and action))
        arguments = f"{{{json_quoted(parameters[0])}:{value}}}"
        claim = Claim(name=name, arguments=arguments, repairs=("plain_input",), cost=cost)
        return Read(start=start, end=_end(text, end + text.startswith("]", end)), claims=(claim,), keep="")
    if nothing:
        claim = Claim(name=name, arguments="{}", repairs=("no_arguments",), cost=1)
        end = position + len(line)
        return Read(start=start, end=_end(text, end + text.startswith("]", end)), claims=(claim,), keep="")
    return Read(start=start, end=position, damage=f"the input of {name[:60]} is not a JSON object.", keep="")


def _unwrapped(value: str) -> str:
    """The input without surrounding quotation marks or backquotes."""
    mark = value[:1]
    inside = value[1:-1]
    return (
        inside if mark in ('"', "'", "`") and value.endswith(mark) and len(value) > 1 and mark not in inside else value
    )


def _inline(text: str, start: int, position: int, names: Names) -> Read | None:
    """A call on one line: `f(x=1)`, `f({…})`, `f[{…}]`, `f {…}`, or JSON of a call."""
    fence = _FENCE.match(text, position)
    if fence:
        found = json_at(text, fence.end())
        if not isinstance(found, FoundJson):
            return torn_call(text, fence.end(), found, names) or Read(start=start, end=found.end)
        shape = shape_of(found, names, marked=True)
        if not shape.claims and not shape.damage:
            return Read(start=start, end=found.end)
        return Read(start=start, end=_end(text, found.end), claims=shape.claims, damage=shape.damage, keep="")
    name = _NAME.match(text, position)
    if name is None or not names.knows(name[1]):
        return None
    brace = _TO_BRACE.match(text, name.end())
    if brace is None:
        calls = call_list(text, position, names)
        if calls is None:
            return _bracketed(text, start, name, names)
        return Read(start=start, end=_end(text, calls.end), claims=calls.claims, damage=calls.damage, keep="")
    return named_call(
        text, start, brace.end(), name[1], lambda text, end: _end(text, end + text.startswith((")", "]"), end))
    )


def _bracketed(text: str, start: int, name: re.Match[str], names: Names) -> Read | None:
    """`search[what]`, as the ReAct paper writes it (https://arxiv.org/abs/2210.03629)."""
    inside = _BRACKETS.match(text, name.end())
    return _no_object(text, start, inside.span(1), name[1], names) if inside else None


def _end(text: str, position: int) -> int:
    """The end of the call; the end of the reply, if the model went on to make up the tool's answer."""
    after = _AFTER.match(text, position)
    end = after.end() if after else position
    return len(text) if _OBSERVATION.match(text, end) else end


REACT = Family(
    name="react",
    first="ATFCtfa\u273f",
    opener="Action|Tool|Function|Call:|tool(?:_name)?:|function(?:_name)?:|action:|\u273fFUNCTION\u273f",
    read=_read,
    words=WORDS,
)
