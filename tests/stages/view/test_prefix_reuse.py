"""What two requests begin with alike, and which stage a loss is put down to."""

import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from forge import Workflow, run_sync
from forge.cli.console import Console
from forge.cli.lines import View
from forge.testing import Scripted, call, histories, texts
from forge.workflow.workflow import Context
from stages import Stage, compact, fold, pipeline, send, serialize
from stages.compaction import Compactor, ContextBudget, NoCompact, SlidingWindowCompact, TieredCompact
from stages.effect import Reply
from stages.events import Event, PrefixLost, Stamped
from stages.fold import FailedAttempts, Reasoning
from stages.message import Assistant, History, Kind, System, Tool, ToolCall, User, size
from stages.rules import Rules
from stages.state import Ready, State
from stages.tool import ToolSpec
from stages.view.notes import warn_of_calls
from stages.view.prefix_reuse import Loss, common_length, common_size, prefix_loss
from stages.wire.target import Mode, Target
from stages.wire.wires import ANTHROPIC, OPENAI, Wire
from tests.heard import heard_by

GOAL: History = (System(text="Do the work."), User(text="Go."))
LOOK = ToolSpec(name="look", description="Look.", parameters=Raw(b'{"type":"object"}'), effect="read")
ENOUGH = ContextBudget(tokens=100_000)


def turn(number: int, result: str = "fine", reasoning: str = "") -> History:
    call = ToolCall(id=f"call_{number}", name="look", arguments="{}")
    said = Assistant(calls=(call,), turn=number, reasoning=reasoning)
    return (said, Tool(call_id=call.id, name="look", text=result, turn=number))


def failed(number: int) -> History:
    nudge = User(text="Call a tool.", kind=Kind.RETRY_NUDGE, turn=number)
    return (Assistant(text="Sure, I can do that!", turn=number), nudge)


def turns(
    compactor: Compactor | None = None,
    budget: ContextBudget = ENOUGH,
    *,
    reasoning: Reasoning = "none",
    failed_attempts: FailedAttempts = "keep",
    mode: Mode = "native",
    tool: ToolSpec = LOOK,
    warn: int = 0,
    wire: Wire = OPENAI,
) -> Stage:
    """The stages of a turn up to its request."""
    rules = Rules(tools=(tool,), on_text="accept")
    return pipeline(
        compact(compactor or NoCompact(), budget),
        fold(reasoning, failed_attempts),
        warn_of_calls(rules, warn),
        serialize(rules, Target(mode=mode, wire=wire)),
        send(rules),
    )


def sent(state: State, stage: Stage) -> State:
    return stage(state).unwrap()


def lost(history: History, more: History, first: Stage, second: Stage | None = None) -> Loss | None:
    """What is lost when a run, asked once, goes on with these messages."""
    asked = sent(State(history=history), first)
    ready = asked.say(*more).to(Ready())
    return prefix_loss(ready, sent(ready, second or first))


@given(st.one_of(st.tuples(texts(), texts()), st.tuples(st.text("ab"), st.text("ab"))))
def test_shared_is_the_longest_common_beginning(pair: tuple[str, str]) -> None:
    before, after = pair
    count = common_length(before, after)
    assert before[:count] == after[:count]
    assert count == min(len(before), len(after)) or before[count] != after[count]
    assert common_length(before.encode(errors="replace"), after.encode(errors="replace")) >= count


@given(histories())
def test_a_run_that_only_goes_on_loses_nothing(history: History) -> None:
    assert lost(history, turn(99), turns()) is None


def test_of_the_first_message_that_differs_the_common_text_counts() -> None:
    cut = Tool(call_id="call_1", name="look", text="a" * 200 + "\n[Truncated — 800 chars removed]", turn=1)
    before, after = GOAL + turn(1, "a" * 1000), (*GOAL, turn(1)[0], cut)
    assert common_size(before, after) == sum(map(size, before[:3])) + 200


def test_a_text_of_another_role_is_nothing_in_common() -> None:
    assert common_size((*GOAL, User(text="Yes.")), (*GOAL, Assistant(text="Yes."))) == sum(map(size, GOAL))


OLD = turn(1, "a" * 2000) + turn(2, "b" * 2000)
TIGHT = ContextBudget(tokens=1200, threshold=0.9)
RENAMED = replace(LOOK, description="Look closely.")
PROMPTED = turns(mode="prompted")


@pytest.mark.parametrize(
    ("history", "more", "first", "second", "cause"),
    [
        (GOAL + OLD, turn(3, "c" * 2000), turns(TieredCompact(), TIGHT), None, "compact"),
        (GOAL + OLD, turn(3, "c" * 2000), turns(SlidingWindowCompact(), TIGHT), None, "compact"),
        (GOAL + failed(1), turn(2), turns(failed_attempts="collapse"), None, "fold"),
        (GOAL + turn(1, reasoning="Hm."), turn(2, reasoning="Oh."), turns(reasoning="keep-last"), None, "fold"),
        (GOAL + turn(1, reasoning="Hm."), turn(2), turns(reasoning="full"), None, None),
        (GOAL + turn(1), turn(2), turns(warn=100), None, None),
        (GOAL + turn(1), turn(2), turns(), turns(tool=RENAMED), "serialize"),
        (
            GOAL + failed(1),
            turn(2),
            PROMPTED,
            turns(mode="prompted", tool=RENAMED, failed_attempts="collapse"),
            "serialize",
        ),
        (GOAL + turn(1), turn(2), turns(), turns(mode="prompted"), "serialize"),
        (GOAL + turn(1), turn(2), PROMPTED, turns(mode="constrained"), None),
        (
            GOAL + failed(1),
            turn(2),
            turns(mode="prompted", wire=ANTHROPIC),
            turns(mode="prompted", wire=ANTHROPIC, tool=RENAMED, failed_attempts="collapse"),
            "serialize",
        ),
        (GOAL + turn(1), turn(2), turns(wire=ANTHROPIC), None, None),
        ((), GOAL, turns(), None, None),
    ],
)
def test_a_loss_is_put_down_to_the_stage_that_caused_it(
    history: History, more: History, first: Stage, second: Stage | None, cause: str | None
) -> None:
    found = lost(history, more, first, second)
    assert (found and found.cause) == cause


