"""The words by which a sentence shows that it gives an example, makes a report, asks, or is about to act.

English here, other languages in `foreign_cues`. Sentences are searched in lower case.
"""

import re

from msgspec import Struct

from stages.rescue.foreign_cues import (
    FOREIGN_AFTERWARDS,
    FOREIGN_AFTERWARDS_SIGNS,
    FOREIGN_INTENT,
    FOREIGN_INTENT_SIGNS,
    FOREIGN_REPORTED,
    FOREIGN_REPORTED_SIGNS,
    FOREIGN_SHOWN,
    FOREIGN_SHOWN_SIGNS,
    FOREIGN_SUBJECT,
    FOREIGN_SUBJECT_SIGNS,
)
from stages.rescue.foreign_retractions import (
    FOREIGN_AWAITING,
    FOREIGN_AWAITING_SIGNS,
    FOREIGN_WITHDRAWN,
    FOREIGN_WITHDRAWN_SIGNS,
)
from stages.rescue.patterns import alternatives, factored


class _Cues(Struct, frozen=True):
    """Words and signs, any of which shows what a sentence does. Words that begin with a non-ASCII letter are signs."""

    words: re.Pattern[str]
    signs: re.Pattern[str]

    def in_(self, sentence: str) -> bool:
        """Whether the sentence, in lower case, has one of them."""
        # Signs match anywhere in a word, which is slow; no sign is ASCII.
        return self.words.search(sentence) is not None or (
            not sentence.isascii() and self.signs.search(sentence) is not None
        )


def _any_of(*words: str, foreign: tuple[str, ...] = (), signs: tuple[str, ...] = (r"(?!)",)) -> _Cues:
    """`words` at the beginning of a word, `foreign` ones as whole words, `signs` anywhere."""
    whole = (rf"{part}(?!\w)" for word in foreign for part in alternatives(word))
    parts = [*(part for word in words for part in alternatives(word)), *whole]
    others = (rf"\b{part}" for part in parts if not part[0].isascii())
    plain = "|".join(part for part in parts if part[0].isascii())
    return _Cues(re.compile(rf"\b(?:{factored(plain)})"), re.compile("|".join((*signs, *others))))


