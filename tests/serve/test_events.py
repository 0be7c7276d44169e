"""Events as callers see them: the core's own, without what is not for callers."""

import msgspec
import pytest

from forge.serve.views import event_view
from stages import events
from stages.effect import Failed, Fault, NeedsInput, Paused, RawCall, Reply, Succeeded, TokenProbability, Usage
from stages.events import Event, Stamped
from stages.halt import BackendFailed, BadReplies
from stages.message import System
from stages.wire import deltas
from stages.wire.deltas import Delta

SECRET = "SECRET"  # noqa: S105 - that is what it stands for
FAULT = Fault(kind="status", detail=f"http://host answered 500: {SECRET}", status=500, body=SECRET)


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (
            events.ModelReplied(
                turn=1,
                reply=Reply(
                    text="<think>Hm.</think>Yes",
                    sealed=SECRET,
                    calls=(RawCall(name="pay", arguments="{}"),),
                    usage=Usage(prompt=7),
                    tokens=(TokenProbability(SECRET, -0.1),),
                ),
            ),
            ('"reasoning":"Hm."', '"name":"pay"', '"prompt":7'),
        ),
        (
            events.ToolsReturned(
                results=(
                    Succeeded(call_id="1", text="all is well", value=msgspec.Raw(b'"SECRET"')),
                    Failed(call_id="2", error=SECRET, message="it broke"),
                    Paused(call_id="3", asks=NeedsInput(question="Which?"), saved=SECRET, answer=SECRET),
                )
            ),
            ("all is well", "it broke", "Which?"),
        ),
        (events.RunHalted(halt=BadReplies(attempts=2, problem="no call", raw="x" * 300 + SECRET)), ("in 2 attempts",)),
        (
            events.BackendReplaced(halt=BackendFailed(fault=FAULT, attempts=3)),
            ("explanation", "no reply from the model (tried 3 times): status 500"),
        ),
        (
            events.RunHalted(halt=BackendFailed(fault=Fault(kind="unreachable", detail=SECRET), attempts=1)),
            ("no reply from the model: unreachable; see the log of forge serve",),
        ),
        (events.HeldBack(turn=1, tools=("pay",), by="repeats"), ('"explanation":',)),
        (deltas.Retry(fault=FAULT, attempt=1, seconds=0.5), ("status 500",)),
        (events.ModelFailed(turn=1, problem=FAULT.detail, attempts=1), ("no reply from the model",)),
        (events.ModelFailed(turn=1, problem="the run was cut short"), ("the run was cut short",)),
        (events.SummaryFailed(problem=f"it did not come: {FAULT.detail}"), ("The summary cannot be used",)),
        (events.FellBack(reason=FAULT.detail), ("Tools are now in the prompt",)),
        (deltas.ReasoningDelta(text="Hm.", sealed=SECRET), ("Hm.",)),
        (deltas.ReasoningDelta(text="", sealed=SECRET), None),
        (deltas.Ended(sealed=SECRET), None),
        (events.MessageAdded(message=System(text=SECRET)), None),
    ],
)
def test_what_is_not_for_callers_is_left_out(event: Event | Delta, says: tuple[str, ...] | None) -> None:
    told = event_view(Stamped(run="run", agent="desk", turn=1, sequence=(1, 2), time=1.5, event=event))
    if says is None:
        assert told is None
        return
    assert told is not None
    written = msgspec.json.encode(told).decode()
    assert SECRET not in written
    for one in says:
        assert one in written


def test_an_event_is_what_the_core_says() -> None:
    stamped = Stamped(run="run", agent="desk", turn=1, sequence=(1, 2), time=1.5, event=events.Steered(text="Stop"))
    assert msgspec.json.encode(event_view(stamped)) == msgspec.json.encode(stamped)
