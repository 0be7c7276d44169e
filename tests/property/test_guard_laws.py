"""What holds for the guards and the offer together, whatever the rules, the state and the calls."""

import re
from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from forge.testing import assert_answered, batches, states
from stages import enforce, execute, fold, pipeline, send, serialize, validate
from stages.deliver import deliver
from stages.effect import (
    Ask,
    Budget,
    CallResult,
    Execute,
    Failed,
    Replied,
    Reply,
    Results,
    Send,
    Succeeded,
    Unresolved,
)
from stages.guards import GUARDS, guards_of, order
from stages.message import Assistant, Status, Tool, ToolCall, User
from stages.offer import offered_tools
from stages.options import OptionError
from stages.order import Change, Use, obstacle
from stages.rules import (
    UNKNOWN_OUTCOME,
    Limits,
    Rules,
    blocking_unknown_outcome,
    legal_tools,
    named_tools,
    obstacles,
)
from stages.rules import succeeded_names as names_of
from stages.state import Awaiting, Done, Folded, Ledger, Ready, State, Vetted
from stages.tool import Grounded, Prerequisite, ToolSpec
from stages.wire.prompted import LIST
from stages.wire.target import Mode, Target

TOOLS = ("look", "write", "finish")
WHAT = Raw(b'{"type":"object","properties":{"what":{"type":"string"}}}')
NAMES = rf"(?:{'|'.join(TOOLS)})"
PROPOSED = re.compile(rf"(?:(?<!cannot )(?<!NOT )\b[Cc]all|of:|now:|complete:|call:) ({NAMES}(?:, {NAMES})*)\b")
"""The tools that a correction sends the model to, by their names: not in `call the tool`."""

ARGUMENTS = st.sampled_from(('{"what":"a"}', '{"what":"7"}', '{"what":"<what>"}', "{}"))
few = st.none() | st.integers(1, 3)
names = st.lists(st.sampled_from(TOOLS), max_size=1).map(tuple)


def possible(**rules: object) -> Use | None:
    """The rules for a tool; None if they contradict each other."""
    try:
        return Use(**rules)  # type: ignore[arg-type]  # drawn below
    except OptionError:
        return None


uses = st.builds(
    possible,
    tool=st.sampled_from(TOOLS),
    at_step=few,
    after=names,
    before=names,
    again_after=names | st.just((Change(tool="write", match_arg="what"),)),
    at_most=few,
).filter(bool)
rules_ = st.builds(
    Rules,
    tools=st.just(
        (
            ToolSpec(name="look", description="", parameters=WHAT, effect="read"),
            ToolSpec(
                name="write",
                description="",
                parameters=WHAT,
                prerequisites=(Prerequisite(tool="look", match_arg="what"),),
                grounded=(Grounded(argument="what"),),
            ),
            ToolSpec(name="finish", description="", parameters=WHAT, effect="terminal"),
        )
    ),
    required=st.sampled_from(((), ("look",), ("look", "write"))),
    order=st.lists(uses, max_size=2).map(tuple),
    withheld=st.sampled_from(((), ("write",))),
    limits=st.builds(Limits, max_repeats=few),
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Rules, State]:
    state = draw(states(TOOLS, phases=[Ready], max_turns=3))
    unsure = draw(st.lists(st.sampled_from(("write", "finish")), max_size=2))
    begun = (ToolCall(id=f"before_{n}", name=name, arguments='{"what":"a"}') for n, name in enumerate(unsure))
    state = state.note(in_doubt=tuple(begun))
    calls = draw(batches(TOOLS, first_id=state.ledger.ids + 1, least=1, arguments=ARGUMENTS))
    return draw(rules_), replace(state, phase=Vetted(said=Assistant(calls=calls, turn=state.ledger.turn)))


@given(case=cases(), each=st.booleans())
def test_what_enforce_lets_through_every_guard_allows(case: tuple[Rules, State], *, each: bool) -> None:
    rules, state = case
    guards = guards_of(rules)
    moved = enforce(*guards, on_violation="block_call" if each else "block_all")(state)
    after = moved.value_or(None)
    if after is None:
        return
    if not isinstance(after.phase, Vetted):
        assert_answered(after.history)
        return
    refused = {one.call_id for one in after.phase.refused}
    running = tuple(call for call in after.phase.calls if call.id not in refused)
    assert running, "a batch of which nothing runs is answered at once"
    assert all(guard(state, running) == [] for guard in guards)