SHOWN_CUES = _any_of(
    r"for (?:example|instance|reference|illustration)\b|e\.\s?g\.|examples?\b|samples?\b|hypothetical",
    r"look(?:s|ed|ing)? (?:something |roughly |a bit )?(?:like|as follows)\b|templates?\b|placeholder",
    r"(?:expected|following|correct|general|usual|required|this|the) (?:\w+ ){0,2}"
    r"(?:format|markup|notation|syntax|schema|structure|signature)\s*(?:is|was|:|looks)",
    r"if (?:you|i|we|one|someone|the user|they|it)\b[^,\n]{0,120}"
    r"\b(?:wants?|wanted|were|would|needs?|asks?|asked|like|had)\b",
    r"(?:you|users?|one|they|developers?|people|anyone) "
    r"(?:can|could|would|may|might|should|must|have to|need to|will)\b(?! (?:safely )?(?:ignore|expect|relax))",
    r"(?:i|we)(?: (?:could|might|would(?: have)?|should have)|['\u2019]d)\b(?! (?:like|love) to)",
    r"how (?:to|you|(?:it|this|that) (?:works|looks)|(?:a|the) (?:\w+ )?(?:call|tool|function))\b",
    r"(?:can|could|would|should|may|might|must) be (?:called|invoked|used|written|made|run|sent|executed|formatted)\b",
    r"you['\u2019]d\b|something like\b|such as\b|imagine\b|suppose\b|pretend\b",
    r"(?:not|cannot|\w+n['\u2019]t|never|decline to|avoid|instead of|rather than|refuse to) (?:(?!without\b)\w+ ){0,3}"
    r"(?:call|run|us(?:e|ing)\b|execut|send|invok|emit|writ|output|produc|generat|repl|respond|print|trigger|start)",
    r"typically\b|usually\b|would (?:look|have)\b",
    r"(?:tools?|functions?) (?:available|definitions?|list|schemas?|specs?|signatures?)\b",
    r"available (?:tools?|functions?)\b|(?:these|following) (?:tools|functions)\b",
    r"have (?:access to )?(?:\w+ ){0,3}(?:tools|functions)\b",
    r"the (?:model|assistant|llm|agent|bot|system|client|server|api|endpoint) (?:\w+ )?"
    r"(?:emit|output|writ|wrote|sen[dt]s?|generat|produc|repl|ma[kd]e|call|would|should|can|must|use|accept|expect|take"
    r"|respond|return|answer|prints?\b|gives?\b)",
    r"say (?:yes|ok)\b|if you (?:agree|approve|confirm|consent)|as (?:documented|shown)\b",
    r"i propose\b|proposed (?:call|action)",
    r"^(?:please )?ignore\b|ignore (?:this|that|these|any) (?:\w+ )?(?:instruction|text|request|call|command|message)",
    r"inject(?:ed|ion)\b|malicious\b",
    r"other (?:agents?|models?|assistants?|people|users|clients)\b|(?:please )?(?:send|give|show|tell) me$",
    r"^(?:please )?(?:use|respond|reply|answer|output|write) (?:\w+ ){0,4}(?:format|syntax)$",
    r"^(?:correct|right|good|schema|syntax|usage|format|draft|expected|translate|explain|describe|summari[sz]e|parse|validate)$",
    r"please confirm\b|confirm (?:that|if|whether|before)\b",
    r"(?<!thanks for )(?<!thank you for )(?:your|for) (?:approval|permission|consent|ok|go-ahead)\b"
    r"(?! (?:came|arrived|has|was))",
    r"(?:wait|ask|confirm|approv|agree|check with|let me know|tell me|yes or no)\w*\b[^.\n]{0,80}\bbefore i\b",
    r"^before i (?:continue|proceed|run|call|execute|do)\b(?!.*\b(?:i['\u2019]ll|i will|i need|let me)\b)",
    r"i (?:was|had been) (?:just )?(?:going|about) to\b|i (?:almost|nearly)\b",
    r"(?:format|syntax|template|convention)s? (?:wraps?|puts?|encodes?|expects?|requires?|marks?|surrounds?)\b",
    r"(?:is|does|did|was|are|do) (?:this|that|it|these|you)\b[^?]{0,100}\?$",
    r"which (?:one|call|option|version|of (?:these|them|the|those))\b[^?]{0,100}\?$",
    r"^(?:option|variant|alternative|choice|version) \w{1,3}$",
    r"^(?:openai|anthropic|hermes|mistral|llama|gem(?:ini|ma)|qwen|deepseek|kimi|minimax|hunyuan|glm|granite|phi)"
    r"(?:[ -]?[a-z]?\d[\w.]{0,5}){0,2}$",
    r"(?:once|after|when|as soon as|until|unless) you(?:['\u2019]ve| have)? (?:\w+ )?"
    r"(?:confirm|approv|agree|accept|consent|say|gave|give|answer|repl|tell|told|let me)",
    r"calls? (?:is|are|gets?|must be|should be|has to be|have to be) (?:\w+ )?"
    r"(?:wrapped|written|encoded|formatted|enclosed|placed|expressed|represented|surrounded)\b",
    r"the (?!(?:\w+ ){0,3}(?:calls?|tools?|functions?|commands?|requests?|json|code|quer(?:y|ies)|objects?|steps?)\b)"
    r"(?:\w+ ){1,3}(?:will|would|is going to) (?:\w+ )?(?:issue|make|send|call|run|execute|trigger|emit|invoke)\b",
    r"(?:not|never|\w+n['\u2019]t) (?:ma[kd]e|issued?|perform(?:ed)?|attempt(?:ed)?|do|done) "
    r"(?:it|that|this|so|the (?:call|request))\b",
    r"^(?:please |then |now |just )?(?:save|store|put|paste|copy|add|insert|append) "
    r"(?:this|that|it|these|them|the following) (?:\w+ )?(?:as|in|into|to|under|at) "
    r"(?:[`\"']|your\b|[\w/-]+\.\w{1,5}\b|the (?:playground|console|editor|terminal|prompt|chat)\b)",
    r"(?:should|shall|may|can) (?:i|we)\b|would you (?:like|want)\b|do you want\b|want me to\b[^?]*\?$",
    r"(?:models|llms|assistants|parsers|chatbots) (?:\w+ ){0,2}"
    r"(?:wrap|writ|emit|output|produc|generat|use|call|answer|repl|respond|expect|put|return|send|mak)",
    r"say the word\b|to be (?:approved|confirmed|reviewed)\b|outside (?:of )?(?:what|my)\b|beyond (?:what|my)\b",
    r"(?:not|n['\u2019]t) (?:allowed|permitted|authori[sz]ed)\b|would (?:be|have been|read|become)$",
    foreign=(*FOREIGN_SHOWN, *FOREIGN_AWAITING),
    signs=(*FOREIGN_SHOWN_SIGNS, *FOREIGN_AWAITING_SIGNS),
)
"""Before a call: it is an example, a rule, a question or a refusal."""

