"""Growing context: the size that is asked for of a server which gives as much as it is asked for, as Ollama does."""

from msgspec.structs import replace

from forge.connection import Setup
from forge.proxy.fitting import fits
from stages.wire.served import ServerRequest


class GrowingContext:
    """Asks for enough context for each request, in doublings, up to a limit, and never less than before.

    Ollama loads the model anew for another size, so it grows seldom and does not shrink.
    """

    def __init__(self, tokens: int, limit: int) -> None:
        self.tokens, self.limit = tokens, limit

    def setup_for(self, setup: Setup, request: ServerRequest) -> Setup:
        """The setup that asks for enough."""
        while self.tokens < self.limit and not fits(request, setup, self.tokens):
            self.tokens = min(self.limit, 2 * self.tokens)
        dialect = replace(setup.dialect, context_tokens=self.tokens)
        return replace(setup, context_tokens=self.tokens, dialect=dialect)
