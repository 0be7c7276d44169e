"""The user's own functions: one that fails, or returns nonsense, is named with its place, and nothing is lost."""

import asyncio
from collections.abc import Callable, Mapping
from types import NoneType

import pytest
from msgspec.structs import replace
from returns.result import Success

from forge import Calls, Context, Limits, Workflow, resume, run_sync, tool
from forge.callbacks import Asker
from forge.errors import CallbackError
from forge.guardrails import Guardrails
from forge.interpreters.scripted import Line, Scripted, call
from stages import on
from stages.effect import Approved, Ask, Rejected, Settled
from stages.message import Tool as Result
from stages.objection import Custom, Objection, Stop
from stages.options import OptionError
from stages.rescue import Claim, Family, Names, Read
from stages.saved import load, save
from stages.state import STAGES, Executed, State
from tests.flows import Desk

LOOK, WRITE, END = call("look", what="a"), call("write", what="a", text="x"), call("finish", result="ok")


def broken(*_: object) -> str:
    return str(1 // 0)


def read(text: str, position: int, names: Names) -> None:
    broken()


def claim(text: str, position: int, names: Names) -> Read:
    wrong = Claim(name="look", arguments={"what": "a"})  # type: ignore[arg-type]  # what people write
    return Read(start=position, end=len(text), claims=(wrong,))


async def pager(_: Ask) -> Rejected:
    raise OSError("the pager is off")


class Broken:
    def __call__(self, *_: object) -> None:
        raise KeyError("nobody")


OWN = Family(name="own", first="@", opener="@", read=read)
ALLOWS, NOTHING = (lambda *_: ()), (lambda *_: None)


@pytest.mark.parametrize(
    ("options", "script", "rest", "place", "says"),
    [
        ({"guards": [ALLOWS, broken]}, [LOOK], [END], "guards[1]", "broken, raised ZeroDivisionError"),
        (
            {"guards": [Broken()]},
            [LOOK],
            [END],
            "guards[0]",
            "Broken, raised KeyError: 'nobody' (test_callbacks.py, line",
        ),
        ({"guards": [lambda *_: Stop(halt="no")]}, [LOOK], [END], "guards[0]", "write Stop(halt=Stopped(reason=…))"),  # type: ignore[arg-type]  # what people write
        ({"guards": [NOTHING]}, [LOOK], [END], "guards[0]", "returned None; it must return a list of Objections"),
        (
            {"guards": [lambda _, calls: [Objection(call=calls[0], wrong=Custom(text="No.", counter="zzz"))]]},  # type: ignore[arg-type]  # what people write
            [LOOK],
            [END],
            "guards[0]",
            "objected with Custom(counter='zzz'); the counters are: premature, prerequisite_violations, retries,",
        ),
        (
            {"context": Context(compactor=broken, compact_at=0.001, compact_to=0.001)},  # type: ignore[arg-type]  # what people write
            [],
            [LOOK, END],
            "context.compactor",
            "broken, raised",
        ),
        ({"completion_checks": {"finish": broken}}, [LOOK, END], [], "completion_checks['finish']", "broken, raised"),
        ({"nudges": {"retry": broken}}, ["Hm."], [LOOK, END], "nudges['retry']", "broken, raised"),
        ({"nudges": {"retry": NOTHING}}, ["Hm."], [LOOK, END], "nudges['retry']", "returned None; it must return str"),
        (
            {"calls": Calls(families=[replace(OWN, read=claim)])},
            ["@look"],
            [LOOK, END],
            "calls.families[0].read",
            "claim, raised OptionError: Claim: arguments is {'what': 'a'}; it must be the JSON text of an object",
        ),
    ],
)
def test_one_that_fails_is_told_with_its_place_and_the_run_goes_on_when_it_is_mended(
    options: Mapping[str, object], script: list[Line], rest: list[Line], place: str, says: str
) -> None:
    with pytest.raises(CallbackError) as caught:
        run_sync(Desk(**options).workflow, "Go.", backend=Scripted(script))
    error = caught.value
    assert error.place == place
    assert str(error).startswith(f"{place}, ")
    assert says in str(error)
    told = "must return" in says or "objected" in says or "write Stop" in says
    assert isinstance(error.__cause__, NoneType if told else ZeroDivisionError | KeyError | OptionError)
    assert error.state is not None
    saved = load(save(error.state))
    result = asyncio.run(resume(Desk().workflow, saved, backend=Scripted(rest)))
    assert isinstance(result, Success)
    assert result.unwrap().value == "ok"


def test_a_stage_that_drops_a_result_is_told_before_the_call_runs_again() -> None:
    @on(Executed)
    def emptied(state: State, phase: Executed) -> State:
        return state.to(replace(phase, batch=replace(phase.batch, results=())))

    desk = Desk(stages=[*[*STAGES][:-1], emptied, "execute"])
    with pytest.raises(CallbackError, match=r"^stages\[6\], .*emptied, dropped the result of call_000000001") as caught:
        run_sync(desk.workflow, "Go.", backend=Scripted([LOOK]))
    assert desk.log == ["look a"]
    assert caught.value.state
    again = Desk()
    assert asyncio.run(resume(again.workflow, caught.value.state, backend=Scripted([END]))).unwrap().value == "ok"
    assert again.log == ["finish"]


def says(what: Callable[[Ask], object]) -> Asker:
    async def asked(question: Ask) -> object:
        return what(question)

    return asked  # type: ignore[return-value]  # an answer that is none


UNWILLING: list[tuple[str, Asker, str]] = [
    ("raises", pager, "raised OSError: the pager is off"),
    ("is not async", lambda q: Approved(digest=q.digest), "is no async function; define it with `async def`"),  # type: ignore[return-value, list-item]
    ("says True", says(lambda _: True), "returned True, which is no answer; return Approved(digest="),
    ("means another", says(lambda _: Approved(digest="abc")), "returned Approved with the digest 'abc', which is that"),
    ("rejects another", says(lambda _: Rejected(digest="", reason="no")), "write digest=question.digest"),
    (
        "knows of no call",
        says(lambda q: Settled(digest=q.digest, happened=True)),
        "no call of finish has an unknown",
    ),
    (
        "writes no JSON",
        says(lambda q: Approved(digest=q.digest, edited={"a": 1})),  # type: ignore[arg-type]  # what people write
        "Expected `str | null`, got `object` - at `$.edited`",
    ),
    (
        "gives no reason",
        says(lambda q: Rejected(digest=q.digest, reason=None)),  # type: ignore[arg-type]  # what people write
        "Expected `str`, got `null` - at `$.reason`",
    ),
]


@pytest.mark.parametrize(("ask", "wrong"), [c[1:] for c in UNWILLING], ids=[c[0] for c in UNWILLING])
def test_one_that_is_asked_for_leave(ask: Asker, wrong: str) -> None:
    """What is no answer is neither a no, which the model would be told, nor lost: mended, it is asked again."""
    ran: list[str] = []

    @tool(approval=True)
    def finish() -> str:
        """Finish."""
        ran.append("finish")
        return "ok"

    workflow = Workflow("w", tools=[finish], terminal_tool="finish")
    with pytest.raises(CallbackError, match=r"^ask, ") as caught:
        run_sync(workflow, "Go.", backend=Scripted([call("finish")]), ask=ask)
    assert wrong in str(caught.value)
    assert (caught.value.place, ran) == ("ask", [])
    state = caught.value.state
    assert state is not None
    assert not any(isinstance(m, Result) for m in state.history)
    yes = says(lambda question: Approved(digest=question.digest))
    assert asyncio.run(resume(workflow, state, backend=Scripted([]), ask=yes)).unwrap().value == "ok"


def test_in_a_loop_of_the_users_own() -> None:
    guardrails = Guardrails(Desk(guards=[broken]).workflow)
    with pytest.raises(CallbackError, match=r"guards\[0\], broken, raised"):
        guardrails.check(LOOK)


def test_a_reason_may_hold_half_a_character() -> None:
    """As a terminal gives it for bytes that are no text."""

    @tool(approval=True)
    def finish() -> str:
        """Finish."""
        return "ok"

    workflow = Workflow("w", tools=[finish], terminal_tool="finish", limits=Limits(max_iterations=1))
    no = says(lambda q: Rejected(digest=q.digest, reason="not \udcff now"))
    ended = run_sync(workflow, "Go.", backend=Scripted([call("finish")]), ask=no).failure()
    assert any("not \ufffd now" in m.text for m in ended.state.history if isinstance(m, Result))


def test_a_listener_that_fails_is_logged_under_its_option(caplog: pytest.LogCaptureFixture) -> None:
    def listener(_: object) -> None:
        raise LookupError

    assert isinstance(run_sync(Desk().workflow, "Go.", backend=Scripted([LOOK, END]), on_message=listener), Success)
    assert [text for text in caplog.messages if text.startswith("on_message failed at the event ")]
