"""An argument parser that suggests corrections and can write its options back as a command line."""

import argparse
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NoReturn, TypeVar

from stages.options import did_you_mean

_ActionT = TypeVar("_ActionT", bound=argparse.Action)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that suggests corrections, always refuses unknown arguments, and writes values in capitals."""

    _words: Sequence[str] = ()

    def parse_known_args(  # type: ignore[override]  # the namespace is always our own
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """The options, without leftovers: argparse would report those with the usage of the parent parser."""
        self._words = sys.argv[1:] if args is None else args
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, []

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 and a message; without any arguments, also print the help."""
        if not self._words:
            self.print_help(sys.stderr)
        if message.startswith("the following arguments are required"):
            placed = [_placeholder(action) for action in self._actions if not action.option_strings]
            options = (action for action in self._actions if action.option_strings and action.required)
            placed += [f"{action.option_strings[0]} {_placeholder(action)}" for action in options]
            message += f"; write {self.prog} {' '.join(placed)}"
        known = [name for action in self._actions for name in action.option_strings if name.startswith("--")]
        own = takewhile(lambda word: word != "--" and (self._subparsers is None or word.startswith("-")), self._words)
        typed = dict.fromkeys(word.partition("=")[0] for word in own if word.startswith("--"))
        unknown = [name for name in typed if not any(option.startswith(name) for option in known)]
        message += "".join(f"; there is no option {name}" for name in unknown if name not in message)
        left = [option for option in known if option not in typed]
        spelt = (name for name in unknown if name.replace("--no-", "--", 1) not in known)  # `--no-x` is not `--x`
        meant = "".join(dict.fromkeys(did_you_mean(name, left) for name in spelt))
        self.exit(2, f"{self.prog}: {message}{meant and '.'}{meant}\nTry: {self.prog} --help\n")

    def words(self, options: argparse.Namespace) -> list[str]:
        """The options that differ from their defaults, as words of a command line."""
        words: list[str] = []
        for action in (action for action in self._actions if action.option_strings):
            name, value = action.option_strings[0], getattr(options, action.dest, action.default)
            if value == action.default:
                continue
            if action.nargs == 0:
                words.append(name)
                continue
            for one in map(str, value if isinstance(value, list) else [value]):
                words += [f"{name}={one}"] if one.startswith("-") else [name, one]
        return words

    def _add_action(self, action: _ActionT) -> _ActionT:
        if not action.option_strings and action.metavar is None:
            action.metavar = action.dest.upper()  # as argparse writes the values of options
        return super()._add_action(action)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        meant = did_you_mean(str(value), known)
        what = "command" if action.nargs == argparse.PARSER else "choice"
        raise argparse.ArgumentError(action, f"there is no {what} {value!r}; there are: {', '.join(known)}.{meant}")


def _placeholder(action: argparse.Action) -> str:
    return str(action.metavar or action.dest.upper())