@pytest.mark.parametrize(
    "shape",
    [
        lambda history: history[2:],
        lambda history: (*history[:2], User(text="By the way."), *history[2:]),
        lambda history: (*history[:3], replace(history[3], text="else"), *history[4:]),
    ],
)
def test_a_history_reshaped_between_turns_is_nobody_elses_doing(shape: Callable[[History], History]) -> None:
    asked = sent(State(history=GOAL + turn(1) + turn(2)), turns())
    ready = asked.reshape(shape(asked.history)).to(Ready())
    found = prefix_loss(ready, sent(ready, turns()))
    assert found is not None
    assert found.cause == "history"


def test_what_another_model_is_asked_takes_no_prompt_from_this_one() -> None:
    both = {"main": Target(), "larger": Target(mode="prompted", model="big")}
    rules = Rules(tools=(LOOK,), on_text="accept")
    stage = pipeline(fold(), serialize(rules, both), send(rules))
    first = sent(State(history=GOAL), stage)
    between = sent(first.to(Ready(target="larger")), stage)
    after = sent(between.say(*turn(1)).to(Ready()), stage)
    assert prefix_loss(first, between) is None
    assert prefix_loss(between, after) is None
    again = sent(after.reshape(after.history[1:]).to(Ready()), stage)
    assert prefix_loss(after, again) is not None


def test_what_compaction_did_to_a_reply_that_is_shown_with_its_reasoning_is_compactions() -> None:
    said = Assistant(text="Well.", reasoning="hm " * 500, turn=1)
    tight = ContextBudget(tokens=1000, reasoning=True)
    found = lost((*GOAL, said), turn(2) + turn(3, "c" * 2000), turns(TieredCompact(), tight, reasoning="full"))
    assert found is not None
    assert found.cause == "compact"


def test_kept_and_lost_are_the_last_prompt_and_its_tools_stay() -> None:
    asked = sent(State(history=GOAL + OLD), turns(TieredCompact(), TIGHT))
    ready = asked.say(*turn(3, "c" * 2000)).to(Ready())
    after = sent(ready, turns(TieredCompact(), TIGHT))
    found = prefix_loss(ready, after)
    assert found is not None
    whole, ratio = asked.ledger.prompt_size, asked.ledger.tokens_per_character
    tools = whole - asked.prompt.size
    assert tools > 0
    assert found.kept_tokens == int((tools + common_size(asked.prompt.view, after.prompt.view)) * ratio)
    assert found.kept_tokens + found.lost_tokens == int(whole * ratio)


def test_other_tools_lose_everything() -> None:
    found = lost(GOAL + turn(1), turn(2), turns(), turns(tool=RENAMED))
    assert found is not None
    assert found.kept_tokens == 0


def test_tools_in_the_prompt_are_sent_where_the_system_prompt_has_a_place_of_its_own() -> None:
    """The Messages API keeps it beside the messages: the tools' text, which ends it, used to be left out."""
    body = sent(State(history=GOAL), turns(mode="prompted", wire=ANTHROPIC)).memo.written[-1].request.body
    assert b"Do the work." in body
    assert b"look" in body


def test_a_run_that_has_sent_nothing_yet_has_nothing_to_lose() -> None:
    state = State(history=GOAL)
    assert prefix_loss(state, sent(state, turns())) is None


def read(page: int) -> str:
    """Read a page."""
    return f"{page}: " + "words " * 200


def watched(failed_attempts: FailedAttempts, *script: Reply | str) -> tuple[list[PrefixLost], str]:
    """The losses that a run is said to have had, and what the command line shows of them."""
    heard: list[Event] = []
    written = io.StringIO()
    view = View(Console(file=written, width=200))

    def observe(stamped: Stamped) -> None:
        heard_by(heard.append)(stamped)
        view(stamped)

    flow = Workflow("pages", tools=[read], on_text="accept", context=Context(failed_attempts=failed_attempts))
    run_sync(flow, "Read.", backend=Scripted(script, context_tokens=3000), on_event=observe).unwrap()
    shown = [line for line in written.getvalue().splitlines() if line.strip().startswith("prefix")]
    return [event for event in heard if isinstance(event, PrefixLost)], "\n".join(shown)


def test_a_run_tells_what_compaction_cost_it_and_the_terminal_shows_it() -> None:
    losses, shown = watched("keep", *(call("read", page=page) for page in range(6)), "Done.")
    assert {event.cause for event in losses} == {"compact"}
    first = losses[0]
    assert first.lost_tokens > first.kept_tokens > 0
    assert f"{first.kept_tokens} of {first.kept_tokens + first.lost_tokens} tokens of the last prompt kept" in shown


def test_a_small_loss_is_an_event_and_nothing_to_show() -> None:
    pages = (call("read", page=page) for page in range(2))
    losses, shown = watched("collapse", *pages, call("red", page=3), call("read", page=4), "Done.")
    assert [event.cause for event in losses] == ["fold"]
    assert shown == ""
