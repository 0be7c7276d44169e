"""Rules of order and number, and checks of how a run may end."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forge import Finished, ToolDef, Workflow, run_sync, tool
from forge.errors import DefinitionError, explain
from forge.interpreters.scripted import Line, Scripted, call, calls
from stages.effect import Reply
from stages.halt import DeadEnd
from stages.message import Tool, ToolCall
from stages.offer import offer
from stages.options import OptionError
from stages.order import (
    Change,
    Each,
    Use,
    current_successes,
    judged_by,
    listed_in,
    obstacle,
    underused_tools,
    values_left,
)
from stages.progress import success_of
from stages.rules import Calls, Limits, OnViolation, legal_tools, pending
from stages.state import Held, Ledger, Listed, State, Success
from stages.tool import ToolEffect
from stages.wire.target import Mode
from tests.flows import Desk

N = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

CASES: list[tuple[str, Use, str, str, bool]] = [
    ("forced", Use(tool="look", at_step=1), "", "", True),
    ("another is forced", Use(tool="fail", at_step=1), "", "", False),
    ("no longer forced", Use(tool="fail", at_step=1), "fail", "", True),
    ("too early", Use(tool="look", after=("fail",)), "", "", False),
    ("too late", Use(tool="look", before=("fail",)), "fail", "", False),
    ("too often", Use(tool="look", at_most=2), "look fail look", "", False),
    ("once too often in a reply", Use(tool="look", at_most=1), "", "look", False),
    ("after one that may fail", Use(tool="look", after=("fail",)), "", "fail", False),
    ("before one that may succeed", Use(tool="look", before=("fail",)), "", "fail", False),
    ("before none of them", Use(tool="look", before=("write",)), "", "fail", True),
    ("second, and another is forced", Use(tool="fail", at_step=2), "", "write", False),
    ("third, and another is forced second", Use(tool="fail", at_step=2), "", "write fail", False),
]


@pytest.mark.parametrize(("use", "done", "ahead", "fine"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_whether_look_may_be_called_after_what_was_done_and_what_is_ahead_in_the_reply(
    use: Use, done: str, ahead: str, *, fine: bool
) -> None:
    assert (obstacle((use,), tuple(done.split()), "look", tuple(ahead.split())) is None) is fine


ORDERED = [
    ("verify before pay", [Use(tool="verify", before=("pay",))], ("pay", "verify"), "block_all", []),
    ("pay after verify", [Use(tool="pay", after=("verify",))], ("pay", "verify"), "block_all", []),
    ("verify first", [Use(tool="verify", at_step=1)], ("pay", "verify"), "block_all", []),
    ("verify first, then what is legal", [Use(tool="verify", at_step=1)], ("pay", "verify"), "block_call", ["verify"]),
    ("in order, one by one", [Use(tool="pay", after=("verify",))], ("verify", "pay"), "block_call", ["verify"]),
    ("in order", [Use(tool="verify", before=("pay",))], ("verify", "pay"), "block_all", ["verify", "pay"]),
    ("as often as it may", [Use(tool="pay", at_most=2)], ("pay", "pay"), "block_all", ["pay", "pay"]),
    ("too often", [Use(tool="pay", at_most=2)], ("pay", "pay", "pay"), "block_call", ["pay", "pay"]),
    (
        "what ends the run is last",
        [Use(tool="pay", before=("finish",))],
        ("finish", "pay"),
        "block_all",
        ["pay", "finish"],
    ),
]


@pytest.mark.parametrize(("order_", "names", "policy", "ran"), [c[1:] for c in ORDERED], ids=[c[0] for c in ORDERED])
def test_a_reply_of_several_calls_runs_as_the_rules_of_order_say(
    order_: list[Use], names: tuple[str, ...], policy: OnViolation, ran: list[str]
) -> None:
    log: list[str] = []
    effects: dict[str, ToolEffect] = {"pay": "write", "verify": "read", "finish": "terminal"}
    tools = [
        ToolDef(name=n, description=n, parameters=N, function=lambda n, name=n: log.append(name), effect=effect)
        for n, effect in effects.items()
    ]
    flow = Workflow(
        "flow",
        tools=tools,
        terminal_tool="finish",
        order=order_,
        calls=Calls(on_violation=policy),
        limits=Limits(max_iterations=1),
    )
    run_sync(flow, "Go.", backend=Scripted([calls(*[(name, {"n": n}) for n, name in enumerate(names)])]))
    assert log == ran


@pytest.mark.parametrize(
    ("distinct", "made", "left"),
    [
        (False, ['{"at":1}'], ("look",)),
        (False, ['{"at":1}', '{"at":1}'], ()),
        (True, ['{"at":1}', '{"at": 1.0}'], ("look",)),
    ],
)
def test_what_must_be_used_more_often(distinct: bool, made: list[str], left: tuple[str, ...]) -> None:
    done = tuple(Success(name="look", arguments=arguments) for arguments in made)
    assert underused_tools((Use(tool="look", at_least=2, distinct=distinct),), done) == left


def test_at_least_is_a_step_like_others() -> None:
    desk = Desk(order=[Use(tool="look", at_least=2)], calls=Calls(on_violation="block_call"))
    early = calls(("look", {"what": "a"}), ("finish", {}))
    script = [early, call("finish"), call("look", what="b"), call("finish", result="ok")]
    state = run_sync(desk.workflow, "Go.", backend=Scripted(script)).unwrap().state
    assert desk.log == ["look a", "look b", "finish"]
    assert "First complete: look" in "".join(m.text for m in state.history)


@tool(effect="read", repeatable=True)
def list_flats() -> list[str]:
    """List the flats."""
    return ["F-1", "F-2", "F-3"]


@tool(effect="read")
def get_flat(flat_id: str) -> str:
    """Look up a flat."""
    return f"{flat_id} has rooms."


@tool
def propose(flat_id: str) -> str:
    """Propose a flat."""
    return flat_id


EACH = Use(tool="get_flat", each_of=Each(tool="list_flats", argument="flat_id"))


FLATS = Workflow("flats", tools=[list_flats, get_flat, propose], terminal_tool="propose", order=[EACH])


def flats(mode: Mode, *script: Line) -> tuple[Scripted, Finished[object]]:
    model = Scripted(script, mode=mode)
    return model, run_sync(FLATS, "Propose a flat.", backend=model).unwrap()


def test_each_listed_value_is_called_before_the_end() -> None:
    end = call("propose", flat_id="F-2")
    first, second, third = (call("get_flat", flat_id=f"F-{number}") for number in (1, 2, 3))
    _, run = flats("native", end, call("list_flats"), second, end, third, first, end)
    told = [message.text for message in run.state.history if isinstance(message, Tool)]
    assert "First complete: list_flats. Call list_flats now." in told[0]
    assert (
        "First complete: get_flat. Call get_flat now. get_flat must still be called for each of: F-1, F-3." in told[3]
    )
    assert told[-1] == "F-2"


def test_where_forge_decides_what_may_be_written_only_what_is_left_is_offered() -> None:
    first, second, third = (call("get_flat", flat_id=f"F-{number}") for number in (1, 2, 3))
    model, _ = flats("constrained", call("list_flats"), second, first, third, call("propose", flat_id="F-2"))
    offered = [b'{"enum":["F-1","F-2","F-3"]', b'{"enum":["F-1","F-3"]', b'{"enum":["F-3"]']
    seen = [[text for text in offered if text in body.replace(b'"type":"string",', b"")] for body in model.requests]
    assert seen == [[], offered[:1], offered[1:2], offered[2:], []]
    assert b"Still required: get_flat (still for F-1, F-3)." in model.requests[2]


def listing_of(result: str) -> Success:
    call = ToolCall(id="c", name="list_flats", arguments="{}")
    return success_of(call, result, 1, judged_by((EACH,), call, result))


def test_a_tool_that_is_limited_to_the_values_left_is_said_to_be_offered_with_fewer() -> None:
    ledger = Ledger(successes=(listing_of('["F-1"]'),))
    limited = Held(tool="get_flat", by="one_by_one", values=True)
    assert offer(FLATS.rules, State(history=(), ledger=ledger)).held == (limited,)


def test_a_list_with_nothing_in_it_leaves_nothing_to_call() -> None:
    assert underused_tools((EACH,), (listing_of("[]"),)) == ()


def test_a_list_that_is_out_of_date_is_asked_for_again() -> None:
    listing = Use(tool="list_flats", again_after=("propose",))
    listed = listing_of('["F-1"]')
    got, proposed = (Success(name=name, arguments='{"flat_id":"F-1"}') for name in ("get_flat", "propose"))
    counting = current_successes((EACH, listing), (listed, got, proposed))
    assert underused_tools((EACH,), (listed, got)) == ()
    assert underused_tools((EACH, listing), counting) == ("list_flats",)


def test_a_dead_end_is_a_typed_halt() -> None:
    uses = [Use(tool=name, after=("write",)) for name in ("fail", "finish")]
    desk = Desk(order=[*uses, Use(tool="write", before=("look",)), Use(tool="look", at_most=1)])
    halt = run_sync(desk.workflow, "Go.", backend=Scripted([call("look", what="a")])).failure().halt
    assert halt == DeadEnd(completed=("look",), pending=())
    assert "Relax the rules in order" in explain(halt)


@pytest.mark.parametrize(
    ("rules", "problems"),
    [
        (
            {"at_step": 0, "at_most": -2, "at_least": -1, "after": "b"},
            (
                "at_step is 0; it must be a whole number, at least 1 or None",
                "after is 'b'; it must be a list of strings",
                "at_least is -1; it must be a whole number, at least 0",
                "at_most is -2; it must be a whole number, at least 1 or None",
            ),
        ),
        ({"after": ["a"]}, ("a cannot come before or after itself",)),
        ({"before": ["b"], "after": ["b"]}, ("a cannot come both before and after b",)),
        ({"before": ["b"], "again_after": ["b"]}, ("a cannot come before b and again after it",)),
        (
            {"at_most": 1, "again_after": ["b"], "at_least": 2},
            (
                "a: at_most is 1, so it could not be called again after b",
                "a: at_most is 1; it cannot be less than at_least, which is 2",
            ),
        ),
        ({"at_least": 1, "distinct": True}, ("a: distinct is about several calls; say with at_least how many, 2 or ",)),
        ({"counts_if": asyncio.sleep}, ("counts_if: sleep is async, but it is called without await",)),
        ({"counts_if": lambda: True}, ("a: counts_if: <lambda> cannot be called as <lambda>(result): too many ",)),
    ],
)
def test_a_rule_that_no_run_could_keep_is_refused_when_it_is_made(
    rules: dict[str, object], problems: tuple[str, ...]
) -> None:
    with pytest.raises(OptionError) as caught:
        Use(tool="a", **rules)  # type: ignore[arg-type]  # options of a table
    assert len(caught.value.problems) == len(problems)
    for said, expected in zip(caught.value.problems, problems, strict=True):
        assert said.startswith(f"Use: {expected}")


def test_wrong_rules_are_refused_all_at_once() -> None:
    uses = [
        Use(tool="nope"),
        Use(tool="write", at_step=2),
        Use(tool="fail", at_step=2),
        Use(tool="look", each_of=Each(tool="gone", argument="where")),
        Use(tool="look", each_of=Each(tool="write", argument="what")),
        Use(tool="finish", at_least=1),
    ]
    with pytest.raises(DefinitionError) as caught:
        Desk(order=uses, completion_checks={"gone": lambda _: None})
    assert set(caught.value.problems) == {
        "completion_checks: there is no tool named 'gone'",
        "order of nope: there is no tool named 'nope'",
        "order of look: there is no tool named 'gone'",
        "order of look: each_of: it has no argument 'where'; it has: what",
        "order of look: each_of can be said only once",
        "order of finish: at_least and each_of are not allowed on a terminal tool",
        "order: two tools are forced at step 2",
    }


def done(*names: str | tuple[str, str]) -> tuple[Success, ...]:
    pairs = ((one, "{}") if isinstance(one, str) else one for one in names)
    return tuple(Success(name=name, arguments=arguments) for name, arguments in pairs)


CHECK = Use(tool="check", again_after=("edit",))
READ = Use(tool="read", again_after=(Change(tool="edit", match_arg="path"),))
A, B = '{"path":"a"}', '{"path":"b"}'
STALE: list[tuple[str, Use, tuple[Success, ...], list[int]]] = [
    ("nothing has changed", CHECK, done("edit", "check"), [0, 1]),
    ("it has since", CHECK, done("check", "edit"), [1]),
    ("this has changed", READ, done(("read", A), ("read", B), ("edit", A)), [1, 2]),
    ("another value as text", READ, done(("read", '{"path":1}'), ("edit", '{"path":1.0}')), [1]),
    ("nobody knows what was changed", READ, done(("read", A), "edit"), [1]),
]


@pytest.mark.parametrize(("use", "made", "left"), [case[1:] for case in STALE], ids=[case[0] for case in STALE])
def test_what_was_looked_at_counts_until_it_changes(use: Use, made: tuple[Success, ...], left: list[int]) -> None:
    assert current_successes((use,), made) == tuple(made[place] for place in left)


def test_what_is_about_to_change_counts_no_more() -> None:
    ahead = (ToolCall(id="1", name="edit", arguments=A), ToolCall(id="2", name="read", arguments=A))
    assert current_successes((READ,), done(("read", A), ("read", B)), ahead) == done(("read", B))


class Editor:
    """A file that is read, edited and checked; `log` are the calls that ran."""

    def __init__(self, **options: object) -> None:
        self.log: list[str] = []
        effects: dict[str, ToolEffect] = {"read": "read", "edit": "write", "check": "read", "finish": "terminal"}
        tools = [
            ToolDef(
                name=name,
                description=name,
                parameters=N,
                function=partial(self.ran, name),
                effect=effect,
                prerequisites=["read"] if name == "edit" else [],
            )
            for name, effect in effects.items()
        ]
        self.workflow = Workflow(
            "editor",
            tools=tools,
            required_steps=["edit", "check"],
            order=[CHECK, Use(tool="read", again_after=["edit"])],
            terminal_tool="finish",
            **options,  # type: ignore[arg-type]  # options of a test, passed on as they are
        )

    def ran(self, tool: str, n: int) -> int:
        self.log.append(tool)
        return len(self.log)

    def run(self, *replies: Line, mode: Mode = "native") -> Scripted:
        model = Scripted(replies, mode=mode)
        run_sync(self.workflow, "Go.", backend=model)
        return model


def one(name: str, number: int = 1) -> Reply:
    return call(name, n=number)


def test_a_step_is_done_again_after_each_change() -> None:
    editor = Editor()
    opening = [one("read"), one("check"), one("edit"), one("finish")]
    again = [one("edit", 2), one("read"), one("edit", 2), one("check"), one("finish")]
    model = editor.run(*opening, *again)
    assert editor.log == ["read", "check", "edit", "read", "edit", "check", "finish"]
    assert b"First complete: check. Call check now. What check found has changed since." in model.requests[4]
    assert b"First call read; call read now. What read found has changed since." in model.requests[5]


def test_a_constraint_offers_the_end_only_when_nothing_has_changed_since() -> None:
    model = Editor().run(*map(one, ("read", "edit", "check", "read", "edit", "check", "finish")), mode="constrained")
    ends = [b'"const":"finish"' in request for request in model.requests]
    assert ends == [False, False, False, True, True, False, True]
    notes = [request.count(b"Still required: check (again)") for request in model.requests]
    assert notes == [0, 0, 0, 0, 0, 1, 0]


BATCHES: list[tuple[list[str], list[str], str | None]] = [
    (["edit", "finish"], ["edit"], "a call before it in the same reply makes check necessary again"),
    (["edit", "check", "finish"], ["edit", "check"], "makes check necessary again"),
    (["edit", "edit"], ["edit"], "a call before it in the same reply makes read necessary again"),
    (["read", "check", "finish"], ["read", "check", "finish"], None),
]


@pytest.mark.parametrize(("names", "ran", "told"), BATCHES)
def test_calls_of_one_reply_are_judged_as_if_those_before_them_succeeded(
    names: list[str], ran: list[str], told: str | None
) -> None:
    editor = Editor(calls=Calls(on_violation="block_call"), limits=Limits(max_iterations=6))
    several = calls(*((name, {"n": 5 + place}) for place, name in enumerate(names)))
    model = editor.run(one("read"), one("edit"), one("read", 2), one("check"), several, one("look"))
    assert editor.log[:4] == ["read", "edit", "read", "check"]
    assert sorted(editor.log[4:]) == sorted(ran)  # calls that only read run at the same time
    assert told is None or told.encode() in model.requests[-1]


WRONG: list[tuple[list[Use], str]] = [
    ([Use(tool="check", again_after=("nope",))], "order of check: there is no tool named 'nope'"),
    (
        [CHECK, Use(tool="edit", again_after=("check",))],
        "order: check, edit form a cycle in again_after; the run could never end",
    ),
]


@pytest.mark.parametrize(("order_", "said"), WRONG)
def test_rules_that_no_run_could_keep_are_refused(order_: list[Use], said: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        replace(Editor().workflow, order=order_)
    assert said in caught.value.problems


NAMES = ("a", "b", "c")
order_rules = st.tuples(
    *(
        st.builds(
            Use, tool=st.just(name), again_after=st.lists(st.sampled_from([*{*NAMES} - {name}]), max_size=2).map(tuple)
        )
        for name in NAMES
    )
)


@given(order_rules, st.lists(st.sampled_from(NAMES), min_size=1, unique=True), st.data())
def test_a_workflow_that_is_accepted_can_be_finished(
    order_: tuple[Use, ...], required: list[str], data: st.DataObject
) -> None:
    tools = [
        ToolDef(name=n, description=n, parameters=N, function=lambda n: n, prerequisites=data.draw(needs(n)))
        for n in (*NAMES, "end")
    ]
    try:
        rules = Workflow("w", tools=tools, required_steps=required, order=order_, terminal_tool="end").rules
    except DefinitionError:
        return
    left, known = [Ledger()], {frozenset[str]()}
    while left:  # every way there is, told apart by which successes still count
        ledger = left.pop()
        legal = [tool.name for tool in legal_tools(rules, State(history=(), ledger=ledger))]
        if "end" in legal:
            assert pending(rules, ledger) == ()
            return
        for name in legal:
            after = structs.replace(ledger, successes=(*ledger.successes, *done(name)))
            state = frozenset(one.name for one in current_successes(rules.order, after.successes))
            if state not in known:
                known.add(state)
                left.append(after)
    raise AssertionError("no way leads to the end")


def needs(name: str) -> st.SearchStrategy[list[str]]:
    before = NAMES[: NAMES.index(name)] if name in NAMES else NAMES
    return st.lists(st.sampled_from(before), max_size=1) if before else st.just([])


# --- Listing: the values that a tool has listed, with each of which another has to be called


FLAT = Each(tool="list_flats", argument="flat_id")
GET_FLAT = Use(tool="get_flat", each_of=FLAT)
CITY = Each(tool="list_cities", argument="city")
SHAPES: list[tuple[str, Each, str, tuple[str, ...]]] = [
    ("a list", FLAT, '["F-1","F-2","F-1"]', ("F-1", "F-2")),
    ("members called like the argument", FLAT, '[{"flat_id":"F-1","city":"Riga"},{"flat_id":"F-2"}]', ("F-1", "F-2")),
    ("ids of the tool's kind", FLAT, '{"flats":[{"id":"F-1"},{"id":"F-2"}],"count":2}', ("F-1", "F-2")),
    (
        "the outermost of them",
        FLAT,
        '[{"id":"F-1","owner":{"id":"O-9"}},{"id":"F-2","rooms":[{"id":1}]}]',
        ("F-1", "F-2"),
    ),
    ("no ids of another kind", FLAT, '[{"owner_id":"O-9"}]', ()),
    (
        "a member that is named",
        Each(tool="find", argument="city", member="places"),
        '{"q":"x","places":["Riga"]}',
        ("Riga",),
    ),
    ("only what is named", Each(tool="find", argument="city", member="places"), '["Riga"]', ()),
    ("an argument that is no id", CITY, '["Riga","Oslo"]', ("Riga", "Oslo")),
    ("members of an argument that is no id", CITY, '[{"city":"Riga","mayor":"Ann"}]', ("Riga",)),
    ("an empty list", FLAT, "[]", ()),
    ("one thing", FLAT, '{"flat_id":"F-1","rooms":3}', ("F-1",)),
    ("words", FLAT, "F-1 and F-2", ()),
    ("one text", FLAT, '"F-1"', ()),
    ("deeper than forge reads", FLAT, "[" * 100_000 + "]" * 100_000, ()),
]


@pytest.mark.parametrize(("each", "result", "values"), [c[1:] for c in SHAPES], ids=[c[0] for c in SHAPES])
def test_what_a_result_lists(each: Each, result: str, values: tuple[str, ...]) -> None:
    assert listed_in(each, result) == values


def test_what_is_left_goes_by_the_last_list_and_by_calls_that_succeeded() -> None:
    def listed(*values: str) -> Success:
        return Success(name="list_flats", arguments="{}", listed=(Listed(tool="get_flat", values=values),))

    def got(value: str) -> Success:
        return Success(name="get_flat", arguments=f'{{"flat_id": {value}}}')

    assert values_left(GET_FLAT, ()) is None
    assert values_left(GET_FLAT, (Success(name="list_flats", arguments="{}"),)) is None
    assert values_left(GET_FLAT, (listed(),)) == ()
    assert values_left(GET_FLAT, (listed("F-1", "2", "F-3"), got('"F-3"'), got("2"))) == ("F-1",)
    assert values_left(GET_FLAT, (listed("F-1"), got('"F-1"'), listed("F-1", "F-2"))) == ("F-2",)
