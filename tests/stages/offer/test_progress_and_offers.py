"""What is offered next: at the end of a budget, after what was refused or repeated; what counts as progress."""

import re
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from forge import Conversation, Workflow, run_sync, tool
from forge.errors import ToolFailed, ToolResolutionError
from forge.interpreters.scripted import Line, Scripted, call, calls
from stages import compact
from stages.compaction import Compacted, ContextBudget
from stages.effect import Ask, Budget, Rejected, Reply
from stages.guards import repetition
from stages.message import Assistant, History, Tool, ToolCall, User
from stages.objection import Custom, Objection, Stop, render
from stages.offer import NARROWINGS, offered_tools
from stages.order import Use
from stages.progress import (
    RepeatPolicy,
    attempt_of,
    digests,
    made,
    repeated_attempts,
    replies_without_progress,
    success_of,
    with_calls,
)
from stages.rules import Calls, Limits, Rules
from stages.state import Attempt, Ledger, State, Success
from tests.flows import Desk

RULES = Desk().workflow.rules
NONE = RepeatPolicy()


def success(name: str, arguments: str = '{"what":"a"}', text: str = "a is 7", turn: int = 1) -> Success:
    return success_of(ToolCall(id="1", name=name, arguments=arguments), text, turn)


def test_what_something_required_needs_or_what_cannot_come_later_is_offered_at_once() -> None:
    start = State(history=())

    def first(rules: Rules) -> set[str]:
        return {spec.name for spec in offered_tools(rules, start)}

    assert first(replace(RULES, without=frozenset({"look_first"}))) == {"look", "fail"}
    assert first(replace(RULES, required=("look", "fail"))) == {"look", "fail"}
    assert first(replace(RULES, required=("fail",))) == {"look", "fail"}, "nothing is to be looked up first"
    after = replace(RULES, tools=tuple(replace(t, effect="read") if t.name == "write" else t for t in RULES.tools))
    needs = replace(after, required=("look", "write"), order=(Use(tool="write", after=("fail",)),))
    assert first(needs) == {"look", "fail"}
    assert first(replace(RULES, order=(Use(tool="fail", before=("look",)),))) == {"look", "fail"}
    assert first(replace(RULES, order=(Use(tool="fail", at_most=1),))) == {"look"}


LAST: list[tuple[str, int, bool, bool, set[str]]] = [
    ("one call is left", 1, True, True, {"finish"}),
    ("a step is missing", 1, False, True, {"look", "fail"}),
    ("two are left", 2, True, True, {"look", "write", "fail", "finish"}),
    ("it is switched off", 1, True, False, {"look", "write", "fail", "finish"}),
]


@pytest.mark.parametrize(("left", "looked", "on", "offered"), [case[1:] for case in LAST], ids=[c[0] for c in LAST])
def test_the_last_model_call_is_offered_the_end_if_it_is_legal(
    left: int, offered: set[str], *, looked: bool, on: bool
) -> None:
    rules = replace(RULES, without=frozenset(NARROWINGS) - ({"last_call"} if on else set()))
    done = (success("look"),) if looked else ()
    ledger = as_run(Ledger(turn=1, progress=1, successes=done, budget=Budget(calls=left)))
    assert {spec.name for spec in offered_tools(rules, State(history=(), ledger=ledger))} == offered


def test_a_message_of_the_users_begins_a_new_budget() -> None:
    ledger = as_run(Ledger(turn=1, progress=1, successes=(success("look"),), budget=Budget(calls=1)))
    asked = State(history=(User(text="And b?"),), ledger=ledger)
    assert {spec.name for spec in offered_tools(RULES, asked)} == {"look", "write", "fail", "finish"}


def test_a_run_that_never_comes_to_an_end_by_itself_is_offered_nothing_else_at_last() -> None:
    looking = [call("look", what=what) for what in "ab"]
    model = Scripted([*looking, call("finish", result="a is 7")], mode="constrained")
    run_sync(Desk(limits=Limits(max_iterations=3)).workflow, "What is a?", backend=model).unwrap()
    offered = [set(re.findall(rb'"tool":{"const":"(\w+)"', request)) for request in model.requests]
    assert offered == [{b"look"}, {b"look", b"write", b"fail", b"finish"}, {b"finish"}]


