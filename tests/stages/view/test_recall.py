"""Recall: what compaction cut can be read again, from the record, within the room that there is."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge import SlidingWindowCompact, TieredCompact, Workflow, run_sync, tool
from forge.errors import DefinitionError
from forge.interpreters.scripted import Line, Scripted, call, calls
from forge.journal.records import SentPart, read_journal
from forge.testing import histories
from forge.workflow.workflow import Context
from stages import execute
from stages.compaction import Compacted, Compactor, ContextBudget
from stages.effect import Execute, Succeeded, Unresolved
from stages.message import Assistant, History, Kind, Tool, ToolCall
from stages.rules import Limits, Rules
from stages.state import Awaiting, Batch, Cleared, Ledger, State, Vetted
from stages.tool import RECALL
from stages.view.recall import answer_recalls, with_cut_results
from tests.flows import finish


@tool(effect="read")
def look(what: str) -> str:
    """Look something up."""
    return f"{what} is 7. " + "long " * 100


def workflow(compactor: Compactor | None = None, compact_to: float = 0.5) -> Workflow:
    return Workflow(
        "long",
        tools=[look, finish],
        terminal_tool="finish",
        context=Context(compactor=compactor or TieredCompact(keep_recent=1), compact_to=compact_to, recall=True),
        limits=Limits(max_iterations=20),
    )


LOOKS: list[Line] = [call("look", what=name) for name in "abcdefghi"]
SMALL = 1024 + 1900


def asked(call_id: str, offset: int = 0, number: int = 1) -> ToolCall:
    arguments = msgspec.json.encode({"call_id": call_id, "offset": offset}).decode()
    return ToolCall(id=f"call_9{number}", name="recall", arguments=arguments)


def answered(state: State, *made: ToolCall) -> tuple[Succeeded | Unresolved, ...]:
    results = answer_recalls(state, Batch(said=Assistant(calls=made))).results
    return tuple(r for r in results if isinstance(r, Succeeded | Unresolved))


def remembering(text: str, ledger: Ledger | None = None) -> State:
    entry = Cleared(call_id="call_1", name="look", arguments='{"what":"a"}', text=text)
    return State(history=(), ledger=ledger or Ledger(), cleared=(entry,))


def test_a_truncated_result_says_how_to_read_it_and_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "run.jsonl")
    model = Scripted([*LOOKS, call("recall", call_id="call_000000001"), call("finish")], context_tokens=SMALL)
    result = run_sync(workflow(), "Go.", backend=model, journal=path).unwrap()
    before = msgspec.json.decode(model.requests[-2])["messages"]
    cut = next(m["content"] for m in before if m.get("tool_call_id") == "call_000000001")
    assert cut.endswith("; recall call_000000001 to read it]")
    assert len(cut) < 300
    last = msgspec.json.decode(model.requests[-1])["messages"][-1]
    assert last["content"] == look("a")
    effects = [entry.effect for entry in read_journal(path).entries]
    names = [c.name for effect in effects if isinstance(effect, Execute) for c in effect.calls]
    assert names == ["look"] * 9 + ["finish"], "the core answers a recall, the world is not asked"
    assert sum(isinstance(effect, SentPart) for effect in effects) == len(model.requests)
    assert msgspec.json.decode(msgspec.json.encode(result.state), type=State) == result.state


def test_where_whole_exchanges_went_the_list_of_calls_says_how_to_read_them_again() -> None:
    model = Scripted([*LOOKS, call("recall", call_id="call_000000002"), call("finish")], context_tokens=SMALL)
    run_sync(workflow(compact_to=0.25), "Go.", backend=model).unwrap()
    listed = msgspec.json.decode(model.requests[-2])["messages"][1]["content"]
    assert "recall an id to read its result" in listed
    assert '\n- call_000000002 look {"what":"b"}\n' in listed
    assert msgspec.json.decode(model.requests[-1])["messages"][-1]["content"] == look("b")


def test_where_whole_exchanges_went_a_wrong_id_is_answered_with_the_right_ones() -> None:
    model = Scripted(
        [*LOOKS, call("recall", call_id="first"), call("recall", call_id="call_000000002"), call("finish")],
        context_tokens=SMALL,
    )
    run_sync(workflow(SlidingWindowCompact(keep_recent=1)), "Go.", backend=model).unwrap()
    refused, given_back = (msgspec.json.decode(body)["messages"][-1]["content"] for body in model.requests[-2:])
    assert refused.startswith("[ToolResolutionError] The result of first was not found.")
    assert 'call_000000002 (look {"what":"b"})' in refused
    assert given_back == look("b")


def test_a_recall_beside_other_calls_keeps_the_order_of_the_calls() -> None:
    batch = calls(("recall", {"call_id": "call_000000001"}), ("look", {"what": "z"}))
    model = Scripted([*LOOKS, batch, call("finish")], context_tokens=SMALL + 300)
    run_sync(workflow(), "Go.", backend=model).unwrap()
    answers = msgspec.json.decode(model.requests[-1])["messages"][-2:]
    assert [m["content"] for m in answers] == [look("a"), look("z")]


def test_what_was_not_cut_is_said_to_be_there() -> None:
    history: History = (Tool(call_id="call_1", name="look", text="7"),)
    (answer,) = answered(State(history=history), asked("call_1"))
    assert isinstance(answer, Unresolved)
    assert "is still in this conversation in full" in answer.message


def test_a_recall_takes_at_most_half_of_the_room_and_says_how_to_read_on() -> None:
    text = "".join(f"{n:04}" for n in range(2500))
    state = remembering(text, Ledger(context_tokens=1000, tokens_per_character=0.25, prompt_size=2000))
    got, offset = "", 0
    for _ in range(200):
        (answer,) = answered(state, asked("call_1", offset))
        assert isinstance(answer, Succeeded)
        assert len(answer.text) <= 1000
        part, _, marker = answer.text.partition("\n[")
        got += part
        if not marker:
            break
        offset = int(marker.rsplit("offset ", 1)[1].split()[0])
    assert got == text


def test_two_recalls_share_the_room() -> None:
    state = remembering("x" * 9999, Ledger(context_tokens=1000, tokens_per_character=0.25, prompt_size=2000))
    answers = answered(state, asked("call_1"), asked("call_1", number=2))
    assert sum(len(a.text) for a in answers if isinstance(a, Succeeded)) <= 1000


@pytest.mark.parametrize(
    ("ledger", "offset", "says"),
    [
        (Ledger(context_tokens=1000, prompt_size=3900), 0, "does not fit into the context now"),
        (Ledger(context_tokens=1000, prompt_size=3300), 0, "does not fit into the context now"),
        (Ledger(), 10**9, "ends at character 9999"),
    ],
)
def test_what_cannot_be_given_back_is_said(ledger: Ledger, offset: int, says: str) -> None:
    (answer,) = answered(remembering("x" * 9999, ledger), asked("call_1", offset))
    assert says in (answer.text if isinstance(answer, Succeeded) else answer.message)


def test_what_is_short_is_given_back_whole_where_a_part_of_more_would_be_of_no_use() -> None:
    (answer,) = answered(remembering("7 of 12", Ledger(context_tokens=1000, prompt_size=3500)), asked("call_1"))
    assert isinstance(answer, Succeeded)
    assert answer.text == "7 of 12"


def test_a_tool_of_that_name_of_the_users_own_is_left_alone() -> None:
    mine = Rules(tools=(msgspec.structs.replace(RECALL, description="My own."),))
    calls = (asked("call_1"),)
    moved = execute(mine)(remembering("x").to(Vetted(said=Assistant(calls=calls), allowed=True))).unwrap()
    assert isinstance(moved.phase, Awaiting)
    assert moved.phase.effect == Execute(calls=calls, retriable=True)
    with pytest.raises(DefinitionError, match="two tools are named recall"):
        Workflow("w", tools=[tool(name="recall")(look.function)], on_text="accept", context=Context(recall=True))


@given(history=histories(), tokens=st.integers(50, 1500), again=st.integers(20, 500))
def test_every_result_that_a_compaction_cut_is_in_the_record(history: History, tokens: int, again: int) -> None:
    before, record = history, tuple[Cleared, ...]()
    for room in (tokens, again):
        cut = TieredCompact(keep_recent=1)(before, ContextBudget(tokens=room, threshold=0.1, recall=True))
        if not isinstance(cut, Compacted):
            return
        record, before = with_cut_results(record, before, cut.history), cut.history
    original = {m.call_id: m for m in history if isinstance(m, Tool)}
    shown = {m.call_id: m.text for m in before if isinstance(m, Tool)}
    kept = {entry.call_id: entry.text for entry in record}
    for call_id, message in original.items():
        if message.kind is Kind.TOOL_RESULT:
            assert kept.get(call_id, shown.get(call_id)) == message.text
            assert (call_id in kept) == (shown.get(call_id) != message.text)
    assert len(kept) == len(record)
