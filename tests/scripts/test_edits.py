"""Arguments that a person approves a call with: held to the schema and to the guards, and told what is wrong."""

import asyncio
import json
from pathlib import Path
from typing import Literal

import pytest
from returns.result import Failure

from forge import Calls, Finished, Workflow, run_sync, tool
from forge.errors import ToolOutcomeUnknown
from forge.guardrails import AskPerson, Guardrails, RunCalls
from forge.interpreters.scripted import Scripted, call
from forge.masking import Redact
from stages import events
from stages.effect import Approved, Ask, Settled, Unanswered
from stages.message import Assistant, ToolCall
from stages.message import Tool as Result
from stages.objection import Custom, Objection, Verdict
from stages.order import Use
from stages.state import State
from stages.tool import Prerequisite
from tests.heard import heard_by


class Bank:
    """A workflow with one careful tool; `log` is what it paid, `asked` what the person was asked."""

    def __init__(self, *answers: str | None, **options: object) -> None:
        self.log: list[str] = []
        self.asked: list[Ask] = []
        self._answers = answers
        self.workflow = Workflow(
            "payment",
            tools=[
                tool(effect="read")(self.find),
                tool(approval=True, prerequisites=[Prerequisite(tool="find", match_arg="to")])(self.pay),
                tool(self.finish),
            ],
            terminal_tool="finish",
            **options,  # type: ignore[arg-type]  # options of a test, passed on as they are
        )

    def find(self, to: str) -> str:
        """Find somebody."""
        return f"{to} is known; 500 is owed"

    def pay(self, amount: int, to: str) -> str:
        """Pay."""
        self.log.append(f"{amount} to {to}")
        return "paid"

    def finish(self) -> None:
        """Finish."""

    async def ask(self, question: Ask) -> Approved:
        self.asked.append(question)
        return Approved(digest=question.digest, edited=self._answers[len(self.asked) - 1])

    def run(self, **options: object) -> Finished:
        script = [call("find", to="Ann"), call("pay", amount=500, to="Ann"), call("finish")]
        done = run_sync(self.workflow, "Pay Ann.", backend=Scripted(script), ask=self.ask, **options)  # type: ignore[arg-type]  # a test's
        return done.unwrap()


def never_odd(_: State, calls: tuple[ToolCall, ...]) -> Verdict:
    odd = (c for c in calls if c.name == "pay" and json.loads(c.arguments)["amount"] % 2)
    return [Objection(call=call, wrong=Custom(text="the amount must be even")) for call in odd]


FINE = '{"amount": 6, "to": "Ann"}'


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ('{"amount": "much", "to": "Ann"}', 'amount: expected integer, got "much"'),
        ('{"amount": 6}', "to: expected a value (required), got nothing"),
        ("n=5", "JSON"),
        ('{"amount": 6, "to": "Bob"}', "find"),
        ('{"amount": 7, "to": "Ann"}', "the amount must be even"),
    ],
    ids=["the schema's type", "the schema's required", "no JSON", "a prerequisite's argument", "a guard of one's own"],
)
def test_who_approves_with_wrong_arguments_is_told_and_asked_again(wrong: str, problem: str) -> None:
    bank = Bank(wrong, FINE, guards=[never_odd])
    seen: list[events.Event] = []
    run = bank.run(on_event=heard_by(seen.append))
    assert bank.log == ["6 to Ann"]
    assert [one.problem == "" for one in bank.asked] == [True, False]
    assert problem in bank.asked[1].problem
    assert bank.asked[1].call == bank.asked[0].call, "the question is about what the model asked for"
    told = [e.problem for e in seen if isinstance(e, events.ApprovalAsked)]
    assert told == [one.problem for one in bank.asked]
    assert (run.state.ledger.refusals, run.state.ledger.prerequisite_violations) == (0, 0), "no mistake of the model's"


