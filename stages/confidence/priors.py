"""Priors: how probable a model holds each value of an argument, whatever it is asked.

A small model has favourites: of three values it may write one nine times out of ten. Divided by what it gives to each
value on average, the probabilities of a reply say what speaks for a value in this text (batch calibration: Zhou and
others, "Batch Calibration: Rethinking Calibration for In-Context Learning and Prompt Engineering", 2024).
"""

from collections.abc import Iterable, Mapping
from math import isclose

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.confidence.call_choices import MeasuredCall
from stages.confidence.choice_probability import Choice
from stages.options.option_checks import OptionError, Options
from stages.options.types import Count

Shares = dict[str, float]


class Prior(Options, frozen=True, kw_only=True):
    """What a model gave to each value of an argument on average, in so many replies.

    `values` are JSON; `shares` belong to them in the same order, are more than 0 and add up to 1.
    """

    tool: str
    argument: str
    values: tuple[str, ...]
    shares: tuple[float, ...]
    replies: Count

    def __post_init__(self) -> None:
        """Refuse what is no distribution: values without shares, shares that are not positive or no whole."""
        super().__post_init__()
        if (
            len(self.values) != len(self.shares)
            or min(self.shares, default=0.0) <= 0
            or not isclose(sum(self.shares), 1)
        ):
            raise OptionError(
                (f"Prior of {self.tool}.{self.argument}: each of the values needs a share above 0, and all make 1",)
            )


def priors_of(calls: Iterable[MeasuredCall]) -> tuple[Prior, ...]:
    """The priors of all arguments that were chosen among the same values, in the order in which they first were.

    One more reply, in which all values were equally probable, is added to them: few replies say little.
    """
    found: dict[tuple[str, str, tuple[str, ...]], list[Shares]] = {}
    for call in calls:
        for choice in call.choices:
            if choice.argument:
                shares = dict(zip(choice.offered, choice.shares, strict=True))
                found.setdefault((call.tool, choice.argument, tuple(sorted(shares))), []).append(shares)
    return tuple(_prior(*key, replies) for key, replies in found.items())


def _prior(tool: str, argument: str, values: tuple[str, ...], replies: list[Shares]) -> Prior:
    means = ((sum(shares[value] for shares in replies) + 1 / len(values)) / (len(replies) + 1) for value in values)
    return Prior(tool=tool, argument=argument, values=values, shares=tuple(means), replies=len(replies))


def without_priors(call: MeasuredCall, priors: Iterable[Prior]) -> MeasuredCall:
    """The call as its texts alone speak for it: the values that are most probable once the priors are divided out.

    An argument without a prior for just these values stays as it is, and so does the tool.
    """
    known = {(prior.argument, frozenset(prior.values)): prior for prior in priors if prior.tool == call.tool}
    return replace(call, choices=tuple(_divided(choice, known) for choice in call.choices))


def _divided(choice: Choice, known: Mapping[tuple[str, frozenset[str]], Prior]) -> Choice:
    prior = known.get((choice.argument, frozenset(choice.offered)))
    if prior is None:
        return choice
    usual = dict(zip(prior.values, prior.shares, strict=True))
    left = [share / usual[value] for value, share in zip(choice.offered, choice.shares, strict=True)]
    shares = tuple(one / sum(left) for one in left)
    return replace(choice, chosen=choice.offered[shares.index(max(shares))], shares=shares)


_Arguments = dict[str, Raw]
_arguments = msgspec.json.Decoder(_Arguments)


def rewritten(arguments: str, call: MeasuredCall) -> str:
    """The arguments of the call as JSON, with the values that were chosen in it."""
    chosen = {choice.argument: Raw(choice.chosen.encode()) for choice in call.choices if choice.argument}
    known = _arguments.decode(arguments)
    return msgspec.json.encode({name: chosen.get(name, value) for name, value in known.items()}).decode()


class MeasuredPriors(Struct, frozen=True, kw_only=True):
    """The priors of a model, by its server's name for it: with another one they are worth nothing."""

    model: str
    priors: tuple[Prior, ...]
