"""What each command takes."""

import argparse
from pathlib import Path

from forge.cli.flags import add_backend, add_journal, add_model, add_redaction, count, seconds, whole_number
from forge.cli.parser import Parser, command_of

_SHELLS = ("bash", "zsh", "fish")


def fill_demo(parser: Parser) -> None:
    """A workflow of forge's own, on a model in this process."""
    parser.add_argument("--order", metavar="NUMBER", help="which order to report on: A-17, B-42, … (default: any)")
    parser.add_argument("--message", help="ask for something else instead")
    parser.set_defaults(command=command_of("forge.cli.execute", "run_demo"), backend="local", profile=None)
    add_model(parser)
    add_journal(parser)


def fill_run(parser: Parser) -> None:
    """A workflow of the user's."""
    _workflow(parser)
    parser.add_argument("message", help="what the user asks")
    parser.add_argument("--var", action="append", default=[], metavar="NAME=VALUE", help="fills {NAME} in the prompt")
    parser.set_defaults(command=command_of("forge.cli.execute", "run_workflow"))
    add_backend(parser)
    add_journal(parser)
    add_redaction(parser)


def fill_resume(parser: Parser) -> None:
    """A run that was cut short."""
    _workflow(parser)
    parser.add_argument("journal", type=Path, help="the file that the run was recorded in")
    parser.set_defaults(command=command_of("forge.cli.execute", "resume_workflow"))
    add_backend(parser)


def fill_doctor(parser: Parser) -> None:
    """A server to examine."""
    add = parser.add_argument
    add("url", help="the server's address, such as http://127.0.0.1:8080")
    add("--model", default="", help="the model to ask (default: the first that the server lists)")
    add("--api-key-env", metavar="NAME", help="the environment variable that holds the server's key")
    add("--timeout", type=seconds, default=60.0, help="seconds for one answer (default: %(default)g)")
    add("--write", type=Path, metavar="FILE", help="write the profile to this TOML file too")
    add("--json", action="store_true", help="print all of it as JSON, and what is going on on standard error")
    parser.set_defaults(command=command_of("forge.cli.doctor", "run_doctor"))


def fill_replay(parser: Parser) -> None:
    """A journal, and what of it to show."""
    _of_journal(parser)
    add = parser.add_argument
    add("--workflow", metavar="FILE.py:NAME", help="runs it again by this workflow (demo: that of forge demo)")
    add("--to", type=whole_number, metavar="N", help="stops at state N, and shows all of it")
    add("--step", action="store_true", help="stops at each state, and asks what to do")
    add("--json", action="store_true", help="a line of JSON a state; the last has the state itself")
    add("--html", type=Path, metavar="OUT", help="writes the timeline of the run as a page")
    parser.set_defaults(command=command_of("forge.cli.replay", "run_replay"))


def fill_bisect(parser: Parser) -> None:
    """A journal, and the workflows to compare."""
    _of_journal(parser)
    parser.add_argument("--workflow", action="append", required=True, metavar="FILE.py:NAME", help="once, or twice")
    parser.add_argument("--json", action="store_true", help="the first difference as JSON, null for none")
    parser.set_defaults(command=command_of("forge.cli.compare", "run_bisect"))


def fill_ablate(parser: Parser) -> None:
    """A journal and its workflow."""
    _of_journal(parser)
    parser.add_argument("--workflow", required=True, metavar="FILE.py:NAME", help="the one that it was recorded with")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    parser.set_defaults(command=command_of("forge.cli.compare", "run_ablate"))


def fill_models(parser: Parser) -> None:
    """What to do about the models that forge can fetch."""
    module = "forge.cli.models"
    parser.add_argument("--json", action="store_true", help="the models as JSON")
    parser.set_defaults(command=command_of(module, "run_list"))
    actions = parser.add_subparsers(metavar="ACTION", parser_class=Parser)
    listed = actions.add_parser("list", help="the models, where their weights come from, which are here (default)")
    # Of its own it has no default: what stands before `list` counts too.
    listed.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="the models as JSON")
    for name, summary in (("pull", "fetch a model, unless it is here"), ("remove", "take a model out of the cache")):
        action = actions.add_parser(name, help=summary)
        action.add_argument("name", metavar="MODEL", help="its name, as forge models has it")
        action.set_defaults(command=command_of(module, f"run_{name}"))


def fill_runs(parser: Parser) -> None:
    """Which journals to show."""
    add = parser.add_argument
    add("folder", nargs="?", type=Path, help="where the journals are (default: that of forge run)")
    add("--last", type=count, default=10, metavar="N", help="so many of them (default: %(default)s)")
    add("--json", action="store_true", help="the runs as JSON")
    parser.set_defaults(command=command_of("forge.cli.runs", "run_runs"))


def fill_completion(parser: Parser) -> None:
    """The shell to complete in."""
    parser.add_argument("shell", choices=_SHELLS, help="the shell that reads the script")
    parser.set_defaults(command=command_of("forge.cli.completion", "run_completion"))


def _workflow(parser: Parser) -> None:
    parser.add_argument("workflow", help="FILE.py:NAME, or FILE.py if there is only one in it")


def _of_journal(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="the journal, as forge run --journal wrote it")
