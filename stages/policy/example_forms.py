"""Example forms: a refused value, written as the example in the refusal is."""

import re

_PART = re.compile(r"\d+|[^\W\d_]+|[\W_]+")
"""Digits, letters, or what stands between them."""

_FRACTION = re.compile(r"\d+[.,]\d+")
"""A number, which is another one if zeros are put before the digits of its fraction."""


def in_the_form_of(example: str, value: str) -> str | None:
    """The value written like the example: `0019` for 19 like 0007, `2024-03-07` for 2024/3/7 like 2023-05-01.

    Digits are filled up with zeros where the example's begin with one, letters (of ASCII) are in its case, and what
    stands between them is the example's. None if the value has other parts, or is written like it already, and for an
    example that is but a word, which may be any.
    """
    parts = _PART.findall(example)
    if not (example.isupper() or any(map(str.isdecimal, parts))) or _FRACTION.fullmatch(example):
        return None
    if not (value[:1].isalnum() and value[-1:].isalnum()):
        return None
    models = [part for part in parts if part.isalnum()]
    runs = [part for part in _PART.findall(value) if part.isalnum()]
    if len(models) != len(runs):
        return None
    written = [_like(model, run) for model, run in zip(models, runs, strict=True)]
    left = iter(written)
    text = "".join((next(left) or "") if part.isalnum() else part for part in parts)
    return None if None in written or text == value else text


def _like(model: str, run: str) -> str | None:
    """The digits, or the letters, like those of the example; None if they cannot be."""
    if model.isdecimal() != run.isdecimal():
        return None
    if not model.isdecimal():
        if not run.isascii():
            return run  # the other case of some letters is another letter
        return run.upper() if model.isupper() else run.lower() if model.islower() else run
    if len(run) < len(model) and model.startswith("0"):
        return run.zfill(len(model))
    return run if len(run) == len(model) else None
