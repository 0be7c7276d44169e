"""`forge mcp` as a process, with the SDK's own client, and by hand: a workflow as the tool of an MCP server."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import TextContent

from tests.scripted_model import completion
from tests.scripted_server import calling, scripted_server

FLOW = Path(__file__).with_name("flow_served.py")
NOBODY = ["--backend", "http://127.0.0.1:9"]
WORDS = ["-m", "forge", "mcp", f"{FLOW}:workflow", "--no-probe", "--mode", "native", "--description", "Answers."]


def server(address: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=[*WORDS, "--backend", address], env={**os.environ})


def text_of(result: object) -> str:
    return "\n".join(one.text for one in getattr(result, "content", ()) if isinstance(one, TextContent))


MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])
"""The protocols with a handshake, and the newest one without."""


@MODES
def test_a_workflow_is_one_tool_with_progress_results_and_questions(tmp_path: Path, mode: str) -> None:
    """All in one session: a process takes seconds to import the SDK."""
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async def use(address: str) -> None:
        async with Client(server(address), mode=mode) as client:
            (tool,) = (await client.list_tools()).tools
            assert (tool.name, tool.description, tool.input_schema["required"]) == (
                "the_desk_",
                "Answers.",
                ["message"],
            )
            result = await client.call_tool("the_desk_", {"message": "What is it?"}, progress_callback=hear)
            assert not result.is_error
            assert result.structured_content == {"reported": "It is 42."}
            assert json.loads(text_of(result)) == {"reported": "It is 42."}
            wrong = await client.call_tool("the_desk_", {"message": " "})
            assert wrong.is_error
            assert "which is not empty" in text_of(wrong)
            asked = await client.call_tool("the_desk_", {"message": "Get me one."})
            assert text_of(asked) == "Which one?\n- red\n- blue"
            halted = await client.call_tool("the_desk_", {"message": "Go."})
            assert halted.is_error
            assert "no usable tool call in 4 attempts" in text_of(halted)

    looked = [calling("look", what="it"), calling("report", text="It is 42.")]
    with scripted_server(
        tmp_path, [*looked, calling("ask", question="Which one?"), *[calling("no_such_tool")] * 4]
    ) as address:
        asyncio.run(use(address))
    assert heard == ["asks the model, 1", "runs look", "asks the model, 2", "runs report"]


def test_an_agent_is_served_on_the_backend_of_the_command_line(tmp_path: Path) -> None:
    async def use(address: str) -> str:
        words = ["-m", "forge", "mcp", f"{FLOW}:agent", "--no-probe", "--backend", address]
        own = StdioServerParameters(command=sys.executable, args=words, env={**os.environ})
        async with Client(own) as client:
            return text_of(await client.call_tool("helper", {"message": "Hello."}))

    with scripted_server(tmp_path, [completion("Hi.")]) as address:
        assert asyncio.run(use(address)) == "Hi."


def test_an_agent_is_served_on_its_own_backend_where_the_command_line_names_none() -> None:
    async def use() -> None:
        own = StdioServerParameters(
            command=sys.executable, args=["-m", "forge", "mcp", f"{FLOW}:agent"], env={**os.environ}
        )
        async with Client(own) as client:
            result = await client.call_tool("helper", {"message": "Hello."})
            assert result.is_error
            assert "cannot connect to http://127.0.0.1:9" in text_of(result)

    asyncio.run(use())


def test_standard_output_is_the_protocol_alone_and_its_end_is_the_programs(tmp_path: Path) -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "the_desk_", "arguments": {"message": "?"}},
        },
    ]
    with scripted_server(tmp_path, [calling("look", what="it"), calling("report", text="42")]) as address:
        command = [sys.executable, *WORDS, "--backend", address]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdin.write("this is no JSON\n" + "".join(json.dumps(one) + "\n" for one in sent))
            process.stdin.flush()
            lines = [json.loads(process.stdout.readline()) for _ in range(2)]
            process.stdin.close()
            assert process.stdout.read() == ""
            printed = process.stderr.read()
            assert process.wait() == 0
    assert [line["id"] for line in lines] == [1, 2]
    assert "this file prints" in printed
    assert "looking up it" in printed
    assert "a program prints too" in printed


def test_a_cancelled_call_ends_its_run_and_the_next_is_answered(tmp_path: Path) -> None:
    async def use(address: str) -> str:
        async with Client(server(address), mode="legacy") as client:
            begun = asyncio.Event()

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                if message == "runs wait":
                    begun.set()

            call = asyncio.create_task(client.call_tool("the_desk_", {"message": "Wait."}, progress_callback=hear))
            async with asyncio.timeout(60):
                await begun.wait()
            call.cancel()
            await asyncio.wait({call})
            while not (tmp_path / "cancelled").exists():
                await client.list_tools()
            return text_of(await client.call_tool("the_desk_", {"message": "Go on."}))

    script = [calling("wait", where=str(tmp_path / "cancelled")), calling("report", text="I do.")]
    with scripted_server(tmp_path, script) as address:
        assert json.loads(asyncio.run(use(address))) == {"reported": "I do."}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_at_once(number: signal.Signals, code: int) -> None:
    command = [sys.executable, *WORDS, *NOBODY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(timeout=30) == code


WRONG = [
    ([f"{FLOW}:workflow"], "a workflow has no backend of its own; give --backend"),
    (
        [f"{FLOW}:agent", "--model", "x", "--no-probe", "--seed", "7"],
        "without --backend, an agent uses its own backend; leave out --model x --no-probe --seed 7",
    ),
    (["no_such.py", *NOBODY], "there is no file no_such.py"),
    ([str(FLOW), *NOBODY], "has more than one workflow or agent; write "),
    ([f"{FLOW}:agent", *NOBODY, "--var", "tone"], "write it as NAME=VALUE"),
    ([f"{FLOW}:agent", *NOBODY, "<&-"], "one of them is closed"),
]
EACH = """
import os, sys
import forge.mcp.serving
from forge.cli.dispatch import run_command

for number, words in enumerate(eval(sys.argv[1])):
    sys.stderr.flush()
    if not os.fork():
        os.dup2(os.open(f"{number}.err", os.O_CREAT | os.O_WRONLY), 2)
        if "<&-" in words:
            os.close(0)
        os._exit(run_command([word for word in words if word != "<&-"]))
    print(os.waitstatus_to_exitcode(os.wait()[1]), file=sys.stderr)
"""
"""Imports the SDK once, which takes seconds, and has a child for each command line."""


def test_wrong_usage_is_told_on_standard_error_only(tmp_path: Path) -> None:
    command = [sys.executable, "-c", EACH, repr([["mcp", *words] for words, _ in WRONG])]
    where = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    ended = subprocess.run(
        command, stdin=null, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=where, check=True
    )
    assert (ended.stdout, ended.stderr.split()) == ("", ["2"] * len(WRONG))
    for number, (_, said) in enumerate(WRONG):
        assert said in (tmp_path / f"{number}.err").read_text()


def test_without_the_sdk_it_says_what_to_install() -> None:
    words = [*WORDS[2:], *NOBODY]
    code = "import sys; sys.modules['mcp'] = None; from forge.cli.dispatch import run_command; "
    code += f"sys.exit(run_command({words!r}))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "pip install '.[mcp]'" in ended.stderr