REPORTED_CUES = _any_of(
    r"(?:wrong|incorrect|invalid|bad|broken|malformed)\b|(?:syntax|usage|signature|documentation|docs)\b[^\w\n]*$",
    r"(?:returned|returns|responded|responds|replied|printed|prints|reads|said|says|saying|wrote|shows|showed|shown"
    r"|contains|contained|logged|received|quoted?|quoting|recorded|reported|previous(?:ly)?|earlier|already|yesterday"
    r"|last (?:time|turn|step|week)|before that|in the past)\b",
    r"(?:told|tells|asked|asks|wants|wanted|instructs|instructed) (?:me|us|you) to\b",
    r"you (?:sent|gave|pasted|wrote|provided|shared|made|asked$)\b",
    r"your (?:\w+ )?(?:message|log|file|config|input|document|snippet|text|json|call|payload|code|example)\b",
    r"(?:in|from|of|per|according to) (?:the|a|an|your|this|that|my|our) (?:\w+ ){0,3}"
    r"(?:logs?|file|config|document|page|website|e-?mail|transcript|history|ticket|output|response|results?|observation"
    r"|record|trace|dataset|fixture|spec|message)$",
    r"(?:user|customer|he|she|they|someone|attacker|page|file|e-?mail|document|message) (?:\w+ )?"
    r"(?:sent|pasted|gave|provided|included|includes|posted)\b",
    r"(?:was|were) (?:called|made|run|sent|executed|invoked)\b",
    r"(?:the )?(?:agent|assistant|model|bot|system|client|script|user|he|she|they|it) (?:\w+ )?"
    r"(?:called|executed|ran|invoked|sent|made|issued|used|tried|emitted|produced|requested)\b|(?:user|human|customer)$",
    r"i (?:have )?(?:called|ran|made|used|executed|invoked|sent|tried|found|saw)\b",
    r"(?:called|executed|invoked|ran|undone|undo|done|finished|skipped|cancell?ed|expected)\)?$",
    r"(?:blocked|denied|rejected|forbidden|prohibited)\b",
    r"(?:test|use) cases?\b|mock(?:s|ed)?\b|fixtures?\b|training data\b",
    r"^(?:run|case|test|sample|line|row) \d{1,4}$",
    r"datasets?\b|demonstrat|(?:call|tool|audit) (?:log|history|trace)$|^history$",
    r"(?:lines|something) like$|like (?:this|that|these|so)$",
    r"(?:model|assistant|agent|bot|llm)['\u2019]s (?:\w+ )?(?:reply|answer|response|output|message|call)\b",
    r"(?:tool|server|api|model|function|http|raw|its|their) responses?$",
    r"(?:output|result|observation|log|quote|transcript|body|input)s?$",
    foreign=FOREIGN_REPORTED,
    signs=FOREIGN_REPORTED_SIGNS,
)
"""Before a call: somebody's words, a file's content, what was done before."""

INTENT_CUES = _any_of(
    r"i(?:['\u2019]ll| will| shall|(?: a|['\u2019])m going to| need to| must| have to| should| want to)\b",
    r"i(?: a|['\u2019])m calling\b|i now call\b|i am now\b|i can\b|let me\b|let's\b|let us\b",
    r"now\b|next\b|first\b|calling\b|using\b|we (?:will|need|should|can|must)\b",
    foreign=FOREIGN_INTENT,
    signs=FOREIGN_INTENT_SIGNS,
)
"""The model says that it is about to act; outweighs what sounds like a report."""

FETCHING_CUES = _any_of(
    r"(?:i['\u2019]ll|i will|let me|let['\u2019]s|i need to|i(?: a|['\u2019])m going to) (?:\w+ ){0,2}"
    r"(?:search|find|look (?:up|for|at)|fetch|read|list|retrieve|query|pull up|open|check (?!with\b|whether you))",
)
"""The model says what it is about to look for, be it examples or documentation."""

