"""Laws of compacted conversations: a lasting beginning with nothing stored, pairs whole, the newest kept."""

from hypothesis import given
from hypothesis import strategies as st

from stages.compaction import ContextBudget, Meter
from stages.compaction.conversation import CompactedConversation, compacted_conversation
from stages.halt import CannotFit
from stages.message import Assistant, History, Message, System, Tool, ToolCall, User

TEXTS = st.sampled_from(("", "Yes.", "word " * 40, "row,1,2,3\n" * 60, "x" * 900))


@st.composite
def conversations(draw: st.DrawFn) -> History:
    """What a client sends: a system prompt, requests, calls with results, answers, remarks; some ids twice."""
    history: list[Message] = [System(text=draw(TEXTS))] if draw(st.booleans()) else []
    history.append(User(text=draw(TEXTS)))
    for turn in range(1, draw(st.integers(1, 25))):
        count = draw(st.integers(0, 3))
        ids = [f"call_{turn if draw(st.booleans()) else 0}_{n}" for n in range(count)]
        calls = tuple(ToolCall(id=one, name="look", arguments='{"at":1}') for one in ids)
        history.append(Assistant(text=draw(TEXTS), calls=calls, turn=turn))
        history += [Tool(call_id=one, name="look", text=draw(TEXTS), turn=turn) for one in ids]
        if not calls or draw(st.integers(0, 5)) == 0:
            said = User(text=draw(TEXTS), turn=turn)
            history.append(said if draw(st.booleans()) else System(text="A reminder."))
    return tuple(history)


@st.composite
def budgets(draw: st.DrawFn) -> ContextBudget:
    overhead = draw(st.sampled_from((0, 300, 3000)))
    return ContextBudget(tokens=draw(st.integers(200, 3000)), meter=Meter(overhead=overhead))


def compacted(history: History, budget: ContextBudget) -> CompactedConversation | None:
    found = compacted_conversation(history, budget)
    return None if isinstance(found, CannotFit) else found


@given(history=conversations(), budget=budgets())
def test_what_is_left_fits_and_stands_in_its_order(history: History, budget: ContextBudget) -> None:
    if (found := compacted(history, budget)) is None:
        return
    assert budget.tokens_of(budget.count(found.history)) <= budget.tokens
    places = [each.at for each in found.kept if each.at >= 0]
    assert places == sorted(set(places))
    for each in found.kept:
        if each.at >= 0 and each.message != history[each.at]:
            was = history[each.at]
            assert isinstance(was, Tool)
            assert isinstance(each.message, Tool)
            assert (each.message.call_id, each.message.name) == (was.call_id, was.name)
    if not found.compactions:
        assert found.history == history


@given(history=conversations(), budget=budgets())
def test_calls_and_results_are_never_parted(history: History, budget: ContextBudget) -> None:
    if (found := compacted(history, budget)) is None:
        return
    left = {each.at for each in found.kept}
    reply = -1
    for at, message in enumerate(history):
        reply = at if isinstance(message, Assistant) else reply
        if isinstance(message, Tool):
            assert (at in left) == (reply in left)


@given(history=conversations(), budget=budgets())
def test_the_system_prompt_the_last_request_and_the_newest_turn_are_kept(
    history: History, budget: ContextBudget
) -> None:
    if (found := compacted(history, budget)) is None:
        return
    left = {each.at: each.message for each in found.kept}
    asked = max(at for at, message in enumerate(history) if isinstance(message, User | System))
    assert left[asked] == history[asked]
    assert len(history) - 1 in left
    if isinstance(history[0], System):
        assert left[0] == history[0]


@given(history=conversations(), more=conversations(), budget=budgets())
def test_a_longer_history_begins_with_the_same_messages_until_the_next_compaction(
    history: History, more: History, budget: ContextBudget
) -> None:
    """What a server has cached of the last prompt it finds in the next one."""
    rest = tuple(message for message in more if not isinstance(message, System))
    longer = (*history, Assistant(text="Done.", turn=99), *rest)
    now, later = compacted(history, budget), compacted(longer, budget)
    if now is None or later is None or now.compactions != later.compactions:
        return
    assert later.history[: len(now.history)] == now.history
    assert later.history[len(now.history) :] == longer[len(history) :]


def agent(turns: int, *, result: str = "x" * 300) -> History:
    history: History = (System(text="You work here."), User(text="Do the task."))
    for turn in range(1, turns + 1):
        call = ToolCall(id=f"c{turn}", name="look", arguments=f'{{"at":{turn}}}')
        history += (Assistant(calls=(call,), turn=turn), Tool(call_id=call.id, name="look", text=result, turn=turn))
    return history


def test_compactions_are_rare_and_what_is_gone_is_listed() -> None:
    """Sixty turns, each a tenth of the context: about one compaction in four turns, and the prefix holds in between."""
    budget = ContextBudget(tokens=1000)
    found = compacted(agent(60), budget)
    assert found is not None
    assert found.compactions <= 15
    system, task, calls, *_ = found.history
    assert (system, task) == agent(0)
    assert isinstance(calls, User)
    assert '- look {"at":' in calls.text


def test_an_old_question_goes_with_its_answer_and_the_work_under_way_keeps_its_request() -> None:
    talk: History = (User(text="First question."), Assistant(text="a" * 400, turn=1))
    talk += (User(text="q" * 400, turn=1), Assistant(text="b" * 400, turn=2), User(text="Now do the task.", turn=2))
    work = tuple(
        message
        for turn in range(3, 20)
        for call in (ToolCall(id=f"c{turn}", name="look", arguments="{}"),)
        for message in (
            Assistant(calls=(call,), turn=turn),
            Tool(call_id=call.id, name="look", text="y" * 200, turn=turn),
            User(text="<reminder>", turn=turn),
        )
    )
    found = compacted((*talk, *work), ContextBudget(tokens=600))
    assert found is not None
    places = [each.at for each in found.kept]
    assert {0, 1, 4} <= set(places)
    assert not {2, 3} & set(places)


def test_a_first_request_that_is_too_long_goes_before_the_session_ends() -> None:
    history: History = (User(text="x" * 4000), Assistant(text="Read.", turn=1), User(text="And now?", turn=1))
    history += (Assistant(text="Well.", turn=2), User(text="Go on.", turn=2))
    found = compacted(history, ContextBudget(tokens=800))
    assert found is not None
    assert found.history[-1] == history[-1]


def test_what_must_stay_and_does_not_fit_is_told() -> None:
    budget = ContextBudget(tokens=200)
    for history in ((System(text="x" * 2000), User(text="Hi.")), (User(text="x" * 2000),)):
        assert isinstance(compacted_conversation(history, budget), CannotFit)


def test_a_thousand_turns_take_no_more_than_their_share() -> None:
    """Twice as many turns make about twice as many compactions, none of them of more than a context's messages."""
    budget = ContextBudget(tokens=1000)
    short, long = compacted(agent(500), budget), compacted(agent(1000), budget)
    assert short is not None
    assert long is not None
    assert long.compactions < 2.1 * short.compactions
    assert max(len(short.kept), len(long.kept)) < 30
