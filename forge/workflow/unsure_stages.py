"""The stages of a workflow that says what follows calls that the model is not sure of."""

from collections.abc import Mapping

from msgspec.structs import replace

from forge.connection import Setup
from forge.errors import ForgeError
from forge.workflow.stage_list import StageName
from stages import Stage
from stages.confidence.asking_again import ask_again
from stages.confidence.settling import settle, think_first
from stages.confidence.unsure import AskLarger, WhenUnsure
from stages.wire.sampling import Sampling
from stages.wire.wires import Wire

_NO_LOGPROBS = (
    "the workflow says what follows unsure calls (unsure=…), and this backend gives no log-probabilities, by which "
    "calls are known to be sure; use a profile with logprobs = true if the server does give them, else leave unsure out"
)


_NO_LARGER = (
    "the workflow hands unsure calls to a larger model (AskLarger), and this backend has none; "
    "use Cascade(small, large) of forge.backends, or leave AskLarger out"
)


def with_logprobs(when: WhenUnsure | None, setup: Setup, wire: Wire) -> Setup:
    """The setup that asks for log-probabilities where the workflow needs them.

    ForgeError where there are none, and where there is no larger model for a workflow that asks one.
    """
    if when is None:
        return setup
    if not setup.logprobs:
        raise ForgeError(_NO_LOGPROBS)
    if setup.larger is None and AskLarger() in when.steps:
        raise ForgeError(_NO_LARGER)
    return replace(setup, sampling=setup.sampling.over(Sampling(extra=wire.logprobs)))


def with_unsure_stages(
    when: WhenUnsure | None, wire: Wire, made: Mapping[StageName, Mapping[str, Stage]]
) -> Mapping[StageName, Mapping[str, Stage]]:
    """The stages with those that ask again and settle, each behind the one of forge's own that it follows."""
    if when is None:
        return made
    return {
        **made,
        "fold": {**made["fold"], "think_first": think_first()},
        "serialize": {**made["serialize"], "ask_again": ask_again(when, wire.dialect.option_names)},
        "enforce": {**made["enforce"], "settle": settle(when)},
    }
