"""The words by which a sentence shows that it gives an example, makes a report, asks, or is about to act.

English only: in another language a call in prose is judged by its quotation marks, its fence and its tags.
"""

import re


def _any_of(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


SHOWN = _any_of(
    r"\bfor (?:example|instance|reference|illustration)\b|\be\.\s?g\.|\bexamples?\b|\bsamples?\b|\bhypothetical",
    r"\blook(?:s|ed|ing)? (?:something |roughly |a bit )?(?:like|as follows)\b|\btemplates?\b|\bplaceholder",
    r"\b(?:expected|following|correct|general|usual|required|this|the) (?:\w+ ){0,2}"
    r"(?:format|syntax|schema|structure|signature)\s*(?:is|was|:|looks)",
    r"\bif (?:you|i|we|one|someone|the user|they|it)\b[^,\n]{0,120}"
    r"\b(?:want|wanted|were|would|needs?|ask|asked|like|had)\b",
    r"\b(?:you|users?|one|they|developers?|people|anyone) "
    r"(?:can|could|would|may|might|should|must|have to|need to|will)\b",
    r"\b(?:i|we)(?: (?:could|might|would(?: have)?|should have)|'d)\b",
    r"\bhow (?:to|you|(?:it|this|that) (?:works|looks)|(?:a|the) (?:\w+ )?(?:call|tool|function))\b",
    r"\bsuch as\b|\bimagine\b|\bsuppose\b|\bpretend\b",
    r"(?:\bnot|n't|\bnever|\bavoid|\binstead of|\brather than|\brefuse to) (?:(?!without\b)\w+ ){0,3}"
    r"(?:call|run|us(?:e|ing)\b|execut|send|invok|emit|writ|output|produc|generat|repl|respond|print|trigger|start)",
    r"\btypically\b|\busually\b|\bwould (?:look|have)\b",
    r"\b(?:tools?|functions?) (?:available|definitions?|list|schemas?|specs?|signatures?)\b",
    r"\bavailable (?:tools?|functions?)\b|\b(?:these|following) (?:tools|functions)\b",
    r"\bhave (?:access to )?(?:tools|functions)\b",
    r"\bthe (?:model|assistant|llm|agent|bot|system|client|server|api|endpoint) (?:\w+ )?"
    r"(?:emit|output|writ|wrote|sen[dt]s?|generat|produc|repl|ma[kd]e|call|would|should|can|must|use|accept|expect|take"
    r"|respond|return)",
    r"\bplease confirm\b|\bconfirm (?:that|if|whether|before)\b",
    r"\b(?:your|for) (?:approval|permission|consent|ok|go-ahead)\b",
    r"\bbefore i (?:continue|proceed|run|call|execute|do)\b",
    r"\b(?:is|does|did|was|are|do) (?:this|that|it|these|you)\b[^?]{0,100}\?$",
    r"\b(?:should|shall|may|can) (?:i|we)\b|\bwould you (?:like|want)\b|\bdo you want\b|\bwant me to\b",
)
"""Before a call: it is an example, a rule, a question or a refusal."""

REPORTED = _any_of(
    r"\b(?:wrong|incorrect|invalid|bad|broken|malformed)\b|\b(?:syntax|usage|signature|documentation|docs)\b[^\w\n]*$",
    r"\b(?:returned|returns|responded|responds|replied|printed|prints|reads|said|says|saying|wrote|shows|showed|shown"
    r"|contains|contained|logged|received|quoted?|quoting|recorded|reported|previous(?:ly)?|earlier|already|yesterday"
    r"|last (?:time|turn|step|week)|before that|in the past)\b",
    r"\byou (?:sent|asked|gave|pasted|wrote|provided|shared|made)\b",
    r"\byour (?:\w+ )?(?:message|log|file|config|input|document|snippet|text|json|call|payload|code|example)\b",
    r"\b(?:in|from|of|per|according to) (?:the|a|an|your|this|that|my|our) (?:\w+ ){0,3}"
    r"(?:logs?|file|config|document|page|website|e-?mail|transcript|history|ticket|output|response|results?|observation"
    r"|record|trace|dataset|fixture|spec|message)$",
    r"\b(?:user|customer|he|she|they|someone|attacker|page|file|e-?mail|document|message) (?:\w+ )?"
    r"(?:sent|pasted|gave|provided|included|includes|posted)\b",
    r"\b(?:was|were) (?:called|made|run|sent|executed|invoked)\b",
    r"\bi (?:have )?(?:called|ran|made|used|executed|invoked|sent|tried|found|saw)\b",
    r"\b(?:output|result|response|observation|log|quote|transcript|body|input)s?$",
)
"""Before a call: somebody's words, a file's content, what was done before."""

INTENT = _any_of(
    r"\bi(?:['\u2019]ll| will| shall|(?: a|['\u2019])m going to| need to| must| have to| should| want to)\b",
    r"\bi(?: a|['\u2019])m calling\b|\bi now call\b|\bi am now\b|\bi can\b|\blet me\b|\blet's\b|\blet us\b",
    r"\bnow\b|\bnext\b|\bfirst\b|\bcalling\b|\busing\b|\bwe (?:will|need|should|can|must)\b",
)
"""The model says that it is about to act; outweighs what sounds like a report."""

FETCHING = _any_of(
    r"\b(?:i['\u2019]ll|i will|let me|let['\u2019]s|i need to|i(?: a|['\u2019])m going to) (?:\w+ ){0,2}"
    r"(?:search|find|look (?:up|for)|fetch|read|list|retrieve|query)\b",
)
"""The model says what it is about to look for, be it examples or documentation."""

AFTERWARDS = _any_of(
    r"\b(?:is|was|were|as) (?:just |only |merely )?(?:an? )?(?:\w+ )?"
    r"(?:example|illustration|sample|placeholder|template|hypothetical)\b",
    r"\bwould you like me to\b|\bdo you want me to\b",
    r"\b(?:shall|should|may) i (?:go|run|call|execute|proceed|make|send|do)\b",
    r"\bwant me to (?:run|call|execute|proceed|go|send|do)\b",
    r"\b(?:i|we) (?:(?:did|have|will|would|am) not|didn't|haven't|won't|cannot|can't|wouldn't) (?:actually |really )?"
    r"(?:call|run|execut|sen[dt]|do|ma[kd]e)",
    r"\b(?:not|never) (?:actually |really |yet )?(?:been )?(?:called|executed|run|sent|a (?:real )?call)\b",
    r"\b(?:don't|do not) (?:actually )?(?:run|call|execute|do|send)\b",
    r"\b(?:this|that|it|which) (?:returned|gave|failed|was)\b|\blooks? like in\b|\bwould (?:write|look)\b",
    r"\b(?:is|was|shows?|illustrates?|demonstrates?|would be) (?:how|what|an?) ",
    r"\b(?:you|one) (?:can|could|should|would|might|may) (?:then )?"
    r"(?:replace|change|adapt|use|run|call|send|paste|copy)\b",
)
"""After a call: it was an example, has been made already, or waits for a yes."""

SUBJECT = re.compile(
    r"[`*\"']*[ \t]+(?:is|was|were|are|has|had|would|could|should|might|does|did|means|meant|returns|returned"
    r"|failed|fails|caused|causes|gave|gives|looks|came|appears|appeared|contains|shows|showed)\b"
)
"""Right after a call: it is the subject of a sentence about it."""
