"""The command line: `forge COMMAND`. Exit codes: 0 done, 1 halted or unusable, 2 wrong usage, 130/143 interrupted."""

import sys

import forge
from forge._installation import trouble


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code. Errors are one sentence on standard error."""
    if wrong := trouble(forge):
        sys.stderr.write(f"forge: {wrong}\n")
        return 2
    # If another package has replaced forge's files, nothing else of forge can be imported.
    from forge.cli.dispatch import run_command  # noqa: PLC0415

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
