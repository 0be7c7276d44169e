"""Servers from PyPI that nobody here wrote: one of today's, and one of the SDK's first days."""

from pathlib import Path

from forge import Limits, Workflow, run_sync
from forge.interpreters.scripted import Line, Scripted, call
from forge.mcp import McpTools, Stdio
from stages.message import Tool as ToolMessage
from tests.mcp.foreign import SQLITE, TIME, program


def test_two_servers_of_others_in_one_workflow(tmp_path: Path) -> None:
    servers = {
        "time": Stdio([program(*TIME), "--local-timezone", "Europe/Berlin"], only=["convert_time"]),
        "db": Stdio(
            [program(*SQLITE), "--db-path", str(tmp_path / "test.db")], tools={"read_query": {"effect": "read"}}
        ),
    }
    script: list[Line] = [
        call("db_create_table", query="CREATE TABLE flight (number TEXT, leaves TEXT)"),
        call("db_write_query", query="INSERT INTO flight VALUES ('LH 1', '16:30')"),
        call("db_read_query", query="SELECT leaves FROM flight"),
        call("time_convert_time", source_timezone="Europe/Berlin", time="16:30", target_timezone="Asia/Tokyo"),
        call("time_convert_time", source_timezone="Mars/Olympus", time="16:30", target_timezone="Asia/Tokyo"),
        "done",
    ]
    with McpTools(servers) as tools:
        assert [one.name for one in tools if one.name.startswith("time_")] == ["time_convert_time"]
        limits, off = Limits(max_tool_errors=9), ("ask_once", "no_unseen_values")
        flow = Workflow("flights", tools=tools, on_text="accept", limits=limits, without=off)
        ended = run_sync(flow, "When does it leave, in Tokyo?", backend=Scripted(script)).unwrap()
    told = [one.text for one in ended.state.history if isinstance(one, ToolMessage)]
    assert "16:30" in told[2]
    assert "T23:30" in told[3] or "T00:30" in told[3]  # summer or winter
    assert told[4].startswith("[ToolError] McpToolError: ")
    assert "Mars/Olympus" in told[4]
