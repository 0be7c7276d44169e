"""Prompt use: what the next prompt takes of the context, by what it is taken for."""

from msgspec import Struct

from stages.message import System, size
from stages.state import State
from stages.tokens import whole_rate


class PromptUse(Struct, frozen=True, kw_only=True):
    """Tokens of the system prompt, the tools, and the other messages, estimated; and of the whole prompt at most.

    `tools` is 0 before the first request; `limit` is 0 where it is not known.
    """

    system: int
    tools: int
    messages: int
    limit: int

    @property
    def used(self) -> int:
        """The whole prompt."""
        return self.system + self.tools + self.messages


def prompt_use(state: State) -> PromptUse:
    """What the history takes of the context now, by what the server has reported of the last prompt."""
    ledger = state.ledger
    rate = whole_rate(ledger.tokens_per_character, ledger.report)
    system = sum(size(message) for message in state.history if isinstance(message, System))
    messages = sum(map(size, state.history)) - system
    beside = max(0, ledger.prompt_size - state.sent.size) if state.sent.size else 0
    return PromptUse(
        system=int(system * rate),
        tools=int(beside * rate),
        messages=int(messages * rate),
        limit=ledger.context_tokens,
    )
