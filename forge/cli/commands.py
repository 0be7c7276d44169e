"""The commands with their descriptions and examples."""

import argparse
import sys
from collections.abc import Callable

from msgspec import Struct

from forge._installation import VERSION
from forge.cli import arguments as takes
from forge.cli.parser import Parser

_EXIT_CODES = """\
exit codes: 0 the run reached its goal, 1 it halted (the reason is printed), 2 wrong usage,
            130 cancelled by Ctrl-C, 143 by SIGTERM"""


class Command(Struct, frozen=True, kw_only=True):
    """A command. `fill` adds its arguments to a parser; each example is a complete command line."""

    name: str
    summary: str
    about: str
    examples: tuple[str, ...]
    fill: Callable[[Parser], None]
    codes: str = ""


_RUN_EXAMPLES = (
    'forge run examples/orders.py "Report on order A-17" --backend local',
    'forge run flow.py:support "The invoice is wrong" --backend http://127.0.0.1:8080 --var tone=friendly',
)

COMMANDS = (
    Command(
        name="demo",
        summary="run a three-step workflow on a real model in this process",
        about="Looks up an order and its customer and sends a report, using a small model in this process\n"
        "(llama.cpp). No server, no key, no GPU. The first run downloads the model into the cache folder.",
        examples=("forge demo", "forge demo --order A-17 --model qwen2.5-coder-1.5b --seed 7"),
        fill=takes.fill_demo,
        codes=_EXIT_CODES,
    ),
    Command(
        name="chat",
        summary="chat with an agent that has tools, approvals and a memory",
        about="Starts a chat with an agent in the terminal: your own, or a default one with tools for the files in\n"
        "this folder. Enter sends; Alt-Enter inserts a newline. Ctrl-C cancels the current work. Messages typed while\n"
        "the agent works reach it with the next tool results. /help lists the commands. Conversations are saved;\n"
        "--resume continues one. In a pipe, each line of input is a message (docs/chat.md).",
        examples=(
            "forge chat",
            "forge chat --backend http://127.0.0.1:8080",
            "forge chat shop.py:agent",
            "forge chat --resume",
            "forge chat --sessions",
        ),
        fill=takes.fill_chat,
        codes="exit codes: 0 conversation ended, 2 wrong usage or no model, 130 Ctrl-C, 143 SIGTERM;\n"
        "            without a terminal, 1 if the agent could not answer a message",
    ),
    Command(
        name="run",
        summary="run your own workflow",
        about="Runs a Workflow defined in a Python file and shows each turn.",
        examples=_RUN_EXAMPLES,
        fill=takes.fill_run,
        codes=_EXIT_CODES,
    ),
    Command(
        name="resume",
        summary="resume an interrupted run",
        about="Resumes a run of a workflow or agent from its journal after a crash, Ctrl-C or an unreachable server,\n"
        "and continues the journal. Completed calls are not repeated (docs/tools.md). Use the same model and options.",
        examples=(
            "forge resume flow.py:support run.jsonl --backend http://127.0.0.1:8080",
            "forge resume demo run.jsonl --backend local --seed 7",
        ),
        fill=takes.fill_resume,
        codes=_EXIT_CODES,
    ),
    Command(
        name="agent",
        summary="run an agent unattended on a task file, within limits",
        about="forge agent run TASK.toml runs an agent on a task without a person. The task file lists the files it\n"
        "may write and the commands it may run, which is checked before each call; gates, such as tests, must pass at\n"
        "the end. Progress goes to standard error, a JSON record to standard output (docs/headless.md). A task:\n\n"
        '  task = "Make the failing test pass."\n'
        '  backend = "http://127.0.0.1:8080"\n'
        "  [limits]\n"
        '  write = ["src/**"]                      # nothing else may be changed\n'
        '  commands = [["python", "-m", "pytest", "*"]]\n'
        "  max_lines = 40\n"
        "  [[gates]]\n"
        '  command = ["python", "-m", "pytest", "-q"]',
        examples=(
            "forge agent run task.toml",
            "forge agent run task.toml --backend local --model qwen2.5-coder-1.5b --record record.json",
            "forge agent run task.toml --resume run.jsonl",
        ),
        fill=takes.fill_agent,
        codes="exit codes: 0 done and all gates passed; 1 the run halted; 2 wrong usage or invalid task file;\n"
        "            3 gates failed; 4 a limit was reached (calls, tokens, seconds, cost);\n"
        "            5 a person is needed; 130 Ctrl-C, 143 SIGTERM",
    ),
    Command(
        name="doctor",
        summary="test what a server really supports",
        about="Sends a running server about a dozen short requests, explains each result, and prints a profile for\n"
        "forge run --profile (docs/doctor.md).",
        examples=(
            "forge doctor http://127.0.0.1:8080 --write server.toml",
            "forge doctor http://127.0.0.1:8080 --json > found.json",
        ),
        fill=takes.fill_doctor,
        codes="exit codes: 0 the server is usable, 1 it is not (the reason is printed), 2 wrong usage",
    ),
    Command(
        name="proxy",
        summary="serve a model to any OpenAI or Anthropic client, with valid tool calls",
        about="Serves the OpenAI and Anthropic APIs in front of the backend. Clients only receive tool calls that\n"
        "match their schemas: calls written as text are found, arguments are checked and coerced, and the model is\n"
        "asked to correct the rest, unseen by the client. Clients need no changes but the address (docs/proxy.md):\n\n"
        "  OPENAI_BASE_URL=http://127.0.0.1:8081/v1 YOUR-AGENT\n"
        "  ANTHROPIC_BASE_URL=http://127.0.0.1:8081 claude\n\n"
        "Each request is logged as one line: clean (as the model wrote it), repaired (a call found in text, or\n"
        "coerced), retried (valid after a correction), exhausted (never valid) or passed (nothing to judge).\n"
        "Ctrl-C waits for in-flight requests; a second one aborts them.",
        examples=(
            "forge proxy --backend http://127.0.0.1:8080",
            "forge proxy --backend local --model qwen2.5-coder-1.5b --context 16384",
            "forge proxy --backend ollama:qwen3:4b --host 0.0.0.0 --api-key-env PROXY_KEY",
        ),
        fill=takes.fill_proxy,
        codes="exit codes: 2 wrong usage, or nothing to serve; 130 stopped by Ctrl-C, 143 by SIGTERM",
    ),
    Command(
        name="serve",
        summary="serve durable runs over HTTP, with a web page to watch and answer them",
        about="Performs runs of these workflows and serves an HTTP API and a web page to start, read, answer and\n"
        "cancel them. Runs are stored in a database and survive restarts: interrupted runs are resumed. Without keys,\n"
        "it only listens on this machine (docs/served.md). Needs the extra `serve`. Ctrl-C waits for in-flight\n"
        "requests; a second one does not.",
        examples=(
            "forge serve examples/orders.py --backend local",
            "forge serve orders.py --backend http://127.0.0.1:8080 --database runs.db --slots 2",
            "forge serve orders.py --backend ollama:qwen3:4b --host 0.0.0.0 --key-file keys.txt",
        ),
        fill=takes.fill_serve,
        codes="exit codes: 2 wrong usage, or nothing to serve; 130 stopped by Ctrl-C, 143 by SIGTERM",
    ),
    Command(
        name="key",
        summary="create a key for a caller of forge serve",
        about="Prints a new key and adds its hash to the file; the key itself is not stored. Callers send it as\n"
        "Authorization: Bearer KEY. To revoke a key, remove its line: forge serve rereads the file.",
        examples=(
            "forge key ann --key-file keys.txt",
            "forge key prometheus --key-file keys.txt --scopes metrics",
        ),
        fill=takes.fill_key,
    ),
    Command(
        name="mcp",
        summary="serve your own workflow or agent as a tool to any MCP client",
        about="Speaks the Model Context Protocol on standard input and output. The client starts it and offers the\n"
        "workflow to its model as one tool, which takes a message. The client gets progress and can cancel;\n"
        "questions go to its user. Output printed by your file goes to standard error (docs/mcp.md). Most clients are\n"
        "configured with a JSON file like this one:\n\n"
        '  {"mcpServers": {"orders": {"command": "forge",\n'
        '    "args": ["mcp", "/path/to/flow.py:support", "--backend", "http://127.0.0.1:8080"]}}}',
        examples=(
            "forge mcp flow.py:support --backend http://127.0.0.1:8080",
            'forge mcp flow.py:support --backend local --description "Answers questions about orders."',
        ),
        fill=takes.fill_mcp,
        codes="exit codes: 0 the client closed the connection, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM",
    ),
    Command(
        name="eval",
        summary="evaluate a model: run scenarios on it, compare, report",
        about="Runs scenarios on a model, with different data for each seed, and judges both its answers and its\n"
        "actions. Results are lines of JSON; an interrupted series continues where it stopped (docs/evals.md).",
        examples=(
            "forge eval run --backend http://127.0.0.1:8080 --runs 10 --against plain",
            "forge eval run my_scenarios.py --backend local --ablation reforged,bare",
            "forge eval list --tags plumbing",
            "forge eval report results.jsonl --html report.html",
            "forge eval check results.jsonl --against baseline.jsonl",
        ),
        fill=takes.fill_eval,
        codes="exit codes: 0 all runs were made, 1 the server was lost, or check found a regression,\n"
        "            2 wrong usage, or runs that could not be judged, 130 Ctrl-C, 143 SIGTERM",
    ),
    Command(
        name="models",
        summary="list, download and delete models",
        about="Lists the models that forge can download by name: size, licence, hash, source, and whether they are\n"
        "downloaded. The default action is list.",
        examples=("forge models", "forge models pull qwen2.5-coder-1.5b", "forge models remove smollm2-135m"),
        fill=takes.fill_models,
    ),
    Command(
        name="runs",
        summary="list recent runs; manage durable runs",
        about="Without a verb, lists the most recent journals in forge's state folder: when each run started, how it\n"
        "ended and how to resume it. The other verbs manage durable runs, which survive their process: start a run,\n"
        "perform runs, answer questions, read results (docs/served.md). They need the extra `durable`.",
        examples=(
            "forge runs",
            "forge runs --last 3 --json",
            "forge runs journals my/journals",
            'forge runs start orders.py "Report on order A-17" --id order-A-17',
            "forge runs work orders.py --backend http://127.0.0.1:8080 --until-idle",
            "forge runs list",
        ),
        fill=takes.fill_runs,
    ),
    Command(
        name="replay",
        summary="show a recorded run, or replay it offline state by state",
        about="Shows the contents of a journal. With a workflow, replays the run without calling models or tools, and\n"
        "checks each effect against the recorded one.",
        examples=(
            "forge replay run.jsonl",
            "forge replay run.jsonl --workflow flow.py:support --to 7",
            "forge replay run.jsonl --workflow flow.py:support --html run.html",
        ),
        fill=takes.fill_replay,
    ),
    Command(
        name="bisect",
        summary="find the first state in which two workflows differ",
        about="Feeds the recorded outcomes to another workflow and shows the first state that differs, field by\n"
        "field. With --workflow given twice, compares the two and names the stage that caused the difference.",
        examples=(
            "forge bisect run.jsonl --workflow new.py:support",
            "forge bisect run.jsonl --workflow old.py:support --workflow new.py:support",
        ),
        fill=takes.fill_bisect,
    ),
    Command(
        name="ablate",
        summary="show what each guardrail changed in a recorded run",
        about="Repeats the decision on each recorded reply with each guardrail removed in turn. Calls no model.",
        examples=("forge ablate run.jsonl --workflow flow.py:support",),
        fill=takes.fill_ablate,
    ),
    Command(
        name="completion",
        summary="print a shell completion script",
        about="Prints a completion script for bash, zsh or fish: commands, options, their choices and files.",
        examples=(
            "forge completion bash > ~/.local/share/bash-completion/completions/forge",
            "forge completion zsh > ~/.zfunc/_forge",
            "forge completion fish > ~/.config/fish/completions/forge.fish",
        ),
        fill=takes.fill_completion,
    ),
)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The parsed command line; argparse exits with 2 and a message on wrong usage."""
    words = sys.argv[1:] if arguments is None else arguments
    return parser(next(iter(words), "")).parse_args(words)


def parser(only: str | None = None) -> Parser:
    """The parser of the command line, with the arguments of all commands or only of this one: some load modules."""
    first = tuple(example for command in COMMANDS for example in command.examples[:1])
    raw = argparse.RawDescriptionHelpFormatter
    about = "Reliable tool calls from small language models."
    top = Parser(prog="forge", description=about, epilog=_epilog(first, _EXIT_CODES), formatter_class=raw)
    top.add_argument("--version", action="version", version=VERSION, help="show forge's version and exit")
    commands = top.add_subparsers(required=True, metavar="COMMAND", dest="command_name", parser_class=Parser)
    for command in COMMANDS:
        epilog = _epilog(command.examples, command.codes)
        made = commands.add_parser(
            command.name, help=command.summary, description=command.about, epilog=epilog, formatter_class=raw
        )
        if only in (None, command.name):
            command.fill(made)
    return top


def _epilog(examples: tuple[str, ...], codes: str) -> str:
    shown = "\n".join(f"  {example}" for example in examples)
    return "\n\n".join(filter(None, (f"examples:\n{shown}", codes)))