AFTERWARDS_CUES = _any_of(
    r"(?:is|was|were|as) (?:just |only |merely )?(?:an? )?(?:\w+ )?"
    r"(?:example|illustration|sample|placeholder|template|hypothetical)\b",
    r"would you like me to\b|do you want me to\b|^returns\b|^replace\b|please confirm\b",
    r"(?:if|whether) (?:i|we) should\b|if you (?:agree|approve|confirm|consent)",
    r"(?:reply|answer|respond) (?:with )?\W?(?:yes|ok)\b",
    r"(?:shall|should|may) i (?:go|run|call|execute|proceed|make|send|do)\b",
    r"want me to (?:run|call|execute|proceed|go|send|do)\b",
    r"(?:i|we) (?:(?:did|have|will|would|am) not|didn't|haven't|won't|cannot|can't|wouldn't) (?:actually |really )?"
    r"(?:call|run|execut|sen[dt]|do|ma[kd]e)",
    r"(?:not|never) (?:actually |really |yet )?(?:been )?(?:called|executed|run|sent|a (?:real )?call)\b",
    r"(?:don't|do not) (?:actually )?(?:run|call|execute|do|send)\b",
    r"^(?:wait|hmm|oh|actually)\W+(?:no|scratch|that is wrong|that['\u2019]s wrong)\b",
    r"^(?:run|paste|copy|use|call|execute|try|send) (?:this|that|it|the (?:call|json|above|command))\b",
    r"which i (?:ignor|refus|declin|did not|didn|do not|don|will not|won)",
    r"(?:this|that|it|which) (?:returned|gave|failed|was)\b|looks? like in\b|would (?:write|look)\b",
    r"(?:is|was|shows?|illustrates?|demonstrates?|would be) (?:how|what|an?) ",
    r"(?:you|one) (?:can|could|should|would|might|may) (?:then )?"
    r"(?:replace|change|adapt|use|run|call|send|paste|copy)\b",
    foreign=FOREIGN_AFTERWARDS,
    signs=FOREIGN_AFTERWARDS_SIGNS,
)
"""After a call: it was an example, has been made already, or waits for a yes."""

WITHDRAWN_CUES = _any_of(
    r"(?:ignore|disregard|cancel|discard|scratch|forget|skip|drop|undo|withdraw|retract) (?:that|this|it|the above)"
    r"(?=\s*(?:[.,;!\u2014-]|$))",
    r"(?:ignore|disregard|cancel|discard|forget|skip|drop|undo|withdraw|retract) (?:that|this|the|my|those|these|both)"
    r" (?:\w+ ){0,3}(?:calls?|commands?|requests?|actions?|above|block)\b",
    r"i (?:should not|shouldn['\u2019]t) (?:have (?:called|done|run|sent|used|made|issued)|"
    r"(?:do|run|call|send|make) (?:this|that|it))\b",
    r"(?:that|this|it)(?: was| is|['\u2019]s) "
    r"(?:not right|not what|(?:the|a) (?:wrong|mistake)|wrong|my mistake|an error)\b",
    r"(?:your|you|confirm\w*|approv\w*|permission)\b[^.?!\n]{0,60}\bbefore i "
    r"(?:run|execute|send|call|do|proceed|go|make)\b",
    r"is (?:this|that|it) (?:\w+ ){0,3}(?:right|correct|ok|okay|fine|good|what you)\b[^.!?\n]{0,60}\?",
    r"which (?:one|option|of (?:these|them|the two|those))\b[^.!?\n]{0,60}\?",
    r"on second thoughts?\b|scratch that\b|never ?mind\b",
    r"i (?:take|took) (?:that|this|it) back\b|i mis(?:read|understood)\b",
    r"(?:don['\u2019]t|do not) (?:actually )?(?:run|call|execute|send|make) "
    r"(?:this|that|it|the (?:call|command|above))\b",
    r"(?:await|wait|pending|subject to|needs?|requires?)\w*(?: for)? (?:your |an? )?"
    r"(?:confirmation|approval|permission|consent|go-ahead|ok)\b",
    r"(?:type|enter|say|press|reply(?: with)?|respond with|answer) \W?(?:yes|y|ok|confirm)\b",
    foreign=FOREIGN_WITHDRAWN,
    signs=FOREIGN_WITHDRAWN_SIGNS,
)
"""Some sentences after a call: it is taken back, or one of several to choose from, or waits for a yes."""

_VERBS = (
    "is|was|were|are|has|had|would|could|should|might|does|did|means|meant|returns|returned|failed|fails|caused|causes",
    "gave|gives|looks|came|appears|appeared|contains|shows|showed",
    *FOREIGN_SUBJECT,
)
SUBJECT_PATTERN = re.compile(rf"[`*\"']*(?:[ \t]+(?:{'|'.join(_VERBS)})\b|[ \t]*(?:{FOREIGN_SUBJECT_SIGNS}))")
"""Right after a call: it is the subject of a sentence about it."""
