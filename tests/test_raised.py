"""What a tool raises: logged with its traceback and without the call's values, and the cause of the run's end."""

import asyncio
import logging
import traceback
from pathlib import Path
from typing import Any

import msgspec
import pytest
from returns.primitives.exceptions import UnwrapFailedError

from forge import Limits, ToolFailed, ToolResolutionError, Workflow, resume_journal, run_or_raise, run_sync, tool
from forge.errors import ToolExecutionError, ToolOutcomeUnknown
from forge.guardrails import Guardrails
from forge.interpreters.scripted import Scripted, call, calls
from forge.masking import Redact
from stages.halt import OutcomeUnknown, ToolsFailing
from stages.saved import save

BANK = "the bank"
SECRET = "sk-live-4242-secret"  # noqa: S105 - made up


@tool
async def pay(account: str, pin: int) -> str:
    """Pay."""
    try:
        return {"A-1": "paid"}[account]
    except KeyError as error:
        raise ValueError(f"no account {account!r}\nwith the PIN {pin} at {BANK.upper()} \x1b[2J") from error


@tool(effect="read")
def look(what: str) -> str:
    """Look."""
    match what:
        case "final":
            raise ToolFailed(SECRET)
        case "other":
            raise ToolResolutionError(SECRET)
        case "lost":
            raise ToolOutcomeUnknown(SECRET)
        case _:
            raise ExceptionGroup("both", [OSError("disk"), LookupError(what)])


@tool
def end() -> str:
    """End."""
    return "done"


def bank(**options: Any) -> Workflow[Any]:
    return Workflow("bank", tools=[pay, look, end], optional_steps="pay", terminal_tool="end", **options)


PAY = call("pay", account=SECRET, pin=4711)


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """All that a handler writes with the standard formatter, and all that it could get at."""
    assert all(record.exc_info is None for record in caplog.records)
    return "\n".join(map(logging.Formatter().format, caplog.records))


def test_it_is_logged_with_its_traceback_and_without_the_values_of_the_call(caplog: pytest.LogCaptureFixture) -> None:
    run_sync(bank(), "Go.", backend=Scripted([PAY, call("end")])).unwrap()
    text = logged(caplog)
    assert "the tool pay raised ValueError\nTraceback" in text
    assert f'{Path(__file__).name}", line ' in text
    assert "raise ValueError(f" in text
    assert "ValueError: no account '***'\\nwith the PIN *** at THE BANK \\x1b[2J" in text
    assert text.index("KeyError: '***'") < text.index("ValueError: no account")
    assert SECRET not in text
    assert "4711" not in text


