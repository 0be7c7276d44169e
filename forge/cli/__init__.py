"""The command line: `forge COMMAND`. Exit codes: 0 done, 1 halted or not usable, 2 wrong use."""

import sys

from rich.console import Console

from forge.cli.commands import parse
from forge.errors import ForgeError


def main(arguments: list[str] | None = None) -> int:
    """Run one command and give its exit code. Mistakes are told in a sentence on standard error."""
    options = parse(arguments)
    try:
        code: int = options.command(options)
    except ForgeError as error:
        Console(stderr=True).print(f"forge: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main())
