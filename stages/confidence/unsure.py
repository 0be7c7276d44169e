"""What a workflow says of calls that the model is not sure of: data, with bounds on the model calls that it may take.

A call is unsure where the probability of its tool and values, among those that were offered, is below a threshold, or
is not known.
"""

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from stages.confidence.priors import MeasuredPriors
from stages.options.option_checks import Options
from stages.options.types import Count, Fraction, Tokens

_Samples: TypeAlias = Annotated[int, Meta(ge=2, le=15)]
_Temperature: TypeAlias = Annotated[float, Meta(gt=0, le=2)]


class ThinkFirst(Options, frozen=True, kw_only=True, tag="think_first"):
    """Ask for a free text of at most so many tokens, then for the call again: 2 model calls."""

    tokens: Tokens = 200


class Vote(Options, frozen=True, kw_only=True, tag="vote"):
    """Ask for the same decision until there are so many answers, and take the most frequent calls: `samples` - 1 calls.

    Calls are the same whose tools and canonical arguments are. The share of the answers that agree is then how sure the
    decision is. `temperature` is that of the further answers: at a low one they would all be the first again.
    """

    samples: _Samples = 3
    temperature: _Temperature = 0.7


class AskLarger(Struct, frozen=True, kw_only=True, tag="ask_larger"):
    """Ask the larger model of the run's backend (`forge.backends.Cascade`) for the same decision: 1 model call.

    What it answers is taken, unless it is itself known to be unsure.
    """


class AskPerson(Struct, frozen=True, kw_only=True, tag="ask_person"):
    """End the run with a question to the user: the outcome `NeedsInput`."""


class StopRun(Struct, frozen=True, kw_only=True, tag="stop_run"):
    """End the run with the Halt `Unsure`."""


UnsureStep = ThinkFirst | Vote | AskLarger | AskPerson | StopRun


class WhenUnsure(Options, frozen=True, kw_only=True):
    """What follows where a reply's calls are less sure than `below`: the steps of `then`, one after the other.

    The next step is taken where the one before left the decision unsure; after the last, or with none, it stands.
    `max_calls` bounds the model calls that a run may take for all of them; a step that there is no room for is skipped.
    With `below` 0 confidence is measured and nothing follows. `priors` are what the model prefers whatever it is asked:
    they are divided out of its probabilities first, and the value that is then the most probable is the one called
    with (`stages.confidence.priors`).
    """

    below: Fraction
    then: UnsureStep | tuple[UnsureStep, ...] = StopRun()
    max_calls: Count = 12
    priors: MeasuredPriors | None = None

    @property
    def steps(self) -> tuple[UnsureStep, ...]:
        """The steps, also where there is one alone."""
        return self.then if isinstance(self.then, tuple) else (self.then,)
