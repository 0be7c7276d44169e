"""Each program of examples/ runs on a scripted model, and is short enough to start from."""

import asyncio
import runpy
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from forge import Scripted, call, run_sync
from forge.agent.memory import SQLiteStore
from forge.backends import Server
from forge.evals import play
from forge.testing import assert_compactor_laws
from stages.effect import Fault, Reply
from tests.flows import approve
from tests.scripted_server import scripted_server
from tests.test_guardrails_examples import completion

FOLDER = Path(__file__).parents[1] / "examples"
GALLERY = (
    "durable_run",
    "files",
    "mcp_clock",
    "orders",
    "own_compactor",
    "own_eval",
    "proxy_policy",
    "remembering",
    "sql_assistant",
    "triage",
)


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / f"{name}.py"))


def test_the_gallery_is_listed_and_its_programs_are_short() -> None:
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in sorted(FOLDER.glob("*.py")) if f"({path.name})" not in listed] == []
    assert {name: lines for name in GALLERY if (lines := (FOLDER / f"{name}.py").read_text().count("\n")) > 60} == {}


def test_orders() -> None:
    calls = [
        call("send_report", city="Oslo", total=1),
        call("get_order", order_id="A-17"),
        call("get_customer", customer_id="C-204"),
        call("send_report", city="Lisbon", total=129.9),
    ]
    ended = run_sync(example("orders")["workflow"], "Report on order A-17", backend=Scripted(calls))
    assert ended.unwrap().value == "Report sent: 129.9 from Lisbon."


def test_triage_corrects_what_does_not_fit_the_type() -> None:
    def ticket(urgency: int, area: str = "billing") -> Reply:
        return call("submit_result", area=area, urgency=urgency, summary="s")

    found = example("triage")["main"](
        ("Some lamp?", "Twice!"), Scripted([ticket(1, "lamps"), ticket(1, "products"), ticket(9), ticket(3)])
    )
    assert [(one.area, one.urgency) for one in found] == [("billing", 3), ("products", 1)]


def test_the_sql_assistant_cannot_write_where_it_reads_and_asks_before_it_writes() -> None:
    module = example("sql_assistant")
    with closing(module["database"]()) as orders:
        model = Scripted(
            [
                call("query", sql="DELETE FROM orders"),
                call("change", sql="UPDATE orders SET paid = 1 WHERE id = 2"),
                call("query", sql="SELECT count(*) FROM orders WHERE paid = 1"),
                call("converse", message="Two are paid."),
            ]
        )
        agent = module["assistant"](orders, model)
        assert agent.process_sync("Mark order 2 as paid.", ask=approve).unwrap().value == "Two are paid."
        assert b"attempt to write a readonly database" in model.requests[1]
        assert b"1 rows changed." in model.requests[2]
        assert orders.execute("SELECT id FROM orders WHERE paid = 1").fetchall() == [(1,), (2,)]


def test_files_asks_before_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("total = 5\n")
    monkeypatch.setattr("builtins.input", lambda _: "n")
    model = Scripted(
        [
            call("search_files", text="total"),
            call("write_file", path="b.txt", content="5\n"),
            call("converse", message="It is in a.txt."),
        ]
    )
    assert asyncio.run(example("files")["main"](tmp_path, "Where is the total?", model)) == "It is in a.txt."
    assert b"total = 5" in model.requests[1]
    assert b"not now" in model.requests[2]
    assert not (tmp_path / "b.txt").exists()


@pytest.mark.soak  # starts a program that imports the SDK of MCP; tests/mcp has the like
def test_mcp_clock_asks_the_server_that_it_is_itself() -> None:
    model = Scripted([call("clock_offset", city="Tokyo"), call("respond", message="Nine.")])
    assert asyncio.run(example("mcp_clock")["main"]("How far is Tokyo from UTC?", model)) == "Nine."
    assert b'"content":"9"' in model.requests[1]


def test_the_client_of_proxy_policy_gets_the_look_up_first(tmp_path: Path) -> None:
    script = [
        completion(("c1", "send_report", {"total": 5})),
        completion(("c2", "get_order", {"order_id": "A-17"})),
        completion(("c3", "send_report", {"total": 129.9})),
        completion("It is sent."),
    ]
    with scripted_server(tmp_path, script) as address:
        got = asyncio.run(example("proxy_policy")["main"](Server(address, probe=False)))
    assert got == ['get_order {"order_id": "A-17"}', 'send_report {"total": 129.9}', "It is sent."]


@pytest.mark.soak
def test_own_compactor_keeps_the_laws_of_compaction() -> None:
    assert_compactor_laws(example("own_compactor")["last_results"])


def test_own_compactor_keeps_a_run_short() -> None:
    module = example("own_compactor")
    assert module["milliseconds"](module["last_results"], calls=9) > 0
    model = Scripted(
        [*(call("read_page", page=page) for page in range(1, 6)), call("respond", message="4711")], context_tokens=2500
    )
    assert module["main"](model) == ("4711", "3 compactions")
    assert b'"[cut]"' in model.requests[-1]


def test_remembering_knows_in_another_process_what_was_said_and_the_facts(tmp_path: Path) -> None:
    module = example("remembering")

    def say(message: str, model: Scripted) -> object:
        return asyncio.run(module["main"](SQLiteStore(tmp_path / "memory.db"), message, model))

    assert say("I am Ada.", Scripted(["Hello, Ada."])) == "Hello, Ada."
    say("Remember: Ada drinks tea.", Scripted(["I will."]))
    later = Scripted(["Tea."])
    assert say("What does Ada drink?", later) == "Tea."
    assert b"I am Ada." in later.requests[0]
    assert b"[1]" not in later.requests[0]


def test_a_durable_run_waits_for_the_approval_of_another_process(tmp_path: Path) -> None:
    module = example("durable_run")
    model = Scripted([call("get_order", order_id="A-17"), call("refund", amount=129.9)])
    assert asyncio.run(module["start"](tmp_path / "runs.db", model)) == 'waiting: refund {"amount":129.9}'
    assert asyncio.run(module["approve"](tmp_path / "runs.db", Scripted([]))) == "Refunded: 129.9"


def test_own_eval_tells_right_from_harm() -> None:
    module = example("own_eval")

    def verdict(total: str) -> str:
        offered = call("send_offer", product="lamp", count=3, total=total)
        gone = Fault(kind="unreachable", detail="gone")
        return play(module["offer"], [call("get_price", product="lamp"), offered, gone]).judged.verdict

    assert (verdict("49.0 * 3"), verdict("50 * 3")) == ("right", "unfinished")
