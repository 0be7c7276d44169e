"""Model: the backend as the proxy has it, and what holds for its requests."""

from msgspec import Struct

from forge.connection import Setup
from forge.proxy.growing_context import GrowingContext
from forge.proxy.policy import ModelPolicy, Policy
from forge.proxy.tools import Guards
from forge.proxy.upstream import Upstream
from stages.wire.served import Protocol, ServerRequest
from stages.wire.wires import WireName

VERBATIM: dict[WireName, Protocol] = {"openai": "chat", "anthropic": "messages"}
"""The protocol of a client whose bodies such a backend takes as they are."""


class Model(Struct, frozen=True, kw_only=True):
    """The backend as the proxy has it. `verbatim` is the protocol of which it takes bodies as they come."""

    setup: Setup
    upstream: Upstream
    guards: Guards
    max_retries: int
    verbatim: Protocol | None = None
    name: str = ""
    """The model by which it was asked for; empty: the client's own choice goes through."""
    constrains: bool = False
    """Whether it can keep replies to legal calls, and is asked to where forge runs a workflow."""
    policy: Policy = Policy()
    growing: GrowingContext | None = None
    """For a server that gives as much context as it is asked for."""

    @property
    def window(self) -> int:
        """Tokens of context that a conversation may have."""
        return self.growing.limit if self.growing else self.setup.context_tokens

    def setup_for(self, request: ServerRequest) -> Setup:
        """The setup, with enough context for the request."""
        return self.growing.setup_for(self.setup, request) if self.growing else self.setup

    def policy_for(self, request: ServerRequest) -> ModelPolicy:
        """What holds for the model of this request: as it was asked for by name, or by the client, or as it is."""
        return self.policy.of(self.name) if self.name else self.policy.of(request.model, self.setup.model)
