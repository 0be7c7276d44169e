"""From command-line options to values: the backend, the key, the redaction rules."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from forge.agent.agent import Agent
from forge.backends import Backend, named
from forge.backends.address import AsNamed
from forge.backends.servers.download import Progress
from forge.backends.servers.process import Loading
from forge.cli.commands import add_backend
from forge.cli.parser import Parser
from forge.door.options import flags
from forge.errors import ForgeError
from forge.masking import Redact
from forge.workflow.workflow import Workflow
from stages.options import OptionError, Options
from stages.wire.sampling import Sampling


def backend_of(options: argparse.Namespace, progress: Callable[[Progress], None]) -> Backend:
    """The backend for the options of `add_backend` and `add_model`; it starts when a run connects.

    ForgeError for contradictory options, and for a key that is not set.
    """

    def tell(loading: Loading) -> None:
        print(f"loading for {loading.seconds:.0f} s: {loading.said}", file=sys.stderr)

    backend = named(
        options.backend,
        options.model,
        profile=options.profile,
        progress=tell,
        download=progress,
        mode=options.mode,
        context_tokens=options.context,
        sampling=sampling_of(options.temperature, options.max_tokens, options.seed),
        model_sampling=options.model_sampling,
        api_key=key_of(options.api_key_env),
        timeout=options.timeout,
        probe=options.probe,
    )
    return AsNamed(backend)


def backend_for(
    options: argparse.Namespace, served: Sequence[Workflow[Any] | Agent[Any]], progress: Callable[[Progress], None]
) -> Backend | None:
    """`backend_of`; None if no backend is given and only agents are served, which have their own."""
    if options.backend is not None:
        return backend_of(options, progress)
    if any(isinstance(one, Workflow) for one in served):
        raise ForgeError("a workflow has no backend of its own; give --backend")
    refuse_in_vain(options, add_backend, "without --backend, an agent uses its own backend")
    return None


def refuse_in_vain(options: argparse.Namespace, add: Callable[[Parser], None], why: str) -> None:
    """ForgeError if any of the options that `add` adds to a parser is given, because an agent would ignore it."""
    parser = Parser()
    add(parser)
    if words := parser.words(options):
        raise ForgeError(f"{why}; leave out {shlex.join(words)}")


_O = TypeVar("_O", bound=Options)


def options_of(kind: type[_O], given: argparse.Namespace) -> _O:
    """Options of that kind as their flags set them. ForgeError with all mistakes, or for an unset variable."""
    values: dict[str, Any] = {}
    for option, flag in flags(kind):
        value = getattr(given, option.name)
        if flag.variable:
            value = key_of(value)
        elif isinstance(value, list):
            value = tuple(value)
        if value is not None:
            values[option.name] = value * flag.unit if flag.unit > 1 else value
    try:
        return kind(**values)
    except OptionError as error:
        of = f"{kind.__name__}: "
        raise ForgeError("; ".join(problem.removeprefix(of) for problem in error.problems)) from None


def sampling_of(temperature: float | None, max_tokens: int | None, seed: int | None = None) -> Sampling:
    """The sampling options of a command line."""
    given = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
    return msgspec.convert({name: value for name, value in given.items() if value is not None}, Sampling)


def key_of(variable: str | None) -> str:
    """The key, or another secret, in the environment variable. ForgeError if it is not set."""
    if variable is None:
        return ""
    if not os.environ.get(variable):
        raise ForgeError(f"the environment variable {variable} is not set")
    return os.environ[variable]


def refuse_unwritable(flag: str, path: Path | None) -> None:
    """ForgeError if the flag's file is a folder, or its folder is missing; called before the work."""
    if path is None:
        return
    if path.is_dir():
        raise ForgeError(f"{flag}: {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise ForgeError(f"{flag}: there is no folder {path.parent}")


def redact_of(options: argparse.Namespace) -> Redact:
    """The redaction rules of `forge run`. ForgeError for a variable that is not set."""
    named: list[str] = getattr(options, "redact", [])
    return Redact(
        arguments=tuple(name for name in named if "." in name),
        results=tuple(name for name in named if "." not in name),
        values=tuple(map(key_of, getattr(options, "redact_env", []))),
        patterns=tuple(getattr(options, "redact_pattern", [])),
    )