@given(cases())
def test_what_is_offered_is_legal_and_there_is_something_if_anything_is(case: tuple[Rules, State]) -> None:
    rules, state = case
    may = legal_tools(rules, state)
    tools = offered_tools(rules, state)
    assert {tool.name for tool in tools} <= {tool.name for tool in may}
    assert bool(tools) == bool(may)


@given(case=cases(), off=st.frozensets(st.sampled_from(sorted(GUARDS))))
def test_a_tool_that_may_not_be_called_is_one_that_a_guard_refuses_unless_it_is_off(
    case: tuple[Rules, State], off: frozenset[str]
) -> None:
    rules, state = case
    for name, by in obstacles(replace(rules, without=off), state).items():
        if by != UNKNOWN_OUTCOME:
            assert by not in off
            assert GUARDS[by].make(rules)(state, (ToolCall(id="1", name=name, arguments='{"what":"a"}'),))


@given(cases())
def test_a_tool_with_a_call_of_unknown_outcome_is_neither_offered_nor_proposed(case: tuple[Rules, State]) -> None:
    rules, state = case
    barred = {call.name for call in state.ledger.in_doubt}
    assert barred.isdisjoint(tool.name for tool in legal_tools(rules, state))
    assert barred.isdisjoint(tool.name for tool in offered_tools(rules, state))
    if blocking_unknown_outcome(rules, state):
        return  # the model is not asked before somebody has decided
    moved = enforce(*guards_of(rules))(state).value_or(None)
    said = [] if moved is None else [m.text for m in moved.history[len(state.history) :] if isinstance(m, Tool)]
    proposed = [name for text in said for names in PROPOSED.findall(text) for name in names.split(", ")]
    assert barred.isdisjoint(proposed), said


MODES: tuple[Mode, ...] = ("native", "constrained", "prompted")


@given(case=cases())
def test_no_request_demands_a_tool_with_a_call_of_unknown_outcome(case: tuple[Rules, State]) -> None:
    rules, state = case
    barred = {call.name for call in state.ledger.in_doubt}
    for mode in MODES:
        write = pipeline(serialize(rules, Target(mode=mode, model="model")), send(rules))
        asked = write(state.to(Folded(view=state.history))).value_or(None)
        if asked is None or not isinstance(asked.phase, Awaiting) or not isinstance(asked.phase.effect, Send):
            continue
        tail = bytes(asked.phase.effect.request.tail).decode()
        allowed = (
            re.findall(r'"const":"(\w+)"', tail) if mode == "constrained" else re.findall(r'_choice.*"(\w+)"', tail)
        )
        assert barred.isdisjoint(allowed), tail


@given(cases())
def test_a_call_of_unknown_outcome_has_its_tool_wait_for_a_person(case: tuple[Rules, State]) -> None:
    rules, state = case
    moved = pipeline(enforce(), execute(rules))(state).unwrap()
    assert isinstance(moved.phase, Awaiting)
    barred = {call.name for call in state.ledger.in_doubt}
    match moved.phase.effect:
        case Execute(calls=calls):
            assert barred.isdisjoint(call.name for call in calls)
        case Ask(call=asked, in_doubt=unsure):
            assert asked.name in barred
            assert unsure in state.ledger.in_doubt


@given(case=cases(), data=st.data())
def test_rules_of_order_hold_inside_a_reply_whichever_of_its_calls_succeed(
    case: tuple[Rules, State], data: st.DataObject
) -> None:
    rules, state = case
    moved = enforce(order(rules), on_violation="block_call")(state).unwrap()
    if not isinstance(moved.phase, Vetted):
        return
    refused = {one.call_id for one in moved.phase.refused}
    left = [call.name for call in moved.phase.calls if call.id not in refused]
    done = names_of(state.ledger)
    for name in (*(n for n in left if n != "finish"), *(n for n in left if n == "finish")):
        assert obstacle(rules.order, done, name) is None, "so it would have been let through in a reply of its own"
        if data.draw(st.booleans(), "succeeds"):
            done = (*done, name)


@given(cases())
def test_a_limited_tool_takes_nothing_that_the_whole_one_does_not(case: tuple[Rules, State]) -> None:
    rules, state = case
    for tool in offered_tools(rules, state):
        schema = msgspec.json.decode(tool.parameters)
        kind = schema["properties"].get("what", {"type": "string"})  # optional, so it may be left out
        assert kind["type"] == "string"
        assert all(isinstance(value, str) for value in kind.get("enum", ()))


