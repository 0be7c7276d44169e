"""Tools of MCP servers, which are real processes: the SDK's own, and some that break the protocol."""

import asyncio
import os
import re
import select
import shlex
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from forge import Agent, Limits, Workflow, run, run_sync
from forge.errors import DefinitionError
from forge.interpreters.scripted import Line, Scripted, call
from forge.mcp import Http, McpError, McpTools, Stdio
from forge.tools import Tool
from stages.effect import Failed, InDoubt, Succeeded
from stages.events import ToolProgressed, ToolsReturned
from stages.message import Tool as ToolMessage
from tests.heard import heard_by
from tests.scripted_server import calling, scripted_server

HERE = Path(__file__).parent
GOOD = [sys.executable, str(HERE / "good_server.py")]

Tools = tuple[Tool[..., object], ...]


def odd(how: str, **options: object) -> Stdio:
    return Stdio([sys.executable, str(HERE / "odd_server.py"), how], **options)  # type: ignore[arg-type]  # by name


def results(tools: Tools, *calls: Line) -> list[object]:
    """What the calls of a run came back with, in order."""
    came: list[object] = []

    def watch(event: object) -> None:
        if isinstance(event, ToolsReturned):
            came.extend(event.results)

    flow = Workflow("test", tools=tools, on_text="accept", limits=Limits(max_iterations=30, max_tool_errors=20))
    run_sync(flow, "Go.", backend=Scripted([*calls, "done"]), on_event=heard_by(watch))
    return came


@pytest.fixture(scope="module")
def good() -> Iterator[Tools]:
    with McpTools({"good": Stdio(GOOD)}) as tools:
        yield tools


def test_results_come_as_values_text_or_notes(good: Tools) -> None:
    came = results(
        good,
        call("good_add", a=1, b="2"),
        call("good_pack", item={"name": "a", "children": [{"name": "b"}]}, into={"kind": "bag", "colour": "red"}),
        call("good_picture"),
        call("good_note", text='{"a": 1}'),
        call("good_listed"),
    )
    assert [(bytes(one.value), one.text) for one in came if isinstance(one, Succeeded)] == [
        (b"3", "3"),
        (b'{"item":"a","into":"bag"}', '{"item":"a","into":"bag"}'),
        (
            msgspec.json.encode("a title\n[image, image/png, 3,000 bytes: not shown]"),
            "a title\n[image, image/png, 3,000 bytes: not shown]",
        ),
        (msgspec.json.encode('{"a": 1}'), '{"a": 1}'),
        (b'["one","two"]', '["one","two"]'),
    ]


def test_arguments_are_checked_against_the_whole_schema_before_they_are_sent(good: Tools) -> None:
    schema = msgspec.json.decode(next(one for one in good if one.name == "good_pack").spec.parameters)
    assert schema["properties"]["item"] == {"$ref": "#/$defs/Item"}
    assert schema["properties"]["into"]["oneOf"] == [{"$ref": "#/$defs/Box"}, {"$ref": "#/$defs/Bag"}]
    flow = Workflow("test", tools=good, on_text="accept")
    wrong = call("good_pack", item={"name": "a"}, into={"kind": "box", "size": "large"})
    ended = run_sync(flow, "Go.", backend=Scripted([wrong, "done"])).unwrap()
    (told,) = [one.text for one in ended.state.history if isinstance(one, ToolMessage)]
    assert "into.size" in told
    assert "integer" in told


