"""The command line's grammar: which commands there are, what each takes, and examples that teach."""

import argparse
from importlib.metadata import version
from pathlib import Path

from forge.backends.models import KNOWN
from forge.cli.compare import run_ablate, run_bisect
from forge.cli.demo import ORDERS
from forge.cli.execute import resume_workflow, run_demo, run_workflow
from forge.cli.replay import run_replay

CODES = "exit codes: 0 the run reached its goal, 1 it halted (the reason is printed), 2 wrong use\n"

RUNS = """\
  forge run examples/orders.py "Report on order A-17" --backend local
  forge run flow.py:support "The invoice is wrong" --backend http://127.0.0.1:8080 --var tone=friendly
"""

EXAMPLES = f"""\
examples:
  forge demo
{RUNS}\
  forge resume flow.py:support run.jsonl --backend http://127.0.0.1:8080
  forge replay run.jsonl --workflow flow.py --to 12
  forge doctor http://127.0.0.1:8080 --write server.toml

{CODES}"""


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command and its options; argparse itself exits with 2 and a usage line on wrong use."""
    parser = _parser("forge", "Reliable tool calls from small language models.")
    parser.add_argument("--version", action="version", version=version("forge-toolcalls"))
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=argparse.ArgumentParser)
    _demo(commands.add_parser("demo", help="run a three-step workflow on a real model in this process"))
    _run(commands.add_parser("run", help="run a workflow of yours"))
    _resume(commands.add_parser("resume", help="go on with a run that was cut short"))
    _doctor(commands.add_parser("doctor", help="find out what a server can and cannot do"))
    _replay(commands.add_parser("replay", help="show a recorded run, or run it again offline, state by state"))
    _bisect(commands.add_parser("bisect", help="find the first state that another workflow makes different"))
    _ablate(commands.add_parser("ablate", help="what each guardrail changed in a recorded run"))
    return parser.parse_args(arguments)


def _parser(name: str, description: str) -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=name, description=description, epilog=EXAMPLES, formatter_class=form)


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Looks up an order, looks up its customer and sends a report, with a small model in a llama.cpp inside "
        "this process: no server, no key, no GPU. The first time it downloads the model into the cache folder."
    )
    parser.add_argument("--order", choices=ORDERS, help="which order to report on (default: any)")
    parser.add_argument("--message", help="ask for something else instead")
    parser.set_defaults(command=run_demo, backend="local", profile=None)
    _model_options(parser)
    _journal_option(parser)


def _run(parser: argparse.ArgumentParser) -> None:
    parser.description = "Runs a Workflow that a Python file defines, and shows each turn."
    parser.epilog, parser.formatter_class = f"examples:\n{RUNS}\n{CODES}", argparse.RawDescriptionHelpFormatter
    parser.add_argument("workflow", help="FILE.py:NAME, or FILE.py if there is only one in it")
    parser.add_argument("message", help="what the user asks")
    parser.add_argument("--var", action="append", default=[], metavar="NAME=VALUE", help="fills {NAME} in the prompt")
    parser.set_defaults(command=run_workflow)
    _backend_options(parser)
    _journal_option(parser)
    add = parser.add_argument
    add(
        "--redact",
        action="append",
        default=[],
        metavar="TOOL.ARGUMENT",
        help="hide that argument in the journal (*.ARGUMENT: of every tool), or the results of TOOL",
    )
    add("--redact-env", action="append", default=[], metavar="NAME", help="hide the value of that environment variable")
    add("--redact-pattern", action="append", default=[], metavar="RE2", help="hide what the pattern finds")


def _resume(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Goes on with a run that a crash, Ctrl-C or a dead server cut short, from its journal and in it. What was done "
        "is not done again (docs/tools.md). The model and its options must be those of the run."
    )
    parser.add_argument("workflow", help="FILE.py:NAME, or FILE.py if there is only one in it")
    parser.add_argument("journal", type=Path, help="the file that the run was recorded in")
    parser.set_defaults(command=resume_workflow)
    _backend_options(parser)


def _backend_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend",
        required=True,
        help="local, a server's address, NAME:MODEL or NAME:ADDRESS (docs/backends.md); llama-server:FILE starts one",
    )
    parser.add_argument("--profile", help="what the server at the address is: a name, or a TOML file")
    _model_options(parser)


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Asks a running server some twenty short questions, says what each answer means, and prints the profile that "
        "forge run --profile takes (docs/doctor.md)."
    )
    parser.epilog = "exit codes: 0 it can be used, 1 it cannot (the reason is printed), 2 wrong use"
    add = parser.add_argument
    add("url", help="the server's address, such as http://127.0.0.1:8080")
    add("--model", default="", help="the model to ask (default: the first that the server lists)")
    add("--api-key-env", metavar="NAME", help="the environment variable that holds the server's key")
    add("--timeout", type=_seconds, default=60.0, help="seconds for one answer (default: %(default)g)")
    add("--write", type=Path, metavar="FILE", help="write the profile to this TOML file too")
    add("--json", action="store_true", help="print all of it as JSON, and what is going on on standard error")
    parser.set_defaults(command=_run_doctor)


def _run_doctor(options: argparse.Namespace) -> int:
    from forge.cli.doctor import run_doctor  # noqa: PLC0415 - its probes are of no use to the other commands

    return run_doctor(options)


def _replay(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows what a journal holds. With the workflow, runs it again, without a model and without running a tool, "
        "and checks each effect against the recorded one."
    )
    _of_journal(parser)
    parser.add_argument(
        "--workflow", metavar="FILE.py:NAME", help="runs it again by this workflow (demo: that of forge demo)"
    )
    parser.add_argument("--to", type=int, metavar="N", help="stops at state N, and shows all of it")
    parser.add_argument("--step", action="store_true", help="stops at each state, and asks what to do")
    parser.add_argument("--json", action="store_true", help="a line of JSON a state; the last has the state itself")
    parser.add_argument("--html", type=Path, metavar="OUT", help="writes the timeline of the run as a page")
    parser.set_defaults(command=run_replay)


def _bisect(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Puts the recorded outcomes through another workflow, and shows the first state that is not the same, field "
        "by field. Given twice, --workflow says the two to compare, and the stage to blame is named."
    )
    _of_journal(parser)
    parser.add_argument("--workflow", action="append", required=True, metavar="FILE.py:NAME", help="once, or twice")
    parser.add_argument("--json", action="store_true", help="the first difference as JSON, null for none")
    parser.set_defaults(command=run_bisect)


def _ablate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Decides again on each recorded reply, with each guardrail taken away in turn; no model is asked."
    )
    _of_journal(parser)
    parser.add_argument("--workflow", required=True, metavar="FILE.py:NAME", help="the one that it was recorded with")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    parser.set_defaults(command=run_ablate)


def _of_journal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the journal, as forge run --journal wrote it")


def _model_options(parser: argparse.ArgumentParser) -> None:
    models = ", ".join(KNOWN)
    modes = ["auto", "native", "prompted", "constrained"]
    add = parser.add_argument
    add("--model", default="", help=f"local: {models}, or a GGUF file; else the server's name for it")
    add("--mode", choices=modes, default="auto", help="how tool calls are asked for (default: what the server bears)")
    add("--no-probe", dest="probe", action="store_false", help="do not ask an unknown server what it can do")
    add("--temperature", type=float, help="of the sampling (default: the server's)")
    add("--model-sampling", action="store_true", help="the sampling that the model's makers recommend, if it is known")
    add("--seed", type=int, help="of the sampling, to get the same run again")
    add("--max-tokens", type=_positive, default=512, help="of one reply (default: %(default)s)")
    add("--context", type=_positive, help="tokens of context (default: as the server says; local: 4096)")
    add(
        "--port",
        type=_port,
        default=0,
        help="local, llama-server:FILE: the port that the model is served on too (default: a free one)",
    )
    add("--api-key-env", metavar="NAME", help="the environment variable that holds the server's key")


def _journal_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--journal", type=Path, help="the file to record the run in (default: one in the state folder)")


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text} is not a port")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 86400:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of tokens")
    return number
