"""Shaper: what is made of a client's request before a backend sees it, by the policy for its model. Pure."""

from msgspec import Struct

from forge.backends.sampling import known_sampling
from forge.connection import Setup
from forge.proxy.fitting import fitted
from forge.proxy.model_options import with_default_sampling, with_thinking, without_earlier_reasoning
from forge.proxy.offers import takes_respond, with_respond, without_hidden
from forge.proxy.shaping import Shaping
from forge.proxy.volatile_lines import steadied
from stages.wire.deltas import Sampling
from stages.wire.served import RequestError, ServerRequest
from stages.wire.wires import wire


class Shaped(Struct, frozen=True, kw_only=True):
    """The request for the backend. `whole` is the same before `cut` of its messages were left out or shortened.

    `responds`: the model was offered a tool to answer with, of which the client knows nothing.
    """

    request: ServerRequest
    whole: ServerRequest
    cut: int = 0
    responds: bool = False

    @property
    def compacted(self) -> str:
        """What was cut, in words; empty where nothing was."""
        return f"{self.cut} message{'s' * (self.cut > 1)}" if self.cut else ""


def shaped_request(
    request: ServerRequest, shaping: Shaping, setup: Setup, names: tuple[str, ...], *, same: bool
) -> Shaped | RequestError:
    """The request as the policy wants it; to the byte as it came where that asks for nothing.

    `same`: its body goes to a backend of its protocol. `names` are those that its model may have.
    """
    left = without_hidden(request, _several(shaping.hide_tools), same=same) if shaping.hide_tools else request
    if isinstance(left, RequestError):
        return left
    if shaping.volatile == "normalise":
        left = steadied(left, same=same)
    if shaping.reasoning_in_history == "drop":
        left = without_earlier_reasoning(left, same=same)
    if shaping.thinking is not None:
        left = with_thinking(left, shaping.thinking, wire(setup.dialect), same=same)
    if shaping.sampling is not None:
        if (options := _recommended(names)) is None:
            said = f"no sampling is recommended for {' or '.join(names)}: sampling in the policy of this server"
            return RequestError(message=said, retriable=False)
        left = with_default_sampling(left, options, wire(setup.dialect), same=same)
    responds = shaping.respond and takes_respond(left)
    whole = with_respond(left, wire(setup.dialect), same=same) if responds else left
    if shaping.context_tokens is None:
        return Shaped(request=whole, whole=whole, responds=responds)
    fit = fitted(whole, setup, shaping.context_tokens, same=same)
    return Shaped(request=fit.request, whole=whole, cut=fit.cut, responds=responds)


def _recommended(names: tuple[str, ...]) -> Sampling | None:
    return next(filter(None, map(known_sampling, names)), None)


def _several(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
