"""Custom tools, which take a text instead of JSON: the model is shown a function with one argument, `input`."""

import msgspec
from msgspec import Raw, Struct

from stages.repair.decoding import decode

CUSTOM_PARAMETERS = Raw(b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}')
"""Those of the function."""


class _Arguments(Struct):
    input: str


_arguments = msgspec.json.Decoder(_Arguments)


def as_arguments(text: str) -> str:
    """The function's arguments for that text."""
    return msgspec.json.encode(_Arguments(input=text)).decode()


def input_text(arguments: str) -> str:
    """The text in the function's arguments; the arguments themselves where they are not of this form."""
    try:
        return decode(_arguments, arguments).input
    except msgspec.DecodeError:
        return arguments