def test_what_a_tool_raises_while_its_time_out_cancels_it_is_logged_and_the_cause_of_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool(timeout=0.01)
    async def transfer(account: str) -> str:
        """Transfer."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError(f"lost on the way to {account}") from None
        return account

    workflow = Workflow("bank", tools=[transfer], terminal_tool="transfer")
    halted = run_sync(workflow, "Go.", backend=Scripted([call("transfer", account=SECRET)])).failure()
    assert isinstance(halted.halt, OutcomeUnknown)
    why = "its outcome is unknown: it took longer than its 0.01 seconds (nobody is there to ask). Find out whether"
    assert why in str(halted)
    assert isinstance(halted.__cause__, ConnectionError)
    text = logged(caplog)
    assert "the tool transfer raised ConnectionError\nTraceback" in text
    assert "ConnectionError: lost on the way to ***" in text
    assert SECRET not in text


def test_members_of_a_group_are_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    run_sync(bank(), "Go.", backend=Scripted([call("look", what="both of them"), call("end")])).unwrap()
    text = logged(caplog)
    assert "OSError: disk" in text
    assert "LookupError: ***" in text
    assert "ExceptionGroup: both (2 sub-exceptions)" in text


def test_a_run_that_hides_values_logs_no_message(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    redact = Redact(results=("pay",))
    run_sync(bank(), "Go.", backend=Scripted([PAY, call("end")]), journal=tmp_path / "j", redact=redact).unwrap()
    text = logged(caplog)
    assert "ValueError: ***" in text
    assert BANK.upper() not in text


def test_what_a_tool_raises_for_the_model_to_hear_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    script = [call("look", what=what) for what in ("final", "other", "lost")]
    run_sync(bank(), "Go.", backend=Scripted([*script, call("end")])).unwrap()
    assert not caplog.records


def test_it_is_the_cause_of_what_ends_the_run_and_not_blamed_on_the_model() -> None:
    with pytest.raises(ToolExecutionError) as raised:
        run_or_raise(bank(limits=Limits(max_tool_errors=0)), "Go.", backend=Scripted([PAY]))
    cause = raised.value.__cause__
    assert isinstance(cause, ValueError)
    assert cause.__traceback__ is not None
    assert str(raised.value).startswith("the tool pay raised ValueError: no account")
    assert "larger model" not in str(raised.value)
    with pytest.raises(UnwrapFailedError) as unwrapped:
        run_sync(bank(limits=Limits(max_tool_errors=0)), "Go.", backend=Scripted([PAY])).unwrap()
    assert "KeyError" in "".join(traceback.format_exception(unwrapped.value))


def test_of_a_batch_it_is_the_exception_that_the_halt_tells_of() -> None:
    both = calls(("look", {"what": "x"}), ("pay", {"account": "B-2", "pin": 1}))
    halted = run_sync(bank(limits=Limits(max_tool_errors=0)), "Go.", backend=Scripted([both])).failure()
    assert isinstance(halted.halt, ToolsFailing)
    assert (halted.halt.tool, type(halted.__cause__)) == ("pay", ValueError)


def test_a_halt_for_wrong_arguments_has_no_cause() -> None:
    halted = run_sync(bank(limits=Limits(max_tool_errors=1)), "Go.", backend=Scripted([PAY, call("pay")])).failure()
    assert halted.__cause__ is None
    assert "Try a larger model" in str(halted)


def test_neither_the_state_nor_the_journal_holds_it(tmp_path: Path) -> None:
    workflow, path = bank(limits=Limits(max_tool_errors=0)), tmp_path / "run.jsonl"
    halted = run_sync(workflow, "Go.", backend=Scripted([PAY]), journal=path).failure()
    assert b"Traceback" not in save(halted.state) + path.read_bytes()
    again = asyncio.run(resume_journal(workflow, path, backend=Scripted([]))).failure()
    assert again == halted
    assert again.__cause__ is None  # it was raised in another process, for all that is known


class Thing:
    """An object without words of its own."""


class Named(Thing):
    def __str__(self) -> str:
        return "a thing with a name"


RESULTS = {"odd": Thing(), "within": {"all": [1, Thing()]}, "named": Named(), "typed": int}


@tool(effect="read")
def find(what: str) -> object:
    """Find."""
    return RESULTS[what]


FINDING = Workflow("finding", tools=[find, end], terminal_tool="end", limits=Limits(max_tool_errors=0))


@pytest.mark.parametrize("what", ["odd", "within"])
def test_a_result_without_words_of_its_own_is_an_error_that_names_the_tool_and_the_type(what: str) -> None:
    with pytest.raises(ToolExecutionError) as raised:
        run_or_raise(FINDING, "Go.", backend=Scripted([call("find", what=what)]))
    said = str(raised.value)
    assert "find ran, but its result has a value of the type tests.test_raised.Thing" in said
    assert "return a str, a number, a dict" in said
    assert " at 0x" not in said


class Mute:
    def __str__(self) -> str:
        raise LookupError("no words")


@pytest.mark.parametrize(("result", "says"), [(Thing(), "a value of the type"), (Mute(), "LookupError: no words")])
def test_a_write_whose_result_cannot_be_shown_has_been_done_and_is_not_repeated(result: object, says: str) -> None:
    done = []

    @tool
    def pay() -> object:
        """Pay."""
        done.append("paid")
        return result

    paying = Workflow("paying", tools=[pay], terminal_tool="pay")
    ended = run_sync(paying, "Pay.", backend=Scripted([call("pay"), call("pay")])).unwrap()
    assert done == ["paid"]
    assert str(ended.value).startswith("pay ran, but its result ")
    assert says in str(ended.value)


@pytest.mark.parametrize(("what", "told"), [("named", "a thing with a name"), ("typed", "<class 'int'>")])
def test_a_result_with_words_of_its_own_is_told_in_them(what: str, told: str) -> None:
    ended = run_sync(FINDING, "Go.", backend=Scripted([call("find", what=what), call("end")])).unwrap()
    assert told in [message.text for message in ended.state.history]


def test_guardrails_refuse_such_a_result_before_it_is_recorded() -> None:
    rails = Guardrails(FINDING, message="Go.")
    rails.check({"choices": [{"message": {"tool_calls": [CALLED]}}]})
    with pytest.raises(TypeError, match=r"find ran, but its result has a value of the type tests\.test_raised\.Thing"):
        rails.record({"1": Thing()})
    rails.record({"1": "found"})
    assert [success.name for success in rails.state.ledger.successes] == ["find"]


CALLED = {
    "id": "1",
    "type": "function",
    "function": {"name": "find", "arguments": msgspec.json.encode({"what": "odd"}).decode()},
}
