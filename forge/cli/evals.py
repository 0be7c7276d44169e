"""The arguments of `forge eval` and of each of its commands."""

import argparse
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from forge.cli.arguments import count, decimal, seconds, whole_number
from forge.cli.logs import add_telemetry
from forge.cli.parser import Parser, command_of


class _Command(Struct, frozen=True, kw_only=True):
    """A command of `forge eval`. `fill` adds its arguments to a parser and says what it runs."""

    name: str
    summary: str
    fill: Callable[[Parser], None]


def fill_eval(parser: Parser) -> None:
    """The commands of `forge eval`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="eval_command", parser_class=Parser)
    for command in _COMMANDS:
        made = commands.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.fill(made)


def _fill_run(parser: Parser) -> None:
    # What is not given is not in the namespace: a file may say it, and `EvalOptions` has the defaults.
    parser.argument_default = argparse.SUPPRESS
    _scenarios(parser)
    add = parser.add_argument
    add(
        "--backend",
        help="local (llama.cpp in this process), a server's address, NAME:MODEL or NAME:ADDRESS (docs/backends.md); "
        "llama-server:FILE starts a server",
    )
    add("--model", help="local: a name in forge models or a GGUF file; otherwise the server's name for it")
    add("--profile", help="profile of the server at the address: a name or a TOML file")
    add("--temperature", type=decimal, help="sampling temperature (default: as recommended for the model, else 0.1)")
    add("--max-tokens", type=count, help="maximum tokens per reply (default: 512)")
    add("--api-key-env", metavar="NAME", help="the environment variable that holds the server's key")
    add("--slots", type=count, metavar="N", help="local, llama-server:FILE: slots of the server (default: 1)")
    add("--chat-template", metavar="FILE", help="llama-server:FILE: the model's chat template")
    add("--context", type=count, metavar="TOKENS", help="context of a server that does not say how much it has")
    add("--mode", type=_names, metavar="MODE,…", help="auto (default), native, prompted, constrained")
    add("--ablation", type=_names, metavar="NAME,…", help="reforged (default), no_rescue, no_nudge, …, bare")
    add("--compact", type=_names, metavar="NAME,…", help="tiered, sliding, none (default: the scenario's own)")
    add("--think", type=_names, metavar="HOW,…", help="on, off, low, medium, high (default: the model's own)")
    add("--against", type=_names, metavar="PLAYER,…", help="plain, and players of FILE.py")
    add(
        "--only",
        type=_names,
        metavar="NAME,…",
        help="run only the configurations with these names: 'plain,forge auto bare'",
    )
    add("--runs", type=count, metavar="N", help="seeds for each scenario (default: 5)")
    add("--seed", type=whole_number, metavar="FIRST", help="the first of them (default: 1)")
    add("-o", "--output", metavar="FILE", help="the file of results (default: results.jsonl)")
    add("--timeout", type=seconds, help="maximum seconds of a run (default: 300)")
    add("--parallel", type=count, metavar="N", help="runs at a time (default: as many as the server has slots)")
    add("--config", type=Path, default=None, metavar="FILE.toml", help="models and options from a file (docs/evals.md)")
    add("--probe", action="store_true", default=False, help="run nothing: print what the server has and can do")
    add_telemetry(parser)
    parser.set_defaults(command=command_of("forge.cli.eval_run", "run_eval"))


def _fill_list(parser: Parser) -> None:
    _scenarios(parser)
    parser.add_argument("--json", action="store_true", help="the scenarios as JSON")
    parser.set_defaults(command=command_of("forge.cli.eval_run", "run_scenario_list"))


def _fill_report(parser: Parser) -> None:
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="results of forge eval run")
    add("--against", default="", metavar="NAME", help="compare this configuration with the others of its model")
    add("--title", default="", help="heading of the report (default: Evals, and the models on a page)")
    add("--html", type=Path, metavar="OUT", help="write the report as a page that needs no network")
    add("--alpha", type=_level, default=0.05, help="level of significance (default: %(default)s)")
    parser.set_defaults(command=command_of("forge.cli.eval_report", "run_report"))


def _fill_check(parser: Parser) -> None:
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="the new results")
    add("--against", type=Path, required=True, metavar="BASELINE", help="the results to compare them with")
    add("--configuration", default="", metavar="NAME", help="compare only this one (default: each with its own)")
    add("--baseline-configuration", default="", metavar="NAME", help="the one of the baseline (default: the same)")
    add("--alpha", type=_level, default=0.05, help="level of significance (default: %(default)s)")
    parser.set_defaults(command=command_of("forge.cli.eval_report", "run_check"))


def _level(text: str) -> float:
    """A level of significance."""
    level = decimal(text)
    if not 0 < level < 1:
        raise argparse.ArgumentTypeError(f"{text} is no level of significance: it lies between 0 and 1, such as 0.05")
    return level


def _scenarios(parser: Parser) -> None:
    add = parser.add_argument
    add("files", nargs="*", default=(), metavar="FILE.py", help="scenarios and players of your own, instead of a suite")
    add("--suite", metavar="all|seeds|FILE.py", help="forge's own scenarios (default without FILE.py: all), or a file")
    add("--scenario", type=_names, metavar="NAME,…", help="only these")
    add("--tags", type=_names, metavar="TAG,…", help="only those with one of these tags")


def _names(text: str) -> tuple[str, ...]:
    """The names between the commas."""
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    if not names:
        raise argparse.ArgumentTypeError("it names nothing: leave it out, or give names, separated by commas")
    return names


_COMMANDS = (
    _Command(name="run", summary="play scenarios on a model, and write down how each run went", fill=_fill_run),
    _Command(name="list", summary="list scenarios: names, tags, what they are about", fill=_fill_list),
    _Command(name="report", summary="compare configurations: Markdown, or a page", fill=_fill_report),
    _Command(name="check", summary="exit with 1 if results are significantly worse than a baseline", fill=_fill_check),
)
