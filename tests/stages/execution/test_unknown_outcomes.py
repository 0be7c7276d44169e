"""Unknown outcomes: which tools wait for a decision, what settles them, and keys that make retries safe."""

import pytest
from msgspec import Raw
from msgspec.structs import replace

from stages.deliver import deliver, interrupt
from stages.effect import Ask, Execute, Failed, InDoubt, NotRun, Results, Settled, Succeeded
from stages.execute import execute
from stages.execution import settled_outcome, unknown_outcomes_after, without_unknown_results
from stages.message import Assistant, ToolCall, UnknownCall, User
from stages.order import Each, Use
from stages.recounting import recount
from stages.rules import Rules, pending
from stages.state import Awaiting, Batch, Executed, Ledger, State
from stages.tool import ToolEffect, ToolSpec

PAY = UnknownCall(id="call_1", name="pay", arguments='{"sum":5}')
AGAIN = replace(PAY, id="call_2", arguments='{ "sum": 5.0 }')
OTHER = replace(PAY, id="call_2", arguments='{"sum":6}')
LOST = InDoubt(call_id="call_1", reason="The connection broke.")


def batch(*calls: ToolCall, results: tuple[InDoubt | Succeeded | Failed, ...] = ()) -> Batch:
    return Batch(said=Assistant(calls=calls), results=results)


def test_a_success_of_the_same_call_settles_it_and_of_another_does_not() -> None:
    fine = Succeeded(call_id="call_2", text="paid")
    assert unknown_outcomes_after((PAY,), batch(AGAIN), (fine,)) == ()
    assert unknown_outcomes_after((PAY,), batch(OTHER), (fine,)) == (PAY,)
    failed = Failed(call_id="call_2", error="ValueError", message="no")
    assert unknown_outcomes_after((PAY,), batch(AGAIN), (failed,)) == (PAY,)


def test_a_call_that_a_person_is_going_to_be_asked_about_is_open_again() -> None:
    lost = batch(PAY, results=(LOST,))
    assert without_unknown_results(lost, (PAY,)).results == ()
    assert without_unknown_results(lost, ()).results == (LOST,)


@pytest.mark.parametrize(
    ("call", "happened", "answers"),
    [
        (AGAIN, True, [Succeeded]),  # the very same: its result is known, so it answers both
        (OTHER, True, [NotRun]),  # wanted without knowing of the first
        (AGAIN, False, []),
        (OTHER, False, []),
    ],
)
def test_what_becomes_of_the_call_that_was_asked_about(call: ToolCall, answers: list[type], *, happened: bool) -> None:
    found = Settled(digest="d", happened=happened, result="paid")
    ledger, after = settled_outcome(Ledger(in_doubt=(PAY,)), batch(call), call, PAY, found)
    assert ledger.in_doubt == ()
    assert [type(result) for result in after.batch.results] == answers
    assert [call.name for call, _ in filter(None, [after.settled])] == (["pay"] if answers == [NotRun] else [])


def spec(name: str, effect: ToolEffect) -> ToolSpec:
    return ToolSpec(name=name, description="", parameters=Raw(b'{"type":"object"}'), effect=effect)


DEPLOY, LIST, BOOK = (
    UnknownCall(id=f"call_{i}", name=name, arguments="{}") for i, name in enumerate(("deploy", "list_rooms", "book"))
)
ORDER = Rules(
    tools=(spec("deploy", "write"), spec("list_rooms", "read"), spec("book", "write")),
    required=("deploy",),
    order=(
        Use(tool="deploy", counts_if=lambda answer: answer == "ok"),
        Use(tool="book", each_of=Each(tool="list_rooms", argument="id", member="id")),
    ),
)
ROOMS = '[{"id":"R1"},{"id":"R2"}]'


def test_what_succeeded_before_a_run_was_cut_short_counts_as_it_does_in_its_history() -> None:
    stage = execute(ORDER)
    state = State(history=(User(text="Go."),), ledger=Ledger(turn=1))
    back = batch(DEPLOY, LIST, BOOK, results=(Succeeded(call_id=DEPLOY.id, text="ok"),))
    waiting = stage(state.to(Executed(batch=replace(back, said=replace(back.said, turn=1))))).unwrap()
    listed = deliver(waiting, Results(results=(Succeeded(call_id=LIST.id, text=ROOMS),))).unwrap()
    last = stage(listed).unwrap()
    assert isinstance(last.phase, Awaiting)
    assert isinstance(last.phase.effect, Execute)
    cut = interrupt(last)
    known = recount(ORDER, cut.history)
    assert pending(ORDER, cut.ledger) == pending(ORDER, known) == ("book",)
    assert cut.ledger.successes == known.successes
    assert cut.ledger.progress == known.progress == 1


def test_an_earlier_call_that_a_person_settled_counts_by_the_rules() -> None:
    again = replace(DEPLOY, id="call_9", arguments='{"to":"prod"}')
    ask = Ask(call=again, digest="d", in_doubt=DEPLOY)
    asked = Awaiting(effect=ask, batch=batch(again))
    state = State(history=(User(text="Go."),), ledger=Ledger(turn=2, in_doubt=(DEPLOY,)), phase=asked)
    after = execute(ORDER)(deliver(state, Settled(digest="d", happened=True, result="ok")).unwrap()).unwrap()
    assert [(done.name, done.passed) for done in after.ledger.successes] == [("deploy", True)]