def as_run(ledger: Ledger) -> Ledger:
    """The ledger as a run has it: with the digests of what succeeded."""
    return replace(ledger, seen=digests(ledger.successes))


def attempt(name: str, arguments: str = '{"what":"a"}', turn: int = 1, text: str = "no") -> Attempt:
    return attempt_of(ToolCall(id="1", name=name, arguments=arguments), text, "final", turn)


@pytest.mark.parametrize(
    ("second", "tools", "new"),
    [
        (success("look", turn=2), NONE, False),
        (success("look", '{"what":"b"}', turn=2), NONE, True),
        (success("look", text="a is 8", turn=2), RepeatPolicy(once=frozenset({"look"})), False),
        (success("look", '{"what":"b"}', turn=2), RepeatPolicy(once=frozenset({"look"})), True),
    ],
    ids=[
        "the same",
        "other arguments",
        "another answer of a write",
        "another write",
    ],
)
def test_progress_is_an_answer_that_the_model_has_not_seen(second: Success, tools: RepeatPolicy, *, new: bool) -> None:
    before = replace(with_calls(Ledger(turn=1), (success("look"),), (), NONE), turn=2)
    after = with_calls(before, (second,), (), tools)
    assert (after.progress == 2) is new
    assert (replies_without_progress(after) == 0) is new
    assert after.successes == (*before.successes, second), "steps are judged by all that succeeded"


def test_what_a_compaction_cut_may_be_read_again() -> None:
    def newest(history: History, _: ContextBudget) -> Compacted:
        return Compacted(history=history[-1:], phase=1)

    long = (User(text="Go."), User(text="on " * 900))
    state = State(history=long, ledger=with_calls(Ledger(turn=1), (success("look"),), (), NONE))
    cut = compact(newest, ContextBudget(tokens=400))(state).unwrap()
    assert cut.ledger.compactions
    after = with_calls(replace(cut.ledger, turn=2), (success("look", turn=2),), (), NONE)
    assert (after.progress, len(after.successes)) == (2, 2)


def test_a_reply_that_was_asked_for_as_a_summary_is_no_reply_without_progress() -> None:
    assert replies_without_progress(Ledger(turn=3, progress=2, summary_turn=3)) == 0
    assert replies_without_progress(Ledger(turn=3, progress=2)) == 1


FOUND = (success("look"),)


class Shop:
    """Orders, each with a number of its own; `made` is what was done."""

    def __init__(self, **options: Any) -> None:
        self.made: list[str] = []

        @tool
        def place_order(item: str) -> str:
            """Place an order."""
            self.made.append(f"order {item}")
            return f"order number {len(self.made)}"

        @tool(effect="read")
        def stock() -> str:
            """How much is left."""
            self.made.append("stock")
            return f"{10 - len(self.made)} left"

        @tool(repeatable=True)
        def next_page() -> str:
            """Turn the page."""
            self.made.append("page")
            return f"page {len(self.made)}"

        @tool
        def pay(item: str) -> str:
            """Pay. Fails at first."""
            self.made.append("pay")
            if self.made.count("pay") < 2:
                raise ToolResolutionError("the bank is closed")
            return "paid"

        @tool(effect="read", repeatable=True)
        def check() -> str:
            """Check the order: it goes on being wrong until there is milk in it."""
            self.made.append("check")
            return "fine" if "order milk" in self.made else "there is no milk"

        self.workflow = Workflow(
            "shop",
            tools=[place_order, stock, next_page, check, pay],
            optional_steps=["place_order", "pay"],
            on_text="accept",
            **{"limits": Limits(max_iterations=20), **options},
        )

    def run(self, *script: Line, **watching: Any) -> Scripted:
        model = Scripted([*script, "Done."])
        run_sync(self.workflow, "Order tea.", backend=model, **watching).unwrap()
        return model


