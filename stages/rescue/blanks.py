"""Arguments that the model left blank, `<customer email>` for a value: a form to fill in is no call."""

import re

from msgspec.structs import replace

from stages.rescue.found import Read

_BLANK = re.compile(
    r':\s{0,8}"(<(?!(?:input|button|select|option|video|audio|script|details|dialog|form) )'
    r'[A-Za-z]{1,30}(?:[ _][A-Za-z]{1,30}){1,6}>)"'
)


def without_blanks(read: Read) -> Read:
    """The calls up to the first with a blank; of that, the model hears what is wrong.

    A blank is two words or more in angle brackets: one may be a tag of HTML.
    """
    for index, claim in enumerate(read.claims):
        if '"<' in claim.arguments and (blank := _BLANK.search(claim.arguments)):
            damage = f"the call of {claim.name[:60]} has {blank[1]} where a value belongs: call it once you know that."
            return replace(read, claims=read.claims[:index], damage=damage)
    return read
