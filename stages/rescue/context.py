"""Where a call stands: said by the model as a call, or shown, quoted, reported, asked about."""

import re

_WINDOW = 240
"""Characters before and after a call in which its sentence is looked for."""

_SHOWN = re.compile(
    r"\bfor (?:example|instance|reference|illustration)\b|\be\.\s?g\.|\bexamples?\b|\bsamples?\b|\bhypothetical|"
    r"\blook(?:s|ed|ing)? (?:something |roughly |a bit )?(?:like|as follows)\b|\btemplates?\b|\bplaceholder|"
    r"\b(?:expected|following|correct|general|usual|required|this|the) (?:\w+ ){0,2}(?:format|syntax|schema|structure|signature)\s*(?:is|was|:|looks)|"
    r"\b(?:syntax|usage|signature|documentation|docs)\b[^\w\n]*$|"
    r"\bif (?:you|i|we|one|someone|the user|they|it)\b[^,\n]{0,120}\b(?:want|wanted|were|would|needs?|ask|asked|like|had)\b|"
    r"\b(?:you|users?|one|they|developers?|people|anyone) (?:can|could|would|may|might|should|must|have to|need to|will)\b|"
    r"\b(?:i|we)(?: (?:could|might|would(?: have)?|should have)|'d)\b|"
    r"\bhow (?:to|you|(?:it|this|that) (?:works|looks)|(?:a|the) (?:\w+ )?(?:call|tool|function))\b|"
    r"\bsuch as\b|\bimagine\b|\bsuppose\b|\bpretend\b|"
    r"(?:\bnot|n't|\bnever|\bavoid|\binstead of|\brather than|\bwithout|\brefuse to) (?:\w+ ){0,3}(?:call|run|us(?:e|ing)\b|execut|send|invok|emit|writ|output|produc|generat|repl|respond|print|trigger|start)|"
    r"\b(?:wrong|incorrect|invalid|bad|broken|malformed)\b|\btypically\b|\busually\b|\bwould (?:look|have)\b|"
    r"\b(?:tools?|functions?) (?:available|definitions?|list|schemas?|specs?|signatures?)\b|\bavailable (?:tools?|functions?)\b|"
    r"\b(?:these|following) (?:tools|functions)\b|\bhave (?:access to )?(?:tools|functions)\b|"
    r"\bthe (?:model|assistant|llm|agent|bot|system|client|server|api|endpoint) (?:\w+ )?(?:emit|output|writ|wrote|sen[dt]s?|generat|"
    r"produc|repl|ma[kd]e|call|would|should|can|must|use|accept|expect|take|respond|return)|"
    r"\bconfirm\b|\b(?:your|for) (?:approval|permission|consent|ok|go-ahead)\b|\bbefore i (?:continue|proceed|run|call|execute|do)\b|"
    r"\b(?:is|does|did|was|are|do) (?:this|that|it|these|you)\b[^?]{0,100}\?$|"
    r"\b(?:should|shall|may|can) (?:i|we)\b|\bwould you (?:like|want)\b|\bdo you want\b|\bwant me to\b",
    re.IGNORECASE,
)
"""The call is an example, a rule, a question or a refusal."""

_REPORTED = re.compile(
    r"\b(?:returned|returns|responded|responds|replied|printed|prints|reads|said|says|saying|wrote|shows|showed|shown|"
    r"contains|contained|logged|received|quoted?|quoting|recorded|reported|previous(?:ly)?|earlier|already|"
    r"yesterday|last (?:time|turn|step|week)|before that|in the past|you (?:sent|asked|gave|pasted|wrote|provided|shared|made)|"
    r"your (?:\w+ )?(?:message|log|file|config|input|document|snippet|text|json|call|payload|code|example)|"
    r"(?:in|from|of|per|according to) (?:the|a|an|your|this|that|my|our) (?:\w+ ){0,3}(?:logs?|file|config|document|page|"
    r"website|e-?mail|transcript|history|ticket|output|response|results?|observation|record|trace|dataset|fixture|spec|message)$|"
    r"(?:user|customer|he|she|they|someone|attacker|page|file|e-?mail|document|message) (?:\w+ )?(?:sent|pasted|gave|provided|included|includes|posted)|"
    r"was (?:called|made|run|sent|executed|invoked)|were (?:called|made|run|sent|executed)|i (?:have )?(?:called|ran|made|"
    r"used|executed|invoked|sent|tried|found|saw))\b|\b(?:output|result|response|observation|log|quote|transcript|body|input)s?$",
    re.IGNORECASE,
)
"""The call is reported: somebody's words, a file's content, what was done before."""

