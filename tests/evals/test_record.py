"""The record of a run: every call that reaches a tool, in order, whatever kind of function the tool is."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial

import msgspec
import pytest
from msgspec import Raw

from forge import Conversation, Limits, ToolDef, Workflow, tool
from forge.connection import Connection, Setup
from forge.evals.record import RunRecord, metered, request_seed, seeded
from forge.interpreters.scripted import Scripted, call, calls
from forge.tools import IdempotencyKey, Returned
from stages.effect import Fault, NeedsInput, Price, Replied, Reply, Request, Send, Undelivered, Usage
from stages.wire.wires import Dialect


def played(*tools: object, replies: list[object], **options: object) -> RunRecord:
    """The record of a workflow of these tools, run on these replies."""

    @tool(effect="terminal")
    def end() -> str:
        """End."""
        return "ended"

    record = RunRecord()
    workflow = record.recorded(Workflow("w", tools=[*tools, end], limits=Limits(max_tool_errors=9), **options))  # type: ignore[list-item, arg-type]
    talk = Conversation(workflow, backend=Scripted([*replies, call("end")]))  # type: ignore[list-item]
    record.outcomes.append(asyncio.run(talk.say("Go.", on_event=record.observe)).unwrap().outcome)
    return record


@tool(effect="read")
async def wait(n: int) -> int:
    """Wait."""
    await asyncio.sleep(0)
    return n + 1


@tool
def count(n: int) -> Iterator[str]:
    """Count."""
    yield from map(str, range(n))


@tool
async def stream(n: int) -> AsyncIterator[int]:
    """Count, too."""
    for number in range(n):
        yield number


@tool
async def total(n: int) -> AsyncIterator[object]:
    """Add up, too."""
    yield "adding"
    yield Returned(sum(range(n)))


class Late:
    """Wait, as an object."""

    async def __call__(self, n: int) -> int:
        """Wait."""
        return n - 1


late = tool(name="late", description="d")(Late())


def bare(n: int) -> int:
    """Double it."""
    return 2 * n


schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
explicit = ToolDef(name="explicit", description="d", parameters=schema, function=lambda n: n)
bound = ToolDef(name="bound", description="d", parameters=schema, function=partial(lambda n, more: n + more, more=4))


async def plus(n: int, more: int) -> int:
    """Wait."""
    return n + more


bound_async = ToolDef(name="bound_async", description="d", parameters=schema, function=partial(plus, more=4))


@pytest.mark.parametrize(
    ("made", "name", "result"),
    [
        (wait, "wait", 4),
        (late, "late", 2),
        (count, "count", "2"),
        (stream, "stream", 2),
        (total, "total", 3),
        (bare, "bare", 6),
        (explicit, "explicit", 3),
        (bound, "bound", 7),
        (bound_async, "bound_async", 7),
    ],
)
def test_a_tool_of_any_kind_works_as_before_and_is_recorded(made: object, name: str, result: object) -> None:
    record = played(made, replies=[call(name, n=3)])
    (first, last) = record.calls
    assert (first.tool, dict(first.arguments), first.result, first.error) == (name, {"n": 3}, result, "")
    assert (last.tool, last.result) == ("end", "ended")


def test_a_function_that_overruns_its_timeout_is_recorded_when_it_returns() -> None:
    may_return = threading.Event()

    @tool(effect="write", timeout=0.01)
    def pay(n: int) -> str:
        """Pay."""
        assert may_return.wait(60)
        return "paid"

    record = played(pay, replies=[call("pay", n=3)])
    assert record.calls[0].error == "it had not returned when the run ended"
    may_return.set()
    while record.calls[0].error:  # its thread does not end, but waits for another call
        time.sleep(0.001)
    assert record.calls[0].result == "paid"


def test_what_a_tool_raises_is_its_error_and_goes_on_to_the_model() -> None:
    @tool
    def fail(n: int) -> int:
        """Fail."""
        raise LookupError(f"no {n}")

    record = played(fail, replies=[call("fail", n=3)])
    assert (record.calls[0].error, record.calls[0].result) == ("no 3", None)
    assert record.tool_errors == 1
    assert record.trajectory(1).of("fail") == ()


def test_a_call_that_does_not_return_is_there_with_an_error() -> None:
    @tool
    async def hang() -> None:
        """Hang."""
        await asyncio.Event().wait()

    async def go() -> None:
        record = RunRecord()
        workflow = record.recorded(Workflow("w", tools=[hang, bare], terminal_tool="bare"))
        talk = Conversation(workflow, backend=Scripted([call("hang")]))
        async with asyncio.timeout(0.2):
            try:
                await talk.say("Go.")
            finally:
                assert [(made.tool, made.error) for made in record.calls] == [
                    ("hang", "it had not returned when the run ended")
                ]

    with pytest.raises(TimeoutError):
        asyncio.run(go())


def test_calls_are_in_the_order_in_which_they_begin_and_without_keys_of_forges_own() -> None:
    @tool(idempotent=True)
    def pay(n: int, key: IdempotencyKey) -> int:
        """Pay."""
        return n

    record = played(
        wait, pay, optional_steps="pay", replies=[calls(("wait", {"n": 1}), ("wait", {"n": 2}), ("pay", {"n": 3}))]
    )
    assert [(made.tool, dict(made.arguments)) for made in record.calls[:3]] == [
        ("wait", {"n": 1}),
        ("wait", {"n": 2}),
        ("pay", {"n": 3}),
    ]


def test_corrections_and_rescued_calls_are_counted_by_kind() -> None:
    rescued = '<tool_call>{"name": "wait", "arguments": {"n": 1}}</tool_call>'
    replies: list[object] = ["I will.", call("end"), rescued]
    record = played(wait, replies=replies, required_steps=["wait"])
    assert (record.retries, record.step_nudges, record.rescued) == (1, 1, 1)


def test_spending_is_added_up_and_priced() -> None:
    record, price = RunRecord(), Price(prompt=1.0, completion=10.0, cached=0.1)
    record.spend(Usage(prompt=1000, completion=100, cached=500), price)
    record.spend(None, price)
    record.spend(Usage(prompt=10), price)
    assert (record.input_tokens, record.output_tokens, record.cached_tokens) == (1010, 100, 500)
    assert record.cost == pytest.approx((500 + 50 + 1000 + 10) / 1e6)


def test_the_outcome_of_a_conversation_is_that_of_its_last_message() -> None:
    record, asked = RunRecord(), NeedsInput(question="Which?")
    record.outcomes.append(asked)
    assert record.trajectory(2).outcome is None
    assert record.trajectory(2).outcomes == (asked,)
    assert record.trajectory(1).outcome == asked


# The metered connection: seeds where a wire has a field for them, what is used, the digest, the context.

ASK = Send(request=Request(head=Raw(b'{"model":"m","options":{"temperature":1}}')), turn=1)


@pytest.mark.parametrize(
    ("dialect", "head"),
    [
        (Dialect(), {"model": "m", "options": {"temperature": 1}, "seed": 7}),
        (
            Dialect(option_names={"seed": "random_seed"}),
            {"model": "m", "options": {"temperature": 1}, "random_seed": 7},
        ),
        (Dialect(option_names={"seed": ""}), {"model": "m", "options": {"temperature": 1}}),
        (Dialect(wire="ollama"), {"model": "m", "options": {"temperature": 1, "seed": 7}}),
        (Dialect(wire="anthropic"), {"model": "m", "options": {"temperature": 1}}),
    ],
)
def test_a_request_has_its_seed_where_the_wire_has_a_field(dialect: Dialect, head: dict[str, object]) -> None:
    asked = seeded(ASK, dialect, 7).request
    assert msgspec.json.decode(asked.head) == head
    assert (asked.messages, asked.tail) == (ASK.request.messages, ASK.request.tail)


def test_no_two_calls_of_an_evaluation_share_a_seed() -> None:
    seeds = [request_seed(run, number) for run in range(50) for number in range(1, 100)]
    assert len({*seeds}) == len(seeds)


def asked(answers: Sequence[Replied | Undelivered], context_tokens: int = 100) -> tuple[RunRecord, list[object]]:
    """What came of so many requests."""
    left, record = iter(answers), RunRecord()

    async def send(_: Send) -> Replied | Undelivered:
        return next(left)

    connection = metered(
        Connection(Setup(context_tokens=8192), send),
        record,
        seed=3,
        price=Price(prompt=1.0),
        context_tokens=context_tokens,
    )
    assert connection.setup.context_tokens == context_tokens

    async def go() -> list[object]:
        return [await connection.send(ASK) for _ in answers]

    return record, asyncio.run(go())


def replied(text: str, prompt: int) -> Replied:
    return Replied(reply=Reply(text=text, usage=Usage(prompt=prompt, completion=5)))


def test_a_prompt_over_the_context_of_the_scenario_is_refused_as_a_server_would() -> None:
    record, (fits, over) = asked([replied("a", 100), replied("b", 101)])
    assert isinstance(fits, Replied)
    assert isinstance(over, Undelivered)
    assert (over.fault.status, over.fault.detail) == (
        400,
        "the prompt has 101 tokens, and the context of this scenario 100",
    )
    assert (record.asked, record.input_tokens, record.output_tokens) == (2, 201, 10)


def test_a_fault_is_kept_and_costs_nothing() -> None:
    fault = Fault(kind="unreachable", detail="nobody there")
    record, _ = asked([Undelivered(fault=fault)])
    assert (record.fault, record.asked, record.cost) == (fault, 1, 0.0)


def test_runs_have_the_same_digest_if_all_was_sent_and_answered_alike() -> None:
    digests = [asked(answers)[0].digest for answers in ([replied("a", 9)], [replied("a", 9)], [replied("b", 9)], [])]
    assert digests[0] == digests[1] != digests[2]
    assert digests[3] == ""
