"""Options shared by several commands: backend, model, journal, redaction."""

import argparse
from pathlib import Path

_MODES = ("auto", "native", "prompted", "constrained")


def add_backend(parser: argparse.ArgumentParser, *, default: str = "") -> None:
    """Options for the backend and its model; `default` says what is used where none is given, if that may be."""
    parser.add_argument(
        "--backend",
        required=not default,
        help="local (llama.cpp in this process), a server's address, NAME:MODEL or NAME:ADDRESS (docs/backends.md); "
        "llama-server:FILE starts a server" + (f" (default: {default})" if default else ""),
    )
    parser.add_argument("--profile", help="profile of the server at the address: a name or a TOML file")
    parser.add_argument(
        "--larger",
        metavar="BACKEND",
        help="backend of a larger model, asked for what the workflow hands to one (AskLarger in unsure=…)",
    )
    add_model(parser)


def add_asking(parser: argparse.ArgumentParser) -> None:
    """Options that choose the model and how it is asked."""
    add = parser.add_argument
    add(
        "--model",
        default="",
        help="local: a name in forge models or a GGUF file; otherwise the server's name for the model",
    )
    add(
        "--mode",
        choices=_MODES,
        default="auto",
        help="how tool calls are requested (default: what the server supports)",
    )
    add("--no-probe", dest="probe", action="store_false", help="do not test what an unknown server supports")
    add(
        "--temperature",
        type=decimal,
        help="sampling temperature (default: 0.1; hosted and known reasoning models use their own)",
    )
    add("--context", type=_tokens, help="context size in tokens (default: as the server reports; local: 4096)")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Options for the model."""
    add_asking(parser)
    add = parser.add_argument
    add(
        "--model-sampling",
        action="store_true",
        help="use the sampling options that the model's makers recommend, if known",
    )
    add("--seed", type=whole_number, help="sampling seed, for reproducible runs")
    add("--max-tokens", type=_tokens, default=512, help="maximum tokens per reply (default: %(default)s)")
    add(
        "--port",
        type=port,
        default=0,
        help="local, llama-server:FILE: port of the server (default: any free port)",
    )
    add("--timeout", type=seconds, default=300.0, help="seconds without a byte from the server (default: %(default)g)")
    add("--api-key-env", metavar="NAME", help="the environment variable that holds the server's key")


def add_journal(parser: argparse.ArgumentParser) -> None:
    """The option for the journal."""
    parser.add_argument(
        "--journal", type=Path, help="file to record the run in (default: a new file in the state folder)"
    )


def add_redaction(parser: argparse.ArgumentParser) -> None:
    """Options for redaction of the journal."""
    add = parser.add_argument
    add(
        "--redact",
        action="append",
        default=[],
        metavar="TOOL.ARGUMENT",
        help="hide this argument in the journal (*.ARGUMENT: of every tool), or, as TOOL, its results",
    )
    add("--redact-env", action="append", default=[], metavar="NAME", help="hide the value of this environment variable")
    add("--redact-pattern", action="append", default=[], metavar="RE2", help="hide all matches of this pattern")


def decimal(text: str) -> float:
    """The argument as a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def whole_number(text: str) -> int:
    """The argument as an integer."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def seconds(text: str) -> float:
    """The argument as seconds, more than 0 and less than a day."""
    number = decimal(text)
    if not 0 < number < 86400:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds between 0 and a day")
    return number


def count(text: str) -> int:
    """The argument as an integer of at least 1."""
    number = whole_number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a valid count; it must be at least 1")
    return number


def port(text: str) -> int:
    """A port that a command line gives; 0: any free one."""
    number = whole_number(text)
    if not 0 <= number < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text} is not a port number")
    return number


def _tokens(text: str) -> int:
    number = whole_number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of tokens")
    return number
