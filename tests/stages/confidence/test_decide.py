"""Settling: what follows an unsure decision, step by step, and what each step asks."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace
from returns.result import Success

from stages.confidence.decide import (
    DOUBTS,
    Doubts,
    Escalation,
    ask_again,
    hear,
    majority,
    open_escalation,
    settle,
)
from stages.confidence.measure import (
    AskLarger,
    AskPerson,
    Choice,
    MeasuredCall,
    StopRun,
    ThinkFirst,
    UnsureStep,
    Vote,
    WhenUnsure,
)
from stages.effect import Budget, NeedsInput, Reply, Request
from stages.halt import Unsure
from stages.message import Assistant, ToolCall, User
from stages.options import OptionError
from stages.state import Answered, Asked, Done, Ledger, Prepared, Ready, State, Vetted

STEPS = st.lists(
    st.sampled_from([ThinkFirst(), Vote(samples=2), Vote(samples=5), AskLarger(), AskPerson(), StopRun()]), max_size=4
).map(tuple)


def vetted(*confidences: float | None, arguments: str = "{}") -> Vetted:
    calls = tuple(ToolCall(id=f"c{n}", name="go", arguments=arguments) for n, _ in enumerate(confidences))
    return Vetted(said=Assistant(calls=calls), allowed=True)


def measured(*confidences: float | None) -> dict[str, MeasuredCall]:
    """A choice of that probability for each of the calls of which something is known."""
    known = {f"c{n}": sure for n, sure in enumerate(confidences) if sure is not None}
    return {each: MeasuredCall(tool="go", choices=(_choice(sure),)) for each, sure in known.items()}


def _choice(sure: float) -> Choice:
    return Choice(chosen='"go"', offered=('"go"', '"stop"'), shares=(sure, 1 - sure))


def state(*sure: float | None, calls: int = 10, escalation: Escalation | None = None, spent: int = 0) -> State:
    ledger = Ledger(budget=Budget(calls=calls), turn=3)
    begun = State(history=(User(text="Go."),), ledger=ledger, phase=vetted(*sure))
    return DOUBTS.put(begun, Doubts(escalation=escalation, calls=spent, measured=measured(*sure)))


@given(STEPS, st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=3), st.integers(0, 6), st.integers(0, 12))
def test_an_unsure_decision_is_asked_again_within_the_bounds_ends_typed_or_stands(
    then: tuple[UnsureStep, ...], confidences: list[float | None], calls: int, spent: int
) -> None:
    before = state(*confidences, calls=calls, spent=spent)
    moved = settle(WhenUnsure(below=0.5, then=then))(before)
    known = [sure for sure in confidences if sure is not None]
    sure = min(known) if len(known) == len(confidences) else None
    match moved:
        case Success(State(phase=Vetted()) as after):
            assert DOUBTS.get(after) == Doubts(calls=spent)
            ending = {type(step) for step in then} & {AskPerson, StopRun}
            assert (sure is not None and sure >= 0.5) or not ending
        case Success(State(phase=Ready(), ledger=ledger) as after):
            assert calls > 0
            assert open_escalation(after)
            assert (ledger.turn, DOUBTS.get(after).calls) == (2, spent + 1)
            assert spent < 12
        case Success(State(phase=Done(outcome=NeedsInput())) as after):
            assert open_escalation(after) is None
            assert AskPerson() in then
        case other:
            assert isinstance(other.failure(), Unsure)
            assert StopRun() in then
    if sure is not None and sure >= 0.5:
        assert moved.unwrap().phase == before.phase


@given(st.lists(st.sampled_from(["{}", '{"a":1}', '{"a": 1}', '{"a":2}']), min_size=1, max_size=7))
def test_the_majority_is_of_canonical_calls_and_the_first_of_its_kind(said: list[str]) -> None:
    votes = tuple(vetted(0.1, arguments=arguments) for arguments in said)
    chosen, share = majority(votes)
    canonical = [arguments.replace(" ", "") for arguments in said]
    most = max(map(canonical.count, canonical))
    own = chosen.calls[0].arguments.replace(" ", "")
    assert share == most / len(said)
    assert canonical.count(own) == most
    assert chosen is votes[canonical.index(own)]


def test_a_decision_is_dropped_once_the_history_has_gone_on() -> None:
    put_off = Escalation(step=0, length=1, asks="larger")
    open_one = state(0.1, escalation=put_off)
    assert open_escalation(open_one) == put_off
    assert open_escalation(open_one.say(User(text="No."))) is None


def test_what_a_larger_model_says_is_taken_unless_it_is_known_to_be_unsure() -> None:
    decide = settle(WhenUnsure(below=0.5, then=(AskLarger(), StopRun())))
    put_off = Escalation(step=0, length=1, asks="larger")

    def answered(sure: float | None, target: str) -> State:
        before = state(sure, escalation=put_off)
        return before.to(replace(vetted(sure), asked=Asked(target=target)))

    assert open_escalation(decide(answered(None, "larger")).unwrap()) is None
    assert isinstance(decide(answered(0.2, "larger")).failure(), Unsure)
    again = decide(answered(0.2, "main")).unwrap()
    assert again.phase == Ready(target="larger"), "the run was cut short before the larger model had answered"


def test_a_vote_needs_all_of_its_calls_or_is_left_out() -> None:
    decide = settle(WhenUnsure(below=0.5, then=(Vote(samples=5), StopRun()), max_calls=3))
    assert isinstance(decide(state(0.1)).failure(), Unsure)


HEAD = {"max_tokens": 100, "model": "m", "logprobs": True, "top_logprobs": 20, "seed": 7, "temperature": 0.1}
TAIL = {"response_format": {"type": "json_schema"}, "tool_choice": "required", "tools": []}


def again(step: UnsureStep, escalation: Escalation) -> dict[str, object]:
    request = Request(head=Raw(msgspec.json.encode(HEAD)), tail=Raw(msgspec.json.encode(TAIL)))
    prepared = state(0.1, escalation=escalation).to(Prepared(request=request))
    phase = ask_again(WhenUnsure(below=0.5, then=step), {"max_tokens": "max_tokens"})(prepared).unwrap().phase
    assert isinstance(phase, Prepared)
    told: dict[str, object] = msgspec.json.decode(phase.request.body)
    return {name: value for name, value in told.items() if name != "messages"}


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="It is B."),
        Reply(text="<think>It is B.</think>"),
        Reply(text="<think>Hm.</think>It is B."),
    ],
)
def test_a_thought_is_what_the_model_says_or_where_it_says_nothing_its_reasoning(reply: Reply) -> None:
    asked = Escalation(step=0, length=1, asks="thought")
    after = hear(())(state(0.1, escalation=asked).to(Answered(reply=reply))).unwrap()
    assert after.phase == Ready()
    assert open_escalation(after) == Escalation(step=0, length=1, asks="calls", thought="It is B.")


def test_each_step_changes_of_the_request_what_it_needs() -> None:
    votes = (vetted(0.1), vetted(0.2))
    thought = again(ThinkFirst(tokens=30), Escalation(step=0, length=1, asks="thought"))
    assert thought == {"max_tokens": 30, "model": "m", "seed": 7, "temperature": 0.1, "tools": []}
    assert again(ThinkFirst(tokens=300), Escalation(step=0, length=1, asks="thought"))["max_tokens"] == 100
    assert again(Vote(temperature=0.9), Escalation(step=0, length=1, votes=votes)) == {
        **HEAD,
        **TAIL,
        "temperature": 0.9,
        "seed": 9,
    }
    assert again(AskLarger(), Escalation(step=0, length=1, asks="larger")) == {**HEAD, **TAIL}
    assert again(Vote(), Escalation(step=0, length=9, votes=votes)) == {**HEAD, **TAIL}


@pytest.mark.parametrize("wrong", [{"below": 1.5}, {"below": 0.5, "max_calls": -1}, {"below": 0.5, "then": "stop"}])
def test_wrong_options_are_refused_in_words(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionError, match="WhenUnsure: "):
        WhenUnsure(**wrong)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(OptionError, match="samples"):
        Vote(samples=1)


def test_a_run_resumed_with_fewer_steps_goes_on_with_those_that_there_are() -> None:
    begun, fewer = Escalation(step=2, length=1, asks="thought"), WhenUnsure(below=0.5, then=Vote(samples=2))
    asking = replace(state(0.1, escalation=begun), phase=Prepared(request=Request(head=Raw(b"{}"), tail=Raw(b"{}"))))
    assert ask_again(fewer, {})(asking) == Success(asking)
    assert isinstance(settle(fewer)(state(0.1, escalation=begun)), Success)
