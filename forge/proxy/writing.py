"""Requests rewritten for a backend of another protocol, by the stages of a run. Pure."""

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from forge.connection import Setup
from stages import Stage, fold, on, pipeline, serialize
from stages.effect import Request
from stages.rules import Rules
from stages.state import Folded, Prepared, State
from stages.wire.sampling import Sampling
from stages.wire.server.request import ServerRequest
from stages.wire.server.translation import call_fields, format_field, translated_sampling
from stages.wire.target import Target
from stages.wire.valid import system_first
from stages.wire.wires import in_dialect, wire


def plain_request(request: ServerRequest, setup: Setup, model: str) -> Request:
    """A request for a backend of another protocol whose reply is not judged: it offers no tools."""
    return _written(request, Rules(tools=(), on_text="accept"), setup, model)[0]


def counted_request(request: ServerRequest, setup: Setup, model: str) -> tuple[Request, int]:
    """The request that the backend would be sent, and the characters of its prompt."""
    return _written(request, Rules(tools=request.specs, on_text="accept"), setup, model)


def _written(request: ServerRequest, rules: Rules, setup: Setup, model: str) -> tuple[Request, int]:
    written = pipeline(*writing(request, rules, setup, model))(State(history=request.history)).unwrap()
    match written.phase:
        case Prepared(request=made):
            return made, written.ledger.prompt_size
        case phase:
            raise TypeError(f"the request was not written: {type(phase).__name__}")


def writing(request: ServerRequest, rules: Rules, setup: Setup, model: str) -> tuple[Stage, ...]:
    """The stages that turn a Ready state into a request."""
    spoken = wire(setup.dialect)
    sampling = translated_sampling(request, spoken).over(setup.sampling)
    if sampling.max_tokens is UNSET:
        # Without a client's limit, only a runaway reply is stopped. This reserves nothing; `fitting` does.
        sampling = replace(sampling, max_tokens=max(1024, setup.context_tokens // 2))
    target = Target(
        mode=setup.mode,
        model=model or setup.model or request.model,
        sampling=sampling,
        wire=spoken,
        alternating=setup.alternating,
    )
    return fold(), _system_first, serialize(rules, target), _with_demands(request, rules, setup, sampling)


@on(Folded)
def _system_first(state: State, phase: Folded) -> State:
    """Move later system messages into user messages: many templates accept them only at the beginning."""
    return state.to(replace(phase, view=system_first(phase.view)))


def _with_demands(request: ServerRequest, rules: Rules, setup: Setup, sampling: Sampling) -> Stage:
    """A stage that adds what the request demands of the reply: a call, only one, or a format."""
    spoken = wire(setup.dialect)
    names = tuple(tool.name for tool in rules.tools) if setup.mode == "native" else ()
    demands = call_fields(request, spoken, sampling, names) if names else {}
    if request.format is not None and not rules.tools:
        demands = format_field(request.format, spoken)

    @on(Prepared)
    def stage(state: State, phase: Prepared) -> State:
        written = msgspec.json.decode(phase.request.tail, type=dict[str, Raw])
        tail = Raw(msgspec.json.encode({**written, **in_dialect(demands, setup.dialect)}))
        return state.to(replace(phase, request=replace(phase.request, tail=tail)))

    return stage
