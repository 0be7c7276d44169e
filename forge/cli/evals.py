"""Arguments of `forge eval` and its commands."""

import argparse
from pathlib import Path

from forge.cli.arguments import BACKEND, KEY, MODEL, PROFILE, add_telemetry, count, seconds
from forge.cli.parser import Parser


def fill_eval(parser: Parser) -> None:
    """The commands of `forge eval`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="eval_command", parser_class=Parser)
    for name, summary, fill in (
        ("run", "run scenarios on a model and record each result", _fill_run),
        ("list", "list scenarios with their tags and subject", _fill_list),
        ("report", "compare configurations, as Markdown or an HTML page", _fill_report),
        ("check", "exit with 1 if results are significantly worse than a baseline", _fill_check),
    ):
        fill(commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."))


def _fill_run(parser: Parser) -> None:
    # Options that are not given are left out of the namespace: a file may set them, and `EvalOptions` has defaults.
    parser.argument_default = argparse.SUPPRESS
    _scenarios(parser)
    add = parser.add_argument
    add("--backend", help=BACKEND)
    add("--model", help=MODEL)
    add("--profile", help=PROFILE)
    add(
        "--temperature",
        type=float,
        help="sampling temperature (default: as recommended for the model, otherwise 0.1)",
    )
    add("--max-tokens", type=count, help="maximum tokens per reply (default: 512)")
    add("--api-key-env", metavar="NAME", help=KEY)
    add("--slots", type=count, metavar="N", help="slots of a server started by forge (default: 1)")
    add("--chat-template", metavar="FILE", help="chat template, for llama-server:FILE")
    add("--context", type=count, metavar="TOKENS", help="context size of a server that does not report it")
    add("--mode", type=_names, metavar="MODE,…", help="modes to compare: auto (default), native, prompted, constrained")
    add(
        "--ablation",
        type=_names,
        metavar="NAME,…",
        help="guardrails: reforged (all; default), no_rescue, no_nudge, …, bare",
    )
    add("--compact", type=_names, metavar="NAME,…", help="compaction: tiered, sliding, none (default: the scenario's)")
    add("--think", type=_names, metavar="HOW,…", help="thinking: on, off, low, medium, high (default: the model's)")
    add(
        "--against",
        type=_names,
        metavar="PLAYER,…",
        help="other players to compare with: plain, or players from FILE.py",
    )
    add(
        "--only",
        type=_names,
        metavar="NAME,…",
        help="run only the configurations with these names: 'plain,forge auto bare'",
    )
    add("--runs", type=count, metavar="N", help="seeds for each scenario (default: 5)")
    add("--seed", type=int, metavar="FIRST", help="first seed (default: 1)")
    add("-o", "--output", metavar="FILE", help="results file (default: results.jsonl)")
    add("--timeout", type=seconds, help="maximum seconds per run (default: 300)")
    add("--parallel", type=count, metavar="N", help="maximum concurrent runs (default: the server's slots)")
    add(
        "--config",
        type=Path,
        default=None,
        metavar="FILE.toml",
        help="read models and options from a file (docs/evals.md)",
    )
    add("--probe", action="store_true", default=False, help="run nothing; print what the server supports")
    add_telemetry(parser)
    parser.set_defaults(command="forge.cli.eval_run:run_eval")


def _fill_list(parser: Parser) -> None:
    _scenarios(parser)
    parser.set_defaults(command="forge.cli.eval_run:run_scenario_list")


def _fill_report(parser: Parser) -> None:
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="results of forge eval run")
    add("--against", default="", metavar="NAME", help="compare this configuration with the others of the same model")
    add("--title", default="", help="title of the report (default: Evals, or the model names on a page)")
    add("--html", type=Path, metavar="OUT", help="write the report as a self-contained HTML page")
    parser.set_defaults(command="forge.cli.eval_report:run_report")


def _fill_check(parser: Parser) -> None:
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="new results")
    add("--against", type=Path, required=True, metavar="BASELINE", help="results to compare with")
    parser.set_defaults(command="forge.cli.eval_report:run_check")


def _scenarios(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "files",
        nargs="*",
        default=(),
        metavar="FILE.py",
        help="files with your own scenarios and players, instead of a suite",
    )
    add("--suite", metavar="all|seeds|FILE.py", help="built-in suite (default without FILE.py: all), or a file")
    add("--scenario", type=_names, metavar="NAME,…", help="only these scenarios")
    add("--tags", type=_names, metavar="TAG,…", help="only scenarios with one of these tags")


def _names(text: str) -> tuple[str, ...]:
    """Comma-separated names."""
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    if not names:
        raise argparse.ArgumentTypeError("it is empty; leave it out, or give comma-separated names")
    return names
