"""The commands that there are: what each is for, with examples that teach."""

import argparse
from collections.abc import Callable

from msgspec import Struct

from forge.cli import arguments as takes
from forge.cli.parser import Parser, Version

_EXIT_CODES = """\
exit codes: 0 the run reached its goal, 1 it halted (the reason is printed), 2 wrong use,
            130 cancelled by Ctrl-C, 143 by SIGTERM"""


class Command(Struct, frozen=True, kw_only=True):
    """A command: `fill` says what it takes, `about` what it does; each example is a whole command line."""

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
        about="Looks up an order, looks up its customer and sends a report, with a small model in a llama.cpp inside\n"
        "this process: no server, no key, no GPU. The first time it downloads the model into the cache folder.",
        examples=("forge demo", "forge demo --order A-17 --model qwen2.5-coder-1.5b --seed 7"),
        fill=takes.fill_demo,
        codes=_EXIT_CODES,
    ),
    Command(
        name="run",
        summary="run a workflow of yours",
        about="Runs a Workflow that a Python file defines, and shows each turn.",
        examples=_RUN_EXAMPLES,
        fill=takes.fill_run,
        codes=_EXIT_CODES,
    ),
    Command(
        name="resume",
        summary="go on with a run that was cut short",
        about="Goes on with a run that a crash, Ctrl-C or a dead server cut short, from its journal and in it. What\n"
        "was done is not done again (docs/tools.md). The model and its options must be those of the run.",
        examples=(
            "forge resume flow.py:support run.jsonl --backend http://127.0.0.1:8080",
            "forge resume demo run.jsonl --backend local --seed 7",
        ),
        fill=takes.fill_resume,
        codes=_EXIT_CODES,
    ),
    Command(
        name="doctor",
        summary="find out what a server can and cannot do",
        about="Asks a running server some twenty short questions, says what each answer means, and prints the profile\n"
        "that forge run --profile takes (docs/doctor.md).",
        examples=(
            "forge doctor http://127.0.0.1:8080 --write server.toml",
            "forge doctor http://127.0.0.1:8080 --json > found.json",
        ),
        fill=takes.fill_doctor,
        codes="exit codes: 0 it can be used, 1 it cannot (the reason is printed), 2 wrong use",
    ),
    Command(
        name="models",
        summary="the models that forge can fetch: list, pull, remove",
        about="Lists the models that forge can fetch by name, with their size, licence and hash, where their weights\n"
        "come from, and which are here. Without an action, list.",
        examples=("forge models", "forge models pull qwen2.5-coder-1.5b", "forge models remove smollm2-135m"),
        fill=takes.fill_models,
    ),
    Command(
        name="runs",
        summary="recent runs: when, how they ended, how to go on",
        about="Lists the journals that were written to last, in forge's state folder or in another.",
        examples=("forge runs", "forge runs --last 3 --json", "forge runs my/journals"),
        fill=takes.fill_runs,
    ),
    Command(
        name="replay",
        summary="show a recorded run, or run it again offline, state by state",
        about="Shows what a journal holds. With the workflow, runs it again, without a model and without running a\n"
        "tool, and checks each effect against the recorded one.",
        examples=(
            "forge replay run.jsonl",
            "forge replay run.jsonl --workflow flow.py:support --to 12",
            "forge replay run.jsonl --workflow flow.py:support --html run.html",
        ),
        fill=takes.fill_replay,
    ),
    Command(
        name="bisect",
        summary="find the first state that another workflow makes different",
        about="Puts the recorded outcomes through another workflow, and shows the first state that is not the same,\n"
        "field by field. Given twice, --workflow says the two to compare, and the stage to blame is named.",
        examples=(
            "forge bisect run.jsonl --workflow new.py:support",
            "forge bisect run.jsonl --workflow old.py:support --workflow new.py:support",
        ),
        fill=takes.fill_bisect,
    ),
    Command(
        name="ablate",
        summary="what each guardrail changed in a recorded run",
        about="Decides again on each recorded reply, with each guardrail taken away in turn; no model is asked.",
        examples=("forge ablate run.jsonl --workflow flow.py:support",),
        fill=takes.fill_ablate,
    ),
    Command(
        name="completion",
        summary="print a script that completes forge's words in your shell",
        about="Prints a script for bash, zsh or fish that completes commands, options, their choices and files.",
        examples=(
            "forge completion bash > ~/.local/share/bash-completion/completions/forge",
            "forge completion zsh > ~/.zfunc/_forge",
            "forge completion fish > ~/.config/fish/completions/forge.fish",
        ),
        fill=takes.fill_completion,
    ),
)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command and its options; argparse itself exits with 2 and a sentence on wrong use."""
    return parser().parse_args(arguments)


def parser() -> Parser:
    """The parser of the whole command line."""
    first = tuple(example for command in COMMANDS for example in command.examples[:1])
    raw = argparse.RawDescriptionHelpFormatter
    about = "Reliable tool calls from small language models."
    top = Parser(prog="forge", description=about, epilog=_epilog(first, _EXIT_CODES), formatter_class=raw)
    top.add_argument("--version", action=Version, nargs=0, help="show forge's version, and end")
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
