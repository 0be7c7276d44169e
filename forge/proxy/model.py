"""Model: the proxy's view of its backend, and how requests to it are made."""

import logging
from collections.abc import Awaitable, Callable

from msgspec import Struct, field
from msgspec.structs import replace

from forge.backends.http_client import refuses_tools
from forge.connection import Endpoint, Setup
from forge.proxy.fitting import GrowingContext
from forge.proxy.judges import ReplyJudges
from forge.proxy.policy import ModelPolicy, Policy
from forge.proxy.upstream import Upstream
from stages.effect import Fault
from stages.wire.server.request import ServerProtocol, ServerRequest
from stages.wire.wires import WireName

VERBATIM: dict[WireName, ServerProtocol] = {"openai": "chat", "anthropic": "messages"}
"""The client protocol whose bodies a backend of that wire accepts unchanged."""

_MODELS = 256
"""Maximum number of models remembered."""

_log = logging.getLogger("forge.proxy")


class ToolFallback(Struct, kw_only=True):
    """Tools are written into the prompt for models that refuse them.

    `words` identify the refusal, `refused` are the models that did; `always`: the backend is known to refuse all tools.
    """

    words: tuple[str, ...]
    always: bool
    refused: dict[str, None] = field(default_factory=dict)


class Model(Struct, frozen=True, kw_only=True):
    """The proxy's view of its backend. `verbatim` is the protocol whose bodies it accepts unchanged.

    `fallback` is None if tools are in the prompt anyway, or if the client should see a refusal.
    """

    setup: Setup
    upstream: Upstream
    judges: ReplyJudges
    max_retries: int
    verbatim: ServerProtocol | None = None
    name: str = ""
    """The configured model; empty: the client chooses."""
    constrains: bool = False
    """Whether it can constrain replies to legal calls."""
    policy: Policy = Policy()
    growing: GrowingContext | None = None
    """For servers that allocate the requested context."""
    fallback: ToolFallback | None = None
    count: Callable[[bytes], Awaitable[int | None]] | None = None
    """Counts the tokens of a request with the server's tokenizer, if it has one."""
    endpoint: Endpoint | None = None

    @property
    def window(self) -> int:
        """Maximum tokens of context."""
        return self.growing.limit if self.growing else self.setup.context_tokens

    def setup_for(self, request: ServerRequest) -> Setup:
        """The setup, with enough context for the request."""
        return self.growing.setup_for(self.setup, request) if self.growing else self.setup

    def passes(self, request: ServerRequest) -> bool:
        """Whether the backend is sent the client's own body."""
        return request.protocol == self.verbatim and self.setup.mode == "native"

    def name_for(self, request: ServerRequest) -> str:
        """The model for a rewritten request; empty: the server's own."""
        return self.name or (request.model if request.protocol == self.verbatim else "")

    def asked_about(self, request: ServerRequest) -> "Model":
        """The backend for this request: with tools in the prompt if the model is known to refuse them."""
        if self.fallback is None or request.choice.mode == "none":
            return self
        known = self.fallback.always or self._sent_name(request) in self.fallback.refused
        return (self.in_text(request) if known else None) or self

    def after_refusal(self, request: ServerRequest, fault: Fault) -> "Model | None":
        """The backend for a retry after it refused the request's tools; None for other faults."""
        again = self.in_text(request)
        if again is None or self.fallback is None or not refuses_tools(fault, self.fallback.words):
            return None
        refused, name = self.fallback.refused, self._sent_name(request)
        if name not in refused:
            _log.warning("refused, so tools are written into the prompt from now on: %s", fault.detail)
            refused[name] = None
            if len(refused) > _MODELS:  # clients may name any number
                del refused[next(iter(refused))]
        return again

    def _sent_name(self, request: ServerRequest) -> str:
        """The model that the backend is asked for, by name."""
        return self.name_for(request) or self.setup.model or request.model

    def in_text(self, request: ServerRequest) -> "Model | None":
        """The backend with the request's tools in the prompt; None if there are none, or pictures would be lost."""
        loses = self.passes(request) and any(foreign.fate != "dropped" for foreign in request.foreign)
        if self.fallback is None or not request.tools or loses:
            return None
        setup = replace(self.setup, mode="prompted")
        return replace(self, setup=setup, fallback=None)

    def policy_for(self, request: ServerRequest) -> ModelPolicy:
        """The policy for this request's model: the configured one, the client's, or the server's."""
        return self.policy.of(self.name) if self.name else self.policy.of(request.model, self.setup.model)
