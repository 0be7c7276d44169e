"""Settling: what follows an unsure decision, step by step, and what each step asks."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from returns.result import Success

from stages.confidence.decide import ask_again, confidence_of, majority, question_about, settle, with_thought
from stages.confidence.measure import AskLarger, AskPerson, StopRun, ThinkFirst, UnsureStep, Vote, WhenUnsure
from stages.effect import Budget, Choice, MeasuredCall, NeedsInput, Reply, Request
from stages.halt import Unsure
from stages.message import Assistant, ToolCall, User
from stages.options import OptionError
from stages.state import Decision, Done, Ledger, Prepared, Ready, State, Vetted

STEPS = st.lists(
    st.sampled_from([ThinkFirst(), Vote(samples=2), Vote(samples=5), AskLarger(), AskPerson(), StopRun()]), max_size=4
).map(tuple)


def vetted(*confidences: float | None, arguments: str = "{}") -> Vetted:
    calls = tuple(
        ToolCall(id=f"c{n}", name="go", arguments=arguments, confidence=sure) for n, sure in enumerate(confidences)
    )
    return Vetted(said=Assistant(calls=calls), allowed=True)


def state(phase: Vetted, calls: int = 10, decision: Decision | None = None, spent: int = 0) -> State:
    ledger = Ledger(budget=Budget(calls=calls), turn=3, unsure_calls=spent)
    return State(history=(User(text="Go."),), ledger=ledger, phase=phase, decision=decision)


@given(STEPS, st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=3), st.integers(0, 6), st.integers(0, 12))
def test_an_unsure_decision_is_asked_again_within_the_bounds_ends_typed_or_stands(
    then: tuple[UnsureStep, ...], confidences: list[float | None], calls: int, spent: int
) -> None:
    before = state(vetted(*confidences), calls, spent=spent)
    moved = settle(WhenUnsure(below=0.5, then=then))(before)
    sure = confidence_of(vetted(*confidences))
    match moved:
        case Success(State(phase=Vetted(), decision=None)):
            ending = {type(step) for step in then} & {AskPerson, StopRun}
            assert (sure is not None and sure >= 0.5) or not ending
        case Success(State(phase=Ready(), decision=Decision(), ledger=ledger)):
            assert calls > 0
            assert (ledger.turn, ledger.unsure_calls) == (2, spent + 1)
            assert ledger.unsure_calls <= 12
        case Success(State(phase=Done(outcome=NeedsInput()), decision=None)):
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
    put_off = Decision(step=0, length=1, asks="larger")
    open_one = state(vetted(0.1), decision=put_off)
    assert open_one.open_decision == put_off
    assert open_one.say(User(text="No.")).open_decision is None


def test_what_a_larger_model_says_is_taken_unless_it_is_known_to_be_unsure() -> None:
    decide = settle(WhenUnsure(below=0.5, then=(AskLarger(), StopRun())))
    asked = Decision(step=0, length=1, asks="larger")
    assert decide(state(vetted(None), decision=asked)).unwrap().decision is None
    assert isinstance(decide(state(vetted(0.2), decision=asked)).failure(), Unsure)


def test_a_vote_needs_all_of_its_calls_or_is_left_out() -> None:
    decide = settle(WhenUnsure(below=0.5, then=(Vote(samples=5), StopRun()), max_calls=3))
    assert isinstance(decide(state(vetted(0.1))).failure(), Unsure)


HEAD = {"max_tokens": 100, "model": "m", "logprobs": True, "top_logprobs": 20, "seed": 7, "temperature": 0.1}
TAIL = {"response_format": {"type": "json_schema"}, "tool_choice": "required", "tools": []}


def again(step: UnsureStep, decision: Decision) -> dict[str, object]:
    request = Request(head=Raw(msgspec.json.encode(HEAD)), tail=Raw(msgspec.json.encode(TAIL)))
    prepared = replace_phase(state(vetted(0.1), decision=decision), Prepared(request=request))
    phase = ask_again(WhenUnsure(below=0.5, then=step), {"max_tokens": "max_tokens"})(prepared).unwrap().phase
    assert isinstance(phase, Prepared)
    told: dict[str, object] = msgspec.json.decode(phase.request.body)
    return {name: value for name, value in told.items() if name != "messages"}


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="It is B."),
        Reply(text="<think>It is B.</think>"),
        Reply(reasoning="It is B."),
        Reply(text="<think>Hm.</think>It is B."),
    ],
)
def test_a_thought_is_what_the_model_says_or_where_it_says_nothing_its_reasoning(reply: Reply) -> None:
    asked = Decision(step=0, length=1, asks="thought")
    after = with_thought(state(vetted(0.1), decision=asked), asked, reply)
    assert after.decision == Decision(step=0, length=1, asks="calls", thought="It is B.")


def replace_phase(before: State, phase: Prepared) -> State:
    return before.to(phase)


def test_each_step_changes_of_the_request_what_it_needs() -> None:
    votes = (vetted(0.1), vetted(0.2))
    thought = again(ThinkFirst(tokens=30), Decision(step=0, length=1, asks="thought"))
    assert thought == {"max_tokens": 30, "model": "m", "seed": 7, "temperature": 0.1, "tools": []}
    assert again(ThinkFirst(tokens=300), Decision(step=0, length=1, asks="thought"))["max_tokens"] == 100
    assert again(Vote(temperature=0.9), Decision(step=0, length=1, votes=votes)) == {
        **HEAD,
        **TAIL,
        "temperature": 0.9,
        "seed": 9,
    }
    assert again(AskLarger(), Decision(step=0, length=1, asks="larger")) == {**HEAD, **TAIL}
    assert again(Vote(), Decision(step=0, length=9, votes=votes)) == {**HEAD, **TAIL}


def test_the_question_is_about_the_least_sure_choice() -> None:
    tool = Choice(chosen='"pay"', offered=('"look"', '"pay"'), shares=(0.1, 0.9))
    value = Choice(argument="sum", chosen="2", offered=("1", "2"), shares=(0.6, 0.4))
    phase = Vetted(said=Assistant(), choices=(MeasuredCall(tool="pay", choices=(tool, value)),))
    assert question_about(phase) == NeedsInput(question="Which sum is meant for pay: 2 or 1?", suggestions=("2", "1"))
    phase = Vetted(said=Assistant(), choices=(MeasuredCall(tool="pay", choices=(tool,)), None))
    assert question_about(phase).question == "What is meant: pay or look?"
    assert question_about(vetted(None)).question == "Is this what is meant: go {}?"


@pytest.mark.parametrize("wrong", [{"below": 1.5}, {"below": 0.5, "max_calls": -1}, {"below": 0.5, "then": "stop"}])
def test_wrong_options_are_refused_in_words(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionError, match="WhenUnsure: "):
        WhenUnsure(**wrong)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(OptionError, match="samples"):
        Vote(samples=1)
