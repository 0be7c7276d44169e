"""Arguments that the model left blank, such as `<customer email>`: a form to fill in is no call."""

import re

from msgspec.structs import replace

from stages.rescue.found import Read

_BLANK = re.compile(
    r':\s{0,8}"(<(?!(?:input|button|select|option|video|audio|script|details|dialog|form) )'
    r'[A-Za-z]{1,30}(?:[ _][A-Za-z]{1,30}){1,6}>)"'
)


def without_blanks(read: Read) -> Read:
    """The calls up to the first with a blank; for that one, a sentence that tells the model what is wrong.

    A blank is two or more words in angle brackets: a single one may be an HTML tag.
    """
    for index, claim in enumerate(read.claims):
        if '"<' in claim.arguments and (blank := _BLANK.search(claim.arguments)):
            damage = f"the call of {claim.name[:60]} has {blank[1]} where a value belongs: call it once you know that."
            return replace(read, claims=read.claims[:index], damage=damage)
    return read