_INTENT = re.compile(
    r"\b(?:i(?:'ll|\u2019ll| will| shall| am going to|'m going to|\u2019m going to| need to| must| have to| should| want to| am calling|'m calling|"
    r" now call| am now)|let me|let's|let us|now|next|first|calling|using|we (?:will|need|should|can|must)|i can)\b",
    re.IGNORECASE,
)
"""The model says that it is about to act; outweighs what sounds like a report."""

_AFTERWARDS = re.compile(
    r"\b(?:(?:is|was|were|as) (?:just |only |merely )?(?:an? )?(?:\w+ )?(?:example|illustration|sample|placeholder|template|hypothetical)|"
    r"would you like me to|(?:shall|should|may) i (?:go|run|call|execut|proceed|make|send|do)|do you want me to|"
    r"want me to (?:run|call|execut|proceed|go|send|do)|"
    r"(?:i|we) (?:did not|didn't|have not|haven't|will not|won't|am not|cannot|can't|would not|wouldn't) (?:actually |really )?(?:call|calling|run|running|execut|send|sent|do|make|made)|"
    r"(?:not|never) (?:actually |really |yet )?(?:been )?(?:called|executed|run|sent|a (?:real )?call)|"
    r"don't (?:actually )?(?:run|call|execute|do|send)|do not (?:actually )?(?:run|call|execute|do|send)|"
    r"(?:this|that|it|which) (?:returned|gave|failed|was)|looks? like in|"
    r"(?:is|was|shows?|illustrates?|demonstrates?|would be) (?:how|what|an?) |would (?:write|look)|"
    r"(?:you|one) (?:can|could|should|would|might|may) (?:then )?(?:replace|change|adapt|use|run|call|send|paste|copy))\b",
    re.IGNORECASE,
)

_SUBJECT = re.compile(
    r"[`*\"']*[ \t]+(?:is|was|were|are|has|had|would|could|should|might|does|did|means|meant|returns|returned|failed|fails|"
    r"caused|causes|gave|gives|looks|came|appears|appeared|contains|shows|showed)\b"
)
"""The call is the subject of a sentence about it."""

_QUOTES = {"`": "`", '"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb"}
_NEARLY = 16
"""Characters of decoration that may stand around a call which is the whole reply."""
_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)


def is_shown(text: str, start: int, end: int, floor: int, *, torn: bool) -> bool:
    """Whether what stands from `start` to `end` is shown, not said: an example, a quotation, a report.

    `floor` is where the call before ended; nothing before it is about this one. `torn`: it broke off at `end`,
    so only a quotation mark before it can be seen.
    """
    if _in_quotes(text, start, end, torn=torn):
        return not _is_all(text, start, end)
    if _in_blockquote(text, start):
        return True
    lead = lead_in(text, start, floor)
    if _SHOWN.search(lead):
        return True
    if _REPORTED.search(lead) and not _INTENT.search(lead):
        return True
    return bool(_SUBJECT.match(text, end) or _AFTERWARDS.search(_sentence_after(text, end)))


def lead_in(text: str, start: int, floor: int) -> str:
    """The sentence that leads up to `start`; a heading or a label stands for itself."""
    window = text[max(floor, start - _WINDOW) : start]
    window = _FENCE_LINE.sub("", window).rstrip(" \t\r\n`*_#>:~-")
    if not window:
        return ""
    begins = 0
    for boundary in re.finditer(r"[.!?](?=\s)|\n", window):
        begins = boundary.end()
    return window[begins:]


def _sentence_after(text: str, end: int) -> str:
    tail = text[end : end + _WINDOW]
    tail = _FENCE_LINE.sub("", tail).lstrip(" \t\r\n`*_)]}>.,;:")
    if not tail[:1].isalpha():
        return ""
    first = re.search(r"[.!?](?=\s|$)|\n\s*\n", tail)
    return tail[: first.end()] if first else tail


def _in_quotes(text: str, start: int, end: int, *, torn: bool) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    if not before or (before == "`" and text[max(0, start - 3) : start] == "```"):
        return False
    return _QUOTES.get(before) == after or (torn and before in _QUOTES)


def _in_blockquote(text: str, start: int) -> bool:
    line = text.rfind("\n", max(0, start - 1000), start) + 1
    return text[line : min(line + 4, start)].lstrip().startswith(">") and not text.startswith(">>>", line)


def _is_all(text: str, start: int, end: int) -> bool:
    """Whether nothing but decoration stands around it."""
    if start > _NEARLY or len(text) - end > _NEARLY:
        return False
    return not text[:start].strip("`'\"\u201c\u2018* \n\t") and not text[end:].strip("`'\"\u201d\u2019* \n\t.")
