"""Family `harmony`: the channels of gpt-oss. A call is a message addressed to a function, on whichever channel."""

import re

from stages.rescue.families.json_calls import ARGUMENTS_BEGIN, CUT_OFF, UNREADABLE, named_call
from stages.rescue.found import Family, Read
from stages.rescue.names import Names
from stages.rescue.tags import WORDS

_CONTENT_TYPE = r"\s*+(?:(?:<[|\uff5c]{1,2}constrain[|\uff5c]{0,2}>\s*+)?(?:json?|code|text|response)?\s*+){1,2}"
_HEADER = re.compile(
    r"(?:<[|\uff5c]{1,2}start[|\uff5c]{0,2}>assistant)?\s*+(?:to=\s?(?P<role>[\w.:-]{1,200}))?\s*+(?:<[|\uff5c]{1,2}channel[|\uff5c]{0,2}>\s*+(?P<channel>\w{1,40}))?"
    rf"\s*+(?:to=\s?(?P<to>[\w.:-]{{1,200}}))?\s*+(?:(?:<[|\uff5c]{{1,2}}channel[|\uff5c]{{0,2}}>\s*+)?commentary)?{_CONTENT_TYPE}\s*+(?P<message>(?:<[|\uff5c]{{1,2}}message[|\uff5c]{{0,2}}>){{1,2}})?\s*+",
    re.IGNORECASE,
)
_ARGUMENTS = re.compile(rf"{ARGUMENTS_BEGIN}|\[")
_END = re.compile(r"<[|\uff5c]{1,2}(?:end|return|call)[|\uff5c]{0,2}>|(?=<[|\uff5c]{1,2}start[|\uff5c]{0,2}>)|\Z")
_AFTER_CALL = re.compile(r"\"?\s*+<[|\uff5c]{1,2}(?:end|return|call)[|\uff5c]{0,2}>")
_START_BEFORE = re.compile(
    r"(?:<[|\uff5c]{1,2}start[|\uff5c]{0,2}>)?(?:assistant)?(?:(?<!\s)\s++)?(?:<[|\uff5c]{1,2}channel[|\uff5c]{0,2}>\s*+)?(?:(?:commentary|analysis)\s*+)?\Z"
)


def _message(text: str, start: int, names: Names) -> Read | None:
    """One message: a call, words that stay (final, commentary), or words that are removed (analysis)."""
    header = _HEADER.match(text, start)
    if header is None or header.end() == start:
        return None
    recipient = header["to"] or header["role"] or ""
    own = recipient in ("", "self", "user", "assistant", "all")
    if header["message"] and not own and text.startswith("<", header.end()):
        # Muse Glimmer addresses a tool and writes the call in tags, which another family reads.
        return Read(start=start, end=header.end(), keep="")
    if recipient.startswith("functions.") or names.knows(recipient):
        return _call(text, start, header, recipient)
    if header["message"] is None:
        return Read(start=start, end=header.end(), keep="")
    if own and header["channel"] not in (None, "final", "commentary", "analysis"):
        # A channel with complete calls, to which the token before them belongs.
        return Read(start=start, end=header.start("message"), keep="")
    ended = _END.search(text, header.end())
    end = ended.start() if ended else len(text)
    words = (
        ""
        if not own or recipient == "self" or "analysis" in (header["channel"], recipient)
        else text[header.end() : end]
    )
    return Read(start=start, end=ended.end() if ended else end, keep=words)


def _call(text: str, start: int, header: re.Match[str], recipient: str) -> Read:
    name = recipient.removeprefix("functions.")
    if not _ARGUMENTS.match(text, header.end()):
        cut = header.end() == len(text)
        return Read(start=start, end=header.end(), damage=CUT_OFF if cut else UNREADABLE, keep="")
    return named_call(text, start, header.end(), name, _past_token)


def _past_token(text: str, position: int) -> int:
    after = _AFTER_CALL.match(text, position)
    return after.end() if after else position


def _addressed(text: str, start: int, _names: Names) -> Read | None:
    """A header whose control tokens were lost on the way: `commentary to=functions.f json{…}`."""
    to = start - len("to")
    header = _HEADER.match(text, to) if text.startswith("to", max(0, to)) else None
    if header is None or not (header["message"] or text.startswith("{", header.end())):
        return None
    before = _START_BEFORE.search(text, max(0, to - 60), to)
    return _call(text, before.start() if before else to, header, header["role"] or "")


MESSAGE = Family(
    name="harmony",
    first="<",
    opener=r"<[|\uff5c]{1,2}start[|\uff5c]{0,2}>assistant|<[|\uff5c]{1,2}channel[|\uff5c]{0,2}>",
    read=_message,
    words=("<|", "<\uff5c"),
)
ADDRESSED_MESSAGE = Family(name="harmony", first="=", opener=r"=functions\.", read=_addressed, words=WORDS)