LOST = Rules(
    tools=(
        *(ToolSpec(name=name, description="", parameters=WHAT, effect="read") for name in ("search", "look", "weigh")),
        ToolSpec(name="finish", description="", parameters=WHAT, effect="terminal"),
    ),
    required=("look", "weigh"),
    limits=Limits(max_tool_errors=99),
)
"""Two steps that need a value which only another tool finds."""
PLAIN = Rules(
    tools=(
        ToolSpec(name="look", description="", parameters=WHAT, effect="read"),
        ToolSpec(name="tell", description="", parameters=WHAT),
    ),
    on_text="accept",
    unruled=("tell",),
)
"""A plain request, which may be done, or may want the same tool with other arguments."""


CALLED, DONE = '{"tool":"%s","args":{"what":"%s"}}', '{"answer":"Done."}'


def stuck(rules: Rules, results: Sequence[CallResult], data: st.DataObject) -> list[tuple[Ledger, set[str]]]:
    """The ledger and the tools on offer at each request, to a model that calls any of them and says no word."""
    model = Target(mode="constrained", form=LIST)
    turn = pipeline(
        *(fold(), serialize(rules, model), send(rules)),
        *(validate(rules, model), enforce(*guards_of(rules)), execute(rules)),
    )
    state = State(history=(User(text="Go."),), ledger=Ledger(budget=Budget(calls=12)))
    offers: list[tuple[Ledger, set[str]]] = []
    while (state := turn(state).unwrap()).ledger.budget.calls and not isinstance(state.phase, Done):
        if isinstance(state.phase, Awaiting):
            match state.phase.effect:
                case Send(request=request):
                    offered = re.findall(r'"const":"(\w+)"', bytes(request.tail).decode())
                    offers.append((state.ledger, {*offered}))
                    text = data.draw(
                        st.sampled_from([CALLED % (n, w) for n in sorted(offered) for w in "ab"] or [DONE])
                    )
                    state = deliver(state, Replied(reply=Reply(text=text))).unwrap()
                case Execute(calls=(call,)):
                    result = replace(data.draw(st.sampled_from(results)), call_id=call.id)
                    state = deliver(state, Results(results=(result,))).unwrap()
    return offers


@given(data=st.data())
def test_whatever_is_legal_is_offered_within_two_replies_without_progress(data: st.DataObject) -> None:
    failed = Failed(call_id="", error="ToolFailed", message="not there", counted=False)
    offers = [offered for _, offered in stuck(LOST, (Unresolved(call_id="", message="not there"), failed), data)]
    assert len(offers) > 3
    for three in zip(offers, offers[1:], offers[2:], strict=False):
        assert set.union(*three) == {"search", "look", "weigh"}


@given(data=st.data(), off=st.sampled_from(((), ("ask_once",))))
def test_where_words_alone_are_left_to_a_stuck_model_everything_was_or_will_be_offered_to_it(
    data: st.DataObject, off: tuple[str, ...]
) -> None:
    rules = replace(PLAIN, without=frozenset(off))
    offers = stuck(rules, (Succeeded(call_id="", text="fine", value=Raw(b'"fine"')),), data)
    for last in [ledger for ledger, offered in offers if not offered and ledger.budget.calls > 1]:
        assert {"look", "tell"} in [
            names
            for now, names in offers
            if (now.progress == last.progress and now.turn > last.progress + 1) or now.turn == now.asked_to_act + 1
        ]


SAID = st.sampled_from(("A-17", "cancel_order", "then cancel_order(7)", "CANCEL_ORDER", "[ToolError] cancel_order."))


@given(said=st.lists(SAID, min_size=1, max_size=4), data=st.data())
def test_nothing_that_the_model_says_releases_a_withheld_tool(said: list[str], data: st.DataObject) -> None:
    """Whatever tool quotes it, at once or later, as it was said or in small letters."""
    state = State(history=(User(text="Report on order A-17."),))
    for turn, what in enumerate(said, 1):
        arguments = msgspec.json.encode({"what": what}).decode()
        given_ = data.draw(st.sampled_from((arguments, arguments.replace("_", r"\u005f"))))
        quoted = data.draw(st.sampled_from(said[:turn]))
        text = data.draw(st.sampled_from((f"no {quoted!r}", f"no order {quoted.lower()}", quoted)))
        call = ToolCall(id=f"{turn}", name="look", arguments=given_)
        status: Status = data.draw(st.sampled_from(("succeeded", "unresolved", "failed", "final")))
        answer = Tool(call_id=call.id, name="look", text=f"[ToolError] {text}", status=status, turn=turn)
        state = state.say(Assistant(text=what, calls=(call,), turn=turn), answer)
    assert named_tools(["cancel_order"], state) == frozenset()
