"""Metering: seeds where a wire has a field for them, what a run takes, its digest, the context it is held to."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
from msgspec import Raw

from forge.connection import Connection, Setup
from forge.evals.record import RunRecord, metered, seeded
from stages.effect import Fault, Price, Replied, Reply, Request, Send, Undelivered, Usage
from stages.wire.wires import Dialect

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
