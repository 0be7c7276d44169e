"""Whether a reply leaves no doubt that the calls found in its text are meant, in any language.

It does if it consists of calls alone, or if the calls come last, in markup of calls, after a complete sentence: no
colon leads up to them, no question, no unfinished sentence, and no inline code with such markup. Then all of them run.
Otherwise only calls that read run at once; before one that writes or ends the run, the model is asked
(`stages.validate`).
"""

import re

from stages.rescue.found import Rescued
from stages.rescue.tags import MARKER, STEM, STRAY_MARKUP

_PAGE = rf"</?(?!(?:s|bos|eos|pad|unk|think|answer|response)>)(?:(?!{STEM})[A-Za-z0-9:.-]){{1,40}}>"
"""A tag of a page or a file, without a markup word of calls: its content is only shown."""
_MARKUP = re.compile(rf"(?!{_PAGE}){MARKER}|^[ \t]{{0,8}}+(?:```|~~~)\w{{0,20}}+[ \t]{{0,8}}+$", re.MULTILINE)
_THOUGHT = re.compile(r"\s*+Thought:[^\n]*+")
_WORD = re.compile(r"\w")
_MORE = re.compile(r"[^\s*_]")
"""Blanks and decoration may follow a call without saying anything about it; a full stop ends a sentence."""
_MENTION = re.compile(rf"`\s{{0,4}}+(?:{STRAY_MARKUP.pattern})")
"""Inline code that begins with the markup of calls: the text is about how calls are written."""
_DECORATION = "* \t\r\n_`"
_SENTENCE = re.compile(r"(?:\A|[.!\u2026\u3002\uff01\uff0e\u0964\u06d4][\"'\u201d\u2019\u00bb\u300d)]{0,2})\Z")
_UNMARKED = re.compile(r"\s*+(?:[`~({\uff5b]|\[\s*+[\[{\"(]|\[?\s*+[\w.-]++\s*+[({]|[\w.-]++\s)")
"""A call without markup of its own: JSON, a code fence, Python, a name before JSON."""


def words_beside(rest: str, origins: set[str]) -> str:
    """What a reply says besides its calls of these families, without the thought that is part of ReAct's format."""
    thought = _THOUGHT.match(rest) if origins == {"react"} else None
    return rest[thought.end() :] if thought else rest


def _without_thought(before: str) -> str:
    """The text without the thought in its last line."""
    thought = before.rfind("Thought:", before.rfind("\n") + 1)
    return before if thought < 0 else before[:thought]


def is_clear(found: Rescued, text: str) -> bool:
    """Whether the calls found in that text, or the damaged one, are certainly meant."""
    rest = words_beside(found.rest, {call.origin for call in found.calls})
    if not _WORD.search(_MARKUP.sub("", rest)):
        return True
    if any(_UNMARKED.match(text, call.span[0]) for call in found.calls) or not found.calls:
        return False
    if _MORE.search(_MARKUP.sub("", found.after)) or _MENTION.search(text, 0, found.calls[0].span[0]):
        return False
    before = found.rest.removesuffix(found.after)
    # Words that lead up to a thought lead up to its call.
    before = _without_thought(before.rstrip(_DECORATION))
    before = _MARKUP.sub("", before).rstrip(_DECORATION)
    return _SENTENCE.search(before, max(0, len(before) - 3)) is not None
