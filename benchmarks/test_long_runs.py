"""What the next reply is offered, after 1,000 and 10,000 messages: the same time, once their messages are read."""

import msgspec
import pytest
from msgspec import Raw
from pytest_benchmark.fixture import BenchmarkFixture

from stages.effect import Budget
from stages.message import Assistant, History, Status, Tool, ToolCall, User
from stages.offer import offered_tools, remembering
from stages.recounting import recount
from stages.rules import Rules
from stages.state import State
from stages.tool import ToolSpec

NAME = Raw(b'{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}')
RULES = Rules(
    tools=(
        ToolSpec(name="read_page", description="Read.", parameters=NAME, effect="read"),
        ToolSpec(name="find_member", description="Find.", parameters=NAME, effect="read"),
        ToolSpec(name="void_invoice", description="Void.", parameters=NAME, effect="write"),
        ToolSpec(name="finish", description="Finish.", parameters=Raw(b'{"type":"object"}'), effect="terminal"),
    ),
    withheld=("void_invoice",),
)


@pytest.mark.parametrize("messages", [1_000, 10_000])
def test_whether_anybody_spoke_of_a_write(benchmark: BenchmarkFixture, messages: int) -> None:
    offered = benchmark(offered_tools, RULES, remembered(pages(messages)))
    assert [tool.name for tool in offered] == ["read_page", "find_member", "finish"]


@pytest.mark.parametrize("messages", [1_000, 10_000])
def test_a_stuck_run(benchmark: BenchmarkFixture, messages: int) -> None:
    history = pages(messages)
    for guess in range(3):
        history += exchange("find_member", f"nobody-{guess}", messages + guess, "not found", "unresolved")
    offered = benchmark(offered_tools, RULES, remembered(history))
    assert offered != RULES.tools


def remembered(history: History) -> State:
    """The state in its second turn after these messages: what they say was gathered in the first."""
    return remembering(RULES)(State(history=history, ledger=recount(RULES, history, budget=Budget(calls=9))))


def pages(messages: int) -> History:
    """A run that has read so many pages, half a message each."""
    history: History = (User(text="Read it all."),)
    for number in range(1, messages // 2):
        history += exchange("read_page", f"page {number}", number, f'{{"number": {number}, "text": "{"word " * 60}"}}')
    return history


def exchange(name: str, value: str, turn: int, text: str, status: Status = "succeeded") -> History:
    made = ToolCall(id=f"call_{turn}", name=name, arguments=msgspec.json.encode({"name": value}).decode())
    return (Assistant(calls=(made,), turn=turn), Tool(call_id=made.id, name=name, text=text, status=status, turn=turn))
