"""Approval: nobody to ask, a no that is remembered, and states that wait for what the workflow would not ask."""

import asyncio

import msgspec
import pytest
from msgspec.structs import replace

from forge import Workflow, replay, resume, resume_journal, run_sync, tool
from forge.errors import ApprovalError, ForgeError, as_error
from forge.guardrails import Guardrails
from forge.interpreters.scripted import Scripted, call, calls
from stages.deliver import deliver
from stages.effect import Approved, Ask, Execute, Rejected
from stages.execution import question
from stages.halt import ApprovalNeeded
from stages.message import Assistant, Tool, ToolCall, UnknownCall
from stages.saved import load, save
from stages.state import Awaiting, Batch, Executed, State, Vetted


class Bank:
    """A payment that needs a yes; `paid` are those that were made, `asked` the questions."""

    def __init__(self, *answers: bool) -> None:
        self.paid: list[float] = []
        self.asked: list[str] = []
        self._answers = [*answers]
        self.workflow = Workflow("bank", tools=[tool(approval=True)(self.pay), self.finish], terminal_tool="finish")

    def pay(self, amount: float) -> str:
        """Pay."""
        self.paid.append(amount)
        return "paid"

    def finish(self) -> str:
        """Finish."""
        return "ok"

    async def ask(self, question: Ask) -> Approved | Rejected:
        self.asked.append(question.call.arguments)
        yes = self._answers.pop(0)
        return Approved(digest=question.digest) if yes else Rejected(digest=question.digest, reason="too much")


PAY, END = call("pay", amount=5), call("finish")


def test_with_nobody_to_ask_the_run_ends_at_once_and_asks_when_it_is_resumed(tmp_path: object) -> None:
    bank, path = Bank(True), f"{tmp_path}/run.jsonl"
    model = Scripted([PAY, *[PAY] * 9])
    halted = run_sync(bank.workflow, "Pay.", backend=model, journal=path).failure()
    needed = ApprovalNeeded(tool="pay", arguments='{"amount":5}', reason="nobody is there to ask")
    assert halted.halt == needed
    assert isinstance(as_error(halted.halt, halted.state), ApprovalError)
    assert len(model.requests) == 1
    saved = load(save(halted.state))
    assert asyncio.run(resume(bank.workflow, saved, backend=Scripted([END]), ask=bank.ask)).unwrap().value == "ok"
    other = Bank(True)
    done = asyncio.run(resume_journal(other.workflow, path, backend=Scripted([END]), ask=other.ask))
    assert (done.unwrap().value, bank.paid, other.paid) == ("ok", [5], [5])
    assert replay(path, other.workflow) == done


def test_an_answer_that_arrives_twice_does_not_answer_the_next_question() -> None:
    """Questions about the same call differ: after a crash, a new call, another edit. Formatting makes no difference."""
    first = question(CALL)
    spaced = question(replace(CALL, arguments='{ "amount": 5.0 }'))
    others = [question(CALL, CALL), question(replace(CALL, id="call_2")), question(CALL, problem="too much")]
    assert first.digest == spaced.digest
    assert len({first.digest, *(other.digest for other in others)}) == 4
    for other in others:
        waits = State(history=(), phase=Awaiting(effect=other, batch=Batch(said=Assistant(calls=(other.call,)))))
        with pytest.raises(ValueError, match="does not answer"):
            deliver(waits, Approved(digest=first.digest))


def test_after_a_no_the_model_is_not_asked_whether_something_is_left_to_do() -> None:
    bank = Bank(False)
    balance = tool(name="balance", effect="read")(lambda: 5)
    workflow = Workflow("bank", tools=[balance, tool(approval=True)(bank.pay), bank.finish], on_text="accept")
    model = Scripted([PAY, "I did not pay."])
    assert run_sync(workflow, "Pay.", backend=model, ask=bank.ask).unwrap().value == "I did not pay."
    assert len(model.requests) == 2


def test_a_call_that_was_rejected_is_not_asked_about_again_unchanged() -> None:
    """Neither in another reply, nor in the same, nor with its number written in another way."""
    bank = Bank(False, True)
    script = [calls(("pay", {"amount": 5}), ("pay", {"amount": 6})), PAY, call("pay", amount=5.0), END]
    state = run_sync(bank.workflow, "Pay.", backend=Scripted(script), ask=bank.ask).unwrap().state
    assert bank.asked == ['{"amount":5}', '{"amount":6}']
    assert bank.paid == [6]
    said = [m.text for m in state.history if isinstance(m, Tool) and m.status == "not_run"]
    assert said[0] == "[NotRun] pay was not approved: too much"
    assert all("a person has already rejected this exact call" in text for text in said[1:])
    assert len(said) == 3