TEA, STOCK, PAGE, PAY = call("place_order", item="tea"), call("stock"), call("next_page"), call("pay", item="tea")
CHECK = call("check")
SHOPPING: list[tuple[str, list[Reply], list[str]]] = [
    ("the same eight times", [TEA] * 8, ["order tea"] * 2),
    (
        "another in between",
        [TEA, TEA, call("place_order", item="milk"), TEA],
        ["order tea"] * 2 + ["order milk", "order tea"],
    ),
    ("taking turns with another", [TEA, call("place_order", item="milk")] * 4, ["order tea", "order milk"] * 2),
    ("each after a look that is new", [TEA, STOCK] * 4, ["order tea", "stock"] * 4),
    (
        "each after a look that says the same",
        [CHECK, *[TEA, CHECK] * 4],
        ["check", *["order tea", "check"] * 2, "check", "check"],
    ),
    (
        "until the look says something else",
        [CHECK, *[TEA, CHECK] * 3, call("place_order", item="milk"), CHECK, TEA],
        ["check", *["order tea", "check"] * 2, "check", "order milk", "check", "order tea"],
    ),
    ("a tool that may repeat itself", [PAGE] * 5, ["page"] * 5),
    ("again after a failure, and then twice", [PAY] * 6, ["pay"] * 3),
]


@pytest.mark.parametrize(("script", "made"), [case[1:] for case in SHOPPING], ids=[case[0] for case in SHOPPING])
def test_a_write_is_not_made_a_third_time_whatever_it_answers(script: list[Line], made: list[str]) -> None:
    shop = Shop()
    shop.run(*script)
    assert shop.made == made


def test_what_is_told_of_a_write_that_was_made_again() -> None:
    model = Shop().run(TEA, TEA, TEA)
    assert (
        b"place_order was not run: you have already made this exact call 2 times, and it was done. Do not repeat it"
        in (model.requests[3])
    )


def test_what_the_user_asks_for_again_and_what_a_rule_wants_several_times_is_made_again() -> None:
    wanted = Shop(order=[Use(tool="place_order", at_least=4)])
    wanted.run(*[TEA] * 4)
    assert wanted.made == ["order tea"] * 4
    said = [["And another."], ["And one more."], [], []]
    steered = Shop()
    steered.run(*[TEA] * 5, hear=lambda: said.pop(0) if said else [])
    assert steered.made == ["order tea"] * 3
    talking = Shop()
    conversation = Conversation(talking.workflow, backend=Scripted([TEA, "Done."] * 4))
    for _ in range(4):
        conversation.say_sync("One more tea.").unwrap()
    assert talking.made == ["order tea"] * 4


def test_where_once_is_the_maximum_a_call_is_made_again_only_after_something_new() -> None:
    shop = Shop(limits=Limits(max_repeats=1, max_iterations=20))
    shop.run(STOCK, STOCK, TEA, TEA, STOCK)
    assert shop.made == ["stock", "order tea", "stock"]


def test_no_limit_is_no_limit() -> None:
    shop = Shop(limits=Limits(max_repeats=None, max_iterations=20))
    shop.run(*[TEA] * 6)
    assert shop.made == ["order tea"] * 6


def test_the_correction_says_what_to_do_instead() -> None:
    ledger = Ledger(turn=3, progress=1, successes=FOUND, attempts=(attempt("look", turn=2), attempt("look", turn=3)))
    again = ToolCall(id="call_1", name="look", arguments='{"what":"a"}')
    beside = ToolCall(id="call_2", name="fail", arguments="{}")
    verdict = repetition(RULES)(State(history=(), ledger=as_run(ledger)), (again, beside))
    assert not isinstance(verdict, Stop)
    (objection,) = verdict
    assert objection.call == again
    assert "you have already made this exact call 3 times" in render(objection)
    assert "call one of: finish" in render(objection), "nobody is sent to a write"
    worded = repetition(replace(RULES, on_text="accept", required=()))(
        State(history=(), ledger=as_run(ledger)), (again,)
    )
    assert not isinstance(worded, Stop)
    assert "Use that result; then answer in words or call one of: finish" in render(worded[0])
    moved_on = replace(ledger, turn=4, progress=4)
    assert repetition(RULES)(State(history=(), ledger=as_run(moved_on)), (again,)) == []
    assert made(moved_on, again).answered == 0
    assert repeated_attempts(moved_on) == []


def test_a_read_that_once_answered_otherwise_is_told_that_its_answer_stays_the_same() -> None:
    answers = iter(["7", "8", "8", "8"])

    @tool(effect="read")
    def ask() -> str:
        """Ask."""
        return next(answers)

    model = Scripted([call("ask")] * 4 + ["Done."])
    run_sync(Workflow("asking", tools=[ask], on_text="accept"), "Ask.", backend=model).unwrap()
    assert b"and its result stays the same" in model.requests[4]