def test_what_a_server_says_went_wrong_is_an_error_that_the_model_may_correct(
    good: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    (came,) = results(good, call("good_refuse", why="no"))
    assert isinstance(came, Failed)
    assert (came.error, came.counted) == ("McpToolError", True)
    assert "refused: no" in came.message
    (logged,) = [record for record in caplog.records if record.name == "forge.tools"]
    assert "the tool good_refuse raised McpToolError: " in logged.getMessage()
    assert "refused: " in logged.getMessage()
    assert logged.exc_text is None


def test_progress_is_heard_and_not_shown_to_the_model(good: Tools) -> None:
    heard: list[str] = []

    def watch(event: object) -> None:
        if isinstance(event, ToolProgressed):
            heard.append(event.text)

    flow = Workflow("test", tools=good, on_text="accept")
    script = Scripted([call("good_steps", count=3), "done"])
    ended = run_sync(flow, "Go.", backend=script, on_event=heard_by(watch)).unwrap()
    assert heard == ["1 of 3: step 1", "2 of 3: step 2", "3 of 3: step 3"]
    assert [one.text for one in ended.state.history if isinstance(one, ToolMessage)] == ["worked"]


def test_the_tools_work_in_an_agent_and_in_several_event_loops(good: Tools) -> None:
    agent = Agent("adder", backend=Scripted([call("good_add", a=2, b=2), "It is 4.", "Gladly."]))
    agent.add_tools(*good)
    assert str(agent.process_sync("Add 2 and 2.").unwrap().value) == "It is 4."
    assert str(agent.process_sync("Thank you.").unwrap().value) == "Gladly."


def test_a_cancelled_run_cancels_its_call_and_the_session_goes_on(good: Tools) -> None:
    async def interrupted() -> object:
        cancel, begun = asyncio.Event(), asyncio.Event()

        def watch(event: object) -> None:
            if type(event).__name__ == "CallsAccepted":
                asyncio.get_running_loop().call_later(0.2, cancel.set)
                begun.set()

        flow = Workflow("test", tools=good, on_text="accept")
        return await run(flow, "Go.", backend=Scripted([call("good_hang")]), on_event=heard_by(watch), cancel=cancel)

    assert "cancelled" in repr(asyncio.run(interrupted()))
    assert [type(one) for one in results(good, call("good_add", a=1, b=1))] == [Succeeded]


@contextmanager
def over_http(*options: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of the good server over HTTP, and what ends it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [*GOOD, "http", str(port), *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )

    def end() -> None:
        process.kill()
        process.wait()

    try:
        while "Uvicorn running" not in (process.stderr.readline() if process.stderr else ""):
            assert process.poll() is None
        yield f"http://127.0.0.1:{port}/mcp", end
    finally:
        end()
        if process.stderr:
            process.stderr.close()


@pytest.mark.parametrize("kind", ["stream", "json"])
def test_over_http_a_long_answer_and_a_server_that_is_gone_are_faults_of_calls(kind: str) -> None:
    with over_http(kind) as (url, end), McpTools({"far": Http(url, message_limit=100_000)}) as tools:
        added, long, again = results(
            tools, call("far_add", a=1, b=1), call("far_large", megabytes=50), call("far_add", a=2, b=2)
        )
        assert isinstance(added, Succeeded)
        assert isinstance(again, Succeeded)
        assert "limit" in str(long), long
        end()
        (gone,) = results(tools, call("far_add", a=1, b=2))
    assert isinstance(gone, Failed)
    assert "the MCP server far cannot be" in gone.message
    assert "connection" in gone.message
    assert not gone.counted


def test_a_long_answer_is_not_kept_in_memory(good: Tools) -> None:
    tracemalloc.start()
    try:
        (came,) = results(good, call("good_large", megabytes=50))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(came, Failed)
    assert "4,194,304 are read (message_limit)" in came.message
    assert peak < 20 << 20


@pytest.mark.parametrize(
    ("how", "kind", "told"),
    [
        ("hangs", InDoubt, "did not answer within 1 second"),
        ("dies", InDoubt, "it ended with exit code 3; it said last: Traceback: the disk is full, key=***"),
        ("huge", Failed, "at most 4,194,304 are read"),
        ("broken", Failed, "no message of the protocol"),
        ("formless", Failed, "not the result of a tool"),
        ("noisy", Succeeded, "fine"),
    ],
)
def test_a_faulty_server_is_a_fault_of_its_own_calls(good: Tools, how: str, kind: type, told: str) -> None:
    server = odd(how, timeout=1.0 if how == "hangs" else 60.0, env={"KEY": "hunter2hunter2"})
    with McpTools({"odd": server}) as tools:
        came = results((*good, *tools), call("odd_go", n=1), call("good_add", a=1, b=1))
    assert [type(one) for one in came] == [kind, Succeeded], came
    assert told in str(came[0]), came[0]


def test_a_call_that_only_reads_is_an_error_where_that_of_another_is_in_doubt() -> None:
    server = odd("dies", tools={"go": {"effect": "read"}}, restarts=0)
    with McpTools({"odd": server}) as tools:
        first, second = results(tools, call("odd_go", n=1), call("odd_go", n=2))
    assert isinstance(first, Failed)
    assert first.error == "ToolOutcomeUnknown"
    assert "is gone (it ended with exit code 3" in str(second)


def test_a_program_that_has_ended_is_started_again_as_often_as_it_may_be(caplog: pytest.LogCaptureFixture) -> None:
    server = odd("tires", tools={"go": {"effect": "read"}}, env={"KEY": "hunter2hunter2"})
    with McpTools({"odd": server}) as tools:
        came = results(tools, *(call("odd_go", n=n) for n in range(5)))
    assert [type(one) for one in came] == [Succeeded, Failed, Succeeded, Failed, Failed]
    assert "is gone (it ended with exit code 3" in str(came[-1])
    (told,) = [one.message for one in caplog.records if "started again" in one.message]
    assert told.startswith("the MCP server odd is started again: it ended with exit code 3; it said last: Traceback")
    assert told.endswith("key=***")


def test_the_last_words_of_a_server_are_whole() -> None:
    dying = Stdio(["sh", "-c", "echo /abc/def failed >&2; exit 3"])
    with pytest.raises(McpError, match=re.escape("it said last: /abc/def failed")), McpTools({"dying": dying}):
        pass


def test_servers_that_cannot_be_reached_are_all_named_without_secrets(capfd: pytest.CaptureFixture[str]) -> None:
    servers: dict[str, Stdio | Http] = {
        "silent": odd("silent", connect_timeout=1.0),
        "missing": Stdio(["/no/such/program", "--key=hunter2hunter2"]),
        "dead": Stdio([sys.executable, "-c", "import sys; sys.exit('out of luck')"]),
        "far": Http("http://127.0.0.1:9/mcp?key=hunter2hunter2", headers={"x-key": "sesame-sesame"}),
    }
    with pytest.raises(McpError) as caught, McpTools(servers):
        pass
    lines = str(caught.value).splitlines()
    assert lines[0] == "silent: did not answer within 1 second (connect_timeout)"
    assert lines[1].startswith("missing: there is no program '/no/such/program'")
    assert lines[2].startswith("dead: ")
    assert "out of luck" in lines[2]
    assert lines[3].startswith("far: ")
    assert "hunter2" not in str(caught.value) + repr(servers)
    assert "sesame" not in str(caught.value) + repr(servers)
    assert capfd.readouterr() == ("", "")


def test_without_a_server_that_is_not_required_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    with McpTools({"odd": odd("plain"), "lost": Stdio(["/no/such/program"], required=False)}) as tools:
        assert [one.name for one in tools] == ["odd_go"]
    assert "lost: there is no program" in caplog.text


def test_a_tool_that_has_changed_is_refused_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    with McpTools({"odd": odd("changes")}) as tools:
        came = results(tools, call("odd_go", n=1), call("odd_go", n=2), call("odd_stays", n=3))
    assert [type(one) for one in came] == [Succeeded, Failed, Succeeded]
    assert "has changed or removed its tool go since" in str(came[1])
    assert "the MCP server odd has changed or removed tools that are in use: go" in caplog.text


def test_a_tool_that_has_changed_on_a_server_of_the_newest_protocol_is_refused() -> None:
    with McpTools({"good": Stdio(GOOD)}) as tools:
        came = results(tools, call("good_forget", tool="note"), call("good_note", text="a"), call("good_add", a=1, b=1))
    assert [type(one) for one in came] == [Succeeded, Failed, Succeeded]


def test_a_server_that_does_not_say_what_it_has_changed_is_a_fault_of_the_call() -> None:
    with McpTools({"odd": odd("secretive", timeout=1.0)}) as tools:
        first, second = results(tools, call("odd_go", n=1), call("odd_go", n=2))
    assert isinstance(first, Succeeded)
    assert isinstance(second, Failed)
    assert "cannot be asked which tools it has now" in second.message
    assert not second.counted


def test_a_file_for_the_command_line_has_the_tools_until_the_program_ends(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(
        f"from forge import Workflow\nfrom forge.mcp import McpTools, Stdio\n"
        f"tools = McpTools({{'odd': Stdio({[*odd('plain').command]!r})}}).until_exit()\n"
        f"workflow = Workflow('flow', tools=tools, terminal_tool='odd_go')\n"
    )
    with scripted_server(tmp_path, [calling("odd_go", n=1)]) as address:
        options = ["--backend", address, "--no-probe", "--mode", "native", "--journal", "j.jsonl"]
        command = [sys.executable, "-m", "forge", "run", "flow.py", "Go.", *options]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert 'odd_go returned "ok"' in ended.stdout


def test_names_are_legal_and_unique() -> None:
    with McpTools({"odd": odd("collides")}) as tools:
        names = [one.name for one in tools]
    assert len(names) == len(set(names)) == 4
    assert all(re.fullmatch(r"odd_get_it_[0-9a-f]{6}", name) for name in names[:2])
    assert re.fullmatch(r"odd_x{53}_[0-9a-f]{6}", names[2])
    assert names[3] == "odd_same"


def test_a_schema_that_forge_cannot_read_reaches_the_model_whole_and_is_checked_as_far_as_it_can_be() -> None:
    with McpTools({"odd": odd("foreign")}) as tools:
        backend = Scripted([call("odd_go", n="three", far=1), call("odd_go", n=3, far={"any": 1}), "done"])
        flow = Workflow("test", tools=tools, on_text="accept")
        ended = run_sync(flow, "Go.", backend=backend).unwrap()
    (sent,) = msgspec.json.decode(backend.requests[0])["tools"]
    assert sent["function"]["parameters"]["properties"]["far"] == {"$ref": "https://example.com/schema.json"}
    told = [one.text for one in ended.state.history if isinstance(one, ToolMessage)]
    assert "integer" in told[0]
    assert told[1] == "ok"


@pytest.mark.parametrize(
    ("trusted", "expected"),
    [
        (False, [("write", False, False), ("write", True, False), ("write", True, False), ("write", False, False)]),
        (True, [("read", False, False), ("write", True, True), ("read", False, False), ("write", False, False)]),
    ],
)
def test_hints_only_make_more_careful_unless_they_are_trusted(trusted: bool, expected: list[object]) -> None:
    with McpTools({"odd": odd("hints", trust_hints=trusted)}) as tools:
        found = [(one.spec.effect, one.spec.approval, one.spec.idempotent) for one in tools]
    assert found == expected


def test_options_for_single_tools_come_before_hints() -> None:
    with McpTools({"odd": odd("hints", only=["set"], tools={"set": {"approval": False, "timeout": 5.0}})}) as tools:
        assert [(one.name, one.spec.approval, one.spec.timeout) for one in tools] == [("odd_set", False, 5.0)]


def test_unknown_tools_and_options_are_named_with_their_server() -> None:
    wrong = odd("hints", only=["sett"], tools={"set": {"efect": "read"}})
    with pytest.raises(DefinitionError) as caught, McpTools({"odd": wrong}):
        pass
    told = str(caught.value)
    assert re.search(r"server odd: it has no tool 'sett'; it has: .*Did you mean set", told)
    assert re.search(r"server odd: the tool set has no option 'efect'; .* Did you mean effect\?", told)


def test_a_server_is_given_little_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    with McpTools({"odd": odd("environment", env={"ITS_OWN": "1"})}) as tools:
        (came,) = results(tools, call("odd_go", n=1))
    names = msgspec.json.decode(came.text, type=list[str]) if isinstance(came, Succeeded) else []
    assert "ITS_OWN" in names
    assert "PATH" in names
    assert "OPENAI_API_KEY" not in names


def test_leaving_stops_the_programs_and_a_tool_that_is_kept_says_so() -> None:
    async def outlived() -> tuple[list[object], set[int]]:
        before = children()
        async with McpTools({"a": odd("plain"), "b": odd("plain")}) as tools:
            assert len(children() - before) == 2
        return await asyncio.to_thread(results, tools, call("a_go", n=1)), children() - before

    (came,), left = asyncio.run(outlived())
    assert "the sessions with the MCP servers are closed" in str(came)
    assert left == set()


@pytest.mark.parametrize("how", ["plain", "dies"])
def test_what_a_program_started_ends_with_it(tmp_path: Path, how: str) -> None:
    """A child of a program that exited by itself, once its input was closed or in the middle, was left running."""
    os.mkfifo(alive := tmp_path / "alive")  # open for as long as the child lives
    program = " ".join(map(shlex.quote, (sys.executable, str(HERE / "odd_server.py"), how)))
    server = Stdio(["sh", "-c", f"sleep 600 </dev/null >{alive} 2>/dev/null & exec {program}"], restarts=0)
    with McpTools({"odd": server}) as tools:
        reading = os.open(alive, os.O_RDONLY)
        results(tools, call("odd_go", n=1))
    ended, _, _ = select.select([reading], [], [], 10)
    os.close(reading)
    assert ended


def children() -> set[int]:
    """The processes that this one has started."""
    listed = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(number) for of_thread in listed for number in of_thread.read_text().split()}


def test_names_of_servers_are_checked_before_anything_is_started() -> None:
    with pytest.raises(DefinitionError, match="'2 much' is not a valid name"):
        McpTools({"2 much": Stdio(["/no/such/program"])})
    with pytest.raises(DefinitionError, match="servers"):
        McpTools({"a": ["mcp-server-time"]})  # type: ignore[dict-item]  # as a user would