TWICE = '{"amount":5,"amount":500}'


def test_arguments_that_say_two_things_are_nobody_s_to_approve() -> None:
    bank = Bank(True)

    async def twice(question: Ask) -> Approved:
        bank.asked.append(question.problem)
        return Approved(digest=question.digest, edited=None if question.problem else TWICE)

    run_sync(bank.workflow, "Pay.", backend=Scripted([PAY, END]), ask=twice).unwrap()
    assert bank.paid == [5]
    assert "each argument only once" in bank.asked[1]


CALL = UnknownCall(id="call_000000001", name="pay", arguments='{"amount":5}')
GONE = replace(CALL, name="transfer")
WRONG = replace(CALL, arguments='{"amount":"all"}')


def waits_for(*made: ToolCall, approved: bool = False, run: tuple[ToolCall, ...] | None = None) -> State:
    batch = Batch(said=Assistant(calls=made), approved=tuple(one.id for one in made) if approved else ())
    effect = Execute(calls=made if run is None else run, retriable=True)
    return State(history=(), phase=Awaiting(effect=effect, batch=batch))


def asks(about: ToolCall, bound_to: str) -> State:
    return State(
        history=(), phase=Awaiting(effect=Ask(call=about, digest=bound_to), batch=Batch(said=Assistant(calls=(about,))))
    )


FORGED: list[tuple[str, State, str]] = [
    ("another version", State(history=(), version=99), "the state is of version 99, and this forge reads version"),
    ("a vanished tool", waits_for(GONE), "it waits for a call of transfer; the workflow's tools are: pay, finish"),
    ("a vanished tool, asked about", asks(GONE, question(GONE).digest), "it waits for a call of transfer"),
    (
        "a vanished tool, later",
        State(history=(), phase=Executed(batch=Batch(said=Assistant(calls=(GONE,))))),
        "a call of transfer",
    ),
    (
        "a vanished tool, vetted",
        State(history=(), phase=Vetted(said=Assistant(calls=(GONE,)), allowed=True)),
        "a call of transfer",
    ),
    (
        "other arguments",
        waits_for(WRONG),
        "its call of pay do not fit the tool: amount: expected number",
    ),
    ("no yes", waits_for(CALL), "it runs pay without the approval that it needs"),
    ("a call of no reply", waits_for(run=(CALL,)), "it runs a call of pay that is not waiting"),
    ("a yes to something else", asks(CALL, question(WRONG).digest), "is not bound to that call and its arguments"),
]


@pytest.mark.parametrize(("state", "wrong"), [c[1:] for c in FORGED], ids=[c[0] for c in FORGED])
def test_a_state_that_does_not_fit_the_workflow_is_refused_in_words(state: State, wrong: str) -> None:
    bank = Bank()
    with pytest.raises(ForgeError) as caught:
        asyncio.run(resume(bank.workflow, state, backend=Scripted([])))
    assert wrong in str(caught.value)
    assert bank.paid == []
    guardrails = Guardrails(bank.workflow)
    checkpoint = msgspec.json.decode(guardrails.to_json(), type=dict[str, msgspec.Raw])
    checkpoint["state"] = msgspec.Raw(msgspec.json.encode(state))
    with pytest.raises(ForgeError) as refused:
        guardrails.from_json(msgspec.json.encode(checkpoint))
    assert wrong in str(refused.value)


def test_whether_a_call_may_be_made_again_is_the_workflow_s_to_say() -> None:
    """A state that says so itself is not believed: the call is in doubt, and its tool waits for a person."""
    bank = Bank()
    state = waits_for(CALL, approved=True)
    halted = asyncio.run(resume(bank.workflow, state, backend=Scripted([PAY]))).failure()
    assert bank.paid == []
    assert [one.id for one in halted.state.ledger.in_doubt] == [CALL.id]


def test_calls_that_no_guard_of_this_workflow_was_asked_about_are_judged() -> None:
    bank = Bank()
    early = Workflow("bank", tools=bank.workflow.tools, terminal_tool="finish", required_steps=["pay"])
    vetted = Vetted(said=Assistant(calls=(replace(CALL, name="finish", arguments="{}"),)), allowed=True)
    halted = asyncio.run(resume(early, State(history=(), phase=vetted), backend=Scripted([PAY]))).failure()
    assert isinstance(halted.halt, ApprovalNeeded)
    assert "[StepEnforcementError]" in "".join(m.text for m in halted.state.history if isinstance(m, Tool))
