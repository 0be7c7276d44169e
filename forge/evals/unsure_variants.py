"""Unsure variants: what follows calls that the model is not sure of, as the options of an evaluation name it."""

from collections.abc import Mapping
from types import MappingProxyType

from forge.errors import ForgeError
from forge.journal.priors import read_priors
from stages.confidence.measure import AskLarger, MeasuredPriors, StopRun, ThinkFirst, UnsureStep, Vote, WhenUnsure
from stages.options import did_you_mean

_STEPS: Mapping[str, UnsureStep | None] = MappingProxyType(
    {"measure": None, "priors": None, "stop": StopRun(), "think": ThinkFirst(), "vote": Vote(), "larger": AskLarger()}
)
_BELOW = 0.6


def unsure_variant(text: str) -> WhenUnsure:
    """What `HOW` or `HOW:BELOW` stands for, such as `stop:0.8`; below 0.6 if it does not say. ForgeError for others.

    With `measure` nothing follows: confidence is only noted. `priors:FILE` divides out what `forge priors` measured.
    """
    how, colon, below = text.partition(":")
    if how not in _STEPS:
        raise ForgeError(f"there is no --unsure {how!r}; there are: {', '.join(_STEPS)}.{did_you_mean(how, _STEPS)}")
    if how == "priors":
        return WhenUnsure(below=0.0, then=(), priors=_priors(text, below))
    step = _STEPS[how]
    if step is None:
        if colon:
            raise ForgeError(f"unsure {text!r}: nothing follows with measure, so it takes no threshold")
        return WhenUnsure(below=0.0, then=())
    return WhenUnsure(below=_threshold(text, below) if colon else _BELOW, then=step)


def asks_larger(text: str) -> bool:
    """Whether a larger model is asked in that variant."""
    return text.partition(":")[0] == "larger"


def _priors(text: str, file: str) -> MeasuredPriors:
    if not file:
        raise ForgeError(
            f"unsure {text!r}: say where the priors are, as in priors:priors.json; forge priors measures them"
        )
    return read_priors(file)


def _threshold(text: str, below: str) -> float:
    try:
        number = float(below)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ForgeError(f"unsure {text!r}: {below!r} is not a confidence from 0 to 1, such as 0.8")
    return number
