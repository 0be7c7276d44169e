"""Other texts: the only text of a tool limited to anything but what it was called with before."""

import string
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.policy.progress import repeated_attempts
from stages.policy.untried_values import only_text_argument
from stages.schema.value import ANY_VALUE
from stages.state import Ledger
from stages.tool import ToolSpec

_LONGEST = 24
"""Maximum characters of a text that is left out; the pattern has a class of characters for each."""

_MOST = 4
"""Maximum number of texts that are left out, the latest ones."""

_SIGNS = " _.,:;@#%&=!~<>/'`*+?(){}|$-"
_LETTERS = string.ascii_letters + string.digits + _SIGNS
_WRITABLE = frozenset(_LETTERS)
"""Characters of the other texts: those that a grammar can write into JSON as they are."""

_ANY = f"[A-Za-z0-9{_SIGNS}]*"


def with_other_texts(tool: ToolSpec, ledger: Ledger) -> ToolSpec:
    """The tool without the texts that it keeps being called with since the last progress; others as it is.

    Only of a tool that reads and takes one text: what a write is given instead may do harm. The other texts are of
    ASCII, without quotation marks: an offer for a reply or two, not a rule.
    """
    again = [attempt.arguments for attempt in repeated_attempts(ledger) if attempt.name == tool.name]
    return without_calls(tool, again) if again else tool


def without_calls(tool: ToolSpec, again: Sequence[str]) -> ToolSpec:
    """The same without the texts in these arguments of calls."""
    argument = only_text_argument(tool) if tool.effect == "read" else None
    if argument is None:
        return tool
    made = (msgspec.json.decode(arguments, type=dict[str, object]).get(argument) for arguments in reversed(again))
    said = dict.fromkeys(text.strip() for text in made if isinstance(text, str))
    texts = [text for text in said if 0 < len(text) <= _LONGEST and _WRITABLE.issuperset(text)][:_MOST]
    schema = msgspec.json.decode(tool.parameters, type=dict[str, Raw])
    own = msgspec.json.decode(schema["properties"], type=dict[str, dict[str, object]])[argument]
    if not texts or own.keys() - ANY_VALUE:
        return tool
    limited = own | {"pattern": f"^({_ways(frozenset(texts), ' ')})$"}
    schema["properties"] = Raw(msgspec.json.encode({argument: limited}))
    return replace(tool, parameters=Raw(msgspec.json.encode(schema)))


def _unlike(texts: frozenset[str]) -> str:
    """A pattern of all texts but these, of which there is one at least; nor are they these with blanks around them."""
    if "" not in texts:
        return f"({_ways(texts, '')})?"
    return f"({_ways(texts, ' ')}| ({_ways(_after(' ', texts), ' ')}))"


def _ways(texts: frozenset[str], never: str) -> str:
    """How a text may go on that is none of these, but not with the sign `never`."""
    begun = sorted({text[0] for text in texts if text} - {never})
    goes_on = (_spelt(sign) + _unlike(_after(sign, texts)) for sign in begun)
    return "|".join((f"{_class_without((*begun, never))}{_ANY}", *goes_on))


def _after(sign: str, texts: frozenset[str]) -> frozenset[str]:
    return frozenset(text[1:] for text in texts if text[:1] == sign)


def _class_without(signs: Iterable[str]) -> str:
    return f"[{''.join(sign for sign in _LETTERS if sign not in signs)}]"


def _spelt(sign: str) -> str:
    return f"\\{sign}" if sign in ".*+?(){}|$/-" else sign
