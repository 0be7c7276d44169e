"""The testing kit: each law is broken once on purpose, and the kit says which, on what, and what to do."""

import random
import subprocess
import sys
from collections.abc import Callable
from itertools import count, cycle, pairwise

import msgspec
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from msgspec.structs import force_setattr, replace

from forge import run_sync
from forge.testing import (
    COMPACTOR_LAWS,
    GUARD_LAWS,
    STAGE_LAWS,
    BrokenLawError,
    Scripted,
    ScriptError,
    assert_answered,
    assert_compactor_laws,
    assert_guard_laws,
    assert_stage_laws,
    budgets,
    call,
    chunkings,
    histories,
    malformed,
    states,
)
from forge.testing.strategies import GRAMMARS, PHASES, call_text
from stages import Stage, on, pipeline
from stages.compaction import Compacted, CompactionResult, Compactor, ContextBudget, NoCompact, TieredCompact, estimate
from stages.halt import CannotFit
from stages.message import Assistant, History, Kind, Message, System, Tool, ToolCall, User
from stages.objection import Custom, Guard, Objection, Stop, Verdict
from stages.pipeline import Acting
from stages.rescue import rescue
from stages.state import Answered, Executed, Folded, Ready, State, Vetted
from stages.state import Phase as StatePhase
from tests.flows import Desk
from tests.property.machine import stages_in_order

FINDING = settings(max_examples=1000, phases=[Phase.generate], database=None)

Rewrite = Callable[[History], History]


def honest(rewrite: Rewrite) -> Compactor:
    """A compactor that rewrites like this when it has to, and is honest about the phase and the fit."""

    def compactor(history: History, budget: ContextBudget) -> CompactionResult:
        if estimate(history, budget) < budget.trigger:
            return Compacted(history=history, phase=0)
        kept = rewrite(history)
        tokens = estimate(kept, budget)
        if tokens > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        return Compacted(history=kept, phase=int(kept != history))

    return compactor


def without(drop: Callable[[Message], bool]) -> Compactor:
    return honest(lambda history: tuple(m for m in history if not drop(m)))


def each(change: Callable[[Message], Message]) -> Compactor:
    return honest(lambda history: tuple(map(change, history)))


def no_name(message: Message) -> Message:
    """What upstream's truncation did."""
    return replace(message, name="", text="") if isinstance(message, Tool) else message


def cut_arguments(message: Message) -> Message:
    if not isinstance(message, Assistant) or message.pinned:
        return message
    return replace(message, calls=tuple(replace(c, arguments=c.arguments[:1]) for c in message.calls))


def swapped(history: History) -> History:
    """The model's bare texts at the end, cut to nothing."""
    said = [m for m in history if isinstance(m, Assistant) and not m.calls and not m.pinned]
    return (*(m for m in history if m not in said), *(replace(m, text="") for m in said))


def summed_up_by_the_model(history: History) -> History:
    kept = tuple(m for m in history if isinstance(m, System | Tool) or m.kind is not Kind.TEXT_RESPONSE or m.pinned)
    return kept if kept == history else (*kept, Assistant(text="x", turn=99))


