"""The commands, with their descriptions and examples."""

import argparse
from collections.abc import Callable

from msgspec import Struct

from forge.cli import arguments as takes
from forge.cli.evals import fill_eval
from forge.cli.parser import Parser, Version

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
        about="Looks up an order and its customer and sends a report, using a small model in a llama.cpp inside this\n"
        "process: no server, no key, no GPU. The first run downloads the model into the cache folder.",
        examples=("forge demo", "forge demo --order A-17 --model qwen2.5-coder-1.5b --seed 7"),
        fill=takes.fill_demo,
        codes=_EXIT_CODES,
    ),
    Command(
        name="chat",
        summary="talk to an agent, with tools, approval and a memory",
        about="Talks to an agent in the terminal: yours, or a default one with tools for this folder's files.\n"
        "Enter says a line, Alt-Enter begins another. Ctrl-C cancels what the agent does; what you type meanwhile, it\n"
        "reads with the next results. /help lists the commands. Each conversation is saved; --resume goes on with it.\n"
        "In a pipe, each line of the input is a message (docs/chat.md).",
        examples=(
            "forge chat",
            "forge chat --backend http://127.0.0.1:8080",
            "forge chat shop.py:agent",
            "forge chat --resume",
            "forge chat --sessions",
        ),
        fill=takes.fill_chat,
        codes="exit codes: 0 the conversation ended, 2 wrong usage or no model, 130 Ctrl-C, 143 SIGTERM;\n"
        "            in plain lines, 1 if the agent could not finish its work on a message",
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
        about="Resumes a run that a crash, Ctrl-C or an unreachable server interrupted, from its journal, and\n"
        "continues the journal. What was done is not repeated (docs/tools.md). Use the same model and options.",
        examples=(
            "forge resume flow.py:support run.jsonl --backend http://127.0.0.1:8080",
            "forge resume demo run.jsonl --backend local --seed 7",
        ),
        fill=takes.fill_resume,
        codes=_EXIT_CODES,
    ),
    Command(
        name="agent",
        summary="work on a task file with nobody there, within limits",
        about="forge agent run TASK.toml has an agent work on a task without a person. What it may write and run\n"
        "stands in the task file and is checked before each call; gates, such as tests, have to pass at the end.\n"
        "Progress goes to standard error, a JSON record to standard output (docs/headless.md). A task file:\n\n"
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
        codes="exit codes: 0 done, and all gates passed; 1 the run halted; 2 wrong usage or a wrong task file;\n"
        "            3 the gates did not pass; 4 a limit was reached (calls, tokens, seconds, cost);\n"
        "            5 a person is needed; 130 Ctrl-C, 143 SIGTERM",
    ),
    Command(
        name="doctor",
        summary="find out what a server really supports",
        about="Asks a running server about a dozen short questions, explains each answer, and prints a profile for\n"
        "forge run --profile (docs/doctor.md).",
        examples=(
            "forge doctor http://127.0.0.1:8080 --write server.toml",
            "forge doctor http://127.0.0.1:8080 --json > found.json",
        ),
        fill=takes.fill_doctor,
        codes="exit codes: 0 the server can be used, 1 it cannot (the reason is printed), 2 wrong usage",
    ),
    Command(
        name="proxy",
        summary="serve a model to any OpenAI or Anthropic client, with valid tool calls",
        about="Listens as an OpenAI and an Anthropic server in front of the backend. What a client is sent are calls\n"
        "that fit its tools: calls in text are found, arguments checked and coerced, and what is wrong the model is\n"
        "asked to correct, unseen by the client. Clients stay as they are; give them the address (docs/proxy.md):\n\n"
        "  OPENAI_BASE_URL=http://127.0.0.1:8081/v1 YOUR-AGENT\n"
        "  ANTHROPIC_BASE_URL=http://127.0.0.1:8081 claude\n\n"
        "Each request is a line: clean (as the model gave it), repaired (a call found in the text, or\n"
        "coerced), retried (right after a correction), exhausted (never right); passed: there was nothing to judge.\n"
        "Ctrl-C waits for what is under way; a second one cuts it off.",
        examples=(
            "forge proxy --backend http://127.0.0.1:8080",
            "forge proxy --backend local --model qwen2.5-coder-1.5b --context 16384",
            "forge proxy --backend ollama:qwen3:4b --host 0.0.0.0 --api-key-env PROXY_KEY",
        ),
        fill=takes.fill_proxy,
        codes="exit codes: 2 wrong usage, or nothing to serve; 130 ended by Ctrl-C, 143 by SIGTERM",
    ),
    Command(
        name="serve",
        summary="serve durable runs over HTTP, with a page to watch and answer them",
        about="Performs runs of these workflows, and listens: HTTP to start, read, answer and cancel them, and a page\n"
        "that does the same, at the address that it prints. Runs are kept in a database and outlive the process: what\n"
        "a restart interrupts goes on. Without keys it listens on this machine only (docs/served.md). It needs the\n"
        "extra `serve`. Ctrl-C waits for what is under way; a second one does not.",
        examples=(
            "forge serve examples/orders.py --backend local",
            "forge serve orders.py --backend http://127.0.0.1:8080 --database runs.db --slots 2",
            "forge serve orders.py --backend ollama:qwen3:4b --host 0.0.0.0 --key-file keys.txt",
        ),
        fill=takes.fill_serve,
        codes="exit codes: 2 wrong usage, or nothing to serve; 130 ended by Ctrl-C, 143 by SIGTERM",
    ),
    Command(
        name="key",
        summary="make a key for a caller of forge serve",
        about="Prints a new key, and adds its hash to the file; the key itself is kept nowhere. A caller sends it as\n"
        "Authorization: Bearer KEY. To take a key back, remove its line: forge serve reads the file again.",
        examples=(
            "forge key ann --key-file keys.txt",
            "forge key prometheus --key-file keys.txt --scopes metrics",
        ),
        fill=takes.fill_key,
    ),
    Command(
        name="mcp",
        summary="serve your own workflow or agent as a tool to any MCP client",
        about="Speaks the Model Context Protocol on standard input and output. A client starts it, and its model\n"
        "calls the workflow as one tool, with the request as its message. The client is told of progress and can\n"
        "cancel; its user is asked what the workflow asks. What your file prints goes to standard error\n"
        "(docs/mcp.md). Most clients are set up with a JSON file like this one:\n\n"
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
        summary="qualify a model: play scenarios on it, compare, report",
        about="Plays scenarios on a model, each with other data for each seed, and judges what was answered and what\n"
        "was done. Results are lines of JSON: an interrupted series goes on where it stopped (docs/evals.md).",
        examples=(
            "forge eval run --backend http://127.0.0.1:8080 --runs 10 --against plain",
            "forge eval run my_scenarios.py --backend local --ablation reforged,bare",
            "forge eval list --tags plumbing",
            "forge eval report results.jsonl --html report.html",
            "forge eval check results.jsonl --against baseline.jsonl",
        ),
        fill=fill_eval,
        codes="exit codes: 0 all runs were made, 1 the server was lost or check found a loss,\n"
        "            2 wrong usage, or runs that nobody could judge, 130 Ctrl-C, 143 SIGTERM",
    ),
    Command(
        name="models",
        summary="list, download and delete models",
        about="Lists the models that forge can download by name, with size, licence, hash, source, and whether they\n"
        "are downloaded. The default action is list.",
        examples=("forge models", "forge models pull qwen2.5-coder-1.5b", "forge models remove smollm2-135m"),
        fill=takes.fill_models,
    ),
    Command(
        name="runs",
        summary="recent runs; durable runs: start, answer, cancel, list, read",
        about="Without a verb, lists the most recent journals in forge's state folder: when each run began, how it\n"
        "ended, how to resume it. The other verbs are for durable runs, which outlive their process (docs/served.md):\n"
        "start one, have a worker perform it, answer what it asks, read what it did. They need the extra `durable`.",
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
        summary="show a recorded run, or replay it offline, state by state",
        about="Shows the contents of a journal. With a workflow, replays the run without calling a model or a tool,\n"
        "and checks each effect against the recorded one.",
        examples=(
            "forge replay run.jsonl",
            "forge replay run.jsonl --workflow flow.py:support --to 12",
            "forge replay run.jsonl --workflow flow.py:support --html run.html",
        ),
        fill=takes.fill_replay,
    ),
    Command(
        name="bisect",
        summary="find the first state in which two workflows differ",
        about="Feeds the recorded outcomes to another workflow and shows the first state that differs, field by\n"
        "field. With --workflow given twice, compares the two and names the stage that made the difference.",
        examples=(
            "forge bisect run.jsonl --workflow new.py:support",
            "forge bisect run.jsonl --workflow old.py:support --workflow new.py:support",
        ),
        fill=takes.fill_bisect,
    ),
    Command(
        name="ablate",
        summary="show what each guardrail changed in a recorded run",
        about="Repeats the decision on each recorded reply with each guardrail removed in turn; no model is called.",
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
    return parser().parse_args(arguments)


def parser() -> Parser:
    """The parser of the complete command line."""
    first = tuple(example for command in COMMANDS for example in command.examples[:1])
    raw = argparse.RawDescriptionHelpFormatter
    about = "Reliable tool calls from small language models."
    top = Parser(prog="forge", description=about, epilog=_epilog(first, _EXIT_CODES), formatter_class=raw)
    top.add_argument("--version", action=Version, nargs=0, help="show forge's version and exit")
    commands = top.add_subparsers(required=True, metavar="COMMAND", dest="command_name", parser_class=Parser)
    for command in COMMANDS:
        epilog = _epilog(command.examples, command.codes)
        made = commands.add_parser(
            command.name, help=command.summary, description=command.about, epilog=epilog, formatter_class=raw
        )
        command.fill(made)
    return top


def _epilog(examples: tuple[str, ...], codes: str) -> str:
    shown = "\n".join(f"  {example}" for example in examples)
    return "\n\n".join(filter(None, (f"examples:\n{shown}", codes)))
