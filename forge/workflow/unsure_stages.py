"""The stages of a workflow that says what follows calls that the model is not sure of."""

from collections.abc import Mapping

from msgspec.structs import replace

from forge.connection import Setup
from forge.errors import ForgeError
from forge.workflow.stage_list import StageName
from stages import Stage
from stages.confidence.decide import ask_again, for_larger, settle, think_first
from stages.confidence.measure import AskLarger, WhenUnsure
from stages.wire.deltas import Sampling
from stages.wire.wires import Wire

_NO_LOGPROBS = (
    "the workflow says what follows unsure calls (unsure=…), and this backend gives no log-probabilities, by which "
    "calls are known to be sure; use a profile with logprobs = true if the server does give them, else leave unsure out"
)


_NO_LARGER = (
    "the workflow hands unsure calls to a larger model (AskLarger), and this backend has none; "
    "use Cascade(small, larger) of forge.backends, on the command line --larger, or leave AskLarger out"
)


_Made = Mapping[StageName, Mapping[str, Stage]]


def refuse_unable(when: WhenUnsure | None, setup: Setup) -> None:
    """ForgeError for a backend without the probabilities or the larger model that the workflow asks for.

    Also for another model than the one whose priors it has.
    """
    if when is not None and not setup.logprobs:
        raise ForgeError(_NO_LOGPROBS)
    if when is not None and setup.larger is None and AskLarger() in when.steps:
        raise ForgeError(_NO_LARGER)
    if when is not None and when.priors and when.priors.model != setup.model:
        raise ForgeError(
            f"the priors of the workflow are those of the model {when.priors.model!r}, and this is {setup.model!r}; "
            "measure them with this one (forge priors), or leave priors out"
        )


def with_logprobs(when: WhenUnsure | None, setup: Setup, wire: Wire) -> Setup:
    """The setup that asks for log-probabilities where the workflow needs them and the model has them."""
    if when is None or not setup.logprobs:
        return setup
    return replace(setup, sampling=setup.sampling.over(Sampling(extra=wire.logprobs)))


def with_unsure_stages(when: WhenUnsure | None, wire: Wire, made: _Made, larger: _Made) -> _Made:
    """The stages with those that ask again and settle, each behind the one of forge's own that it follows.

    `larger` are those of the same names that write its request and read its reply for the larger model.
    """
    if when is None:
        return made
    both = {name: {**own, **_by_model(own, larger.get(name, {}))} for name, own in made.items()}
    return {
        **both,
        "fold": {**made["fold"], "think_first": think_first()},
        "serialize": {**both["serialize"], "ask_again": ask_again(when, wire.dialect.option_names)},
        "enforce": {**made["enforce"], "settle": settle(when)},
    }


def _by_model(own: Mapping[str, Stage], larger: Mapping[str, Stage]) -> dict[str, Stage]:
    return {name: for_larger(own[name], stage) for name, stage in larger.items()}