class Plant:
    """Tools that refuse in their own ways; `offers` are the schemas of calls that each reply was held to, by tool."""

    def __init__(self, **options: Any) -> None:
        reads = tool(effect="read")
        self.workflow: Workflow[Any] = Workflow(
            "plant",
            tools=[
                reads(self.find),
                reads(self.ring),
                tool(effect="read", repeatable=True)(self.poll),
                tool(approval=True)(self.restart),
                tool(self.vent),
                tool(self.stop),
            ],
            terminal_tool="stop",
            optional_steps=["vent"],
            guards=[not_yet],
            limits=Limits(max_tool_errors=9),
            **options,
        )

    def find(self, part: str) -> str:
        """Find a part."""
        if part == "gone":
            raise ToolFailed("It is gone.")
        if part == "odd":
            raise OSError("The line is busy.")
        raise ToolResolutionError("There are 'pump' and 'pumps'." if part[0] == "p" else f"There is no {part}.")

    def ring(self) -> str:
        """Ring."""
        raise ToolFailed("Nobody is there.")

    def poll(self) -> str:
        """Ask how it is."""
        raise ToolFailed("It is warming up.")

    def restart(self) -> str:
        """Restart."""
        return "restarted"

    def vent(self) -> str:
        """Vent."""
        return "vented"

    def stop(self) -> str:
        """Stop."""
        return "stopped"

    def offers(self, *made: Reply, message: str = "Go.") -> list[dict[str, Any]]:
        """What was offered for each of these replies and for the one that ends the run."""
        model = Scripted([*made, call("stop")], mode="constrained")
        run_sync(self.workflow, message, backend=model, ask=never).unwrap()
        found = (msgspec.json.decode(body)["response_format"]["json_schema"]["schema"] for body in model.requests)
        branches = [schema.get("anyOf") or schema["items"]["anyOf"] for schema in found]
        return [{one["properties"]["tool"]["const"]: one["properties"]["args"] for one in all_} for all_ in branches]


def not_yet(_: State, calls: tuple[ToolCall, ...]) -> list[Objection]:
    return [Objection(call=one, wrong=Custom(text="Not yet.")) for one in calls if one.name == "vent"]


async def never(ask: Ask) -> Rejected:
    return Rejected(digest=ask.digest, reason="No.")


@pytest.mark.parametrize("name", ["vent", "restart", "ring"], ids=["a guard", "a person", "the tool"])
def test_a_call_without_arguments_that_was_refused_is_not_offered_in_the_next_reply_but_later(name: str) -> None:
    at_first, then, later = Plant().offers(call(name), call("find", part="odd"))
    assert {*at_first} - {*then} == {name}
    assert {*at_first} == {*later}


def test_a_look_up_that_failed_for_good_is_not_offered_in_the_next_reply_but_later() -> None:
    at_first, then, later = Plant().offers(call("find", part="gone"), call("poll"))
    assert {*at_first} - {*then} == {"find"}
    assert {*at_first} == {*later}


def test_a_look_up_that_was_refused_is_offered_what_its_answer_names_and_was_not_used() -> None:
    offers = Plant().offers(*(call("find", part=part) for part in ("pomp", "pump", "pumps")))
    found = [one["find"]["properties"]["part"].get("enum") for one in offers]
    assert found == [None, ["pump", "pumps"], ["pumps"], None]


KEPT: dict[str, tuple[list[Reply], dict[str, Any]]] = {
    "what raised may work the next time": ([call("find", part="odd")], {}),
    "what found nothing may find something with other arguments": ([call("find", part="bolt")], {}),
    "its answer may change by itself": ([call("poll")], {}),
    "the other calls of the reply are to be made again": (
        [calls(("vent", {}), ("ring", {}))],
        {"calls": Calls(on_violation="block_all")},
    ),
}


@pytest.mark.parametrize(("made", "options"), KEPT.values(), ids=KEPT)
def test_what_may_be_called_again_stays_on_offer(made: list[Reply], options: dict[str, Any]) -> None:
    at_first, then = Plant(**options).offers(*made)
    assert then == at_first


