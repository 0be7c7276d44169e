"""The console that commands print with."""

from typing import NoReturn

import rich.console


class Console(rich.console.Console):
    """Rich's, but where the reader of the output is gone, `BrokenPipeError` reaches `forge.cli.dispatch`."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise it, and print nothing any more; rich itself would exit with 1."""
        self.quiet = True
        raise BrokenPipeError
