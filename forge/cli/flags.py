"""Options that several commands share: the backend and its model, the journal, what it hides."""

import argparse
from pathlib import Path

_MODES = ("auto", "native", "prompted", "constrained")


def add_backend(parser: argparse.ArgumentParser) -> None:
    """What the model is, where it is, and how it is asked."""
    parser.add_argument(
        "--backend",
        required=True,
        help="local (llama.cpp in this process), a server's address, NAME:MODEL or NAME:ADDRESS (docs/backends.md); "
        "llama-server:FILE starts one",
    )
    parser.add_argument("--profile", help="what the server at the address is: a name, or a TOML file")
    add_model(parser)


def add_model(parser: argparse.ArgumentParser) -> None:
    """The model and its options."""
    add = parser.add_argument
    add("--model", default="", help="local: a name of forge models, or a GGUF file; else the server's name for it")
    add("--mode", choices=_MODES, default="auto", help="how tool calls are asked for (default: what the server bears)")
    add("--no-probe", dest="probe", action="store_false", help="do not ask an unknown server what it can do")
    add(
        "--temperature",
        type=_number,
        help="of the sampling (default: 0.1; for a hosted model, and one that is known to think first, its own)",
    )
    add("--model-sampling", action="store_true", help="the sampling that the model's makers recommend, if it is known")
    add("--seed", type=whole_number, help="of the sampling, to get the same run again")
    add("--max-tokens", type=_tokens, default=512, help="of one reply (default: %(default)s)")
    add("--context", type=_tokens, help="tokens of context (default: as the server says; local: 4096)")
    add(
        "--port",
        type=_port,
        default=0,
        help="local, llama-server:FILE: the port that the model is served on too (default: a free one)",
    )
    add("--api-key-env", metavar="NAME", help="the environment variable that holds the server's key")


def add_journal(parser: argparse.ArgumentParser) -> None:
    """Where the run is recorded."""
    parser.add_argument("--journal", type=Path, help="the file to record the run in (default: one in the state folder)")


def add_redaction(parser: argparse.ArgumentParser) -> None:
    """What the journal must not hold."""
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


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def whole_number(text: str) -> int:
    """A whole number that a command line gives."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def seconds(text: str) -> float:
    """A time that a command line gives."""
    number = _number(text)
    if not 0 < number < 86400:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds between 0 and a day")
    return number


def count(text: str) -> int:
    """A number of things that a command line gives."""
    number = whole_number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of them; it must be at least 1")
    return number


def _port(text: str) -> int:
    number = whole_number(text)
    if not 0 <= number < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text} is not a port")
    return number


def _tokens(text: str) -> int:
    number = whole_number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of tokens")
    return number
