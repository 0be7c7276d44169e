"""The families of grammars, in the order in which they are asked where several match at the same place.

A new family is a module with a `Family` in it, and a line here.
"""

from stages.rescue.driver import rescuer
from stages.rescue.families import (
    any_markup,
    gemma,
    harmony,
    json_calls,
    lines,
    not_calls,
    notation,
    pythonic,
    react,
    tagged,
    token_tags,
    tokens,
    xml_calls,
)
from stages.rescue.formats import KNOWN_FORMATS, family_of
from stages.rescue.found import Family, Rescue
from stages.rescue.markers import Openers, openers

FAMILIES: tuple[Family, ...] = (
    json_calls.FENCED,
    json_calls.BARE,
    tagged.TAGGED_JSON,
    xml_calls.WRAPPED_ELEMENT,
    not_calls.ECHO,
    not_calls.ECHO_TOKEN,
    not_calls.TURN,
    xml_calls.ELEMENT,
    token_tags.MINIMAX,
    xml_calls.NAMED_ELEMENT,
    gemma.GEMMA,
    tokens.NAMED,
    tagged.TAGGED,
    tokens.ARGS,
    harmony.MESSAGE,
    harmony.ADDRESSED_MESSAGE,
    token_tags.K3,
    pythonic.CALL_LIST,
    pythonic.WHOLE_REPLY,
    react.REACT,
    xml_calls.OWN_TAG,
    lines.LINES,
    notation.NOTATION,
    any_markup.ANY_MARKUP,
    *map(family_of, KNOWN_FORMATS),
)

OPENERS: Openers = openers(FAMILIES)

rescue: Rescue = rescuer(OPENERS)
"""`rescue(text, names) -> Rescued`, with all families that forge knows."""