def test_who_does_it_twice_has_said_no() -> None:
    bank = Bank('{"amount": 7, "to": "Ann"}', "n=5", guards=[never_odd])
    run = bank.run()
    assert (bank.log, len(bank.asked)) == ([], 2)
    (answer,) = [m for m in run.state.history if isinstance(m, Result) and m.name == "pay"]
    assert (answer.status, "[NotRun] pay was approved with changed arguments" in answer.text) == ("not_run", True)
    made = [c.arguments for m in run.state.history if isinstance(m, Assistant) for c in m.calls if c.name == "pay"]
    assert made == ['{"amount":500,"to":"Ann"}'], "damaged arguments would be refused by servers for good"


def test_what_a_person_wrote_is_a_value_that_somebody_gave() -> None:
    """Grounding is against inventions of the model; a source that the workflow names holds for a person too."""
    bank = Bank('{"amount": 42, "to": "Ann"}', grounded={"pay": ("amount",)})
    bank.run()
    assert bank.log == ["42 to Ann"]
    strict = Bank('{"amount": 42, "to": "Ann"}', FINE.replace("6", "500"), grounded={"pay": {"amount": "find"}})
    strict.run()
    assert strict.log == ["500 to Ann"]
    assert "42" in strict.asked[1].problem


def test_an_edit_is_judged_among_the_calls_of_its_reply() -> None:
    bank = Bank(FINE, order=[Use(tool="pay", at_most=1)])
    bank.run()
    assert bank.log == ["6 to Ann"]


def test_in_a_foreign_loop_the_action_says_what_is_wrong() -> None:
    guard = Guardrails(Bank().workflow)
    guard.check(call("find", to="Ann"))
    guard.record()
    guard.check(call("pay", amount=500, to="Ann"))
    again = guard.approve({"amount": "much", "to": "Ann"})
    assert isinstance(again, AskPerson)
    assert "expected integer" in again.problem
    assert isinstance(guard.approve({"amount": 5, "to": "Ann"}), RunCalls)


def test_a_secret_that_a_person_writes_is_not_written_down(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Bank('{"amount": "x", "to": "hunter2"}', FINE).run(journal=str(path), redact=Redact(arguments=("pay.to",)))
    assert "hunter2" not in path.read_text()


def test_cancelled_while_it_is_judged_the_call_is_answered() -> None:
    bank, cancel = Bank(FINE), asyncio.Event()

    async def ask(question: Ask) -> Approved:
        cancel.set()
        return Approved(digest=question.digest, edited=FINE)

    script = Scripted([call("find", to="Ann"), call("pay", amount=500, to="Ann")])
    halted = run_sync(bank.workflow, "Pay Ann.", backend=script, ask=ask, cancel=cancel).failure()
    assert bank.log == []
    assert [m.status for m in halted.state.history if isinstance(m, Result)] == ["succeeded", "not_run"]


@pytest.mark.parametrize("policy", ["report", "ask"])
def test_a_call_that_was_started_before_it_was_edited_can_still_be_settled(policy: Literal["report", "ask"]) -> None:
    """Both outcomes are unknown then: a person decides about the first, then about the edited call."""
    asked: list[ToolCall | None] = []

    @tool
    def pay(amount: float) -> str:
        """Pay."""
        raise ToolOutcomeUnknown("connection lost")

    async def ask(question: Ask) -> Approved | Settled | Unanswered:
        asked.append(question.in_doubt)
        match len(asked):
            case 1:
                return Approved(digest=question.digest, edited='{"amount":1.0}')
            case 2:
                return Settled(digest=question.digest, happened=True, result="paid 129.9")
            case _:
                return Unanswered(digest=question.digest, reason="enough")

    flow = Workflow("flow", tools=[pay], terminal_tool="pay", calls=Calls(in_doubt=policy))
    done = run_sync(flow, "Pay 129.9.", backend=Scripted([call("pay", amount=129.9)]), ask=ask)
    assert [one.arguments for one in asked if one] == ['{"amount":129.9}'] * 2 + ['{"amount":1.0}'] * (len(asked) - 2)
    state = done.failure().state if isinstance(done, Failure) else done.unwrap().state
    assert [one.arguments for one in state.ledger.in_doubt] == ['{"amount":1.0}']
    assert [(one.name, one.arguments) for one in state.ledger.successes] == [("pay", '{"amount":129.9}')]
