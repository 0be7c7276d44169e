"""Model: the backend as the proxy has it, and what holds for its requests."""

import logging
from collections.abc import Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace

from forge.backends.http_client import refuses_tools
from forge.connection import Endpoint, Setup
from forge.proxy.fitting import GrowingContext
from forge.proxy.policy import ModelPolicy, Policy
from forge.proxy.tools import Guards
from forge.proxy.upstream import Upstream
from stages.effect import Fault
from stages.wire.served import ServerProtocol, ServerRequest
from stages.wire.wires import WireName

VERBATIM: dict[WireName, ServerProtocol] = {"openai": "chat", "anthropic": "messages"}
"""The protocol of a client whose bodies such a backend takes as they are."""

_MOST_NAMES = 256
"""Maximum number of models remembered, the last ones: clients may send any name."""

log = logging.getLogger("forge.proxy")


class ToolFallback:
    """What is done where a backend refuses tools: they are written into the prompt. Remembers which models refused.

    `words` are those of the refusal. `always`: the backend is known to take no tools at all.
    """

    def __init__(self, guards: Guards, words: tuple[str, ...], *, always: bool = False) -> None:
        self.guards, self._words, self._always = guards, words, always
        self._refused: dict[str, None] = {}

    def applies_to(self, model: str) -> bool:
        """Whether that model is known to refuse tools."""
        return self._always or model in self._refused

    def learns(self, model: str, fault: Fault) -> bool:
        """Whether the fault is a refusal of tools, which is then remembered of that model."""
        if not refuses_tools(fault, self._words):
            return False
        if model not in self._refused:
            log.warning("refused, so tools are written into the prompt from now on: %s", fault.detail)
            self._refused[model] = None
            if len(self._refused) > _MOST_NAMES:
                del self._refused[next(iter(self._refused))]
        return True


class Model(Struct, frozen=True, kw_only=True):
    """The backend as the proxy has it. `verbatim` is the protocol of which it takes bodies as they come.

    `fallback` is None where tools are in the prompt anyway, or a refusal of them is to be told.
    """

    setup: Setup
    upstream: Upstream
    guards: Guards
    max_retries: int
    verbatim: ServerProtocol | None = None
    name: str = ""
    """The model by which it was asked for; empty: the client's own choice goes through."""
    constrains: bool = False
    """Whether it can keep replies to legal calls, and is asked to where forge runs a workflow."""
    policy: Policy = Policy()
    growing: GrowingContext | None = None
    """For a server that gives as much context as it is asked for."""
    fallback: ToolFallback | None = None
    count: Callable[[bytes], Awaitable[int | None]] | None = None
    """Counts the tokens of a request by the server's own tokenizer, where it has one."""
    endpoint: Endpoint | None = None

    @property
    def window(self) -> int:
        """Tokens of context that a conversation may have."""
        return self.growing.limit if self.growing else self.setup.context_tokens

    def setup_for(self, request: ServerRequest) -> Setup:
        """The setup, with enough context for the request."""
        return self.growing.setup_for(self.setup, request) if self.growing else self.setup

    def passes(self, request: ServerRequest) -> bool:
        """Whether the client's own body goes to the backend."""
        return request.protocol == self.verbatim and self.setup.mode == "native"

    def name_for(self, request: ServerRequest) -> str:
        """The model that a request names which is written anew; empty: the server's own."""
        return self.name or (request.model if request.protocol == self.verbatim else "")

    def asked_about(self, request: ServerRequest) -> "Model":
        """The backend as it is asked: with the tools in the prompt where the model is known to refuse them."""
        if self.fallback is None or request.choice.mode == "none":
            return self
        known = self.fallback.applies_to(self._sent_name(request))
        return (self.in_text(request) if known else None) or self

    def after_refusal(self, request: ServerRequest, fault: Fault) -> "Model | None":
        """The backend as it is asked once it has refused the request's tools; None for another fault."""
        again = self.in_text(request)
        if again is None or self.fallback is None or not self.fallback.learns(self._sent_name(request), fault):
            return None
        return again

    def _sent_name(self, request: ServerRequest) -> str:
        """The model that the backend is asked for."""
        return self.name_for(request) or self.setup.model or request.model

    def in_text(self, request: ServerRequest) -> "Model | None":
        """The backend with the request's tools in the prompt; None where there are none, or pictures would be lost."""
        loses = self.passes(request) and any(foreign.fate != "dropped" for foreign in request.foreign)
        if self.fallback is None or not request.tools or loses:
            return None
        setup = replace(self.setup, mode="prompted")
        return replace(self, setup=setup, guards=self.fallback.guards, fallback=None)

    def policy_for(self, request: ServerRequest) -> ModelPolicy:
        """What holds for the model of this request: as it was asked for by name, or by the client, or as it is."""
        return self.policy.of(self.name) if self.name else self.policy.of(request.model, self.setup.model)
