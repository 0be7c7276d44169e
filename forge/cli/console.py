"""The console that commands print with."""

from typing import NoReturn

import rich.console


class Console(rich.console.Console):
    """Rich's, but where the reader of the output is gone, `BrokenPipeError` reaches `forge.cli.dispatch`."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error that is being handled, and print nothing any more; rich itself would exit with 1."""
        self.quiet = True
        raise  # noqa: PLE0704 - it is called by the handler