def test_nobody_is_driven_to_write_by_what_was_refused() -> None:
    @tool(effect="read")
    def ready() -> str:
        """Ask whether it is ready."""
        raise ToolFailed("No.")

    @tool
    def force() -> str:
        """Begin all the same."""
        return "begun"

    @tool
    def end() -> str:
        """End."""
        return "ended"

    for answers, offered in (("nudge", {"ready", "force"}), ("accept", {"force"})):
        workflow = Workflow(
            "gate",
            tools=[ready, force, end],
            terminal_tool="end",
            required_steps=["force"] if answers == "nudge" else [],
            order=[Use(tool="end", after=("force",))],
            on_text="accept" if answers == "accept" else "nudge",
        )
        state = State(history=(User(text="Begin."),), ledger=Ledger(turn=1))
        made = ToolCall(id="1", name="ready", arguments="{}")
        refused_one = Tool(call_id="1", name="ready", text="[ToolFailed] No.", status="final", turn=1)
        said = state.say(Assistant(calls=(made,), turn=1), refused_one)
        assert {spec.name for spec in offered_tools(workflow.rules, said)} == offered
        # What the user asks for again is no repetition.
        assert "ready" in {spec.name for spec in offered_tools(workflow.rules, said.say(User(text="Now?", turn=1)))}


def tried(name: str, part: str, turn: int) -> Attempt:
    return attempt_of(ToolCall(id="1", name=name, arguments=f'{{"part":"{part}"}}'), "no", "failed", turn)


NO_PROGRESS: list[tuple[str, list[Attempt], dict[str, Any], set[str]]] = [
    ("the call before was made again", [tried("search", "a", turn=1), tried("search", "a", turn=2)], {}, {"open"}),
    (
        "a third value was guessed",
        [tried("search", part, turn=turn) for turn, part in enumerate("abc", 1)],
        {},
        {"open"},
    ),
    ("only one value was wrong so far", [tried("search", "a", turn=1)], {}, {"search", "open", "note"}),
    (
        "all steps were called in that reply",
        [tried(n, "a", turn=t) for t in (1, 2) for n in ("search", "open")],
        {},
        {"search", "open", "note"},
    ),
    (
        "it is switched off",
        [tried("search", "a", turn=1), tried("search", "a", turn=2)],
        {"without": ["other_steps"]},
        {"search", "open", "note"},
    ),
]


@pytest.mark.parametrize(
    ("made", "options", "offered"), [case[1:] for case in NO_PROGRESS], ids=[c[0] for c in NO_PROGRESS]
)
def test_a_model_that_is_stuck_on_one_step_is_offered_the_others(
    made: list[Attempt], options: dict[str, Any], offered: set[str]
) -> None:
    @tool(effect="read")
    def search(part: str) -> str:
        """Search for a part."""
        return part

    @tool(effect="read", name="open")
    def open_page(part: str) -> str:
        """Open the page of a part."""
        return part

    @tool(effect="read")
    def note(part: str) -> str:
        """Read a note on a part."""
        return part

    @tool
    def end() -> str:
        """End."""
        return "ended"

    rules = Workflow(
        "pages", tools=[search, open_page, note, end], required_steps=["search", "open"], terminal_tool="end", **options
    ).rules
    state = State(history=(User(text="Go."),), ledger=Ledger(turn=made[-1].turn, attempts=tuple(made)))
    assert {spec.name for spec in offered_tools(rules, state)} == offered


def test_a_grounded_look_up_that_failed_for_good_is_offered_again() -> None:
    @tool(effect="read")
    def list_parcels() -> list[dict[str, str]]:
        """List the parcels."""
        return [{"parcel": "P-1"}, {"parcel": "P-2"}]

    @tool(effect="read")
    def track(parcel: str) -> str:
        """Track a parcel."""
        raise ToolFailed("Not this one.")

    @tool
    def end() -> str:
        """End."""
        return "ended"

    workflow = Workflow(
        "parcels", tools=[list_parcels, track, end], terminal_tool="end", grounded={"track": {"parcel": "list_parcels"}}
    )
    model = Scripted([call("list_parcels"), call("track", parcel="P-1"), call("end")], mode="constrained")
    run_sync(workflow, "Where are they?", backend=model).unwrap()
    held = model.requests[2].decode().split("response_format")[1]
    assert "track" in held