def half_of_a_stub(message: Message) -> Message:
    """Cuts a result to its half, and the next time to a quarter."""
    return replace(message, text=message.text[: len(message.text) // 2]) if isinstance(message, Tool) else message


def growing(history: History, budget: ContextBudget) -> CompactionResult:
    if not any(isinstance(m, Tool) and len(m.text) < 9 for m in history):
        return NoCompact()(history, budget)
    stub = "[removed to save context]"
    stubs = (replace(m, text=stub) if isinstance(m, Tool) and len(m.text) < 9 else m for m in history)
    return Compacted(history=tuple(stubs), phase=2)


def in_circles(history: History, budget: ContextBudget) -> CompactionResult:
    tokens = estimate(history, budget)
    if tokens > budget.tokens:
        return CannotFit(tokens=tokens, budget=budget.tokens)
    return Compacted(history=history, phase=1)


def never_says_no(history: History, _: ContextBudget) -> CompactionResult:
    return Compacted(history=history, phase=0)


def tells_another_budget(history: History, budget: ContextBudget) -> CompactionResult:
    result = NoCompact()(history, budget)
    return replace(result, budget=0) if isinstance(result, CannotFit) else result


def overwriting(history: History, budget: ContextBudget) -> CompactionResult:
    for message in history:
        if isinstance(message, Tool) and message.text:
            force_setattr(message, "text", "")
    return NoCompact()(history, budget)


def in_turns() -> Compactor:
    compactors: cycle[Compactor] = cycle((NoCompact(), TieredCompact()))

    def compactor(history: History, budget: ContextBudget) -> CompactionResult:
        return next(compactors)(history, budget)

    return compactor


def now_and_then() -> Compactor:
    calls = count(1)

    def compactor(history: History, budget: ContextBudget) -> CompactionResult:
        return CannotFit(tokens=1, budget=0) if next(calls) % 50 == 0 else NoCompact()(history, budget)

    return compactor


def raising(history: History, budget: ContextBudget) -> CompactionResult:
    first = next(m for m in history if isinstance(m, System))
    return NoCompact()((first, *history[1:]), budget)


def bare_history(history: History, _: ContextBudget) -> CompactionResult:
    return history  # type: ignore[return-value]  # the mistake


BROKEN_COMPACTORS: list[tuple[str, Compactor, str]] = [
    ("attempt", raising, "it raised StopIteration"),
    ("attempt", bare_history, "return Compacted("),
    ("input_unchanged", overwriting, "msgspec.structs.replace"),
    ("deterministic", in_turns(), "no memory of earlier calls"),
    (
        "goal_kept",
        without(lambda m: isinstance(m, System)),
        "instead of system_prompt",
    ),
    (
        "pins_kept",
        without(lambda m: isinstance(m, Assistant) and not m.calls),
        "never cut or change a message whose `pinned` is true",
    ),
    ("names_and_ids_kept", each(no_name), "change the text of a result only"),
    ("names_and_ids_kept", each(cut_arguments), "are no longer a JSON object"),
    (
        "calls_answered",
        without(lambda m: isinstance(m, Tool)),
        "has no answer",
    ),
    ("order_kept", honest(swapped), "in the order in which they came"),
    ("order_kept", honest(summed_up_by_the_model), "Kind.SUMMARY"),
    ("never_grows", growing, "no gain"),
    ("progress_or_stop", in_circles, "where there is nothing left to cut"),
    ("fits_or_says_so", never_says_no, "return CannotFit("),
    ("fits_or_says_so", tells_another_budget, "budget= is budget.tokens"),
    ("idempotent", each(half_of_a_stub), "skip what an earlier cut has marked"),
]


LOOKS = tuple(ToolCall(id=f"call_{n}", name="look", arguments='{"what":"a"}') for n in range(2))


def with_all(first: tuple[System, ...]) -> History:
    """What the wrong compactors are wrong about, made anew for those that overwrite it.

    That `histories()` draws all of it is tested below.
    """
    return (
        *first,
        User(text="Go."),
        Assistant(text="The answer is long. " * 20, turn=1),
        User(text="Call a tool.", kind=Kind.RETRY_NUDGE, turn=1),
        Assistant(calls=LOOKS, turn=2),
        Tool(call_id=LOOKS[0].id, name="look", text="7", turn=2),
        Tool(call_id=LOOKS[1].id, name="look", text="found " * 100, turn=2),
        Assistant(text="Keep the receipt. " * 10, turn=3, pinned=True),
        User(text="And now?", turn=3),
    )


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize(("law", "compactor", "says"), BROKEN_COMPACTORS)
def test_a_wrong_compactor_is_told_which_law_it_breaks(law: str, compactor: Compactor, says: str) -> None:
    histories = st.sampled_from([(), (System(text="Be brief."),)]).map(with_all)
    with pytest.raises(BrokenLawError) as raised:
        assert_compactor_laws(compactor, histories=histories, max_examples=1_000)
    assert raised.traceback[-1].name == law
    assert str(raised.value).startswith(f"law broken: {raised.value.law}\nfound: ")
    assert says in str(raised.value)
    assert "\nwhat to do: " in str(raised.value)
    assert "\nhistory (" in str(raised.value)


def test_what_breaks_only_now_and_then_is_reported_as_that() -> None:
    """Hypothesis alone would speak of a flaky test."""
    with pytest.raises(BrokenLawError) as raised:
        assert_compactor_laws(now_and_then())
    assert "depends on more than the input" in "".join(raised.value.__notes__)


def test_a_report_names_the_budget_and_shows_the_history_line_by_line() -> None:
    history = (System(text="Be brief."), User(text="Go."), Assistant(text="x" * 99, turn=1, pinned=True))
    budget = ContextBudget(tokens=9)
    with pytest.raises(BrokenLawError) as raised:
        assert_compactor_laws(never_says_no, histories=st.just(history), budgets=st.just(budget), max_examples=5)
    told = str(raised.value)
    assert f"\nfound: what came back takes {estimate(history, budget)} tokens of 9\n" in told
    assert "\nbudget: ContextBudget(tokens=9, " in told
    listed = (
        "  1 system_prompt 'Be brief.'",
        "  2 user_input turn 0: 'Go.'",
        f"  3 text_response turn 1 pinned: '{'x' * 60}'…",
    )
    assert "\n ".join(("\nhistory (3 messages):", *listed)) in told
    assert "\n ".join(("\nits answer, phase 0 (3 messages):", *listed)) in told


def test_laws_can_be_tried_on_a_history_and_a_budget_of_ones_own() -> None:
    told = User(text="Keep the receipt.", pinned=True, turn=1, kind=Kind.SUMMARY)
    history = (User(text="Go."), Assistant(text="x" * 400, turn=1), told, User(text="And?", turn=1))
    loses_pins = without(lambda m: m == told or isinstance(m, Assistant))
    assert_compactor_laws(loses_pins, histories=st.just(history[:2]), max_examples=5)
    with pytest.raises(BrokenLawError, match="Keep the receipt"):
        assert_compactor_laws(
            loses_pins, histories=st.just(history), budgets=st.just(ContextBudget(tokens=100)), max_examples=5
        )


def test_every_law_of_compaction_is_broken_above() -> None:
    assert {law for law, _, _ in BROKEN_COMPACTORS} == {"attempt", *(law.__name__ for law in COMPACTOR_LAWS)}


def test_a_summary_may_take_the_place_of_what_it_sums_up() -> None:
    """What a compactor writes itself is a summary or a warning, pinned or not."""

    def summed_up(history: History) -> History:
        said = [m for m in history if isinstance(m, Assistant) and not m.calls and not m.pinned and len(m.text) > 40]
        kept = tuple(m for m in history if m not in said)
        summary = User(text=f"[{len(said)} texts]", kind=Kind.SUMMARY, turn=99, pinned=True)
        return (*kept, summary) if said else history

    assert_compactor_laws(honest(summed_up), max_examples=20)


def blocking(**wrong: object) -> Guard:
    def guard(_: State, calls: tuple[ToolCall, ...]) -> Verdict:
        custom = Custom(**{"text": "Not yet.", **wrong})  # type: ignore[arg-type]  # the mistake
        return [Objection(call=call, wrong=custom) for call in calls]

    return guard


def alternating() -> Guard:
    seen = count()
    return lambda state, calls: blocking()(state, calls) if next(seen) % 2 else []


def names_another(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
    return [Objection(call=ToolCall(id="call_7", name="look", arguments="{}"), wrong=Custom(text="Not yet."))]


def looks_at_the_first(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
    return blocking()(state, calls) if calls[0].name == "write" else []


def says_true(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
    return True  # type: ignore[return-value]  # the mistake


def stops_with_a_word(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
    return Stop(halt="enough") if state.ledger.premature > 2 else []  # type: ignore[arg-type]  # the mistake


def mends_a_call(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
    for one in calls:
        force_setattr(one, "arguments", '{"dry_run":true}')
    return []


def counts_itself(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
    force_setattr(state.ledger, "premature", state.ledger.premature + 1)
    return []


def at_random(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
    return blocking()(state, calls) if random.random() < 0.1 else []  # noqa: S311 - the mistake


BROKEN_GUARDS: list[tuple[str, Guard, str]] = [
    ("ask_guard", looks_at_the_first, "a batch may be empty"),
    ("ask_guard", says_true, "it returned True"),
    ("guard_input_unchanged", mends_a_call, "a guard only reads"),
    ("guard_input_unchanged", counts_itself, "a guard only reads"),
    ("guard_deterministic", alternating(), "the ledger counts earlier refusals"),
    ("guard_deterministic", at_random, "the ledger counts earlier refusals"),
    ("ask_guard", names_another, "objected to ToolCall(id='call_7'"),
    ("says_something", blocking(text=" "), "its text for "),
    ("ask_guard", blocking(kind=Kind.TOOL_RESULT), "the kinds are: prerequisite_nudge"),
    ("ask_guard", blocking(counter="turns"), "the counters are: premature"),
    ("ask_guard", stops_with_a_word, "write Stop(halt=Stopped(reason=…))"),
]


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize(("law", "guard", "says"), BROKEN_GUARDS)
def test_a_wrong_guard_is_told_which_law_it_breaks(law: str, guard: Guard, says: str) -> None:
    with pytest.raises(BrokenLawError) as raised:
        assert_guard_laws(guard)
    assert raised.traceback[-1].name == law
    assert str(raised.value).startswith(f"law broken: {raised.value.law}\nfound: ")
    assert says in str(raised.value)
    assert "\nwhat to do: " in str(raised.value)
    assert "\ncalls:" in str(raised.value)


def test_every_law_of_guards_is_broken_above() -> None:
    assert {law for law, _, _ in BROKEN_GUARDS} == {"ask_guard", *(law.__name__ for law in GUARD_LAWS)}


def test_a_guard_about_one_tool_is_only_tested_if_that_tool_is_called() -> None:
    def careless(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        return says_true(state, calls) if any(call.name == "delete" for call in calls) else []

    assert_guard_laws(careless, max_examples=10)
    with pytest.raises(BrokenLawError):
        assert_guard_laws(careless, tools=["delete"], max_examples=50)


def test_a_guard_that_cannot_read_the_arguments_is_told_how_to_generate_real_ones() -> None:
    def large(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        amounts = [(call, msgspec.json.decode(call.arguments)["amount"]) for call in calls]
        return [Objection(call=call, wrong=Custom(text="Too much.")) for call, amount in amounts if amount > 200]

    with pytest.raises(BrokenLawError, match="generate the real ones with arguments=…"):
        assert_guard_laws(large, max_examples=20)


def has(kind: Kind, role: type[Tool | User]) -> Callable[[History], bool]:
    return lambda history: any(isinstance(m, role) and m.kind is kind for m in history)


SHOWN_BY_HISTORIES: dict[str, Callable[[History], bool]] = {
    "a batch of several calls": lambda h: any(isinstance(m, Assistant) and len(m.calls) > 2 for m in h),
    "reasoning": lambda h: any(isinstance(m, Assistant) and len(m.reasoning) > 200 for m in h),
    "several user turns": lambda h: sum(isinstance(m, User) and m.kind is Kind.USER_INPUT for m in h) > 2,
    "no system prompt": lambda h: not isinstance(h[0], System),
    "a pinned answer of the model": lambda h: any(isinstance(m, Assistant) and m.pinned for m in h),
    "a pinned word of the user": lambda h: any(isinstance(m, User) and m.pinned for m in h),
    "a big text": lambda h: any(len(m.text) > 1000 for m in h),
    "an empty result": lambda h: any(isinstance(m, Tool) and not m.text for m in h),
    "an empty reply corrected": lambda h: any(
        isinstance(a, User | Tool) and isinstance(b, User) and b.kind is Kind.RETRY_NUDGE for a, b in pairwise(h)
    ),
    "a correction of a call": has(Kind.RETRY_NUDGE, Tool),
    "a summary": has(Kind.SUMMARY, User),
}


@pytest.mark.parametrize("what", SHOWN_BY_HISTORIES)
def test_histories_have_it_all(what: str) -> None:
    """`find` raises NoSuchExample where there is none."""
    find(histories(), SHOWN_BY_HISTORIES[what], settings=FINDING)


@settings(max_examples=20)
@given(history=histories(tools=["alone"]), data=st.data())
def test_histories_are_valid_and_budgets_are_for_them(history: History, data: st.DataObject) -> None:
    assert_answered(history)
    assert {m.name for m in history if isinstance(m, Tool)} <= {"alone"}
    turns = [m.turn for m in history if not isinstance(m, System)]
    assert turns == sorted(turns)
    assert data.draw(budgets(history)).tokens >= 1


def test_an_answer_without_its_call_is_said_where_it_stands() -> None:
    history = (User(text="Go."), Tool(call_id="call_1", name="look", text="7"))
    with pytest.raises(BrokenLawError, match="a result answers 'call_1', and no call is open there"):
        assert_answered(history)


@settings(max_examples=5)
@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: str(phase.__name__))
@given(data=st.data())
def test_states_are_in_the_phase_that_was_asked_for_and_survive_json(
    phase: type[StatePhase], data: st.DataObject
) -> None:
    state = data.draw(states(phases=[phase]))
    assert isinstance(state.phase, phase)
    assert msgspec.json.decode(msgspec.json.encode(state), type=State) == state
    if isinstance(state.phase, Vetted):
        used = {call.id for m in state.history if isinstance(m, Assistant) for call in m.calls}
        assert not used & {call.id for call in state.phase.calls}


@pytest.mark.parametrize("family", GRAMMARS)
def test_a_call_written_on_a_good_day_is_read_as_it_was_meant(family: str) -> None:
    """So what `malformed` damages are calls indeed."""
    found = rescue(call_text(family, "look", {"what": "the sky", "text": "blue"}), ["look", "write"])
    assert [call.name for call in found.calls] == ["look"]
    assert msgspec.json.decode(found.calls[0].arguments) == {"what": "the sky", "text": "blue"}


@pytest.mark.parametrize("damaged", [False, True])
def test_malformed_replies_are_partly_mended_and_partly_lost(*, damaged: bool) -> None:
    def lost(text: str) -> bool:
        found = rescue(text, ["look", "write", "finish"])
        return not found.calls and bool(found.damage) if damaged else any(call.repairs for call in found.calls)

    find(malformed(), lost, settings=FINDING)


@given(data=st.data(), text=malformed())
def test_chunks_are_the_whole_again(data: st.DataObject, text: str) -> None:
    assert b"".join(data.draw(chunkings(text.encode()))) == text.encode()
    assert "".join(data.draw(chunkings(text))) == text


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_without_hypothesis_the_kit_says_what_to_install_and_the_rest_of_forge_works() -> None:
    said = python("import sys; sys.modules['hypothesis'] = None; import forge; print('fine'); import forge.testing")
    assert said.startswith("fine\n")
    assert said.endswith("pip install '.[testing]'\n")


def test_forge_by_itself_never_imports_hypothesis() -> None:
    assert python("import sys, forge, forge.cli; print('hypothesis' in sys.modules)") == "False\n"


@on(Ready)
def mutating(state: State, _: Ready) -> State:
    force_setattr(state.ledger, "retries", state.ledger.retries + 1)
    return state


LATELY = count()


@on(Ready)
def remembering(state: State, _: Ready) -> State:
    return state.note(retries=next(LATELY))


NOBODY = object()


@on(Ready)
def unsaveable(state: State, _: Ready) -> State:
    return state.note(model=NOBODY)


@on(Ready)
def forgetful(state: State, _: Ready) -> State:
    return replace(state, history=tuple(m for m in state.history if not isinstance(m, Tool)))


@on(Folded)
def without_the_last(state: State, phase: Folded) -> State:
    return state.to(replace(phase, view=phase.view[:-1]))


@on(Ready)
def generous(state: State, _: Ready) -> State:
    return state.note(budget=replace(state.ledger.budget, calls=100))


@on(Ready)
def clumsy(state: State, _: Ready) -> State:
    return state.say(state.history[100])


@on(Answered)
def asking_nothing(state: State, phase: Answered) -> State:
    return state.to(Answered(reply=phase.reply))


@on(Executed)
def unsettling(state: State, phase: Executed) -> State:
    return state.to(Executed(batch=phase.batch))


WRONG_STAGES: list[tuple[str, Stage, str]] = [
    ("the input is not changed", mutating, "state.to"),
    ("the same input gives the same state", remembering, "nothing remembered"),
    ("the state can be saved", unsaveable, "the declared types"),
    ("a call is never parted from its result", forgetful, "keep the two together"),
    ("a call is never parted from its result", without_the_last, "in the view, the call"),
    ("budgets only shrink", generous, "forge.resume"),
    ("it answers every state", clumsy, "return a State or a Halt"),
    ("a changed phase keeps `asked` and `settled`", asking_nothing, "Answered.asked"),
    ("a changed phase keeps `asked` and `settled`", unsettling, "Executed.settled"),
]


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize(("law", "stage", "says"), WRONG_STAGES)
def test_a_wrong_stage_is_told_which_law_it_breaks(law: str, stage: Stage, says: str) -> None:
    assert isinstance(stage, Acting)
    with pytest.raises(BrokenLawError) as raised:
        assert_stage_laws(stage, states=states(phases=stage.phases, max_turns=2))
    assert raised.value.law == law
    assert says in str(raised.value)
    assert f"stage: {stage.act.__name__}" in str(raised.value)


def test_every_law_of_stages_is_broken_above() -> None:
    assert len({law for law, _, _ in WRONG_STAGES}) == len(STAGE_LAWS) + 1


def test_the_stages_of_forge_keep_the_laws() -> None:
    assert_stage_laws(pipeline(*stages_in_order()), max_examples=30)


def test_arguments_of_ones_own_are_those_of_every_call() -> None:
    """A guard may look into the history, the ledger and the phase as well as into the batch."""
    seen: set[str] = set()

    def reading(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        phase = getattr(state.phase, "batch", state.phase)
        seen.update(call.arguments for call in (*calls, *getattr(phase, "calls", ())))
        seen.update(call.arguments for m in state.history if isinstance(m, Assistant) for call in m.calls)
        seen.update(success.arguments for success in state.ledger.successes)
        return []

    assert_guard_laws(reading, arguments=st.just('{"amount":5}'), max_examples=15)
    assert seen == {'{"amount":5}'}


def test_a_script_that_ends_too_early_shows_the_correction() -> None:
    model = Scripted(["Hm.", call("finish", result="x")])
    with pytest.raises(ScriptError) as ended:
        run_sync(Desk().workflow, "Go.", backend=model)
    told = str(ended.value).partition("The last messages to the model:\n")[2]
    assert told.startswith("tool: [StepEnforcementError] ")
    assert "look" in told
